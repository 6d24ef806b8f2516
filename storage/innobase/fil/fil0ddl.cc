/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/innobase/fil/fil0fil.cc:
   Copyright (c) 1995, 2021, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2014, 2022, MariaDB Corporation. */

/**************************************************//**
@file fil/fil0ddl.cc
Delete the files of tables that a transaction has dropped, without any latch.

MariaDB deletes the files of a dropped table in trx_t::commit(), while the thread holds
lock_sys.latch, dict_sys.latch and rows_latch exclusively.  It writes a FILE_DELETE
record and waits for the log to be durable, while it holds log_sys.latch and
buf_pool.flush_list_mutex, too.  So all row locks, all mini-transactions and all
statements that load a table wait for a write to the disk, once for each file.

Here trx_t::commit() only notes the tablespaces.  When the thread has released all
latches, run() deletes the files of all tables of the transaction together.

 1. DROP TABLE of several tables and DROP DATABASE drop each table in a transaction of its
    own.  They delete up to MAX_PENDING files together, and the rest before the statement
    goes on to the binary log.
 2. TRUNCATE TABLE saves the statistics of the empty table before run(). That commit
    does not wait for the log, because run() is about to.
 3. A caller of trx_t::commit() that has no fil_deletion_t holds dict_sys.latch while it
    deletes the files, but no other latch.

The steps of run()
==================

 1 stop     Set STOPPING_READS, so that no thread can acquire a new reference.  End the
            encryption of the tablespace.
 2 log      Write a FILE_DELETE record for each tablespace, and remove the tablespace
            from fil_system.named_spaces, both under log_sys.latch.  Release the latch,
            and wait until the log is durable up to there.
 3 end I/O  Set STOPPING_WRITES: pages are no longer written, but discarded.  Wait for
            the threads that have a reference.
 4 again    If one of these threads has changed a page since 2, the tablespace is in
            named_spaces again.  Repeat 2 for such tablespaces.  A checkpoint leaves them
            in named_spaces until then: see fil_names_clear().
 5 unlink   Delete the file, the .isl file, and the .cfg file.
 6 free     Remove the fil_space_t.  Let purge continue.  Close the handles, which gives
            the space back to the file system.

In MariaDB, 5 comes before 3, and 4 does not exist.

Recovery after a crash
======================

The log gets, in this order, the commit of the transaction that dropped the table, and
FILE_DELETE.  The undo log records, from which purge removes the rows of SYS_INDEXES, are
in the log with the commit.  There are three cases:

1. The commit is not durable.  Recovery rolls back, and the table exists again with its
   pages: run() discards pages only in step 3, when the log is durable, and InnoDB has
   written a page to the file only after the page's log records.

   Within a statement that drops several tables, the .frm file may be gone by then.  But
   the statement has put the table into the DDL log before it dropped it, so recovery of
   the DDL log drops the table again.  That would fail in five cases.  So the thread waits
   until the commit is durable in these cases (and if the table has a FULLTEXT INDEX or a
   column FTS_DOC_ID):

   a. A FOREIGN KEY refers to the table.  Or another thread has removed such a key, but
      its commit is not durable: recovery would find the key, and not drop the table.
      SYS_FOREIGN says whether there are keys; InnoDB may not have loaded them.
   b. The table is a partition, or (11.8) has the graph of a VECTOR INDEX.  To find it,
      recovery would need the .frm file of the table that it belongs to.
   c. CREATE OR REPLACE TABLE notes in the DDL log that the table is gone.
   d. The table is the first one of the statement.  With
      innodb_flush_log_at_trx_commit=0 or 2, an earlier commit of changes to one of the
      statement's tables may not be durable.  Recovery would roll these changes back, and
      it could not lock the table until then.  All such commits come before the first
      commit of the statement, because the statement has locked its tables.  Only
      transactions that were recovered, or prepared (XA) by a connection that has ended,
      may commit later, because they hold no metadata locks.  If there is one, all
      commits of the statement wait.
   e. Another engine (Mroonga's wrapper) has its data in the table, and the DDL log names
      that engine.  Without the .frm file, it does not know that InnoDB has a table.

2. The commit is durable and the file exists: the server was killed before step 5.

   a. No table refers to the file.  Recovery does not need FILE_DELETE, which may be
      before the latest checkpoint.
   b. A thread may have changed a page after FILE_DELETE, and the checkpoint may have
      passed FILE_DELETE.  Then the log has a FILE_MODIFY record and the file exists, so
      recovery applies the records of the page.  This does no harm.
   c. When the server has started, dict_open_dropped() opens the files of the
      delete-marked rows in SYS_TABLES.  Purge deletes these files in
      fil_delete_tablespace() as soon as it reaches the history of this transaction.  The
      rows still exist, because purge removes them only after it has deleted the file:
      see below.

3. The commit is durable and the file does not exist.  Purge finds no tablespace, and
   removes the rows.  Recovery does not need the file, for one of two reasons:

   a. FILE_DELETE is after the latest checkpoint.  So recovery ignores the other records
      of the tablespace.
   b. The log has no record of the tablespace after the checkpoint, because step 4 has
      written FILE_DELETE after the last change.  (A mini-transaction that releases its
      reference before it commits could still write a record later, as in MariaDB.)

Purge
=====

Purge, too, deletes the tablespace of a dropped table, when it removes the row for the
clustered index from SYS_INDEXES.  In MariaDB it waits for dict_sys.latch first, so it finds
the tablespace deleted.  Without before_purge() two things would go wrong here:

1. Purge would delete the file, or wait for the thread that does so, while it holds the
   latch of a page of SYS_INDEXES.
2. Purge would remove the row of SYS_TABLES, with the name of the file, before the file is
   deleted.  After a crash no thread would find the file.

So purge calls before_purge() before it removes a row of either table, while it holds no
latch.  before_purge() deletes the file.  If run() is doing so already, it waits for
run().  This cannot deadlock:

1. run() never waits for purge.  Step 3 waits for references, and a thread has one only
   for one access to a page, or one I/O.
2. A statement that still has files to delete may wait for purge.  Then purge does not
   wait for the statement, because it deletes these files itself.

Meanwhile no other thread can create a table of the same name, because the DDL operation
still holds its metadata lock.  If a file belongs to a FULLTEXT INDEX, or to a table that
is being rebuilt, its name contains the table identifier.

Order of locks
==============

A thread that holds the mutex below acquires nothing else.  run() acquires
fil_system.mutex and log_sys.latch, not both at once.
*******************************************************/

