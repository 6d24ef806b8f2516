/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DDL_LOG_DROPS_INCLUDED
#define DDL_LOG_DROPS_INCLUDED

/**
  @file
  DROP of many tables logs several tables in the DDL log at once, and syncs once; see
  ddl_log_drops.cc
*/

#include "ddl_log.h"

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

  /** The flags of the entries that this thread writes */
  static thread_local uint16 flags;

  /**
    Recovery asks this before it drops a table.

    @return whether the table must stay: a FOREIGN KEY refers to it, which another
            connection has created after the statement logged the table ahead
  */
  static bool must_stay(const DDL_LOG_ENTRY *entry);

  /** The engine of the last table that this thread has logged for a DROP */
  static thread_local handlerton *engine;

  /**
    Ask InnoDB whether a FOREIGN KEY may refer to one of its tables. InnoDB sets
    this pointer when it starts. The path has no extension. If look_it_up is
    true, InnoDB also checks whether the table exists. If not, it returns false,
    even if a key names the table.
  */
  static bool (*is_referenced)(const char *path, bool look_it_up);

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
