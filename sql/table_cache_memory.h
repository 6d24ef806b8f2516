#ifndef TABLE_CACHE_MEMORY_INCLUDED
#define TABLE_CACHE_MEMORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  table_cache_memory: a limit, in bytes, of what open tables and known
  definitions take together. table_cache_memory.cc has the functions.

  What is counted, in three sums:

  1. tables: each TABLE with its mem_root, its handler, and what the handler has
     allocated. A TABLE's bytes are added when it is opened, and subtracted when
     the core of the table cache counts it no more (table_cache_core.h).
  2. definitions: each TABLE_SHARE with its mem_root, its engine-independent
     statistics and its TDC_element.
  3. innodb: each dict_table_t with its indexes (dict0memory.cc).

  An object notes what it has added to its sum, and takes that back when it
  goes. So a sum is always that of the notes, and 0 when nothing is cached. What
  the objects really take is looked up when

  - a TABLE, a share or a dict_table_t is added,
  - its user releases a TABLE for the first time: the first statement allocates
    most of what a TABLE gets later,
  - an engine says that a TABLE in use has grown (tc_table_has_grown()),
  - InnoDB adds or drops an index, or loads foreign keys.

  So a hit pays nothing: it reads and writes neither a note nor a sum. It tests
  the flags of its TABLE, as it did before there were bytes.

  The sums are atomic and need no lock: only threads that open or close TABLEs
  or definitions write them. A thread may see a sum that is a moment old.

  Who makes room, and in which order
  ----------------------------------
  A thread that has added something, and finds the limit exceeded, frees others:
  tc_make_room(). It frees at most BUDGET times the bytes of what it has added,
  so that its work is bounded by that of opening it, and the excess vanishes with
  time whoever caused it. It frees what it costs least to get back:

  1. TABLEs, in their order of eviction, while TABLEs take more than a PART of
     the limit;
  2. unused shares, in the order of tdc_purge(), while shares take more than a
     PART of it;
  3. InnoDB's definitions that no handler uses;
  4. if that frees nothing: shares and TABLEs, whatever their part.

  A TABLE is cheap to open while its definitions are known, so TABLEs go first;
  but they do not vanish while definitions that nobody uses remain. Only TABLEs
  in use, and the definitions that belong to them, may exceed the limit.
*/

#include "my_global.h"
#include <atomic>

class THD;
class handler;
struct TABLE;

struct Table_cache_memory
{
  /** Bytes that each kind may take before it must make room for other kinds. */
  static constexpr uint PART= 4;
  /** How many times the bytes that it has added a thread frees, at most. */
  static constexpr uint BUDGET= 4;

  /** The sums. Only threads that open or close something write these. */
  std::atomic<size_t> tables, definitions, innodb;

  /** InnoDB sets these when it starts, before any thread opens a table. */
  /** Bytes that an InnoDB handler has allocated, but its own. */
  size_t (*innodb_handler)(const handler *);
  /** Free some definitions that no handler uses. @return how many bytes */
  size_t (*innodb_evict)(size_t bytes);

  /** @@table_cache_memory, which a client may set at any moment. 0: no limit */
  size_t limit() const;
  /** By how much the limit is exceeded. */
  size_t excess() const;
  /** What all three take. */
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
size_t tc_make_room(THD *thd, size_t bytes, bool may_lock_engine);
void tc_keep_memory_limit();

#endif /* TABLE_CACHE_MEMORY_INCLUDED */
