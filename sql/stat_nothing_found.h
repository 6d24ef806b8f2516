#ifndef STAT_NOTHING_FOUND_INCLUDED
#define STAT_NOTHING_FOUND_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A table without engine-independent statistics.

  The first statement that uses a table makes a TABLE_STATISTICS_CB for it: two
  record buffers, two Field objects for each column, a Column_statistics for each
  column and an Index_statistics for each index. If mysql.*_stats have nothing
  about the table, all of that says 'unknown'. Then the TABLE_STATISTICS_CB has
  none of it: its table_stats is NULL. That saves 4 KiB for a table of one
  column, 23 KiB for one like wp_posts.

  The object itself stays: it says that the statistics have been read, so nobody
  searches for them again. ANALYZE TABLE replaces it, as it does any other.
*/

/** The statistics of each column of each such table. Nobody changes them. */
static struct Column_statistics_unknown: Column_statistics
{
  /* The other members are 0, as those of all static objects. */
  Column_statistics_unknown() { set_all_nulls(); }
} column_statistics_unknown;


/**
  Leave out the searches for a table's statistics if none of the tables that
  could have them has a row.

  @param stat_tables  TABLE_STAT, COLUMN_STAT, INDEX_STAT; open and locked
  @param share        the table that has statistics or not

  @return that nothing is to be found
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
  Free what has been allocated for statistics that were not found.

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


/** Make a TABLE, its columns and its indexes know that there is nothing. */

static void stat_nothing_found(TABLE *table)
{
  for (uint i= 0; i < table->s->keys; i++)
  {
    table->key_info[i].read_stats= NULL;
    /* A statement before this one may have had statistics. */
    table->key_info[i].is_statistics_from_stat_tables= false;
  }
  for (Field **field= table->field; *field; field++)
    (*field)->read_stats= &column_statistics_unknown;
  table->stats_is_read= false;
}

#endif /* STAT_NOTHING_FOUND_INCLUDED */
