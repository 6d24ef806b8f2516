/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_tables.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_parse.h"                  // sql_command_flags
#include "catalog_databases.h"            // is_local_file_system
#include "debug_sync.h"
#include "catalog_tables.h"
#include <atomic>

/*
  Numbers of engines that are initialized, of those whose tables need no files,
  and of those whose tables need no .frm file. engine_changes counts how often
  any of these has changed, and engines_asked how often this thread has asked an
  engine for its tables.
*/
static std::atomic<int> engines_initialized(0), engines_without_files(0);
static std::atomic<int> engines_without_frm(0);
static std::atomic<ulonglong> engine_changes(0);
static thread_local ulonglong engines_asked= 0;

void known_tables_engine(int change, bool by_files, bool by_frm)
{
  if (!by_files)
    engines_without_files+= change;
  if (!by_frm)
    engines_without_frm+= change;
  engines_initialized+= change;
  engine_changes++;
}


void known_tables_engine_asked()
{
  engines_asked++;
}


bool tables_have_frm()
{
  return !engines_without_frm;
}

#ifdef __linux__

/** For each database, the names of its tables and their index take at most so
    many bytes */
static constexpr size_t TABLES_ROOM= 150;
/** The server allows room for this many databases more than it keeps */
static constexpr size_t FIRST_DATABASES= 1000;
/** Seconds after which a directory's time of change is trusted */
static constexpr longlong OLD_ENOUGH= 2;
/** The server may remove a directory for which no statement has asked for so
    many seconds */
static constexpr longlong UNUSED_FOR= 3600;

/** The names of the tables of one or more directories, next to each other */
struct Table_names
{
  Table_names *next;            // in its bucket
  uint hash, users;             // users: directories
  uint count, length;           // names, and bytes of all with the 0 behind each
  char names[1];
};


/**
  The directories and the names of their tables. `lock` protects every field.
  The caller of a function holds it, except for make_key(), is_same() and add().

  The directories are in an open hash table by their inodes, with linear
  probing. The lists of names are in buckets by the names' hash. When the hash
  table is three quarters full, but at most once an hour, a thread removes the
  directories that no statement has asked for in the last hour. These include
  all directories that a user dropped earlier than that.
*/
struct Known_tables
{
  struct Directory
  {
    ulonglong inode;            // 0: free
    ulonglong changed;          // ctime in ns
    Table_names *list;
    longlong asked_for;         // the last time, in seconds
  };

  pthread_mutex_t lock;
  Directory *directories;
  size_t size, used;            // of directories; size is a power of two
  Table_names **buckets;        // size of them
  size_t bytes;                 // of all lists
  ulonglong device;             // of the data directory; 0: not known yet
  ulonglong engines;            // engine_changes when the first name was kept
  longlong swept;               // when unused directories were last removed, in seconds
  bool impossible;              // another file system

  static bool make_key(const char *path, Known_tables_key *key);
  bool is_here(ulonglong a_device);
  Directory *find(ulonglong inode);
  void remove(Directory *directory);
  void release(Table_names *list);
  bool make_room();
  bool resize(size_t new_size);
  Table_names *share_list(const Dynamic_array<LEX_CSTRING*> &tables);
  void add(const Known_tables_key &key, const Dynamic_array<LEX_CSTRING*> &tables);
  void keep(const Known_tables_key &key, const Dynamic_array<LEX_CSTRING*> &tables);
  void clear();

  static bool is_same(const Directory &directory, const Known_tables_key &key)
  { return directory.changed == key.m_changed; }
};

static Known_tables known= { PTHREAD_MUTEX_INITIALIZER, nullptr, 0, 0, nullptr, 0, 0, 0,
                             0, false };


static size_t hash_of_inode(ulonglong inode)
{
  return (size_t) ((inode * 0x9E3779B97F4A7C15ULL) >> 20);
}


static ulonglong nanoseconds(const struct timespec &time)
{
  return time.tv_sec * 1000000000ULL + time.tv_nsec;
}


/** @return false if the server must not keep names of this directory */
bool Known_tables::make_key(const char *path, Known_tables_key *key)
{
  struct stat stat;
  struct timespec now;
  /* Get the time first: a directory that changes later is not old enough */
  if (engines_without_files || clock_gettime(CLOCK_REALTIME_COARSE, &now) ||
      ::stat(path, &stat) || !stat.st_ino || !stat.st_ctim.tv_nsec ||
      stat.st_ctim.tv_sec <= 0)
    return false;
  longlong old_enough= OLD_ENOUGH;
  /* For tests: trust a ctime after one tick of the file system's clock */
  DBUG_EXECUTE_IF("known_tables_young", old_enough= 0;);
  const ulonglong changed= nanoseconds(stat.st_ctim);
  if (changed + old_enough * 1000000000ULL >= nanoseconds(now))
    return false;

  key->m_now= now.tv_sec;
  key->m_device= stat.st_dev;
  key->m_inode= stat.st_ino;
  key->m_changed= changed;
  key->m_engines= engine_changes;
  key->m_asked= engines_asked;
  return true;
}


