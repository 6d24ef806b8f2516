/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_databases.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_table.h"                  // filename_to_tablename
#include "catalog_directory.h"               // name_of_directory
#include "catalog_databases.h"
#include <algorithm>
#include <dirent.h>
#ifdef __linux__
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#endif

static int compare_entries(const char *name_a, const char *file_a,
                           const char *name_b, const char *file_b)
{
  const int order= strcmp(name_a, name_b);
  return order ? order : strcmp(file_a, file_b);
}


size_t Known_databases::find(const char *file, const char *name) const
{
  size_t low= 0, high= m_count;
  while (low < high)
  {
    const size_t middle= (low + high) / 2;
    const int order= compare_entries(at(middle).name(), at(middle).file(), name, file);
    if (!order)
      return middle;
    if (order < 0)
      low= middle + 1;
    else
      high= middle;
  }
  return m_count;
}


size_t Known_databases::first(const char *bytes, size_t length, bool behind,
                              size_t low) const
{
  size_t high= m_count;
  while (low < high)
  {
    const size_t middle= (low + high) / 2;
    const int order= strncmp(at(middle).name(), bytes, length);
    if (order < 0 || (behind && !order))
      low= middle + 1;
    else
      high= middle;
  }
  return low;
}


/** Puts the names of a new list together */
class Known_databases_builder
{
public:
  Known_databases_builder()
    : m_offsets(nullptr), m_names(nullptr), m_count(0), m_room_offsets(0), m_bytes(0),
      m_room_bytes(0)
  { }
  ~Known_databases_builder()
  {
    my_free(m_offsets);
    my_free(m_names);
  }

  /** Add a directory by its name. @return true if out of memory */
  bool add(const char *file, bool is_link);
  /** Copy an entry */
  bool add(Known_databases::Entry entry)
  { return add(entry.file(), entry.name(), entry.is_link()); }

  void sort();
  /** Sort, remove the latter of two equal ones, and make the list. NULL: no memory */
  Known_databases *finish();

  size_t count() const { return m_count; }
  Known_databases::Entry at(size_t i) const
  { return Known_databases::Entry(m_names + m_offsets[i]); }

private:
  bool add(const char *file, const char *name, bool is_link);

  uint *m_offsets;
  char *m_names;
  size_t m_count, m_room_offsets, m_bytes, m_room_bytes;
};


template <typename T>
static bool make_room(T **array, size_t *room, size_t wanted)
{
  if (wanted <= *room)
    return false;
  const size_t more= MY_MAX(wanted, *room + *room / 2 + 256);
  T *const grown= (T*) my_realloc(PSI_INSTRUMENT_ME, *array, more * sizeof(T),
                                  MYF(MY_ALLOW_ZERO_PTR));
  if (!grown)
    return true;
  *array= grown;
  *room= more;
  return false;
}


bool Known_databases_builder::add(const char *file, bool is_link)
{
  char name[SAFE_NAME_LEN + 1];
  name_of_directory(file, name, sizeof(name));
  return add(file, name, is_link);
}


bool Known_databases_builder::add(const char *file, const char *name, bool is_link)
{
  const size_t file_length= strlen(file), name_length= strlen(name);
  const bool encoded= strcmp(file, name);
  const size_t length= 1 + file_length + 1 + (encoded ? name_length + 1 : 0);

  if (m_bytes + length > UINT_MAX32 ||
      make_room(&m_offsets, &m_room_offsets, m_count + 1) ||
      make_room(&m_names, &m_room_bytes, m_bytes + length))
    return true;
  m_offsets[m_count++]= (uint) m_bytes;
  char *to= m_names + m_bytes;
  *to++= (char) ((encoded ? Known_databases::ENCODED : 0) |
                 (is_link ? Known_databases::LINK : 0));
  memcpy(to, file, file_length + 1);
  if (encoded)
    memcpy(to + file_length + 1, name, name_length + 1);
  m_bytes+= length;
  return false;
}


void Known_databases_builder::sort()
{
  auto less= [this](uint a_, uint b_)
  {
    const Known_databases::Entry a(m_names + a_), b(m_names + b_);
    return compare_entries(a.name(), a.file(), b.name(), b.file()) < 0;
  };
  if (!std::is_sorted(m_offsets, m_offsets + m_count, less))
    std::sort(m_offsets, m_offsets + m_count, less);
}


