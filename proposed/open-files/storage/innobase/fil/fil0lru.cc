/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file fil/fil0lru.cc
innodb_open_files: which files stay open

A thread that opens a file while innodb_open_files are open closes another one.
MariaDB takes the one that was opened first, and if the files that are not in use
have been written, it sleeps 20 ms and syncs all written files, twice.  Here

- the choice goes by use: a clock (fil0clock.h), a count for each file that I/O
  changes without a mutex;
- a file that needs no sync goes first, and when few of these are left, a task
  syncs cold files ahead of need;
- a thread that finds only written files syncs one of them;
- a thread that finds only files in use polls, for as long as MariaDB sleeps, and
  then opens its file beyond the limit, like MariaDB;
- the doublewrite batch is written before its pages occupy a quarter of the limit
  in files.  A page that waits in the batch keeps its file open, and a batch has
  room for 128 pages of as many files: with innodb_open_files=100 nothing could
  be closed.

Which file may be closed.  fil_space_t::n_pending says all: PENDING is the number of
references (I/O, extending, encryption, DDL; a thread that drops the tablespace sets
STOPPING first).  While CLOSING is set, a thread must acquire fil_system.mutex to get a
reference.  With
fil_system.mutex held, judge() turns CLOSING on if there is no reference and no need
of a sync.  Until the mutex is released nobody can get a reference, and take()
removes the handle.  close(2) comes after the mutex is released: then the file is closed
for all other threads.

How a file is synced for closing.  sync() sets CLOSING and takes a reference, if there
is none and with fil_system.mutex held, releases the mutex, syncs, and takes the
mutex again.  The reference keeps the file from being dropped or closed.  A thread that
uses the file meanwhile comes by the mutex and turns CLOSING off (prepare_acquired()).
So if CLOSING is still on and there is no other reference, nobody has written
since the sync began, and NEEDS_FSYNC is turned off.  Otherwise it stays on, and the
sync was for nothing.  (fil_space_t::flush_low() by contrast turns NEEDS_FSYNC off
whatever has been written during its sync.)

What another thread sees between these steps: a file with CLOSING on and a handle,
that can be used by way of the mutex; a closed file, whose descriptor is still there
for a moment and no longer counted; or a file that is in unflushed_spaces and is synced
by two threads at once.  Each is as before.

Order of mutexes: fil_system.mutex is the last one; nothing here takes another one
while holding it, but for that of the thread pool's queue.  added_to_batch() takes
buf_dblwr.mutex, without fil_system.mutex.

A thread that waits here for room may hold latches of pages, so all its waits are
bounded: WAIT_US altogether, and the syncs that it makes itself.
*******************************************************/

#include "fil0lru.h"
#include "buf0dblwr.h"
#include "fsp0sysspace.h"
#include "log.h"
#include "log0recv.h"
#include "mysqld.h"
#include "sql_class.h"
#include "srv0srv.h"
#include "srv0start.h"
#include <chrono>
#include <thread>

fil_lru_t fil_lru;

namespace
{
/** How long a thread waits for a file that is not in use, in microseconds: as
long as MariaDB sleeps */
constexpr unsigned WAIT_US= 40000;
/** How long it waits before it looks again, in microseconds */
constexpr unsigned POLL_US= 500;
/** How many written files sync_ahead() looks at for one to sync */
constexpr unsigned MAX_LOOKED_AT= 64;
/** Handles that set_limit() closes each time it has released fil_system.mutex */
constexpr size_t CLOSE_AT_ONCE= 32;

}

/** Judge whether a file may be closed.  With CLOSE, nobody gets a reference to the
tablespace until the caller releases fil_system.mutex. */
inline fil_lru_t::clock_t::verdict
fil_lru_t::judge(fil_node_t &node, const fil_space_t *ignore) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  fil_space_t &space= *node.space;

  if (!node.is_open() || &space == ignore || space.is_being_imported() ||
      is_predefined_tablespace(space.id))
    return clock_t::KEEP;

  uint32_t n= space.n_pending.load(std::memory_order_relaxed);
  if (n & (fil_space_t::STOPPING | fil_space_t::PENDING))
    return clock_t::KEEP;
  if (n & fil_space_t::NEEDS_FSYNC)
    return clock_t::SYNC_FIRST;
  /* acquire: what the last user did to the file comes before */
  return space.n_pending.compare_exchange_strong
    (n, n | fil_space_t::CLOSING, std::memory_order_acquire,
     std::memory_order_relaxed) ? clock_t::CLOSE : clock_t::KEEP;
}

