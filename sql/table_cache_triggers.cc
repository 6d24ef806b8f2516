/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table cache remembers in a share that its table has no triggers, and finds
  a TABLE that has read them.

  The server asks the file system for a file with triggers once in the life of a
  share, not for each TABLE. The answer is usually 'no', and asking was 4 % of
  the cost of opening a TABLE. The answer may become wrong in two ways:

  1. A statement makes such a file. It has an exclusive metadata lock, and
     removes the share.
  2. A user puts such a file there by hand. As in MariaDB, that user has to
     FLUSH TABLES, because TABLEs may be open. An answer from before a FLUSH
     TABLES does not stay: either tc_load_triggers() sees that FLUSH TABLES has
     begun, or FLUSH TABLES finds the answer and clears it.
*/

#include "mariadb.h"
#include "sql_trigger.h"
#include "debug_sync.h"
#include "table_cache_tables.h"

/** How often tc_begin_purge() was called. */
static std::atomic<uint> tc_purges;

/** FLUSH TABLES begins. */

void tc_begin_purge()
{
  tc_purges++;
}


/**
  Load the triggers of a table into a TABLE that has just been opened.

  The function holds LOCK_table_share only while it notes that there are none.

  @return true if loading failed (reported)
*/

bool tc_load_triggers(THD *thd, TABLE *table)
{
  TABLE_SHARE *share= table->s;
  TDC_element *element= share->tdc;
  if (element->no_triggers && !element->flushed)
    return false;
  const uint purges= tc_purges;
  errno= 0;
  if (Table_triggers_list::check_n_load(thd, &share->db, &share->table_name,
                                        table, false))
    return true;
  if (!table->triggers && errno == ENOENT)
  {
    DEBUG_SYNC(thd, "tc_no_triggers");
    mysql_mutex_lock(&element->LOCK_table_share);
    /* If FLUSH TABLES has cleared the answer already, the mutex makes its
       addition visible here. */
    if (purges == tc_purges)
      element->no_triggers= true;
    mysql_mutex_unlock(&element->LOCK_table_share);
  }
  return false;
}


/**
  Exchange a TABLE from the cache for a free one that has read its triggers.

  A TABLE with triggers is equipped (Table_cache_share). So statements that read
  leave these TABLEs to those that write while there are others, and few TABLEs
  have triggers if few statements write at a time.

  @param table  the caller uses it since tc_acquire_table(), and TABLE::init() has
                not run
  @return the TABLE that the caller uses now: the same if no other was free, or
          if the caller has to release it in a particular way
*/

TABLE *tc_exchange_for_triggers(THD *thd, TABLE *table)
{
  DBUG_ASSERT(!table->triggers);
  if (Cached_table::flags(table))
    return table;
  TABLE *other= tc.acquire_equipped(free_lists(table->s->tdc), thd);
  if (!other)
    return table;
  DBUG_ASSERT(other->triggers && other->record[1] != other->record[0]);
  Cached_table::flags(table)= Cached_table::NO_USE;
  tc_release_table(table);
  return other;
}