Known_databases *Known_databases_builder::finish()
{
  sort();
  /* A directory that comes and goes while the data directory is read may be read twice */
  size_t kept= 0;
  for (size_t i= 0; i < m_count; i++)
  {
    if (!kept || strcmp(at(kept - 1).file(), at(i).file()))
      m_offsets[kept++]= m_offsets[i];
  }

  Known_databases *const list= new (std::nothrow) Known_databases;
  uint *const offsets= (uint*) my_malloc(PSI_INSTRUMENT_ME, (kept + 1) * sizeof(uint),
                                         MYF(0));
  char *const names= (char*) my_malloc(PSI_INSTRUMENT_ME, m_bytes + 1, MYF(0));
  if (!list || !offsets || !names)
  {
    delete list;
    my_free(offsets);
    my_free(names);
    return nullptr;
  }
  memcpy(offsets, m_offsets, kept * sizeof(uint));
  memcpy(names, m_names, m_bytes);
  list->m_offsets= offsets;
  list->m_names= names;
  list->m_count= kept;
  list->m_bytes= m_bytes;
  list->m_users= 1;
  return list;
}


void Known_databases_ref::release(Known_databases *list)
{
  if (list && list->m_users.fetch_sub(1, std::memory_order_acq_rel) == 1)
  {
    my_free(list->m_offsets);
    my_free(list->m_names);
    delete list;
  }
}

#ifdef __linux__

namespace {

/** A name from the queue */
struct Change
{
  const char *file;
  size_t number;                // in the queue
  bool is_removal;              // by rmdir() or unlink()
};

/**
  The newest list, and the queue of changes since. `lock` protects all of it. A thread
  that makes a new list keeps it locked meanwhile. Other threads that want the
  list wait, as they would wait for the file system if they read the directory.
*/
struct Newest
{
  pthread_mutex_t lock;
  Known_databases *list;        // NULL: to be made
  int queue;                    // of inotify; -1: none yet
  bool impossible;              // this data directory cannot be watched
  struct timespec modified;     // the directory's time when the queue was empty

