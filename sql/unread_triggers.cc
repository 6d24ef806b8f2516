/* SPDX-License-Identifier: GPL-2.0-only */

/** @file  Read the triggers of a TABLE that is open: see unread_triggers.h. */

#include "mariadb.h"
#include "sql_class.h"
#include "sql_trigger.h"
#include "table_cache.h"
#ifdef TDC_KNOWS_SCANS                  /* This patch set's table cache */
#include "table_cache_memory.h"
#endif
#include "unread_triggers.h"

/**
  Read the triggers of a TABLE, which may have served other statements.

  If that fails, the TABLE still has none, and they stay unread: the next
  statement that needs them gets the error, too. The TABLE is closed when it is
  released, because the attempt leaves memory in mem_root.

  @return true: they cannot be read (reported)
*/

bool read_unread_triggers(THD *thd, TABLE *table)
{
  TABLE_SHARE *share= table->s;
  DBUG_ASSERT(table->in_use == thd);
  DBUG_ASSERT(!table->triggers);
  /*
    An outer join of an earlier statement may have left this set. The triggers
    copy Fields, which would then be nullable. TABLE::init() resets it as well.
  */
  table->maybe_null= 0;
#ifdef TDC_KNOWS_SCANS
  const int64 before= tc_other_bytes(thd, table);
#endif
  DBUG_EXECUTE_IF("unread_triggers_out_of_memory",
                  DBUG_SET("+d,simulate_out_of_memory"););
  if (Table_triggers_list::check_n_load(thd, &share->db, &share->table_name,
                                        table, false))
  {
    delete table->triggers;
    table->triggers= NULL;
    /* Not mark_table_for_reopen(): LOCK TABLES does not close it now */
    table->internal_set_needs_reopen(true);
    return true;
  }
  table->db_stat&= ~TRIGGERS_UNREAD;
#ifdef TDC_KNOWS_SCANS
  tc_table_keeps(thd, table, before);
#endif
  return false;
}


/**
  Exchange the TABLE, which comes from the table cache, for one that has its
  triggers, or read them.

  @return true: they cannot be read (reported)
*/

bool get_unread_triggers(THD *thd, TABLE **table)
{
#ifdef TDC_KNOWS_SCANS
  *table= tc_exchange_for_triggers(thd, *table);
#endif
  return read_triggers(thd, *table);
}
