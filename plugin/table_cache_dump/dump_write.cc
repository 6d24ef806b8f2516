/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Write and read the dump of the table cache.

  Only the daemon thread writes and reads the file.

  It writes a dump in two steps:

  1. It reads the definitions one at a time, each under its LOCK_table_share,
     and makes the text in memory. It locks nothing of the table cache, so a
     dump stops no other thread; see tc_get_share_info().
  2. After the walk, it writes the text to a temporary file, syncs that, and
     renames it. So whenever the server ends, the file has either the complete
     new dump or the previous one.

  The dump has these tables:

  1. tables that have an open instance, or that a statement has used since the
     server read their definition;
  2. tables that a load has not reached, because it still runs or was aborted,
     with the numbers of the loaded file, as if the load had completed.

  It does not have tables that only scans have used (tc_is_scan()), views,
  tables of INFORMATION_SCHEMA and PERFORMANCE_SCHEMA, tables on other servers
  (is_elsewhere()), and MEMORY and MERGE tables (must_user_open()).
*/

#include "table_cache_dump.h"
#include <my_dir.h>
#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

#ifndef O_NOFOLLOW
#define O_NOFOLLOW 0
#endif


/* --------------------------------------------------------- what is cached */

struct Collected
{
  THD *thd;
  const Dump *loaded;
  MEM_ROOT root;                        /* holds the keys */
  DYNAMIC_ARRAY entries;
  ulonglong seconds_since_load;
  /** One for each table of the loaded dump: has the walk found the table? */
  bool *found;
};


/**
  If a load has opened a table and no user has used it since, keep the numbers
  of the loaded file, and add the time since the load to the seconds without
  use.
*/

static void keep_what_was_known(const Collected *all, const TC_share_info *info,
                                Dump_entry *entry)
{
  const Dump_entry *before= all->loaded->find((const uchar*) entry->key,
                                              entry->key_length);
  if (!before)
    return;
  all->found[before - all->loaded->entries]= true;
  if (info->ever_used || info->in_use)
    return;
  entry->uses= before->uses;
  entry->idle_seconds= before->idle_seconds + all->seconds_since_load;
}


/** Add the tables that the load has not reached. @return true: out of memory */

static bool add_rest(Collected *all)
{
  const Dump *loaded= all->loaded;
  for (size_t i= 0; i < loaded->n; i++)
  {
    if (all->found[i] || loaded->reached[i])
      continue;
    Dump_entry entry= loaded->entries[i];
    entry.idle_seconds+= all->seconds_since_load;
    if (insert_dynamic(&all->entries, &entry))
      return true;
  }
  return false;
}


/** @return the engine of a table, or of its partitions */

static const handlerton *engine_of(const TABLE_SHARE *share)
{
#ifdef WITH_PARTITION_STORAGE_ENGINE
  if (share->default_part_plugin)
    return plugin_hton(share->default_part_plugin);
#endif
  return share->db_type();
}


/**
  Must a user's thread be the first to open this table?

  1. MEMORY: yes. The thread that opens the table first after a restart makes
     its own max_heap_table_size the limit of the table.
  2. MERGE: yes. The thread also opens the child tables, for which the load has
     reserved no places. The dump lists each open child table separately.
*/

static bool must_user_open(const TABLE_SHARE *share)
{
  const handlerton *engine= engine_of(share);
  return engine && (engine->db_type == DB_TYPE_HEAP ||
                    engine->db_type == DB_TYPE_MRG_MYISAM);
}


/**
  Does the server connect to another one when it opens this table?

  No flag of an engine says so. The function returns true if

  1. the table has a connection string (FEDERATED, FEDERATEDX, and some tables
     of CONNECT and SPIDER);
  2. its partitions may have one (all tables of SPIDER);
  3. the table is in storage that replicas share (S3, with its default
     settings).

  A thread that opens a partitioned table sets the share's connection string to
  that of each partition in turn, without a lock. So for a partitioned table
  this function reads the text of the partitions' definition, which does not
  change.
*/

static bool is_elsewhere(const TABLE_SHARE *share)
{
  const handlerton *engine= engine_of(share);
#ifdef WITH_PARTITION_STORAGE_ENGINE
  if (share->default_part_plugin)
  {
    if (share->partition_info_str &&
        strstr(share->partition_info_str, "CONNECTION = "))
      return true;
  }
  else
#endif
  if (share->connect_string.length)
    return true;
  return engine && engine->flags & (HTON_CAN_READ_CONNECT_STRING_IN_PARTITION |
                                    HTON_IGNORE_UPDATES |
                                    HTON_TABLE_MAY_NOT_EXIST_ON_SLAVE);
}