/** Is this the data directory's file system, and a local one? */
bool Known_tables::is_here(ulonglong a_device)
{
  if (!device && !impossible)
  {
    struct stat home;
    if (!is_local_file_system(mysql_data_home) || ::stat(mysql_data_home, &home))
      impossible= true;
    else
      device= home.st_dev;
  }
  return !impossible && a_device == device;
}


Known_tables::Directory *Known_tables::find(ulonglong inode)
{
  if (!size)
    return nullptr;
  for (size_t i= hash_of_inode(inode);; i++)
  {
    Directory *const directory= &directories[i & (size - 1)];
    if (directory->inode == inode)
      return directory;
    if (!directory->inode)
      return nullptr;
  }
}


void Known_tables::release(Table_names *list)
{
  if (--list->users)
    return;
  Table_names **at= &buckets[list->hash & (size - 1)];
  while (*at != list)
    at= &(*at)->next;
  *at= list->next;
  bytes-= sizeof(Table_names) + list->length;
  my_free(list);
}


/** Remove a directory, and close the gap in the chain of those that follow it */
void Known_tables::remove(Directory *directory)
{
  release(directory->list);
  used--;
  size_t gap= directory - directories;
  for (size_t i= gap;;)
  {
    i= (i + 1) & (size - 1);
    if (!directories[i].inode)
      break;
    const size_t home= hash_of_inode(directories[i].inode) & (size - 1);
    if (((i - home) & (size - 1)) >= ((i - gap) & (size - 1)))
    {
      directories[gap]= directories[i];
      gap= i;
    }
  }
  directories[gap].inode= 0;
}


bool Known_tables::resize(size_t new_size)
{
  auto new_directories= (Directory*) my_malloc(PSI_INSTRUMENT_ME,
                                               new_size * sizeof(Directory),
                                               MYF(MY_ZEROFILL));
  auto new_buckets= (Table_names**) my_malloc(PSI_INSTRUMENT_ME,
                                              new_size * sizeof(*buckets),
                                              MYF(MY_ZEROFILL));
  if (!new_directories || !new_buckets)
  {
    my_free(new_directories);
    my_free(new_buckets);
    return true;
  }
  for (size_t i= 0; i < size; i++)
  {
    for (Table_names *list= buckets[i], *next; list; list= next)
    {
      next= list->next;
      Table_names **const bucket= &new_buckets[list->hash & (new_size - 1)];
      list->next= *bucket;
      *bucket= list;
    }
    if (directories[i].inode)
    {
      size_t to= hash_of_inode(directories[i].inode);
      while (new_directories[to & (new_size - 1)].inode)
        to++;
      new_directories[to & (new_size - 1)]= directories[i];
    }
  }
  my_free(directories);
  my_free(buckets);
  directories= new_directories;
  buckets= new_buckets;
  size= new_size;
  return false;
}


/** Room for one more directory. @return true if out of memory */
bool Known_tables::make_room()
{
  if (used < size / 4 * 3)
    return false;
  const longlong now= time(nullptr);
  if (now >= swept + UNUSED_FOR)
  {
    swept= now;
    for (size_t i= 0; i < size;)
    {
      if (directories[i].inode && directories[i].asked_for + UNUSED_FOR < now)
        remove(&directories[i]);        // Another one may move here
      else
        i++;
    }
  }
  return used >= size / 2 && resize(size ? 2 * size : 1024);
}


/** A list with these names. NULL: no room, or out of memory */
Table_names *Known_tables::share_list(const Dynamic_array<LEX_CSTRING*> &tables)
{
  ulonglong hash= 0;
  size_t length= 0;
  for (size_t i= 0; i < tables.elements(); i++)
  {
    const LEX_CSTRING *name= tables.at(i);
    for (size_t j= 0; j <= name->length; j++)
      hash= (hash ^ (uchar) name->str[j]) * 0x100000001B3ULL;
    length+= name->length + 1;
  }
  hash^= hash >> 32;

  Table_names **const bucket= &buckets[hash & (size - 1)];
  for (Table_names *list= *bucket; list; list= list->next)
  {
    if (list->hash != (uint) hash || list->length != length)
      continue;
    const char *name= list->names;
    size_t i= 0;
    for (; i < tables.elements() &&
           !memcmp(name, tables.at(i)->str, tables.at(i)->length + 1); i++)
      name+= tables.at(i)->length + 1;
    if (i == tables.elements())
    {
      list->users++;
      return list;
    }
  }

  const size_t all= sizeof(Table_names) + length;
  const size_t index= size * (sizeof(Directory) + sizeof(*buckets));
  if (index + bytes + all > TABLES_ROOM * (used + FIRST_DATABASES))
    return nullptr;
  auto list= (Table_names*) my_malloc(PSI_INSTRUMENT_ME, all, MYF(0));
  if (!list)
    return nullptr;
  list->hash= (uint) hash;
  list->users= 1;
  list->count= (uint) tables.elements();
  list->length= (uint) length;
  char *to= list->names;
  for (size_t i= 0; i < tables.elements(); i++)
  {
    memcpy(to, tables.at(i)->str, tables.at(i)->length + 1);
    to+= tables.at(i)->length + 1;
  }
  list->next= *bucket;
  *bucket= list;
  bytes+= all;
  return list;
}


