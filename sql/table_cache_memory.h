#ifndef TABLE_CACHE_MEMORY_INCLUDED
#define TABLE_CACHE_MEMORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The bytes that open tables and cached definitions take.

  Three sums count the bytes:

  1. tables: each TABLE with its mem_root, its handler, and the memory that the
     handler has allocated. A thread adds a TABLE's bytes when it opens the
     TABLE, and subtracts them when the core of the table cache
     (table_cache_core.h) stops counting the TABLE.
  2. definitions: each TABLE_SHARE with its mem_root, its engine-independent
     statistics, and its TDC_element.
  3. innodb: each dict_table_t with its indexes (dict0limit.cc), if the server
     has table_cache_memory (table_cache_memory_limit.h).

  Each object notes how many bytes it has added to its sum, and subtracts as
  many when it goes. So a sum is always the sum of the notes, and 0 when nothing
  is cached. A thread measures an object anew in these cases:

  1. It adds a TABLE, a share or a dict_table_t.
  2. It releases a TABLE for the first time, and measures the share, too: the
     first statement allocates most of the memory that a TABLE gets later.
  3. It releases a TABLE of which an engine said that it has grown
     (tc_table_has_grown()), or that has got triggers (tc_table_keeps()).
  4. InnoDB adds or drops an index, or loads foreign keys.

  So a hit neither reads nor writes a note or a sum. It tests the flags of its
  TABLE, which it does for scans anyway.

  The sums are atomic and need no lock: only threads that open or close TABLEs
  or definitions write them. A thread may see a sum that is a moment old, and the
  sums at different moments. All accesses are relaxed, because a sum tells a thread
  only whether to look for something to evict, and says nothing of other memory.
*/

#include "my_global.h"
#include <atomic>

class THD;
class handler;
struct TABLE;

struct Table_cache_memory
{
  /** The sums. Only threads that open or close something write these. */
  std::atomic<size_t> tables, definitions, innodb;

  /**
    Bytes that an InnoDB handler has allocated without my_malloc(). InnoDB sets
    this when it starts, before any thread opens a table.
  */
  size_t (*innodb_handler)(const handler *);

  /** The bytes of all three kinds. */
  size_t sum() const
  {
    return tables.load(std::memory_order_relaxed) +
           definitions.load(std::memory_order_relaxed) +
           innodb.load(std::memory_order_relaxed);
  }
};

extern Table_cache_memory tc_memory;

void tc_table_has_grown(TABLE *table);
int64 tc_other_bytes(const THD *thd, const TABLE *table);
void tc_table_keeps(const THD *thd, TABLE *table, int64 before);

#endif /* TABLE_CACHE_MEMORY_INCLUDED */