static my_bool collect(void *arg, void *all_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Collected *all= static_cast<Collected*>(all_arg);
  TC_share_info info;

  mysql_mutex_lock(&element->LOCK_table_share);
  const TABLE_SHARE *share= element->share;
  const bool wanted= share && !share->is_view && !element->flushed &&
    share->table_category < TABLE_CATEGORY_INFORMATION &&
    !is_elsewhere(share) && !must_user_open(share);
  if (wanted)
    tc_get_share_info(element, &info);
  mysql_mutex_unlock(&element->LOCK_table_share);
  if (!wanted || info.only_scanned ||
      !(info.open || (info.ever_used && info.hits)))
    return FALSE;

  Dump_entry entry;
  const size_t length= element->m_key_length;
  const char *key= (const char*) element->m_key;
  const size_t db_length= strlen(key);
  if (!dump_name_is_valid(key, db_length) ||
      !dump_name_is_valid(key + db_length + 1, length - db_length - 2))
    return FALSE;
  if (!(entry.key= (const char*) memdup_root(&all->root, key, length)))
    return TRUE;
  entry.key_length= (uint) length;
  entry.tables= MY_MAX(info.open, 1);
  entry.uses= info.hits + info.misses -
              MY_MIN(info.scan_opens, info.misses);
  entry.idle_seconds= info.idle_seconds;
  keep_what_was_known(all, &info, &entry);
  return insert_dynamic(&all->entries, &entry);
}


static bool is_hotter(const Dump_entry &a, const Dump_entry &b)
{
  const double heat_a= a.heat(), heat_b= b.heat();
  return heat_a != heat_b ? heat_a > heat_b :
         a.idle_seconds < b.idle_seconds;
}


/** Make the text of the cached tables. @return true if out of memory */

static bool make_text(THD *thd, const Dump *loaded, DYNAMIC_STRING *lines,
                      ulong *tables)
{
  Collected all;
  all.thd= thd;
  all.loaded= loaded;
  all.seconds_since_load= loaded->n ? (microsecond_interval_timer() -
                                       loaded->read_at) / 1000000 : 0;
  if (!(all.found= static_cast<bool*>
        (my_malloc(PSI_NOT_INSTRUMENTED, loaded->n + 1, MYF(MY_ZEROFILL)))))
    return true;
  init_alloc_root(PSI_NOT_INSTRUMENTED, &all.root, 65536, 0, MYF(0));
  my_init_dynamic_array(PSI_NOT_INSTRUMENTED, &all.entries, sizeof(Dump_entry),
                        1024, 65536, MYF(0));
  bool error= tdc_iterate(thd, collect, &all, true) || add_rest(&all);
  if (!error)
  {
    Dump_entry *entry= dynamic_element(&all.entries, 0, Dump_entry*);
    *tables= (ulong) all.entries.elements;
    std::sort(entry, entry + *tables, is_hotter);
    for (ulong i= 0; i < *tables && !error; i++)
      error= dump_add(lines, entry + i);
  }
  delete_dynamic(&all.entries);
  free_root(&all.root, MYF(0));
  my_free(all.found);
  return error;
}


/* --------------------------------------------------------------- the file */

static void path_of(char *path, const char *name)
{
  fn_format(path, name, mysql_real_data_home, "",
            MY_REPLACE_DIR | MY_UNPACK_FILENAME | MY_SAFE_PATH);
}


/** @return NULL, or the step that failed; then errno is in my_errno */

static const char *write_text(const char *path, const DYNAMIC_STRING *lines,
                              ulong tables)
{
  char header[DUMP_HEADER];
  const size_t header_length= dump_header(header, lines, tables);
  /* If a file has this name already, remove it: never write to it. */
  my_delete(path, MYF(0));
  File file= my_create(path, S_IRUSR | S_IWUSR,
                       O_WRONLY | O_EXCL | O_NOFOLLOW, MYF(0));
  if (file < 0)
    return "cannot create";
  const char *error= NULL;
  DBUG_EXECUTE_IF("table_cache_dump_crash",
                  my_write(file, (uchar*) header, header_length, MYF(MY_NABP));
                  DBUG_SUICIDE(););
  if (my_write(file, (uchar*) header, header_length, MYF(MY_NABP)) ||
      my_write(file, (uchar*) lines->str, lines->length, MYF(MY_NABP)) ||
      DBUG_IF("table_cache_dump_disk_full"))
    error= "cannot write";
  else if (my_sync(file, MYF(0)))
    error= "cannot sync";
  const int saved= my_errno;
  if (my_close(file, MYF(0)) && !error)
    return "cannot close";
  my_errno= saved;
  return error;
}


/**
  Write the dump.

  @param loaded       the dump that the last load has read
  @param[out] tables  number of tables in the new dump

  @return NULL, or the step that failed. After a failure the previous file is
          still in place.
*/