#include "fil0ddl.h"
#include "dict0dict.h"
#include "fil0crypt.h"
#include "log.h"
#include "log0log.h"
#include "mtr0mtr.h"
#include "os0file.h"
#include "fsp0file.h"
#include "trx0sys.h"
#include "trx0trx.h"
#include "debug_sync.h"
#if MYSQL_VERSION_ID < 110800
# include "ibuf0ibuf.h"
# define MTR_WITHOUT_TRX
#else
# define MTR_WITHOUT_TRX {nullptr}
#endif
#if MYSQL_VERSION_ID >= 101116 && MYSQL_VERSION_ID < 110800
# define LOG_LATCH_CALL
#else
# define LOG_LATCH_CALL SRW_LOCK_CALL
#endif
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace
{

/** How many FILE_DELETE records a thread writes at once, under log_sys.latch */
constexpr size_t MAX_RECORDS= 64;
/** A statement deletes its files when it has collected so many. One fsync of the log for
so many costs little. */
constexpr size_t MAX_PENDING= 64;

/** protects first, and fil_deletion_t::tables and next */
std::mutex deletions_mutex;
/** woken up when tables have left an object, and when progress changes */
std::condition_variable deletion_ended;
/** how many steps the threads in run() have done; deletions_mutex protects it */
size_t progress;
/** the objects that have tables */
fil_deletion_t *first;
/** whether the list has an object. Relaxed: a thread that has seen under dict_sys.latch
that a transaction was committed also sees its object here, because the transaction has
added it before it released that latch. */
std::atomic<bool> any{false};

} // namespace