  bool watch();
  void forget();
  bool look_at(const char *file, bool *is_there, bool *is_link) const;
  bool read_directory(bool (*ignored)(const char*));
  bool read_queue(Dynamic_array<Change> *changes, MEM_ROOT *root, bool *lost);
  bool apply_queue(bool (*ignored)(const char*));
  bool bring_up_to_date(bool (*ignored)(const char*));
  bool is_unchanged();
};

Newest newest= { PTHREAD_MUTEX_INITIALIZER, nullptr, -1, false, {0, 0} };


/** Links count: a statement that uses the list looks at the link's target */
bool may_be_database(unsigned char type, bool *is_link)
{
  *is_link= type != DT_DIR;
  return type == DT_DIR || type == DT_LNK || type == DT_UNKNOWN;
}


bool is_database_file(const char *file, bool (*ignored)(const char*))
{
  return strcmp(file, ".") && strcmp(file, "..") &&
         !is_prefix(file, tmp_file_prefix) && !ignored(file);
}


/** @return true if the data directory cannot be watched, maybe for a lack of resources */
bool Newest::watch()
{
  if (queue >= 0)
    return false;
  DBUG_EXECUTE_IF("known_databases_no_queue", return true;);
  /*
    Where capitals do not matter, an event may spell a name in another way than the
    directory does.
  */
  if (impossible || (impossible= lower_case_file_system ||
                                 !is_local_file_system(mysql_data_home)))
    return true;
  if ((queue= inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0)
    return true;
  if (inotify_add_watch(queue, mysql_data_home,
                        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                        IN_ONLYDIR) < 0)
  {
    /* A security module that does not allow it would log each attempt */
    impossible= errno == EACCES || errno == EPERM;
    close(queue);
    queue= -1;
    return true;
  }
  return false;
}


/**
  Is there a directory, or a link, with this name?
  @return true if the file system reports an error
*/
bool Newest::look_at(const char *file, bool *is_there, bool *is_link) const
{
  char path[2 * FN_REFLEN + 2];
  struct stat stat;
  strxnmov(path, sizeof(path) - 1, mysql_data_home, FN_ROOTDIR, file, NullS);
  if (lstat(path, &stat))
  {
    *is_there= false;
    return errno != ENOENT;
  }
  *is_link= S_ISLNK(stat.st_mode);
  *is_there= *is_link || S_ISDIR(stat.st_mode);
  return false;
}


void Newest::forget()
{
  Known_databases_ref::release(list);
  list= nullptr;
  if (queue >= 0)
    close(queue);
  queue= -1;
}


/** @return true if the list could not be made */
bool Newest::read_directory(bool (*ignored)(const char*))
{
  Known_databases_builder builder;
  DIR *const dir= opendir(mysql_data_home);
  bool error= !dir;
  errno= 0;
  while (!error)
  {
    const struct dirent *entry= readdir(dir);
    bool is_link;
    if (!entry)
    {
      error= errno != 0;
      break;
    }
    if (may_be_database(entry->d_type, &is_link) &&
        is_database_file(entry->d_name, ignored))
      error= builder.add(entry->d_name, is_link);
    errno= 0;
  }
  if (dir)
    closedir(dir);
  return error || !(list= builder.finish());
}


/**
  Take the names from the queue.
  @param[out] lost  true: there may be changes that are not in the queue
  @return true if out of memory
*/
bool Newest::read_queue(Dynamic_array<Change> *changes, MEM_ROOT *root, bool *lost)
{
  alignas(struct inotify_event) char buffer[8192];
  ssize_t length;
  while ((length= read(queue, buffer, sizeof(buffer))) > 0)
  {
    for (char *at= buffer; at < buffer + length; )
    {
      auto event= reinterpret_cast<const struct inotify_event *>(at);
      at+= sizeof(*event) + event->len;
      if (event->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT) || !event->len)
        *lost= true;
      else
      {
        const Change change= { strdup_root(root, event->name), changes->elements(),
                               (event->mask & IN_DELETE) != 0 };
        if (!change.file || changes->append(change))
          return true;
      }
    }
  }
  if (length == 0 || errno != EAGAIN)
    *lost= true;
  return false;
}


/** Order of changes: by name, and the last change of a name first */
int compare_changes(const void *a_, const void *b_)
{
  auto a= static_cast<const Change *>(a_), b= static_cast<const Change *>(b_);
  const int order= strcmp(a->file, b->file);
  return order ? order : a->number < b->number ? 1 : -1;
}


/**
  Make the next list from this one and the changes in the queue.

  1. A name whose last change is a removal is gone. The function does not ask the file
     system: in Linux 5.3 to 5.16 (corrected in some versions of these) lstat() may find
     the name for a moment after the event. If the name is created again, that is in the
     queue, too, before mkdir() returns.
  2. For any other change the function asks the file system. The change alone does not
     say whether the name exists: of two names that are exchanged (RENAME_EXCHANGE), the
     last change of one is that it has moved away.

  @return true if there is no new list: no memory, or changes are lost
*/
bool Newest::apply_queue(bool (*ignored)(const char*))
{
  MEM_ROOT root;
  Dynamic_array<Change> changes(PSI_INSTRUMENT_MEM);
  Known_databases_builder come, next;
  Dynamic_array<size_t> gone(PSI_INSTRUMENT_MEM);
  bool lost= false, error;

  init_alloc_root(PSI_INSTRUMENT_ME, &root, 4096, 0, MYF(0));
  error= read_queue(&changes, &root, &lost) || lost;
  changes.sort(compare_changes);
  for (size_t i= 0; i < changes.elements() && !error; i++)
  {
    const char *const file= changes.at(i).file;
    char name[SAFE_NAME_LEN + 1];
    bool is_there= false, is_link= false;
    if ((i && !strcmp(changes.at(i - 1).file, file)) || !is_database_file(file, ignored))
      continue;
    name_of_directory(file, name, sizeof(name), true);
    const size_t old= list->find(file, name);
    if (!changes.at(i).is_removal && (error= look_at(file, &is_there, &is_link)))
      break;
    if (old < list->count())
    {
      if (is_there && list->at(old).is_link() == is_link)
        continue;
      error= gone.append(old);
    }
    if (is_there && !error)
      error= come.add(file, is_link);
  }
  free_root(&root, MYF(0));
  if (error || (!gone.elements() && !come.count()))
    return error;

  /* Merge */
  come.sort();
  gone.sort([](const void *a, const void *b) -> int
            { return CMP_NUM(*static_cast<const size_t*>(a),
                             *static_cast<const size_t*>(b)); });
  size_t new_one= 0, old_gone= 0;
  for (size_t i= 0; i < list->count() && !error; i++)
  {
    const Known_databases::Entry old= list->at(i);
    if (old_gone < gone.elements() && gone.at(old_gone) == i)
    {
      old_gone++;
      continue;
    }
    for (; new_one < come.count() && !error &&
           compare_entries(come.at(new_one).name(), come.at(new_one).file(),
                           old.name(), old.file()) < 0; new_one++)
      error= next.add(come.at(new_one));
    error= error || next.add(old);
  }
  for (; new_one < come.count() && !error; new_one++)
    error= next.add(come.at(new_one));

  Known_databases *const made= error ? nullptr : next.finish();
  if (!made)
    return true;
  Known_databases_ref::release(list);
  list= made;
  return false;
}


bool Newest::is_unchanged()
{
  struct stat stat;
  int bytes= 0;
  return list && !::stat(mysql_data_home, &stat) &&
         stat.st_mtim.tv_sec == modified.tv_sec &&
         stat.st_mtim.tv_nsec == modified.tv_nsec &&
         !ioctl(queue, FIONREAD, &bytes) && !bytes;
}


/** @return true if there is no list */
bool Newest::bring_up_to_date(bool (*ignored)(const char*))
{
  if (is_unchanged())
    return false;

  for (int attempt= 0; attempt < 2; attempt++)
  {
    struct stat stat;
    int bytes= 0;
    /*
      The directory has another modification time, but the queue has no change. Either
      the kernel has not queued the change at all, or it has not queued it yet.
    */
    if (list && (ioctl(queue, FIONREAD, &bytes) || !bytes))
      forget();
    if (!list && (watch() || read_directory(ignored)))
      break;
    /* Get the time last: a change before that has been read, or is in the queue */
    if (!apply_queue(ignored) && !::stat(mysql_data_home, &stat))
    {
      modified= stat.st_mtim;
      return false;
    }
    forget();
  }
  forget();
  return true;
}

} // namespace


