/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/innobase/fil/fil0fil.cc:
   Copyright (c) 1995, 2021, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2014, 2022, MariaDB Corporation. */

/**************************************************//**
@file fil/fil0lru.cc
innodb_open_files: which files stay open

If innodb_open_files files are open, a thread that opens another file first closes
one.  MariaDB closes the file that was opened first.  If each open file is in use or
needs a sync, MariaDB sleeps 20 ms and syncs all files that need it, at most twice.  Here

1. The thread chooses a file that no thread has used for a while: a clock (fil0clock.h)
   has a count for each file, and I/O changes that count without a mutex.
2. The thread first closes a file that needs no sync.  When few of these are left, a
   task syncs cold files ahead of need.
3. If each file that is not in use needs a sync, the thread syncs one of them.
4. If all files are in use, the thread polls for as long as MariaDB sleeps.  Then it
   opens its file beyond the limit, like MariaDB.
5. A page in the doublewrite batch keeps its file open, and the batch has room for 128
   pages, each of which may be of another file.  With innodb_open_files=100, such a batch
   could keep every file open.  So a thread writes the batch before its pages may keep
   open more than a quarter of innodb_open_files.

Which file may be closed
------------------------
fil_space_t::n_pending decides this.  Its PENDING bits count the references: a thread
holds one for I/O, extending, encryption or DDL.  (A thread that drops the tablespace sets
STOPPING first.)  While CLOSING is set, a thread must acquire fil_system.mutex to get a
reference.

1. judge() holds fil_system.mutex, and sets CLOSING if no thread has a reference and the
   file needs no sync.
2. close() removes the handle from the node, and releases the mutex.  Before that, no
   thread can get a reference.  After that, all other threads see a closed file.
3. close() then calls close(2), without the mutex.

How a file is synced for closing
--------------------------------
1. With fil_system.mutex held, and if no thread has a reference, sync() sets CLOSING
   and takes a reference.  So no other thread can drop or close the file.
2. sync() releases the mutex, syncs, and takes the mutex again.  A thread that uses the
   file meanwhile acquires the mutex, clears CLOSING (prepare_acquired()), and counts
   its I/O (fil_clock_place::watch()).
3. If CLOSING is still set, there was no I/O, and no other thread has a reference, then
   no thread has written since the sync began, and sync() clears NEEDS_FSYNC.
   Otherwise NEEDS_FSYNC stays set, and the sync was useless.

CLOSING alone would not do, because another thread may set it again after a writer has
cleared it (fil_space_t::reopen_all() on 11.8).  So sync() needs the count, too.
fil_space_t::flush_low() needs neither: it clears NEEDS_FSYNC before its sync, so that a
thread that writes meanwhile sets it again.

Three cases need more care:

1. Recovery.  prepare_acquired() leaves CLOSING set if the file is deferred, or if
   recv_size changes while a thread extends the file.  (The code that resets recv_size
   clears CLOSING, too.)  So sync() does not call a file clean if it is deferred, or has
   a recv_size before or after the sync.
2. fil_space_free() may detach a tablespace without STOPPING.  It decrements n_open and
   removes the file from the ring.  Then it waits until sync() releases the reference.
3. fil_flush_file_spaces() gets a reference with the mutex held, and leaves CLOSING set.
   It only syncs, and it keeps its reference until the sync has ended.

States between these steps
--------------------------
Another thread can see

1. a file with CLOSING and a handle.  The thread can use it if it takes the mutex;
2. a closed file, whose descriptor exists for a moment longer and is not counted;
3. a file that is in unflushed_spaces, and that two threads sync at once.

Each of these can happen in MariaDB, too.  (A MariaDB thread that looks for a file to close
leaves CLOSING set in each file that it examines.  Here an open file has CLOSING set only
while a thread syncs it, or on 11.8 reopens it.  fil_space_t::reopen_all() waits until
sync() has released its reference: see the topic innodb-write-during-fsync.)

How long a thread waits
-----------------------
A thread that opens a file may hold page latches.  For one file it syncs at most
MAX_SYNCS files, closes at most MAX_CLOSES, and waits at most WAIT_US.  If more files
than the limit are open after that, one of these closes the excess: the next threads
that open files, sync_ahead(), or the connection that has lowered the limit.

No descriptors (EMFILE, ENFILE)
-------------------------------
If the process has no descriptor left, innodb_open_files does not matter: a thread closes
files within the same bounds, even if fewer are open.  If that does not help, no thread
can use the file now:

1. If a statement has to read a page, InnoDB ends the server, as in MariaDB.
2. Recovery ends the server.  An administrator can start it again with more
   descriptors.
3. A thread that writes pages keeps the dirty page (fil_space_t::must_keep()), except in
   two cases: the tablespace is gone, or the last attempt to open its file failed for
   another reason.

Order of mutexes
----------------
LOCK_global_system_variables, then fil_system.mutex.  The latter is the last one: a
thread that holds it takes no other mutex here, except those of the thread pool's queue
and of the error log.  added_to_batch() takes buf_dblwr.mutex and holds no other one.
*******************************************************/