thread_local fil_deletion_t *fil_deletion_t::current;

/** A thread in run() has done a step. Purge, which waits for it, sees that it does not
hang. */
static void make_progress() noexcept
{
  std::lock_guard<std::mutex> guard(deletions_mutex);
  progress++;
  deletion_ended.notify_all();
}

/** Enter the list. The caller holds the mutex, and is about to add the first table. */
void fil_deletion_t::enter() noexcept
{
  ut_ad(tables.empty());
  next= first;
  first= this;
  any.store(true, std::memory_order_relaxed);
}

/** Leave the list. The caller holds the mutex, and has removed the last table. */
void fil_deletion_t::leave() noexcept
{
  ut_ad(tables.empty());
  fil_deletion_t **prev= &first;
  while (*prev != this)
    prev= &(*prev)->next;
  *prev= next;
  any.store(first, std::memory_order_relaxed);
}

void fil_deletion_t::add(table_id_t table, uint32_t space) noexcept
{
  added= true;
  std::lock_guard<std::mutex> guard(deletions_mutex);
  if (tables.empty())
    enter();
  tables.push_back({table, space, false});
}

/** Take over the tables of another object of this thread. */
void fil_deletion_t::take(fil_deletion_t *other) noexcept
{
  if (!other->added)
    return;
  other->added= false;
  added= true;
  std::lock_guard<std::mutex> guard(deletions_mutex);
  if (other->tables.empty())
    return;
  if (tables.empty())
    enter();
  tables.insert(tables.end(), other->tables.begin(), other->tables.end());
  other->tables.clear();
  other->leave();
}

size_t fil_deletion_t::size() const noexcept
{
  std::lock_guard<std::mutex> guard(deletions_mutex);
  return tables.size();
}

/** @return whether there is a transaction that may hold locks on tables, but no metadata
locks: one that was recovered, or prepared (XA) by a connection that has ended */
static bool has_recovered_trx() noexcept
{
  bool found= false;
  trx_sys.trx_list.for_each([&found](const trx_t &trx) { found|= trx.is_recovered; });
  return found;
}

void fil_deletion_t::run_with_statement(lsn_t lsn, bool wait) noexcept
{
  ut_ad(current == this);
  if (!outer || !outer->of_statement)
  {
    run();
    log_write_up_to(lsn, true);
    return;
  }
  outer->take(this);
  const bool first= !outer->commit_lsn;
  if (lsn > outer->commit_lsn)
    outer->commit_lsn= lsn;
  if (outer->size() >= MAX_PENDING)
    outer->run();
  if (first)
  {
    outer->waits= has_recovered_trx();
    /* Those that have ended before the call above have committed before this LSN */
    log_buffer_flush_to_disk();
  }
  else if (wait || outer->waits)
    log_write_up_to(lsn, true);
}

void fil_deletion_t::note_commit(trx_t *trx) noexcept
{
  if (!trx->flush_log_later)
    return;
  ut_ad(delays_commits());
  trx->flush_log_later= false;
  current->commit_lsn= std::max(current->commit_lsn, trx->commit_lsn);
}

void fil_deletion_t::run_delayed() noexcept
{
  ut_ad(current == this);
  ut_ad(!of_statement);
  delays= false;
  run();
  /* Purge may have deleted the file without waiting for a later commit */
  if (commit_lsn)
    log_write_up_to(commit_lsn, true);
}

lsn_t fil_deletion_t::constraints_lsn;

void fil_deletion_t::constraint_goes(lsn_t lsn) noexcept
{
  ut_ad(dict_sys.locked());
  if (lsn > constraints_lsn)
    constraints_lsn= lsn;
}