/** Remove the handle of a file that may be closed.
@return handle, to be closed by the caller, best without fil_system.mutex */
inline pfs_os_file_t fil_lru_t::take(fil_node_t *node) noexcept
{
  fil_space_t *space= node->space;
  ut_ad(space->is_ready_to_close());
  ut_ad(!space->needs_flush());

  if (space->is_in_unflushed_spaces)
  {
    /* flush_low() came between the two steps of fil_node_t::complete_write() */
    space->is_in_unflushed_spaces= false;
    fil_system.unflushed_spaces.remove(*space);
  }

  return node->detach();
}

/** Sync a file that nobody uses.  This releases fil_system.mutex in between.
@return whether it may be closed: nobody has used it since, and CLOSING is on */
bool fil_lru_t::sync(fil_node_t *node) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  fil_space_t &space= *node->space;

  uint32_t n= space.n_pending.load(std::memory_order_relaxed);
  do
  {
    ut_ad(node->is_open());
    if ((n & (fil_space_t::STOPPING | fil_space_t::PENDING |
              fil_space_t::NEEDS_FSYNC)) != fil_space_t::NEEDS_FSYNC)
      return false;
  }
  while (!space.n_pending.compare_exchange_strong
         (n, (n | fil_space_t::CLOSING) + 1, std::memory_order_acquire,
          std::memory_order_relaxed));

  mysql_mutex_unlock(&fil_system.mutex);
  fil_n_pending_tablespace_flushes++;
  os_file_flush(node->handle);
  fil_n_pending_tablespace_flushes--;
  mysql_mutex_lock(&fil_system.mutex);

  n= space.n_pending.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if ((n & (fil_space_t::STOPPING | fil_space_t::PENDING |
            fil_space_t::CLOSING)) != fil_space_t::CLOSING)
    return false;

  if (space.is_in_unflushed_spaces)
  {
    space.is_in_unflushed_spaces= false;
    fil_system.unflushed_spaces.remove(space);
  }
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
    has no meaning, so opening and closing do not disturb those who walk it. */
    fil_system.move_opened_last_to_space_list(node->space);
}

/** @return how many files should be closable at once */
inline ulint fil_lru_t::reserve() const noexcept
{
  return std::min<ulint>(srv_max_n_open_files / 8 + 1, 64);
}

/** @return whether the limit is near and fewer files need no sync than wished
@param clean  wished */
inline bool fil_lru_t::is_sync_due(ulint clean) const noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return fil_system.n_open + reserve() >= srv_max_n_open_files &&
    ring.size() < fil_system.unflushed_spaces.size() + clean;
}

/** @return a file for sync_ahead(), or nullptr: the cold one that was written
first, or else the first one */
inline fil_node_t *fil_lru_t::find_to_sync() const noexcept
{
  fil_node_t *hot= nullptr;
  unsigned left= MAX_LOOKED_AT;
  const auto end= fil_system.unflushed_spaces.begin();
  for (auto it= fil_system.unflushed_spaces.end(); it != end && left--; )
  {
    fil_space_t &space= *--it;
    fil_node_t *node= UT_LIST_GET_FIRST(space.chain);
    if (!node || !node->clock.is_in_ring() ||
        judge(*node, nullptr) != clock_t::SYNC_FIRST)
      continue;
    if (!node->clock.is_hot())
      return node;
    if (!hot)
      hot= node;
  }
  return hot;
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
    stat.syncs_ahead++;
    if (sync(node) && !node->space->recv_size)
      /* Its users need not come by the mutex. */
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
  { return judge(node, ignore); });
  if (choice.how != clock_t::CLOSE)
    return false;
  stat.closed++;
  os_file_close(take(choice.file));
  return true;
}

