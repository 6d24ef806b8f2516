#ifndef STAT_NOTHING_FOUND_INCLUDED
#define STAT_NOTHING_FOUND_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Tables without engine-independent statistics do not keep memory for them.

  The first statement that uses a table makes a TABLE_STATISTICS_CB for it: two
  record buffers, two Field objects for each column, a Column_statistics for
  each column and an Index_statistics for each index. If mysql.*_stats has no
  row about the table, all of these say 'unknown'. So the statement frees them
  and sets table_stats to NULL. That saves 4 KiB for a table of one column, 23
  KiB for one like wp_posts.

  The TABLE_STATISTICS_CB itself stays. By it, later statements see that the
  statistics have been read, and do not search again. ANALYZE TABLE replaces it,
  as it replaces any other.
*/

/** Statistics of each column of all such tables. No thread changes them. */
static struct Column_statistics_unknown: Column_statistics
{
  /* The other members are 0, as in all static objects. */
  Column_statistics_unknown() { set_all_nulls(); }
} column_statistics_unknown;


/**
  Skip the searches for a table's statistics if all statistics tables are empty.

  @param stat_tables  TABLE_STAT, COLUMN_STAT, INDEX_STAT; open and locked
  @param share        the table whose statistics the caller wants

  @return whether all statistics tables are empty, so that the caller need not
          search
*/

static bool stat_tables_not_searched(TABLE_LIST *stat_tables,
                                     const TABLE_SHARE *share)
{
  for (uint i= 0; i < STATISTICS_TABLES; i++)
    if (!stat_table_has_no_rows(stat_tables[i].table))
      return false;

  /* Count the searches; see stat_table_not_searched(). */
  ulong searches= 1 + share->fields;
  for (uint i= 0; i < share->keys; i++)
    searches+= share->key_info[i].ext_key_parts;
  status_var_add(stat_tables->table->in_use->status_var.ha_read_key_count,
                 searches);
  return true;
}


/**
  If a statement has found no statistics, free the memory that it has allocated
  for them.

  @pre no TABLE and no TABLE_SHARE has stats_cb yet
*/

static void stat_free_if_nothing_found(TABLE_STATISTICS_CB *stats_cb)
{
  DBUG_ASSERT(stats_cb->unused());
  if (stats_cb->stats_available == TABLE_STAT_NO_STATS)
  {
    DBUG_ASSERT(!stats_cb->histograms_exists());
    stats_cb->table_stats= NULL;
    free_root(&stats_cb->mem_root, MYF(0));
  }
}


/** Mark the statistics of a TABLE, its columns and its indexes as unknown. */

static void stat_nothing_found(TABLE *table)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    table->key_info[i].read_stats= NULL;
    /* An earlier statement with this TABLE may have found statistics. */
    table->key_info[i].is_statistics_from_stat_tables= false;
  }
  for (Field **field= table->field; *field; field++)
    (*field)->read_stats= &column_statistics_unknown;
  table->stats_is_read= false;
}

#endif /* STAT_NOTHING_FOUND_INCLUDED */