bool fil_deletion_t::constraint_may_return() noexcept
{
  ut_ad(dict_sys.locked());
  return constraints_lsn > log_sys.get_flushed_lsn();
}

void fil_deletion_t::begin_statement()
{
  if (!current)
    new fil_deletion_t(true);
}

void fil_deletion_t::end_statement()
{
  if (!current || !current->of_statement)
    return;
  current->run();
  if (const lsn_t lsn= current->commit_lsn)
    log_write_up_to(lsn, true);
  delete current;
}

void fil_deletion_t::for_commit::add(const dict_table_t &table, const fil_space_t *space)
  noexcept
{
  /* The file could not be opened when the definition was loaded, and the statement has
  deleted it by its name. A thread that loads the buffer pool may have opened the file
  meanwhile. Remove that tablespace, too: otherwise purge would delete the file that has
  the name by then. */
  if (!space && table.space_id && !table.is_temporary())
    space= fil_space_get(table.space_id);
  if (!space || !space->id);
  else if (current)
    current->add(table.id, space->id);
  else
    spaces.push_back(space->id);
}

void fil_deletion_t::for_commit::end_of_commit() noexcept
{
  if (spaces.empty())
    return;
  /* Purge waits for dict_sys.latch */
  fil_deletion_t deletion;
  for (const uint32_t id : spaces)
    deletion.add(0, id);
}

/** Find a table. The caller holds the mutex.
@param id     table identifier
@param owner  the object that the table is in
@return the table
@retval nullptr if it is in none */
fil_deletion_t::dropped *fil_deletion_t::find(table_id_t id,
                                              fil_deletion_t **owner) noexcept
{
  for (*owner= first; *owner; *owner= (*owner)->next)
    for (dropped &d : (*owner)->tables)
      if (d.table == id)
        return &d;
  return nullptr;
}

void fil_deletion_t::see_commits() noexcept
{
  dict_sys.freeze(SRW_LOCK_CALL);
  dict_sys.unfreeze();
}

bool fil_deletion_t::is_pending(table_id_t id) noexcept
{
  if (!any.load(std::memory_order_relaxed))
    return false;
  fil_deletion_t *owner;
  std::lock_guard<std::mutex> guard(deletions_mutex);
  return find(id, &owner);
}

void fil_deletion_t::before_purge(table_id_t id) noexcept
{
  if (!any.load(std::memory_order_relaxed))
    return;
  std::unique_lock<std::mutex> lock(deletions_mutex);
  fil_deletion_t *owner;
  while (dropped *d= find(id, &owner))
  {
    if (d->running)
    {
#ifdef ENABLED_DEBUG_SYNC
      DBUG_EXECUTE_IF("fil_deletion_purge_waits",
                      lock.unlock();
                      debug_sync_set_action
                        (_current_thd(),
                         STRING_WITH_LEN("now SIGNAL purge_waits"));
                      lock.lock(););
#endif
      /* The other thread hangs if the file system does. It may delete MAX_PENDING files
      before this one is gone, so the wait begins anew with each of its steps. */
      dict_sys_t::wait_t wait;
      const size_t seen= progress;
      wait.until(deletion_ended, lock, [&]()
      {
        d= find(id, &owner);
        return !d || !d->running || progress != seen;
      });
      continue;
    }
    d->running= true;
    const uint32_t space= d->space;
    lock.unlock();
    const pfs_os_file_t handle= fil_delete_tablespace(space);
    if (handle != OS_FILE_CLOSED)
      os_file_close(handle);
    lock.lock();
    /* The table may have moved, to the object of the statement */
    d= find(id, &owner);
    ut_ad(d);
    ut_ad(d->running);
    owner->tables.erase(owner->tables.begin() + (d - owner->tables.data()));
    if (owner->tables.empty())
      owner->leave();
    deletion_ended.notify_all();
    return;
  }
}

