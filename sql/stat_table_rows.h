#ifndef STAT_TABLE_ROWS_INCLUDED
#define STAT_TABLE_ROWS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The first statement that uses a table reads its engine-independent statistics:
  it searches mysql.table_stats once, mysql.column_stats for each column, and
  mysql.index_stats for each part of each index. Unless a user has used ANALYZE
  TABLE ... PERSISTENT there are no rows in any of them. Then the searches find
  nothing, and the statement can do without them. They are a twentieth of the
  CPU time that a first use of an InnoDB table takes.
*/

/**
  Has a statistics table no rows, so that no search in it can find any?

  @param table  the caller has opened and locked it

  The answer is 'yes' only for

  1. threads that read: a thread that writes may insert the row that it searches
     for later;
  2. engines that keep an exact number, which the lock of the caller has made
     constant: Aria without transactions, as mysql_install_db makes the tables,
     and MyISAM.
*/
static inline bool stat_table_has_no_rows(TABLE *table)
{
  handler *file= table->file;
  return table->reginfo.lock_type < TL_FIRST_WRITE &&
         (file->ht->db_type == DB_TYPE_MYISAM ||
          (file->ht->db_type == DB_TYPE_ARIA &&
           table->s->transactional == HA_CHOICE_NO)) &&
         !file->info(HA_STATUS_VARIABLE | HA_STATUS_NO_LOCK) &&
         !file->stats.records;
}

/**
  Leave out a search in a table without rows.

  This counts it in Handler_read_key, so that applications and tests that look
  at the counters of a statement find the same numbers as before.

  @return that the search found nothing
*/
static inline bool stat_table_not_searched(TABLE *table)
{
  status_var_increment(table->in_use->status_var.ha_read_key_count);
  return false;
}

#endif /* STAT_TABLE_ROWS_INCLUDED */
