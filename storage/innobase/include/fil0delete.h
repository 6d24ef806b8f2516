/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/fil0delete.h
Delete the files of tables that a transaction has dropped, without any latch.
fil/fil0delete.cc describes how.
*/

#ifndef fil0delete_h
#define fil0delete_h

#include "fil0fil.h"
#include <vector>

/** The files that remain to be deleted after a transaction has dropped tables.
The object is on the stack of the thread that executes the DDL operation; while it exists,
trx_t::commit() in that thread adds what it drops, and leaves the rest to run().  Other
threads access only tables and next, which are protected by a mutex in
fil0delete.cc. */
class fil_deletion_t
{
  /** the innermost object on the stack of this thread */
  static thread_local fil_deletion_t *current;
  /** the one that was current before */
  fil_deletion_t *const outer;
  /** tablespaces to delete */
  std::vector<uint32_t> spaces;
  /** identifiers of their tables, for which purge waits */
  std::vector<table_id_t> tables;
  /** the next object of which tables is not empty */
  fil_deletion_t *next= nullptr;

public:
  fil_deletion_t() noexcept : outer(current) { current= this; }
  fil_deletion_t(const fil_deletion_t&)= delete;
  fil_deletion_t &operator=(const fil_deletion_t&)= delete;
  /** An error path has not called run() */
  ~fil_deletion_t() { run(); current= outer; }

  class for_commit;

  /** Delete the files. The caller must hold no latch. The log is durable up to the
  commit of the transaction, if there was any file to delete. */
  void run() noexcept;

  /** run() of the current object */
  static void run_current() noexcept
  { ut_ad(current); if (current) current->run(); }

  /** Add a tablespace of which the table is not known.
  @param id  tablespace identifier */
  void add(uint32_t id) noexcept { spaces.push_back(id); }

  /** Wait while a thread is about to delete the file of a dropped table. The caller
  holds no latch, and has held dict_sys.latch after the transaction was committed.
  @param id  table identifier */
  static void wait_for(table_id_t id) noexcept;

private:
  void add(table_id_t id, uint32_t space_id) noexcept;
  static fil_space_t *begin(uint32_t id) noexcept;
  static void log(const std::vector<fil_space_t*> &spaces) noexcept;
  static void end_io(fil_space_t *space) noexcept;
  static bool forget_changes(fil_space_t *space) noexcept;
  static void unlink(fil_space_t *space) noexcept;
  static pfs_os_file_t free(fil_space_t *space) noexcept;
  static void free_detached(fil_space_t *space) noexcept;
  void enter() noexcept;
  void leave() noexcept;
};

/** What trx_t::commit() drops. If the caller has no fil_deletion_t, the files are
deleted before commit() returns, while the thread holds dict_sys.latch. */
class fil_deletion_t::for_commit
{
  /** the tablespaces, if the caller has no fil_deletion_t */
  std::vector<uint32_t> spaces;
public:
  /** Add a table. The transaction has been committed, and this thread still holds the
  exclusive dict_sys.latch, so that purge has not seen it.
  @param id     table identifier
  @param space  tablespace of the table, or nullptr */
  void add(table_id_t id, const fil_space_t *space) noexcept;
  /** lock_sys.latch has been released */
  void end_of_commit() noexcept;
};

#endif