/**
  Keep the names if the thread has asked all engines about the files, that is,
  if

  1. the set of initialized engines is the same as when the thread made the key;
  2. the thread has asked as many engines since then as are initialized. The
     numbers differ if the server is loading or unloading an engine: the engine
     counts as initialized, but the server does not ask it.
*/
void Known_tables::add(const Known_tables_key &key,
                       const Dynamic_array<LEX_CSTRING*> &tables)
{
  if (engines_asked - key.m_asked != (ulonglong) engines_initialized ||
      engine_changes != key.m_engines)
    return;
  pthread_mutex_lock(&lock);
  keep(key, tables);
  pthread_mutex_unlock(&lock);
}


void Known_tables::keep(const Known_tables_key &key,
                        const Dynamic_array<LEX_CSTRING*> &tables)
{
  if (engines != key.m_engines)
  {
    clear();
    engines= key.m_engines;
  }
  if (Directory *old= find(key.m_inode))
    remove(old);
  if (make_room())
    return;
  Table_names *const list= share_list(tables);
  if (!list)
    return;
  size_t to= hash_of_inode(key.m_inode);
  while (directories[to & (size - 1)].inode)
    to++;
  Directory *const directory= &directories[to & (size - 1)];
  directory->inode= key.m_inode;
  directory->changed= key.m_changed;
  directory->asked_for= key.m_now;
  directory->list= list;
  used++;
}


void Known_tables::clear()
{
  for (size_t i= 0; i < size; i++)
  {
    for (Table_names *list= buckets[i], *next; list; list= next)
    {
      next= list->next;
      my_free(list);
    }
  }
  my_free(directories);
  my_free(buckets);
  directories= nullptr;
  buckets= nullptr;
  size= used= bytes= 0;
}


bool known_tables_find(THD *thd, const LEX_CSTRING &db, const char *path,
                       const LEX_CSTRING &wild, Dynamic_array<LEX_CSTRING*> *tables,
                       Known_tables_key *key)
{
  DBUG_EXECUTE_IF("catalog_full_walk", return false;);
  if (is_perfschema_db(&db) || !Known_tables::make_key(path, key))
    return false;
  Discovered_table_list found(thd, tables, &wild);
  pthread_mutex_lock(&known.lock);
  if (!known.is_here(key->m_device))
  {
    pthread_mutex_unlock(&known.lock);
    key->m_changed= 0;
    return false;
  }
  Known_tables::Directory *const directory=
    known.engines == key->m_engines ? known.find(key->m_inode) : nullptr;
  const bool is_known= directory && Known_tables::is_same(*directory, *key);
  if (is_known)
  {
    directory->asked_for= key->m_now;
    const char *name= directory->list->names;
    for (uint i= 0; i < directory->list->count; i++)
    {
      const size_t length= strlen(name);
      if (found.add_table(name, length))
        break;
      name+= length + 1;
    }
  }
  pthread_mutex_unlock(&known.lock);
  if (!is_known)
  {
    DEBUG_SYNC(thd, "known_tables_not_found");
    return false;
  }
  DBUG_EXECUTE_IF("known_tables_young",
                  push_warning(thd, Sql_condition::WARN_LEVEL_NOTE, ER_YES,
                               "Names of tables from memory"););

  /* In the order in which find_files() leaves them */
  if (sql_command_flags[thd->lex->sql_command] & CF_STATUS_COMMAND)
    found.sort();
#ifndef DBUG_OFF
  else
    found.sort_desc();
#endif
  return true;
}


void known_tables_add(const Known_tables_key &key, const char *path,
                      const Dynamic_array<LEX_CSTRING*> &tables)
{
  struct stat stat;
  DBUG_ASSERT(key.is_usable());
  /* A link may have led to another directory when the names were read */
  if (!::stat(path, &stat) && stat.st_ino == key.m_inode &&
      nanoseconds(stat.st_ctim) == key.m_changed)
    known.add(key, tables);
}


void known_tables_free()
{
  pthread_mutex_lock(&known.lock);
  known.clear();
  known.device= 0;                      // An embedded server may go on elsewhere
  known.impossible= false;
  pthread_mutex_unlock(&known.lock);
}

#else

bool known_tables_find(THD *, const LEX_CSTRING &, const char *, const LEX_CSTRING &,
                       Dynamic_array<LEX_CSTRING*> *, Known_tables_key *)
{ return false; }
void known_tables_add(const Known_tables_key &, const char *,
                      const Dynamic_array<LEX_CSTRING*> &)
{ }
void known_tables_free() { }

#endif
