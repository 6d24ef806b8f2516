/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/fil0ddl.h
Delete the files of tables that a transaction has dropped, without any latch.
fil/fil0ddl.cc describes how.
*/

#ifndef fil0ddl_h
#define fil0ddl_h

#include "fil0fil.h"
#include <vector>

/** The files that a thread still has to delete after it has dropped tables.
While an object exists, trx_t::commit() in the thread that created the object adds the
tablespaces that it drops, and run() deletes their files. A DDL operation has its object
on the stack. A statement that drops several tables has an object, too, which takes over
the tables of the operations. */
class fil_deletion_t
{
  /** a table whose file has not been deleted yet */
  struct dropped
  {
    /** table identifier, or 0 if it is not known */
    table_id_t table;
    /** tablespace identifier */
    uint32_t space;
    /** whether a thread is deleting the file */
    bool running;
  };

  /** the last commit that may have removed a FOREIGN KEY. Protected by the exclusive
  dict_sys.latch */
  static lsn_t constraints_lsn;
  /** the innermost object of this thread */
  static thread_local fil_deletion_t *current;
  /** the object that was current before */
  fil_deletion_t *const outer;
  /** whether this is the object of a statement */
  const bool of_statement;
  /** the log must be durable up to here before the statement, or run_delayed(), ends: the
  commits that have not waited. Only the owner accesses this. */
  lsn_t commit_lsn= 0;
  /** whether commits of the owner need not wait; only the owner accesses this */
  bool delays= false;
  /** whether each commit of the statement has to wait; only the owner accesses this */
  bool waits= false;
  /** whether a table was added since the last run(). Only the owner accesses this. */
  bool added= false;
  /** Purge accesses this, too; protected by a mutex in fil0ddl.cc */
  std::vector<dropped> tables;
  /** the next object of which tables is not empty; protected by the same mutex */
  fil_deletion_t *next= nullptr;

  explicit fil_deletion_t(bool of_statement) noexcept :
    outer(current), of_statement(of_statement) { current= this; }

public:
  fil_deletion_t() noexcept : fil_deletion_t(false) {}
  fil_deletion_t(const fil_deletion_t&)= delete;
  fil_deletion_t &operator=(const fil_deletion_t&)= delete;
  /** Delete the files, if an error path has not called run(). */
  ~fil_deletion_t()
  { ut_ad(!delays); run(); ut_ad(current == this); current= outer; }

  class for_commit;

  /** Delete the files. The caller must hold no latch. If the function writes a
  FILE_DELETE record, it also makes the commits of the transactions durable. */
  void run() noexcept;

  /** The owner is about to save statistics. That commit need not wait for the log. */
  void delay_commits() noexcept { ut_ad(current == this); delays= true; }
  /** run(), and wait for the commits that have not waited. One write to the disk does for
  all of them, because FILE_DELETE comes after them in the log. */
  void run_delayed() noexcept;
  /** @return trx_t::flush_log_later for a transaction that saves statistics */
  static bool delays_commits() noexcept { return current && current->delays; }
  /** Let run_delayed() wait for a commit.
  @param trx  transaction that may have had delays_commits() */
  static void note_commit(trx_t *trx) noexcept;

  /** run() of the current object */
  static void run_current() noexcept
  { ut_ad(current); if (current) current->run(); }

  /** Hand the files over to the object of the statement. If there is none, delete them
  now, and wait until the commit is durable.
  @param lsn   the commit of the transaction
  @param wait  whether to wait for a durable commit; always for the statement's first */
  void run_with_statement(lsn_t lsn, bool wait) noexcept;

  /** The statement of this thread begins to drop tables. */
  static void begin_statement();
  /** The statement has dropped its tables. When this returns, that is durable. */
  static void end_statement();

  /** Add a tablespace.
  @param table  table identifier, or 0 if it is not known
  @param space  tablespace identifier */
  void add(table_id_t table, uint32_t space) noexcept;

  /** Note that a commit may have removed a FOREIGN KEY (any ALTER TABLE). The caller has
  held the exclusive dict_sys.latch since the commit.
  @param lsn  of the commit */
  static void constraint_goes(lsn_t lsn) noexcept;
  /** The caller holds the exclusive dict_sys.latch.
  @return whether a FOREIGN KEY could return after a crash: the commit that removed
  it is not durable */
  static bool constraint_may_return() noexcept;

  /** Wait for the threads that hold dict_sys.latch exclusively. The caller holds no
  latch. */
  static void see_commits() noexcept;
  /** @return whether the file of a dropped table has not been deleted yet.
  The caller has executed see_commits() after the transaction was committed. */
  static bool is_pending(table_id_t id) noexcept;
  /** Delete the file of a dropped table, or wait for the thread that is doing so. Purge
  calls this before it removes a record of the table from the dictionary. The caller
  holds no latch, and has held dict_sys.latch after the transaction was committed.
  @param id  table identifier */
  static void before_purge(table_id_t id) noexcept;

private:
  static dropped *find(table_id_t id, fil_deletion_t **owner) noexcept;
  void enter() noexcept;
  void leave() noexcept;
  void take(fil_deletion_t *other) noexcept;
  size_t size() const noexcept;
  static fil_space_t *begin(uint32_t id) noexcept;
  static void log(const std::vector<fil_space_t*> &spaces) noexcept;
  static void end_io(fil_space_t *space) noexcept;
  static bool forget_changes(fil_space_t *space) noexcept;
  static void unlink(fil_space_t *space) noexcept;
  static pfs_os_file_t free(fil_space_t *space) noexcept;
  /* These two are in fil0fil.cc, which has what they call. */
  static void free_detached(fil_space_t *space) noexcept;
  static void write_delete(mtr_t *mtr, const fil_space_t *space) noexcept;
};

/** The tables that trx_t::commit() drops. If the caller has no fil_deletion_t, commit()
deletes the files before it returns, while the thread holds dict_sys.latch. */
class fil_deletion_t::for_commit
{
  /** the tablespaces, if the caller has no fil_deletion_t */
  std::vector<uint32_t> spaces;
public:
  /** Add a table. The transaction has been committed, and this thread still holds the
  exclusive dict_sys.latch, so that purge has not seen it.
  @param table  table
  @param space  its tablespace, or nullptr if the file could not be opened */
  void add(const dict_table_t &table, const fil_space_t *space) noexcept;
  /** Delete the files that no fil_deletion_t has taken. trx_t::commit() calls this when
  it has released lock_sys.latch. */
  void end_of_commit() noexcept;
};

#endif