#include "fil0lru.h"
#include "buf0dblwr.h"
#include "debug_sync.h"
#include "fsp0sysspace.h"
#include "log.h"
#include "log0recv.h"
#include "mysqld.h"
#include "sql_class.h"
#include "srv0srv.h"
#include "srv0start.h"
#ifdef MYSQL_DYNAMIC_PLUGIN
# define tc_size 400
#else
extern ulong tc_size;           /* table_open_cache */
#endif
#include <chrono>
#include <thread>

fil_lru_t fil_lru;

namespace
{
/** Longest time, in microseconds, that a thread waits until other threads stop using
some file: as long as MariaDB sleeps */
constexpr unsigned WAIT_US= 40000;
/** The same in recovery.  There the thread may hold recv_sys.mutex.  The threads that use
the other files need that mutex before they can release them, so a longer wait would be
in vain. */
constexpr unsigned RECOVERY_WAIT_US= 1000;
/** Time that the thread waits before it looks again, in microseconds */
constexpr unsigned POLL_US= 500;
/** Largest number of files that the thread syncs */
constexpr unsigned MAX_SYNCS= 2;
/** Largest number of files that the thread closes.  More than one, so that the number of
open files falls after a user has lowered the limit. */
constexpr unsigned MAX_CLOSES= 8;
/** Largest number of written files that sync_ahead() examines to find one to sync */
constexpr unsigned MAX_LOOKED_AT= 64;
}

#ifndef DBUG_OFF
/** Pretend that a file, which no thread uses, needs a sync.
@return n_pending */
uint32_t fil_lru_t::pretend_written(fil_space_t &space) noexcept
{
  if (!space.is_in_unflushed_spaces)
  {
    space.is_in_unflushed_spaces= true;
    fil_system.unflushed_spaces.push_front(space);
  }
  return space.n_pending.fetch_or(fil_space_t::NEEDS_FSYNC) |
    fil_space_t::NEEDS_FSYNC;
}
#endif

/** Judge whether a file may be closed.  After CLOSE, no thread gets a reference to the
tablespace until the caller releases fil_system.mutex. */
inline fil_lru_t::clock_t::verdict
fil_lru_t::judge(fil_node_t &node, const fil_space_t *ignore, bool may_sync)
  noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  fil_space_t &space= *node.space;

  /* mariadb-backup closes files by itself. */
  if (!node.is_open() || &space == ignore || space.is_being_imported() ||
      is_predefined_tablespace(space.id))
    return clock_t::KEEP;

  /* relaxed: the exchange below, or the one in sync(), confirms the value */
  uint32_t n= space.n_pending.load(std::memory_order_relaxed);
  if (n & (fil_space_t::STOPPING | fil_space_t::PENDING))
    return clock_t::KEEP;
  DBUG_EXECUTE_IF("innodb_file_written_before_close",
                  n= fil_lru.pretend_written(space););
  if (n & fil_space_t::NEEDS_FSYNC)
    return may_sync && !space.recv_size && !node.deferred
      ? clock_t::SYNC_FIRST : clock_t::KEEP;
  /* acquire: this thread sees all that the file's last user has done */
  return space.n_pending.compare_exchange_strong
    (n, n | fil_space_t::CLOSING, std::memory_order_acquire,
     std::memory_order_relaxed) ? clock_t::CLOSE : clock_t::KEEP;
}

