/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A scan is a statement of a kind that does not come back to its tables, such as
  a dump or a check. Only tc_is_scan() knows which kinds these are.

  1. If a scan opens a TABLE, the server evicts that TABLE before others after
     the scan has released it, as long as only scans use it.
  2. If a scan finds an ordinary TABLE in the cache, the TABLE stays ordinary.
  3. If only scans have used a table (TDC_element::only_scanned), the server
     evicts its definition, and InnoDB's (dict0evict.cc), before those of other
     tables.
  4. LOCK TABLES is a scan as long as only scans use the tables that it has
     locked. So mariadb-dump, which locks a database before it reads it, is a
     scan. LOCK TABLES holds its tables for long. If it locks for reading, it
     leaves the last free TABLE of a share to the other users, and opens one
     for itself; so does FLUSH TABLES ... FOR EXPORT. Otherwise a dump would
     force other users to open each of their tables again.
*/

#include "mariadb.h"
#include "sql_base.h"
#include "sql_show.h"
#include "table_cache_tables.h"

/**
  Is the statement of a kind that does not come back to this table?

  The server evicts the tables that such a statement opens before others. So a
  user who dumps or checks all tables, or reads the schema, does not disturb the
  users who work with some of them. The server opens a view's tables for the
  same purpose as the view, and the children of a MERGE table for the same
  purpose as the MERGE table.
*/

Tc_scan tc_is_scan(THD *thd, const TABLE_LIST *tl)
{
  const LEX *lex= thd->lex;
  switch (lex->sql_command) {
  case SQLCOM_SELECT:
    /*
      mariadb-dump and mydumper write SQL_NO_CACHE. So do applications, which
      come back, but their SELECTs have a condition or a limit.
    */
    if (lex->sql_cache == LEX::SQL_NO_CACHE &&
        !lex->first_select_lex()->where &&
        !lex->first_select_lex()->limit_params.explicit_limit)
      return TC_SCAN;
    break;
  case SQLCOM_CHECK:
  case SQLCOM_CHECKSUM:
  case SQLCOM_ANALYZE:
  case SQLCOM_OPTIMIZE:
  case SQLCOM_REPAIR:
  case SQLCOM_SHOW_CREATE:
  case SQLCOM_SHOW_CREATE_TRIGGER:      /* mariadb-dump's, for each trigger */
  case SQLCOM_SHOW_FIELDS:
  case SQLCOM_SHOW_KEYS:
  case SQLCOM_SHOW_TRIGGERS:
    return TC_SCAN;
  case SQLCOM_LOCK_TABLES:              /* see tc_use_locked_table() */
    return tl->lock_type < TL_FIRST_WRITE ? TC_SCAN_AND_HOLD : TC_SCAN;
  case SQLCOM_FLUSH:
    if (lex->type & REFRESH_FOR_EXPORT)
      return TC_SCAN_AND_HOLD;
    break;
  default:
    break;
  }
  /* A table that is opened to fill one of INFORMATION_SCHEMA */
  while (tl->parent_l)
    tl= tl->parent_l;
  return const_cast<TABLE_LIST*>(tl)->top_table()->i_s_requested_object &
         OPTIMIZE_I_S_TABLE ? TC_SCAN : TC_NO_SCAN;
}


/**
  Does the process have only an eighth of its descriptors left, or less? This
  counts only the files that mysys has opened, so not InnoDB's.
*/

static bool few_descriptors_left()
{
  const uint32 opened= my_atomic_load32_explicit(&my_file_opened,
                                                 MY_MEMORY_ORDER_RELAXED);
  return DBUG_IF("table_cache_few_descriptors") ||
    opened >= my_file_limit - my_file_limit / 8;
}


/**
  May a TABLE of average size be opened, and all others stay? Only an estimate:
  this holds no lock.
*/

static bool is_room_for_one()
{
  const ulong n= tc.records();
  const size_t bytes= tc_memory.tables.load(std::memory_order_relaxed);
  return n < tc_size &&
         Table_cache_memory_limit::allows_tables(n ? bytes / n : 0);
}


/**
  Must a scan that will hold its TABLE for long leave the last free one alone?

  Yes, if all of these hold:

  1. A statement other than a scan has used the share.
  2. There is room to open another TABLE, or a TABLE that a scan has opened makes
     room.
  3. Descriptors are not scarce: LOCK TABLES must not fail because it spares
     others.

  The caller holds no lock, and this keeps none. If it sees a number late, the scan
  takes the last TABLE, or opens one too many.
*/

bool tc_scan_leaves_last(TDC_element *element)
{
  return free_lists(element)->elements.load(std::memory_order_relaxed) == 1 &&
         !element->only_scanned && !few_descriptors_left() &&
         (is_room_for_one() || tc.has_evict_first());
}


/**
  A statement under LOCK TABLES uses a TABLE that is locked.

  The first statement that uses a TABLE of LOCK TABLES and is not a scan makes
  it an ordinary TABLE. Functions and triggers lock the tables that they use, and
  are part of the statement around them.
*/

void tc_use_locked_table(THD *thd, TABLE *table, const TABLE_LIST *tl)
{
  DBUG_ASSERT(table->in_use == thd);
  if (thd->locked_tables_mode == LTM_LOCK_TABLES && !tc_is_scan(thd, tl))
  {
    Cached_table::flags(table)&= Cached_table::WEIGH;
    table->s->tdc->only_scanned= false;
  }
}


/** A scan gives back a TABLE that it has opened. */

void tc_count_scan_open(TDC_element *element)
{
  mysql_mutex_lock(&element->LOCK_table_share);
  element->scan_opens++;
  mysql_mutex_unlock(&element->LOCK_table_share);
}
