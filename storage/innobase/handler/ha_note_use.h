/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Set dict_table_t::used if a statement that is not a scan has used the table.
  dict0evict.cc evicts tables without this flag first.

  1. TDC_element::only_scanned is true until a statement that is not a scan uses
     the share. When a thread closes a handler and only_scanned is false, it sets
     dict_table_t::used. This is early enough, because InnoDB does not evict the
     table while a handler is open.
  2. After that neither flag returns to 'scans only' while the object lives. A
     dict_table_t that is loaded again, or a share that is read again, begins anew.
*/

#ifndef HA_NOTE_USE_INCLUDED
#define HA_NOTE_USE_INCLUDED

#include "table_cache.h"

/** A handler is being closed.
@param share  the definition that it was opened for
@param table  InnoDB's table, to which the handler still has a reference; NULL if
              it was lost (a TRUNCATE that failed) */
static inline void innobase_note_use(const TABLE_SHARE &share,
                                     const dict_table_t *table)
{
  /* A share outside of the table definition cache belongs to a temporary table, or
  to one that ALTER TABLE makes. Without the topic table-cache, each use counts. */
#ifdef TDC_KNOWS_SCANS
  const bool scanned= share.tdc && share.tdc->only_scanned;
#else
  const bool scanned= false;
#endif
  if (table && !table->used && !scanned)
    table->used= true;
}

#endif