/** Remove a tablespace that needs no sync from unflushed_spaces.  It may be in that list
if flush_low() ran between the two steps of complete_write(). */
static void fil_note_synced(fil_space_t &space) noexcept
{
  if (space.is_in_unflushed_spaces)
  {
    space.is_in_unflushed_spaces= false;
    fil_system.unflushed_spaces.remove(space);
  }
}

/** Close a file that may be closed.  This releases fil_system.mutex in between. */
inline void fil_lru_t::close(fil_node_t *node) noexcept
{
  ut_ad(node->space->is_ready_to_close());
  ut_ad(!node->space->needs_flush());
  fil_note_synced(*node->space);
  stat.closed++;
  const pfs_os_file_t handle= node->detach();
  mysql_mutex_unlock(&fil_system.mutex);
  os_file_close(handle);
  mysql_mutex_lock(&fil_system.mutex);
}

/** Sync a file that no thread uses.  This releases fil_system.mutex in between; the
tablespace may be gone afterwards, unless the result is true.
@return whether the caller may close the file: no thread has used it during the sync,
and CLOSING is set */
bool fil_lru_t::sync(fil_node_t *node) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  fil_space_t &space= *node->space;
  ut_ad(node->is_open());
  ut_ad(!space.recv_size);
  ut_ad(!node->deferred);

  /* relaxed: the exchange below confirms the value */
  uint32_t n= space.n_pending.load(std::memory_order_relaxed);
  do
    if ((n & (fil_space_t::STOPPING | fil_space_t::PENDING |
              fil_space_t::NEEDS_FSYNC)) != fil_space_t::NEEDS_FSYNC)
      return false;
  while (!space.n_pending.compare_exchange_strong
         (n, (n | fil_space_t::CLOSING) + 1, std::memory_order_acquire,
          std::memory_order_relaxed));

  const uint8_t use= node->clock.watch();
  mysql_mutex_unlock(&fil_system.mutex);
  fil_n_pending_tablespace_flushes++;
  /* A task that waits for the disk must not keep the thread pool from running the tasks
  that complete the reads and writes of other threads. */
  tpool::tpool_wait_begin();
  os_file_flush(node->handle);
  tpool::tpool_wait_end();
  fil_n_pending_tablespace_flushes--;
#ifdef ENABLED_DEBUG_SYNC
  if (THD *thd= current_thd)
    DEBUG_SYNC(thd, "innodb_file_synced_to_close");
#endif
  mysql_mutex_lock(&fil_system.mutex);

  /* A thread that waits until the reference is gone needs fil_system.mutex to free
  the tablespace. */
  /* acquire: see the clock's count of each thread that has released its reference */
  n= space.n_pending.fetch_sub(1, std::memory_order_acq_rel) - 1;
  const bool was_unused= node->clock.was_unused(use);
  if ((n & fil_space_t::STOPPING) || !was_unused || space.recv_size ||
      node->deferred || !node->clock.is_in_ring())
    return false;
  if ((n & (fil_space_t::PENDING | fil_space_t::CLOSING)) != fil_space_t::CLOSING)
  {
    /* This thread does not close the file, so let its users do without the mutex. */
    space.clear_closing();
    return false;
  }

  fil_note_synced(space);
  space.clear_flush();
  return true;
}

