/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DDL_LOG_SYNC_INCLUDED
#define DDL_LOG_SYNC_INCLUDED

/**
  @file
  DROP without phases in the DDL log; see ddl_log_sync.inl
*/

#include "ddl_log.h"
#include "sql_class.h"

/**
  Note that a table, or its triggers, were dropped, if recovery needs to know.

  @param error    0, or an error code; -1 if DROP SEQUENCE found a table that is not a
                  sequence: it has written no entry, so the last one is of another table
  @param dropped  whether the table was dropped
*/

static inline void ddl_log_update_drop_phase(THD *thd, DDL_LOG_STATE *state,
                                             uchar phase, int error,
                                             bool dropped)
{
  if (error > 0 && !dropped && !non_existing_table_error(error))
  {
    /* The table stays, with its triggers, and the binary log will not have it */
    ddl_log_update_phase(state, DDL_LOG_FINAL_PHASE);
    return;
  }
  if (error || (thd->lex->sql_command != SQLCOM_DROP_TABLE &&
                thd->lex->sql_command != SQLCOM_DROP_DB))
    ddl_log_update_phase(state, phase);
}

#endif
