/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DDL_LOG_DROPS_INCLUDED
#define DDL_LOG_DROPS_INCLUDED

/**
  @file
  DROP of many tables logs several tables in the DDL log at once, and syncs once; see
  ddl_log_drops.cc
*/

#include "ddl_log.h"
#include <string>
#include <vector>

struct TABLE_LIST;

class Ddl_log_drops
{
public:
  /** @param tables  the tables of the statement */
  Ddl_log_drops(THD *thd, TABLE_LIST *tables, bool drop_sequence);

  /**
    Log a table that the thread is about to drop, and maybe tables after it.

    @param table  the tables come in the order of the list
    @param hton   engine
    @param path   of the table, without extension
    @return whether there was an error
  */
  bool log(DDL_LOG_STATE *state, TABLE_LIST *table, handlerton *hton,
           const LEX_CSTRING *path);

  /** Whether this thread syncs later what it writes */
  static thread_local bool syncs_later;

  /**
    Recovery asks this before it drops a table.

    @return whether the table must stay: a FOREIGN KEY refers to it, so the statement
            would have refused to drop it
  */
  static bool must_stay(THD *thd, const DDL_LOG_ENTRY *entry);

  /** @return the flags of the first entry of a statement that drops or alters tables */
  static uint16 flags(const THD *thd);
  /** In recovery: use foreign_key_checks and sql_log_bin of the statement with this first
  entry. ddl_log_execute_entry_no_lock() restores them. */
  static void recover_flags(THD *thd, const DDL_LOG_ENTRY *entry);

  /**
    Put the tables of a database in an order in which each table comes after those that
    have a FOREIGN KEY that refers to it.

    @param tables  list by next_local
    @return the list in that order; if such keys form a cycle, one of them is ignored
  */
  static TABLE_LIST *children_first(TABLE_LIST *tables);

  /** The engine of the last table that this thread has logged for a DROP */
  static thread_local handlerton *engine;

  /**
    Ask InnoDB whether a FOREIGN KEY may refer to one of its tables. InnoDB sets
    this pointer when it starts. The path has no extension. If look_it_up is
    true, InnoDB also checks whether the table exists. If not, it returns false,
    even if a key names the table.
  */
  static bool (*is_referenced)(const char *path, bool look_it_up);
  /**
    Ask InnoDB which other tables have a FOREIGN KEY that refers to one of its tables. This
    adds their names: database/table, in the form that file names have.
  */
  static void (*find_children)(const char *path, std::vector<std::string> *names);

private:
  bool log_ahead(DDL_LOG_STATE *state, TABLE_LIST *table, bool *logged);

  /* With a sync of 4 ms, one for that many tables is a small part of their time */
  static constexpr uint MAX_AHEAD= 64;
  /* A statement of fewer tables logs each when it comes to it */
  static constexpr uint MIN_TABLES= 5;

  THD *const thd;
  bool may_log_ahead;
  /* The tables that were logged ahead, and the entry of each */
  struct { TABLE_LIST *table; DDL_LOG_MEMORY_ENTRY *entry; } ahead[MAX_AHEAD];
  uint n= 0, next= 0;
};

/** Sync what ddl_log_drop_table() has written while Ddl_log_drops::syncs_later */
void ddl_log_sync_drops();

#endif