/** Keep other threads from acquiring a reference to a tablespace.
@param id  tablespace identifier
@return the tablespace, with a reference
@retval nullptr if the caller has to call fil_delete_tablespace() instead */
fil_space_t *fil_deletion_t::begin(uint32_t id) noexcept
{
  ut_ad(!is_system_tablespace(id));
  mysql_mutex_lock(&fil_system.mutex);
  fil_space_t *space= fil_space_get_by_id(id);
  if (space && ((space->pending() & fil_space_t::STOPPING) ||
                space->is_being_imported()))
    space= nullptr;
  /* relaxed: end_io() waits for the others */
  if (space)
    space->n_pending.fetch_add(fil_space_t::STOPPING_READS + 1,
                               std::memory_order_relaxed);
  mysql_mutex_unlock(&fil_system.mutex);

  if (space && space->crypt_data)
    fil_space_crypt_close_tablespace(space);
  return space;
}

/** Forget that pages of a tablespace were changed since the last checkpoint. The
caller holds log_sys.latch exclusively.
@return whether there were any */
bool fil_deletion_t::forget_changes(fil_space_t *space) noexcept
{
  ut_ad(log_sys.latch_have_wr());
  if (!space->max_lsn)
    return false;
  space->max_lsn= 0;
  fil_system.named_spaces.remove(*space);
  return true;
}

/** Write a FILE_DELETE record for each tablespace, and wait until they are durable.
@param spaces  tablespaces with STOPPING_READS */
void fil_deletion_t::log(const std::vector<fil_space_t*> &spaces) noexcept
{
  lsn_t lsn= 0;
  for (size_t i= 0; i < spaces.size(); )
  {
    const size_t from= i, to= std::min(spaces.size(), i + MAX_RECORDS);
    mtr_t mtr MTR_WITHOUT_TRX;
    mtr.start();
    for (; i < to; i++)
      write_delete(&mtr, spaces[i]);
    log_sys.latch.wr_lock(LOG_LATCH_CALL);
    lsn= mtr.commit_files();
    /* Do this after the record is written, and before a checkpoint: that would write a
    FILE_MODIFY record, which only makes sense for a file that exists. */
    for (size_t j= from; j < to; j++)
      forget_changes(spaces[j]);
    log_sys.latch.wr_unlock();
  }
  if (lsn)
    log_write_up_to(lsn, true);
}

/** Discard the pages of a tablespace, and wait for all threads that use it.
@param space  tablespace; the log is durable up to its FILE_DELETE record */
void fil_deletion_t::end_io(fil_space_t *space) noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  ut_ad(space == fil_space_get_by_id(space->id));
  /* acquire: see what threads have done that no longer use the tablespace; if there is
  no other, the loop below does not look again */
  uint32_t pending=
    space->n_pending.fetch_add(fil_space_t::STOPPING_WRITES - 1,
                               std::memory_order_acquire);
  ut_ad((pending & fil_space_t::STOPPING) == fil_space_t::STOPPING_READS);
  ut_ad(pending & fil_space_t::PENDING);
  pending= (pending & fil_space_t::PENDING) - 1;
  for (unsigned count= 0; pending; count++)
  {
    mysql_mutex_unlock(&fil_system.mutex);
    if ((count & 8191) == 4096)
      sql_print_warning("InnoDB: Trying to delete tablespace '%s' "
                        "but there are %u pending operations",
                        space->chain.start->name, unsigned{pending});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mysql_mutex_lock(&fil_system.mutex);
    ut_ad(space == fil_space_get_by_id(space->id));
    pending= space->pending() & fil_space_t::PENDING;
  }
  mysql_mutex_unlock(&fil_system.mutex);
}

