/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Tell dict0evict.cc which tables only scans have used.

  A TABLE_SHARE knows whether a statement that is no scan has used it
  (TDC_element::only_scanned). A thread that closes a handler copies that to
  dict_table_t::used. That is early enough, because InnoDB does not evict the table
  while a handler is open. No thread ever resets either flag: a dict_table_t that
  is loaded again, or a share that is read again, begins anew.
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
  to one that ALTER TABLE makes. */
  if (table && !table->used && (!share.tdc || !share.tdc->only_scanned))
    table->used= true;
}

#endif