const char *dump_write(THD *thd, const Dump *loaded, ulong *tables)
{
  char path[FN_REFLEN], temporary[FN_REFLEN];
  DYNAMIC_STRING lines;
  const char *error;

  *tables= 0;
  my_errno= 0;
  path_of(path, dump_file_name);
  path_of(temporary, dump_temporary_name);
  if (init_dynamic_string(&lines, "", 65536, 1048576))
    return "out of memory";
  if (make_text(thd, loaded, &lines, tables))
    error= "out of memory";
  else if ((error= write_text(temporary, &lines, *tables)) ||
           (my_rename(temporary, path, MYF(0)) && (error= "cannot rename")))
  {
    const int saved= my_errno;
    my_delete(temporary, MYF(0));
    my_errno= saved;
  }
  else
    my_sync_dir(mysql_real_data_home, MYF(0));
  dynstr_free(&lines);
  return error;
}


/**
  Create a file that exists while a load at startup runs. If the server finds it
  at the next startup, it knows that it ended during a load, and takes the load
  for the cause.

  The function does not sync the file: if the whole machine goes down, no table
  is to blame.

  @return true if it cannot create the file; then errno is in my_errno
*/

bool dump_create_loading_file()
{
  char path[FN_REFLEN];
  path_of(path, dump_loading_name);
  File file= my_create(path, S_IRUSR | S_IWUSR,
                       O_WRONLY | O_EXCL | O_NOFOLLOW, MYF(0));
  return file < 0 || my_close(file, MYF(0));
}


bool dump_loading_file_exists()
{
  char path[FN_REFLEN];
  path_of(path, dump_loading_name);
  return !my_access(path, F_OK);
}


void dump_remove_loading_file()
{
  char path[FN_REFLEN];
  path_of(path, dump_loading_name);
  my_delete(path, MYF(0));
}


static const uchar *entry_key(const void *arg, size_t *length, my_bool)
{
  const Dump_entry *entry= static_cast<const Dump_entry*>(arg);
  *length= entry->key_length;
  return (const uchar*) entry->key;
}


/**
  Read the file.

  @param[out] missing  whether there is no file

  @return NULL, or what is wrong. After an error the dump is empty.
*/

const char *Dump::read(bool *missing)
{
  char path[FN_REFLEN];
  MY_STAT stat;
  const char *error= NULL;

  text= NULL;
  entries= NULL;
  reached= NULL;
  n= 0;
  *missing= false;
  path_of(path, dump_file_name);
  File file= my_open(path, O_RDONLY | O_NOFOLLOW, MYF(0));
  if (file < 0)
  {
    *missing= my_errno == ENOENT;
    return "cannot be opened";
  }
  if (my_fstat(file, &stat, MYF(0)) || !MY_S_ISREG(stat.st_mode))
    error= "is not a file";
  else if (!(text= static_cast<char*>
             (my_malloc(PSI_NOT_INSTRUMENTED, (size_t) stat.st_size + 1,
                        MYF(0)))))
    error= "does not fit into memory";
  else if (my_read(file, (uchar*) text, (size_t) stat.st_size, MYF(MY_NABP)))
    error= "cannot be read";
  my_close(file, MYF(0));
  if (!error)
    error= dump_parse(text, (size_t) stat.st_size, &entries, &n);
  read_at= microsecond_interval_timer();
  if (!error && n &&
      !(reached= static_cast<std::atomic<bool>*>
        (my_malloc(PSI_NOT_INSTRUMENTED, n * sizeof(*reached),
                   MYF(MY_ZEROFILL)))))
    error= "does not fit into memory";
  if (!error && n)
  {
    my_hash_init(PSI_NOT_INSTRUMENTED, &by_key, &my_charset_bin, (ulong) n, 0,
                 0, entry_key, 0, 0);
    for (size_t i= 0; i < n && !error; i++)
    {
      if (my_hash_insert(&by_key, (uchar*) (entries + i)))
        error= "does not fit into memory";
    }
    if (error)
      my_hash_free(&by_key);
  }
  if (error)
  {
    n= 0;                               /* So destroy() does not free the hash */
    destroy();
  }
  return error;
}


/** @return the entry of this table, or NULL */

const Dump_entry *Dump::find(const uchar *key, uint length) const
{
  if (!n)
    return NULL;
  return (const Dump_entry*) my_hash_search(const_cast<HASH*>(&by_key), key,
                                            length);
}


/** Forget the tables that the load has not reached: the caches are full. */

void Dump::forget_rest()
{
  for (size_t i= 0; i < n; i++)
    reached[i]= true;
}


void Dump::destroy()
{
  if (n)
    my_hash_free(&by_key);
  my_free(reached);
  my_free(entries);
  my_free(text);
  reached= NULL;
  entries= NULL;
  text= NULL;
  n= 0;
}