/** Delete the files of a tablespace that no thread uses */
void fil_deletion_t::unlink(fil_space_t *space) noexcept
{
  const char *name= space->chain.start->name;
  os_file_delete(innodb_data_file_key, name);
  DBUG_EXECUTE_IF("fil_drop_crash_before_link", DBUG_SUICIDE(););
  /* Delete the link after the file: without it, recovery would not find the file */
  if (FSP_FLAGS_HAS_DATA_DIR(space->flags))
    RemoteDatafile::delete_link_file(space->name());
  if (char *cfg_name= fil_make_filepath(name, fil_space_t::name_type{}, CFG,
                                        false))
  {
    os_file_delete_if_exists(innodb_data_file_key, cfg_name, nullptr);
    ut_free(cfg_name);
  }
}

/** Remove a tablespace that no thread uses, and whose file has been deleted.
@return the handle of the file, to be closed by the caller, or OS_FILE_CLOSED */
pfs_os_file_t fil_deletion_t::free(fil_space_t *space) noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  pfs_os_file_t handle= fil_system.detach(space, true);
  mysql_mutex_unlock(&fil_system.mutex);
  /* A mini-transaction may have released its reference before it was committed */
  log_sys.latch.wr_lock(LOG_LATCH_CALL);
  forget_changes(space);
  log_sys.latch.wr_unlock();
  free_detached(space);
  return handle;
}

void fil_deletion_t::run() noexcept
{
  if (!added)
    return;
  added= false;
  std::vector<uint32_t> spaces;

  DEBUG_SYNC_C("fil_deletion_begins");
  DBUG_EXECUTE_IF("fil_deletion_crash_before_log",
                  if (size()) DBUG_SUICIDE(););

  {
    std::lock_guard<std::mutex> guard(deletions_mutex);
    for (dropped &d : tables)
    {
      if (d.running)
        /* Purge is deleting this one */
        continue;
      d.running= true;
      spaces.push_back(d.space);
    }
  }

  DEBUG_SYNC_C("fil_deletion_runs");

  std::vector<fil_space_t*> stopped, changed;
  for (const uint32_t id : spaces)
    if (fil_space_t *space= begin(id))
      stopped.push_back(space);
    else
    {
      /* Another thread is deleting it, or it is being imported */
      pfs_os_file_t handle= fil_delete_tablespace(id);
      if (handle != OS_FILE_CLOSED)
        os_file_close(handle);
    }

  log(stopped);
  DBUG_EXECUTE_IF("fil_deletion_crash_after_log",
                  if (!spaces.empty()) DBUG_SUICIDE(););

  for (fil_space_t *space : stopped)
  {
    make_progress();
    end_io(space);
  }

  log_sys.latch.wr_lock(LOG_LATCH_CALL);
  for (fil_space_t *space : stopped)
    if (space->max_lsn)
      changed.push_back(space);
  log_sys.latch.wr_unlock();
  log(changed);

  std::vector<pfs_os_file_t> handles;
  for (fil_space_t *space : stopped)
  {
    unlink(space);
    DBUG_EXECUTE_IF("fil_deletion_crash_after_unlink", DBUG_SUICIDE(););
    pfs_os_file_t handle= free(space);
    if (handle != OS_FILE_CLOSED)
      handles.push_back(handle);
    make_progress();
    DEBUG_SYNC_C("fil_deletion_file_gone");
  }

  {
    std::unique_lock<std::mutex> lock(deletions_mutex);
    if (!spaces.empty())
    {
      tables.erase(std::remove_if(tables.begin(), tables.end(),
                                  [&spaces](const dropped &d)
                                  {
                                    return std::find(spaces.begin(), spaces.end(),
                                                     d.space) != spaces.end();
                                  }), tables.end());
      if (tables.empty())
        leave();
      deletion_ended.notify_all();
    }
    /* Purge is deleting what is left */
    while (const size_t left= tables.size())
    {
      dict_sys_t::wait_t wait;
      wait.until(deletion_ended, lock, [this, left]() { return tables.size() != left; });
    }
  }
#if MYSQL_VERSION_ID < 110800
  for (const uint32_t id : spaces)
    ibuf_delete_for_discarded_space(id);
#endif
  for (pfs_os_file_t handle : handles)
    os_file_close(handle);
}
