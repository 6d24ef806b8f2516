/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/fil0lru.h
innodb_open_files: which files stay open.  fil0lru.cc begins with an explanation.
*******************************************************/

#pragma once

#include "fil0fil.h"

/** Keeps the number of open files at innodb_open_files.
fil_system.mutex protects all members, but for those that say otherwise. */
class fil_lru_t
{
  typedef fil_clock<fil_node_t> clock_t;

  /** the open files, but for those that are never closed to make room */
  clock_t ring;
  /** whether sync_ahead() has been submitted and has not ended */
  bool is_syncing= false;
  /** when a lack of descriptors was reported */
  time_t reported_time= 0;
  /** how many pages a doublewrite batch may have, or 0 if the latest file was not opened
  in the place of another; threads read it without fil_system.mutex, as a hint */
  Atomic_relaxed<ulint> batch_limit{0};

public:
  /** Counters since the start; SHOW STATUS reads them without fil_system.mutex */
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
    /** waits because no open file could be closed */
    size_t waits;
    /** files opened beyond the limit after such a wait */
    size_t exceeded;
  } stat{};

  /** The work that one thread has done so far to have files closed; only it sees this */
  struct effort
  {
    /** microseconds of waiting */
    unsigned waited= 0;
    unsigned syncs= 0;
    unsigned closes= 0;
  };

  /** Note that a file has been opened. */
  void opened(fil_node_t *node) noexcept;
  /** Note that a file is being closed or freed. */
  void closed(fil_node_t *node) noexcept { ring.remove(*node); }

  /** Close files until another one may be opened.  This releases
  fil_system.mutex in between.
  @param node  file that is to be opened; the caller has a reference to its tablespace
  @return whether it is still to be opened */
  bool make_room(const fil_node_t *node) noexcept;

  /** Whether a file could not be opened because its table is being dropped: a page
  that is about to be written has lost its file.  The function looks at errno: call it
  right after the attempt to open the file, which must be silent. */
  static bool is_deleted(const fil_node_t &node) noexcept
  { return errno == ENOENT && node.space->is_stopping(); }

  /** Close a file because there was no descriptor for another one, or wait a
  little.  This may release fil_system.mutex.
  @param node  file that is to be opened
  @param done  the work that has been done for it
  @return whether to try again, unless another thread has opened it */
  bool wait_for_descriptor(fil_node_t *node, effort &done) noexcept;

  /** Close a file that needs no sync, without releasing fil_system.mutex.
  @param ignore  tablespace to keep, or nullptr
  @return whether a file was closed */
  bool close_one(const fil_space_t *ignore) noexcept;

  /** After a page has been added to the doublewrite batch: write the batch if its pages
  keep too many of the files open that may be open.  Like buf_dblwr_t::add_to_batch(),
  this may wait for the previous batch. */
  void added_to_batch() noexcept;

  /** Change the limit. */
  void set_limit(ulint limit) noexcept;
  /** Close the files beyond the limit.  The caller holds no mutex and no latch.
  @param thd  connection, which may be killed */
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

/** Let users set a variable that MariaDB defines as read only.  To be called before the
server looks at the definitions. */
template<class Variable>
st_mysql_sys_var *innodb_can_be_set(Variable &variable) noexcept
{
  variable.flags&= ~PLUGIN_VAR_READONLY;
  variable.update= innodb_open_files_update;
  return reinterpret_cast<st_mysql_sys_var*>(&variable);
}