bool fil_lru_t::make_room(const fil_node_t *node) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  ut_ad(!node->is_open());
  ut_ad(node->space->referenced());

  unsigned waited= 0;
  bool is_full= false;

  for (; fil_system.n_open >= srv_max_n_open_files; is_full= true)
  {
    const auto choice= ring.victim([](fil_node_t &node)
    { return judge(node, nullptr); });

    if (choice.how == clock_t::KEEP)
    {
      if (!waited)
        stat.waits++;
      else if (waited >= WAIT_US)
      {
        stat.exceeded++;
        const time_t now= time(nullptr);
        if (now - fil_system.n_open_exceeded_time >= 5)
        {
          fil_system.n_open_exceeded_time= now;
          sql_print_warning("InnoDB: innodb_open_files=" ULINTPF
                            " is exceeded (" ULINTPF " files stay open)",
                            srv_max_n_open_files, fil_system.n_open);
        }
        break;
      }
      mysql_mutex_unlock(&fil_system.mutex);
      std::this_thread::sleep_for(std::chrono::microseconds(POLL_US));
      waited+= POLL_US;
      mysql_mutex_lock(&fil_system.mutex);
    }
    else
    {
      if (choice.how == clock_t::SYNC_FIRST)
        stat.syncs++;
      if (choice.how == clock_t::CLOSE || sync(choice.file))
      {
        stat.closed++;
        const pfs_os_file_t handle= take(choice.file);
        mysql_mutex_unlock(&fil_system.mutex);
        os_file_close(handle);
        mysql_mutex_lock(&fil_system.mutex);
      }
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

void fil_lru_t::added_to_batch() noexcept
{
  if (const ulint n= batch_limit)
    buf_dblwr.flush_buffered_writes_of(n);
}

void buf_dblwr_t::flush_buffered_writes_of(ulint n) noexcept
{
  if (!is_created() || !srv_use_doublewrite_buf)
    return;
  mysql_mutex_lock(&mutex);
  if (active_slot->first_free < n || !flush_buffered_writes(block_size()))
    mysql_mutex_unlock(&mutex);
}

void fil_lru_t::set_limit(ulint limit) noexcept
{
  pfs_os_file_t handles[CLOSE_AT_ONCE];
  mysql_mutex_lock(&fil_system.mutex);
  srv_max_n_open_files= limit;

  for (bool more= true; more; )
  {
    size_t n= 0;
    more= false;
    while (fil_system.n_open > srv_max_n_open_files)
    {
      const auto choice= ring.victim([](fil_node_t &node)
      { return judge(node, nullptr); });
      if (choice.how == clock_t::KEEP)
        break; /* They are closed when other files are opened. */
      if (choice.how == clock_t::SYNC_FIRST)
      {
        stat.syncs++;
        if (!sync(choice.file))
          continue;
      }
      stat.closed++;
      handles[n]= take(choice.file);
      if (++n == CLOSE_AT_ONCE)
      {
        more= true;
        break;
      }
    }
    mysql_mutex_unlock(&fil_system.mutex);
    while (n)
      os_file_close(handles[--n]);
    mysql_mutex_lock(&fil_system.mutex);
  }

  mysql_mutex_unlock(&fil_system.mutex);
}

void innodb_open_files_update(THD *thd, st_mysql_sys_var*, void *var,
                              const void *save)
{
  const ulong wanted= *static_cast<const ulong*>(save);
  const ulong most= std::max(open_files_limit, 10UL);
  const ulong least= std::min
    (most, std::max(10UL, ulong(srv_undo_tablespaces +
                                srv_sys_space.m_files.size() +
                                srv_tmp_space.m_files.size() + 1)));
  const ulong limit= std::min(std::max(wanted, least), most);

  if (limit != wanted)
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_WRONG_ARGUMENTS,
                        "innodb_open_files is set to %lu; it may be %lu to %lu "
                        "(open_files_limit)", limit, least, most);
  *static_cast<ulong*>(var)= limit;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  fil_lru.set_limit(limit);
  mysql_mutex_lock(&LOCK_global_system_variables);
}

#ifdef UNIV_DEBUG
bool fil_lru_t::validate() const noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return ring.validate([](const fil_node_t &node)
  {
    /* mariadb-backup closes files by itself. */
    return node.is_open() || srv_operation != SRV_OPERATION_NORMAL;
  });
}
#endif

/** Try to close a file, with fil_system.mutex held throughout.
@param ignore_space  tablespace that the caller is about to use
@return whether a file was closed */
bool fil_space_t::try_to_close(fil_space_t *ignore_space, bool) noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  return fil_lru.close_one(ignore_space);
}
