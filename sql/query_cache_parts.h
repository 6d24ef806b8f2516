/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef QUERY_CACHE_PARTS_INCLUDED
#define QUERY_CACHE_PARTS_INCLUDED

/**
  @file

  What the source files of the query cache share, and nobody else uses:

    query_cache_reclaim.cc  invalidation, and freeing what it has killed. Its
                            first comment describes the whole, with all lists
                            and counters. Begin there.
    query_cache_pins.cc     results in use without the cache's lock
    query_cache_slices.cc   long work in short pieces; the reclaiming thread
    query_cache_evict.cc    allocation and eviction
    query_cache_pack.cc     FLUSH QUERY CACHE
    query_cache_resize.cc   SET GLOBAL query_cache_size, and disabling
    query_cache_check.cc    the check of all that, in debug builds
    query_cache_memory.h    the allocator, which knows of blocks only

  MariaDB's sql_cache.cc registers, finds, sends and stores results.
*/

#include "sql_cache.h"

/** The memory of the cache, or of one that was given up and is still in use */
struct Query_cache_area
{
  uchar *memory;                        /* Constant */
  size_t length;                        /* Constant */
  /*
    One pin of the cache, and one for each pin of a result in the area. A thread
    needs the cache's lock to add a pin, which it does only while the cache has
    its own. It needs no lock to remove one.
  */
  std::atomic<uint32> pins;
};

/* In Query_cache_pins::count: the thread that removes the last pin frees it */
static constexpr uint32 ORPHAN= 1U << 31;

/* Maintenance that a statement asks for holds the lock so long. Nanoseconds */
static constexpr ulonglong SLICE= 500000;

extern PSI_stage_info stage_waiting_to_maintain_query_cache;

bool query_cache_slice_is_over(uint step, ulonglong deadline);
bool query_cache_lock_maintenance(THD *thd, mysql_mutex_t *mutex,
                                  bool killable);

/* The block of which this is the type dependent header */
static inline Query_cache_block *block_of(Query_cache_table *table)
{
  return (Query_cache_block *) (((uchar*) table) -
                                ALIGN_SIZE(sizeof(Query_cache_block_table)) -
                                ALIGN_SIZE(sizeof(Query_cache_block)));
}

/* The block that has this node, as Query_cache_block_table::block() */
static inline Query_cache_block *block_of(Query_cache_block_table *node)
{
  return (Query_cache_block *)
    (((uchar*) node) - ALIGN_SIZE(sizeof(Query_cache_block_table) * node->n) -
     ALIGN_SIZE(sizeof(Query_cache_block)));
}

inline void Query_cache_query::init_n_lock()
{
  res= 0; wri= 0; len= 0; ready= 0; registered= 0; hit_count= 0;
  pins.count= 0;
  pins.area= query_cache.area;
  pins.block= nullptr;
  pins.alive_at= 0;
  pin();
}
#endif /* QUERY_CACHE_PARTS_INCLUDED */