void fil_lru_t::opened(fil_node_t *node) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  ut_ad(node->is_open());
  stat.opened++;
  if (!is_predefined_tablespace(node->space->id))
    ring.add(*node);
  else
    /* The system tablespace is the first of space_list.  The order of the others
    has no meaning, so opening and closing do not disturb threads that walk the list. */
    fil_system.move_opened_last_to_space_list(node->space);
}

/** @return the number of files that threads should be able to close without a sync */
inline ulint fil_lru_t::reserve() noexcept
{
  return std::min<ulint>(srv_max_n_open_files / 8 + 1, 64);
}

/** @return whether to sync files ahead, for one of two reasons:
1. The limit is near, and too few files are clean (need no sync).
2. The limit is exceeded.  All clean files may be undo tablespaces, which stay open.
@param clean  wanted number of clean files */
inline bool fil_lru_t::is_sync_due(ulint clean) const noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return fil_system.n_open + reserve() >= srv_max_n_open_files &&
    (fil_system.n_open > srv_max_n_open_files ||
     ring.size() < fil_system.unflushed_spaces.size() + clean);
}

/** @return the cold file that was written first, for sync_ahead(), or nullptr.
This skips hot files, because threads would write them again. */
inline fil_node_t *fil_lru_t::find_to_sync() noexcept
{
  unsigned left= MAX_LOOKED_AT;
  const auto end= fil_system.unflushed_spaces.begin();
  for (auto it= fil_system.unflushed_spaces.end(); it != end && left--; )
  {
    fil_space_t &space= *--it;
    fil_node_t *node= UT_LIST_GET_FIRST(space.chain);
    if (!node || !node->clock.is_in_ring() || node->clock.is_hot() ||
        !space.needs_flush())
      continue;
    switch (judge(*node, nullptr, true)) {
    case clock_t::SYNC_FIRST:
      return node;
    case clock_t::CLOSE:
      /* Another thread has synced it meanwhile. It stays open. */
      space.clear_closing();
      break;
    case clock_t::KEEP:
      break;
    }
  }
  return nullptr;
}

/** Sync files ahead of need. */
void fil_lru_t::sync_ahead() noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  ut_ad(is_syncing);
  const ulint wished= 2 * reserve();
  for (ulint left= wished; left && is_sync_due(wished) &&
       srv_shutdown_state == SRV_SHUTDOWN_NONE; left--)
  {
    fil_node_t *node= find_to_sync();
    if (!node)
      break;
    /* If a thread uses the file during the sync, the sync is useless, and the file is not
    really cold.  Count the sync as a use: a second useless sync makes the file hot, and
    prevents a third one. */
    node->clock.used();
    stat.syncs_ahead++;
    if (!sync(node))
      continue;
    if (fil_system.n_open > srv_max_n_open_files)
      close(node);
    else
      /* The file stays open: let its users do without the mutex. */
      node->space->clear_closing();
  }
  is_syncing= false;
  mysql_mutex_unlock(&fil_system.mutex);
}

void fil_lru_t::sync_ahead(void*) { fil_lru.sync_ahead(); }

static tpool::task_group sync_group(1);
static tpool::waitable_task sync_task(fil_lru_t::sync_ahead, nullptr,
                                      &sync_group);

void fil_lru_t::shutdown() noexcept
{
  mysql_mutex_assert_not_owner(&fil_system.mutex);
  sync_task.wait();
}

void fil_lru_t::submit_sync_ahead() noexcept
{
  if (!is_syncing && is_sync_due(reserve()) &&
      srv_operation == SRV_OPERATION_NORMAL && !recv_recovery_is_on() &&
      srv_was_started && srv_shutdown_state == SRV_SHUTDOWN_NONE &&
      find_to_sync())
  {
    is_syncing= true;
    srv_thread_pool->submit_task(&sync_task);
  }
}

