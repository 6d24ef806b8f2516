/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/fil0lru.h
innodb_open_files: the choice of files that stay open.  The head of fil0lru.cc explains
it.
*******************************************************/

#pragma once

#include "fil0fil.h"

/** Keeps the number of open files at innodb_open_files.
fil_system.mutex protects all members, except where a comment says otherwise. */
class fil_lru_t
{
  typedef fil_clock<fil_node_t> clock_t;

  /** open files, except system tablespaces; undo tablespaces are here, but stay open */
  clock_t ring;
  /** whether sync_ahead() has been submitted and has not ended */
  bool is_syncing= false;
  /** time of the last warning about a lack of descriptors */
  time_t reported_time= 0;
  /** number of pages at which a thread writes the doublewrite batch; 0 (no such number)
  if the thread that opened the latest file did not have to close another one.  Threads
  read this without fil_system.mutex, as a hint */
  Atomic_relaxed<ulint> batch_limit{0};

public:
  /** Counters since startup; SHOW STATUS reads them without fil_system.mutex */
  struct
  {
    /** files opened */
    size_t opened;
    /** files closed to make room */
    size_t closed;
    /** syncs by a thread that needed room */
    size_t syncs;
    /** syncs ahead of need */
    size_t syncs_ahead;
    /** waits of threads that could not close any open file */
    size_t waits;
    /** files opened beyond the limit after a wait or 8 closes */
    size_t exceeded;
  } stat{};

  /** The work that one thread has done so far to close files; only that thread uses it */
  struct effort
  {
    /** microseconds of waiting */
    unsigned waited= 0;
    unsigned syncs= 0;
    unsigned closes= 0;
  };

  /** The caller has opened a file: add it to the ring. */
  void opened(fil_node_t *node) noexcept;
  /** The caller is closing or freeing a file: remove it from the ring. */
  void closed(fil_node_t *node) noexcept { ring.remove(*node); }

  /** Close files until the caller may open another one.  This releases
  fil_system.mutex in between.
  @param node  file that the caller wants to open; it has a reference to the tablespace
  @return whether the caller still has to open it; false if another thread has */
  bool make_room(const fil_node_t *node) noexcept;

  /** @return whether the caller could not open a file because another thread, which drops
  the table, has deleted it.  Then the page that the caller wants to write has no file
  any more.  The function reads errno, so call it right after the attempt to open the
  file, and let that attempt write nothing to the error log. */
  static bool is_deleted(const fil_node_t &node) noexcept
  { return errno == ENOENT && node.space->is_stopping(); }

  /** Close a file because there was no descriptor for another one, or wait a
  little.  This may release fil_system.mutex.
  @param node  file that the caller wants to open
  @param done  the work that the caller has done for it so far
  @return whether the caller may try again, unless another thread has opened the file */
  bool wait_for_descriptor(fil_node_t *node, effort &done) noexcept;

  /** Close a file that needs no sync, without releasing fil_system.mutex.
  @param ignore  tablespace to keep, or nullptr
  @return whether a file was closed */
  bool close_one(const fil_space_t *ignore) noexcept;

  /** The caller has added a page to the doublewrite batch: write the batch if its pages
  may keep open more than a quarter of innodb_open_files.  Like
  buf_dblwr_t::add_to_batch(), this may wait for the previous batch. */
  void added_to_batch() noexcept;

  /** Change the limit. */
  void set_limit(ulint limit) noexcept;
  /** Close the files beyond the limit.  The caller holds no mutex and no latch.
  @param thd  connection; the function ends early if a user kills it */
  void close_excess(THD *thd) noexcept;

  /** Sync files ahead of need: a task. */
  static void sync_ahead(void*);
  /** Wait for that task at shutdown, when no thread opens files any more. */
  void shutdown() noexcept;

#ifdef UNIV_DEBUG
  bool validate() const noexcept;
#endif

private:
  static clock_t::verdict judge(fil_node_t &node, const fil_space_t *ignore,
                                bool may_sync) noexcept;
  void close(fil_node_t *node) noexcept;
  bool sync(fil_node_t *node) noexcept;
  bool close_or_wait(effort &done) noexcept;
  static ulint reserve() noexcept;
  bool is_sync_due(ulint clean) const noexcept;
  void submit_sync_ahead() noexcept;
  void sync_ahead() noexcept;
  static fil_node_t *find_to_sync() noexcept;
#ifndef DBUG_OFF
  static uint32_t pretend_written(fil_space_t &space) noexcept;
#endif
};

extern fil_lru_t fil_lru;

struct st_mysql_sys_var;
/** SET GLOBAL innodb_open_files */
void innodb_open_files_update(THD *thd, st_mysql_sys_var*, void *var,
                              const void *save);

/** Let users set a variable that MariaDB defines as read only.  Call this before the
server reads the definitions. */
template<class Variable>
st_mysql_sys_var *innodb_can_be_set(Variable &variable) noexcept
{
  variable.flags&= ~PLUGIN_VAR_READONLY;
  variable.update= innodb_open_files_update;
  return reinterpret_cast<st_mysql_sys_var*>(&variable);
}
