/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file dict/dict0files.cc
Make the files of many tables known to fil_system, without dict_sys.latch.

After a start, the thread that loads the buffer pool knows pages by tablespace identifier,
and needs the tablespaces of tables that nobody has used yet. With encryption, InnoDB
opens the files of all tables before the first connection. In both cases MariaDB walks
along all rows of SYS_TABLES and opens file after file. It holds dict_sys.latch
exclusively all the time, so no statement opens an InnoDB table meanwhile.

Here a few threads (innodb_read_io_threads, 8 at most) take slices of SYS_TABLES. While
there are connections, one thread begins. If a thread had to wait for most of the files of
its slice, it starts another one. So several threads wait for a slow disk together. If the
files are in memory, one thread does the work and leaves the other CPUs to the statements,
and if these need all CPUs, it leaves most of its own, too (buf0pace.h).
For its slice a thread

 1. keeps DDL out, and reads the rows (dict_rows_t::read_tables());
 2. holds no latch, opens the files that fil_system does not know, and reads their first
    pages (fil0ibd.cc);
 3. keeps DDL out, and makes the tablespaces known to fil_system. If a thread has changed
    the dictionary since 1, it reads the row again: if the row is the same, the file
    belongs to it, as dict0preload.cc explains.

So such a thread stops only DDL, and only while it reads rows. It does not load the
definitions. If another thread loads the table at the same time, one of the two creates
the tablespace, and the other one finds it; see fil_ibd_file::create_space().

These threads close no other table's file to make room. If innodb_open_files files are
open (before the first connection: half as many), the thread makes the tablespace known
to fil_system and closes its file.

If anything about a file is unusual, the thread calls fil_ibd_open() for this file, under
lock_cache(). That function decides and reports as in MariaDB.
*/

#include "dict0files.h"
#include "buf0buf.h"
#include "buf0dump.h"
#include "buf0pace.h"
#include "dict0boot.h"
#include "fil0crypt.h"
#include "fil0ibd.h"
#include "log.h"
#include "srv0srv.h"
#include "srv0start.h"
#include "trx0sys.h"
#include <algorithm>
#include <system_error>
#ifdef HAVE_GETRUSAGE
# include <sys/resource.h>
#endif

/** @return how often this thread has given up the CPU to wait, or -1 if the system does
not say */
static long n_waits() noexcept
{
#ifdef RUSAGE_THREAD
  struct rusage usage;
  if (!getrusage(RUSAGE_THREAD, &usage))
    return usage.ru_nvcsw;
#endif
  return -1;
}

dict_files_t::slice::~slice()
{
  for (dict_table_t *table : tables)
    dict_rows_t::free_table(table);
}

dict_files_t::dict_files_t(const std::set<uint32_t> *spaces) noexcept :
  spaces(spaces),
  may_start(unsigned(std::min<ulint>(srv_n_read_io_threads, 8)) - 1) {}

/** @return whether the server shuts down, or somebody has aborted the load */
bool dict_files_t::must_end() const noexcept
{
  return srv_shutdown_state > SRV_SHUTDOWN_INITIATED ||
    (spaces && buf_load_is_aborted());
}

/** Take the next slice.
@param s     the slice, empty
@param help  whether to start another thread, if there is one left to start
@return whether there is a slice; it may have no tables */
bool dict_files_t::next(slice *s, bool help) noexcept
{
  std::lock_guard<std::mutex> lock(mutex);
  if (!more || must_end())
    return false;
  {
    dict_rows_t::reader rows;
    s->changes= dict_rows_t::changes();
    more= dict_rows_t::read_tables(&position, spaces, &s->tables, &dropped);
  }
  if (help && more && may_start && !s->tables.empty())
  {
    may_start--;
    /* If no thread can be started, the others do its work */
    try
    {
      DBUG_EXECUTE_IF("dict_files_no_memory", throw std::bad_alloc(););
      threads.emplace_back(&dict_files_t::run_thread, this);
    }
    catch (const std::exception&) { may_start= 0; }
  }
  return true;
}

/** @return whether SYS_TABLES still has the row of a table
@param table    row of SYS_TABLES
@param changes  dict_rows_t::changes() when it was read */
static bool is_there(const dict_table_t &table, uint64_t changes) noexcept
{
  if (changes == dict_rows_t::changes())
    return true;
  unsigned uncommitted;
  dict_table_t *again= dict_rows_t::read_table(table.name.m_name,
                                               &uncommitted);
  if (!again)
    return false;
  const bool is_same= dict_rows_t::is_same(*again, table);
  dict_rows_t::free_table(again);
  return is_same;
}