bool fil_lru_t::close_one(const fil_space_t *ignore) noexcept
{
  const auto choice= ring.victim([ignore](fil_node_t &node)
  { return judge(node, ignore, true); });
  if (choice.how != clock_t::CLOSE)
  {
    submit_sync_ahead();
    return false;
  }
  fil_note_synced(*choice.file->space);
  stat.closed++;
  choice.file->close();
  return true;
}

/** Close a file, or wait a little if none may be closed.  This may release
fil_system.mutex.
@param done  the work that the thread has done so far
@return whether the caller may look again; false at the bounds of its work */
bool fil_lru_t::close_or_wait(effort &done) noexcept
{
  if (done.closes >= MAX_CLOSES)
    return false;

  const bool may_sync= done.syncs < MAX_SYNCS;
  const auto choice= ring.victim([may_sync](fil_node_t &node)
  { return judge(node, nullptr, may_sync); });

  if (choice.how == clock_t::KEEP)
  {
    if (done.waited >= (recv_recovery_is_on() ? RECOVERY_WAIT_US : WAIT_US))
      return false;
    if (!done.waited)
      stat.waits++;
    mysql_mutex_unlock(&fil_system.mutex);
    std::this_thread::sleep_for(std::chrono::microseconds(POLL_US));
    mysql_mutex_lock(&fil_system.mutex);
    done.waited+= POLL_US;
    return true;
  }

  if (choice.how == clock_t::SYNC_FIRST)
  {
    done.syncs++;
    stat.syncs++;
    if (!sync(choice.file))
      return true;
  }
  done.closes++;
  close(choice.file);
  return true;
}

bool fil_lru_t::make_room(const fil_node_t *node) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  ut_ad(!node->is_open());
  ut_ad(node->space->referenced());

  effort done;
  bool is_full= false;

  for (; fil_system.n_open >= srv_max_n_open_files; is_full= true)
  {
    if (!close_or_wait(done))
    {
      stat.exceeded++;
      const time_t now= time(nullptr);
      if (now - fil_system.n_open_exceeded_time >= 5 &&
          done.closes < MAX_CLOSES)
      {
        fil_system.n_open_exceeded_time= now;
        sql_print_warning("InnoDB: innodb_open_files=" ULINTPF
                          " is exceeded (" ULINTPF " files stay open)",
                          srv_max_n_open_files, fil_system.n_open);
      }
      break;
    }
    if (node->is_open())
      return false;
  }

  const ulint limit= is_full ? srv_max_n_open_files / 4 + 1 : 0;
  if (batch_limit != limit)
    batch_limit= limit;
  submit_sync_ahead();
  return true;
}

bool fil_lru_t::wait_for_descriptor(fil_node_t *node, effort &done) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  ut_ad(node->open_state == fil_node_t::NO_DESCRIPTOR);

  switch (srv_operation) {
  case SRV_OPERATION_BACKUP:
  case SRV_OPERATION_BACKUP_NO_DEFER:
  case SRV_OPERATION_RESTORE_DELTA:
    /* mariadb-backup uses handles without a reference. */
    return false;
  default:
    break;
  }

  const time_t now= time(nullptr);
  if (now - reported_time >= 5)
  {
    reported_time= now;
    sql_print_warning("InnoDB: No file descriptor for %s. InnoDB has " ULINTPF
                      " files open and closes some of them. Lower"
                      " innodb_open_files, or raise open_files_limit",
                      node->name, fil_system.n_open);
  }
  if (close_or_wait(done))
    return true;

  if (recv_recovery_is_on() && !srv_force_recovery)
    /* Recovery regards a file that it cannot open as dropped, and would skip the log
    records for it. */
    ib::fatal() << "No file descriptor for " << node->name << " in recovery."
      " Raise open_files_limit, or the limit of the shell or unit that starts"
      " the server";
  return false;
}

