/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/fil0lru.h
innodb_open_files: which files stay open; fil0lru.cc begins with how
*******************************************************/

#pragma once

#include "fil0fil.h"

/** What keeps the number of open files at innodb_open_files.
fil_system.mutex protects all of it, but for what says otherwise. */
class fil_lru_t
{
  typedef fil_clock<fil_node_t> clock_t;

  /** the open files, but for those that are never closed to make room */
  clock_t ring;
  /** whether sync_ahead() has been submitted and has not ended */
  bool is_syncing= false;
  /** pages that a doublewrite batch may have, or 0 if the latest file was not opened
  in another's place; read without fil_system.mutex as a hint */
  Atomic_relaxed<ulint> batch_limit{0};

public:
  /** Counters since the start; read without fil_system.mutex by SHOW STATUS */
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
    /** waits because each open file was in use */
    size_t waits;
    /** files opened beyond the limit after such a wait */
    size_t exceeded;
  } stat{};

  /** Note that a file has been opened. */
  void opened(fil_node_t *node) noexcept;
  /** Note that a file is being closed or freed. */
  void closed(fil_node_t *node) noexcept { ring.remove(*node); }

  /** Close files until another one may be opened.  This releases
  fil_system.mutex in between.
  @param node  file that is to be opened; its tablespace is referenced
  @return whether it is still to be opened */
  bool make_room(const fil_node_t *node) noexcept;

  /** Whether a file could not be opened because its table is being dropped: a page
  that is about to be written has lost its file.  To be called next after the
  attempt, since it looks at errno. */
  static bool is_deleted(const fil_node_t &node) noexcept
  { return errno == ENOENT && node.space->is_stopping(); }

  /** Close a file without releasing fil_system.mutex.
  @param ignore  tablespace to keep, or nullptr
  @return whether a file was closed */
  bool close_one(const fil_space_t *ignore) noexcept;

  /** After a page has been added to the doublewrite batch: write the batch if the
  files of its pages are too many of those that may be open.  Like
  buf_dblwr_t::add_to_batch(), this may wait for the batch before. */
  void added_to_batch() noexcept;

  /** Change innodb_open_files, and close what exceeds it.  The caller holds no
  mutex. */
  void set_limit(ulint limit) noexcept;

  /** Sync files ahead of need: a task. */
  static void sync_ahead(void*);
  /** Wait for it at shutdown, when nobody opens files any more. */
  void shutdown() noexcept;

#ifdef UNIV_DEBUG
  bool validate() const noexcept;
#endif

private:
  static clock_t::verdict judge(fil_node_t &node, const fil_space_t *ignore)
    noexcept;
  static pfs_os_file_t take(fil_node_t *node) noexcept;
  bool sync(fil_node_t *node) noexcept;
  ulint reserve() const noexcept;
  bool is_sync_due(ulint clean) const noexcept;
  void submit_sync_ahead() noexcept;
  void sync_ahead() noexcept;
  fil_node_t *find_to_sync() const noexcept;
};

extern fil_lru_t fil_lru;

struct st_mysql_sys_var;
/** SET GLOBAL innodb_open_files */
void innodb_open_files_update(THD *thd, st_mysql_sys_var*, void *var,
                              const void *save);

/** Make a variable that MariaDB defines as read only one that can be set.  It is called
before the server looks at the definitions. */
template<class Variable>
st_mysql_sys_var *innodb_can_be_set(Variable &variable) noexcept
{
  variable.flags&= ~PLUGIN_VAR_READONLY;
  variable.update= innodb_open_files_update;
  return reinterpret_cast<st_mysql_sys_var*>(&variable);
}