bool Known_databases_ref::acquire(bool (*ignored)(const char *directory))
{
  DBUG_ASSERT(!m_list);
  pthread_mutex_lock(&newest.lock);
  if (!newest.bring_up_to_date(ignored))
  {
    m_list= newest.list;
    m_list->m_users.fetch_add(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&newest.lock);
  return m_list;
}


bool Known_databases_ref::acquire_unchanged()
{
  DBUG_ASSERT(!m_list);
  if (pthread_mutex_trylock(&newest.lock))
    return false;
  if (newest.is_unchanged())
  {
    m_list= newest.list;
    m_list->m_users.fetch_add(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&newest.lock);
  return m_list;
}


void known_databases_free()
{
  pthread_mutex_lock(&newest.lock);
  newest.forget();
  newest.impossible= false;             // An embedded server may go on elsewhere
  pthread_mutex_unlock(&newest.lock);
}


bool is_local_file_system(const char *directory)
{
  struct statfs fs;
  if (statfs(directory, &fs))
    return false;
  switch ((ulong) fs.f_type) {
  case 0xEF53:                          // ext2, ext3, ext4
  case 0x58465342:                      // XFS
  case 0x9123683E:                      // Btrfs
  case 0xF2F52010:                      // F2FS
  case 0x01021994:                      // tmpfs
    return true;
  default:
    return false;
  }
}

#else

bool Known_databases_ref::acquire(bool (*)(const char*)) { return false; }
bool Known_databases_ref::acquire_unchanged() { return false; }
void known_databases_free() { }
bool is_local_file_system(const char*) { return false; }

#endif