void fil_lru_t::added_to_batch() noexcept
{
  if (const ulint n= batch_limit)
    buf_dblwr.flush_buffered_writes_of(n);
}

void buf_dblwr_t::flush_buffered_writes_of(ulint n) noexcept
{
  ut_ad(is_created());
  mysql_mutex_lock(&mutex);
  if (active_slot->first_free < n || !flush_buffered_writes(FSP_EXTENT_SIZE))
    mysql_mutex_unlock(&mutex);
}

void fil_lru_t::set_limit(ulint limit) noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  srv_max_n_open_files= limit;
  if (fil_system.n_open < limit)
    batch_limit= 0;
  mysql_mutex_unlock(&fil_system.mutex);
}

void fil_lru_t::close_excess(THD *thd) noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  /* A bound, because threads may use a file again whenever this one syncs it. */
  for (size_t left= 2 * ring.size(); left; )
  {
    mysql_mutex_unlock(&fil_system.mutex);
    const bool is_killed= thd_kill_level(thd);
    mysql_mutex_lock(&fil_system.mutex);
    if (is_killed || fil_system.n_open <= srv_max_n_open_files)
      break;
    const auto choice= ring.victim([](fil_node_t &node)
    { return judge(node, nullptr, true); });
    if (choice.how == clock_t::KEEP)
    {
      /* Threads will close these files when they open others. */
      left-= std::min(left, size_t(clock_t::MAX_LOOKED_AT));
      continue;
    }
    left--;
    if (choice.how == clock_t::SYNC_FIRST)
    {
      stat.syncs++;
      if (!sync(choice.file))
        continue;
    }
    close(choice.file);
  }
  mysql_mutex_unlock(&fil_system.mutex);
}

void innodb_open_files_update(THD *thd, st_mysql_sys_var*, void *var,
                              const void *save)
{
  mysql_mutex_assert_owner(&LOCK_global_system_variables);
  ulong &current= *static_cast<ulong*>(var);
  ulong wanted= *static_cast<const ulong*>(save);
  const ulong least= std::max(10UL, ulong(srv_undo_tablespaces +
                                          srv_sys_space.m_files.size() +
                                          srv_tmp_space.m_files.size() + 1));
  /* The descriptors that the server plans for connections and temporary files.  This
  does not count tables of other engines: InnoDB closes files when there is no
  descriptor. */
  const ulong others= max_connections + extra_max_connections + 30;
  const ulong room= open_files_limit > others ? open_files_limit - others : 0;
  const ulong most= std::max(std::max(room, current), least);
  if (!wanted)
    /* DEFAULT: the value that the server would choose at startup */
    wanted= srv_file_per_table && tc_size > 300 && tc_size < most
      ? tc_size : std::min(std::max(300UL, least), most);
  const ulong limit= std::min(std::max(wanted, least), most);

  if (limit != wanted)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_WRONG_ARGUMENTS,
                        "innodb_open_files is set to %lu; it may be %lu to %lu "
                        "(open_files_limit)", limit, least, most);
  current= limit;
  /* Set both under the mutex of the variable, so that both get the value of the last
  connection that sets it */
  fil_lru.set_limit(limit);
  mysql_mutex_unlock(&LOCK_global_system_variables);
  fil_lru.close_excess(thd);
  mysql_mutex_lock(&LOCK_global_system_variables);
}

#ifdef UNIV_DEBUG
bool fil_lru_t::validate() const noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return ring.validate([](const fil_node_t &node)
  {
    /* mariadb-backup closes files itself, and so does a server that fails to start. */
    return node.is_open() || srv_operation != SRV_OPERATION_NORMAL ||
      !srv_was_started;
  });
}
#endif

/** Try to close a file.  The function does not release fil_system.mutex.
@param ignore_space  tablespace that the caller is about to use
@return whether a file was closed */
bool fil_space_t::try_to_close(fil_space_t *ignore_space, bool) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return fil_lru.close_one(ignore_space);
}