/** Open a file that fil_ibd_file::open() does not accept.
@param table    row of SYS_TABLES
@param changes  dict_rows_t::changes() when it was read */
static void open_unusual(const dict_table_t &table, uint64_t changes) noexcept
{
  dict_sys.lock_cache(SRW_LOCK_CALL);
  if (is_there(table, changes))
  {
    const span<const char> name{table.name.m_name, strlen(table.name.m_name)};
    char *path= fil_make_filepath(nullptr, name, IBD, false);
    if (!fil_ibd_open(table.space_id, dict_tf_to_fsp_flags(table.flags),
                      fil_space_t::VALIDATE_NOTHING, name, path) &&
        /* mariadb-backup does not copy such files; see
        drop_garbage_tables_after_restore() */
        !(srv_start_after_restore && dict_table_t::is_temporary_name(path)))
      sql_print_warning("InnoDB: Ignoring tablespace for %.*s because it"
                        " could not be opened.",
                        static_cast<int>(name.size()), name.data());
    ut_free(path);
  }
  dict_sys.unlock_cache();
}

/** Open the files of a slice. */
void dict_files_t::open(const slice &s) const noexcept
{
  for (const dict_table_t *table : s.tables)
  {
    const span<const char> name{table->name.m_name,
                                strlen(table->name.m_name)};
    const uint32_t flags= dict_tf_to_fsp_flags(table->flags);
    if (must_end())
      break;
    if (fil_space_get(table->space_id))
      continue;
    if (table->flags2 & DICT_TF2_DISCARDED)
    {
      sql_print_information("InnoDB: Ignoring tablespace for %.*s because "
                            "the DISCARD flag is set",
                            static_cast<int>(name.size()), name.data());
      continue;
    }

    fil_ibd_file file;
    const bool is_usual= file.open(table->space_id, flags, name,
                                   DICT_TF_HAS_DATA_DIR(table->flags));
#ifndef DBUG_OFF
    while (DBUG_IF("dict_files_wait"))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
#endif
    if (is_usual)
    {
      dict_rows_t::reader rows;
      bool created;
      if (is_there(*table, s.changes))
        file.create_space(table->space_id, flags, false,
                          fil_ibd_file::CLOSE_NONE, &created);
    }
    else
    {
      file.close();
      open_unusual(*table, s.changes);
    }
  }
}

/** Open files until there are no more. */
void dict_files_t::run() noexcept
{
  /* Before the first connection, no statement needs the CPUs */
  const bool is_starting= !spaces;
  buf_load_pace_t pace;
  for (bool help= is_starting;;)
  {
    slice s;
    if (!next(&s, help))
      break;
    const long before= n_waits();
    open(s);
    help= is_starting || before < 0 || DBUG_IF("dict_files_no_memory") ||
      size_t(n_waits() - before) > s.tables.size() / 2;
    if (!is_starting)
      pace.give_way();
  }
}

/** A thread that helps */
void dict_files_t::run_thread() noexcept
{
  my_thread_init();
  /* The performance schema counts a file only if the thread that opens it is known */
  pfs_register_thread(thread_pool_thread_key);
  run();
  pfs_delete_thread();
  my_thread_end();
}

/** Wait for the threads that help. */
void dict_files_t::join() noexcept
{
  for (;;)
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (threads.empty())
      break;
    std::thread thread{std::move(threads.back())};
    threads.pop_back();
    lock.unlock();
    thread.join();
  }
}

/** @return whether the dictionary's header has the highest tablespace
identifier. A header from before MySQL 5.1 has none. dict_boot() has read it. */
static bool max_space_id_is_known() noexcept
{
  dict_mtr_t mtr;
  mtr.start();
  const buf_block_t *block=
    buf_page_get(page_id_t(DICT_HDR_SPACE, DICT_HDR_PAGE_NO), 0, RW_S_LATCH,
                 &mtr);
  const bool known= block &&
    mach_read_from_4(DICT_HDR + DICT_HDR_MAX_SPACE_ID + block->page.frame);
  mtr.commit();
  return known;
}

bool dict_files_t::open_all(const std::set<uint32_t> *spaces, bool must_open)
  noexcept
{
  ut_ad(!dict_sys.frozen());
  if (!fil_ibd_file::may_open() || (!spaces && !max_space_id_is_known()))
    return false;
  if (!spaces && !must_open &&
      !encryption_key_id_exists(FIL_DEFAULT_ENCRYPTION_KEY))
    /* Purge may still have to delete files: see dict_open_dropped() */
    return !trx_sys.history_size();
  dict_files_t files{spaces};
  files.run();
  files.join();
  /* At the start, purge may still have to delete the files of tables that were dropped
  before a crash. MariaDB's loop looks for these; it finds the others in fil_system. */
  return spaces || !files.dropped;
}
