#ifndef TABLE_CACHE_MEMORY_INCLUDED
#define TABLE_CACHE_MEMORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  table_cache_memory: a limit, in bytes, for open tables and cached definitions
  together. table_cache_memory.cc has the functions.

  Three sums count the bytes:

  1. tables: each TABLE with its mem_root, its handler, and the memory that the
     handler has allocated. A thread adds a TABLE's bytes when it opens the
     TABLE, and subtracts them when the core of the table cache
     (table_cache_core.h) stops counting the TABLE.
  2. definitions: each TABLE_SHARE with its mem_root, its engine-independent
     statistics, and its TDC_element.
  3. innodb: each dict_table_t with its indexes (dict0limit.cc).

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

  Making room
  -----------
  A thread that has added an object, and finds the limit exceeded, frees other
  objects: tc_make_room(). It frees at most BUDGET times the bytes that it has
  added. So its work is bounded by that of opening the object, and several such
  threads remove an excess that another one has caused. It begins with the
  objects that are cheapest to get back:

  1. TABLEs, in their order of eviction, while TABLEs take more than a PART of
     the limit;
  2. unused shares, in the order of tdc_purge(), while shares take more than a
     PART of it;
  3. InnoDB's definitions that no handler uses;
  4. if that frees nothing: shares and TABLEs, even if they have less than their
     PART.

  A TABLE is cheap to open while its definitions are cached, so TABLEs go first.
  The PART keeps some of them as long as there are unused definitions. Only
  TABLEs in use, and the definitions that belong to them, may exceed the limit.
*/

#include "my_global.h"
#include <atomic>

class THD;
class handler;
struct TABLE;

struct Table_cache_memory
{
  /** A kind may take 1/PART of the limit before it makes room for others. */
  static constexpr uint PART= 4;
  /** A thread frees at most so many times the bytes that it has added. */
  static constexpr uint BUDGET= 4;
  /** By default, a call of tdc_evict_bytes() skips at most so many shares. */
  static constexpr uint STEPS= 64;

  /** The sums. Only threads that open or close something write these. */
  std::atomic<size_t> tables, definitions, innodb;

  /* InnoDB sets these two when it starts, before any thread opens a table. */
  /** Bytes that an InnoDB handler has allocated without my_malloc(). */
  size_t (*innodb_handler)(const handler *);
  /** Free some definitions that no handler uses. @return how many bytes */
  size_t (*innodb_evict)(size_t bytes);

  /** @@table_cache_memory, which a client may set at any moment. 0: no limit */
  size_t limit() const;
  /** By how much the limit is exceeded. */
  size_t excess() const;
  /** The bytes of all three kinds. */
  size_t sum() const
  {
    return tables.load(std::memory_order_relaxed) +
           definitions.load(std::memory_order_relaxed) +
           innodb.load(std::memory_order_relaxed);
  }
  /** May all TABLEs stay? */
  bool allows_tables() const
  {
    const size_t max= limit();
    return likely(!max) || sum() <= max ||
           tables.load(std::memory_order_relaxed) <= max / PART;
  }
};

extern Table_cache_memory tc_memory;
/** @@table_cache_memory */
extern ulonglong table_cache_memory;


inline size_t Table_cache_memory::limit() const
{
  static_assert(sizeof(std::atomic<ulonglong>) == sizeof(table_cache_memory),
                "");
  const ulonglong bytes=
    reinterpret_cast<const std::atomic<ulonglong>*>(&table_cache_memory)->
      load(std::memory_order_relaxed);
  return static_cast<size_t>(MY_MIN(bytes, (ulonglong) SIZE_T_MAX));
}

void tc_table_has_grown(TABLE *table);
int64 tc_other_bytes(const THD *thd, const TABLE *table);
void tc_table_keeps(const THD *thd, TABLE *table, int64 before);
size_t tc_make_room(THD *thd, size_t bytes, bool may_lock_engine,
                    uint steps= Table_cache_memory::STEPS);
void tc_keep_memory_limit();

#endif /* TABLE_CACHE_MEMORY_INCLUDED */
