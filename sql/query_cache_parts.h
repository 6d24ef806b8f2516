/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef QUERY_CACHE_PARTS_INCLUDED
#define QUERY_CACHE_PARTS_INCLUDED

/**
  @file

  Declarations that only the source files of the query cache use:

    query_cache_reclaim.cc  invalidation, and freeing dead results. Its first
                            comment describes the whole design, with all lists
                            and counters. Begin there.
    query_cache_pins.cc     pins: threads use a result without the cache's lock
    query_cache_slices.cc   long work in short slices; the reclaiming thread
    query_cache_evict.cc    allocation and eviction
    query_cache_pack.cc     FLUSH QUERY CACHE
    query_cache_resize.cc   SET GLOBAL query_cache_size, and disabling
    query_cache_check.cc    integrity check of debug builds
    query_cache_memory.h    the allocator, which knows only blocks

  MariaDB's sql_cache.cc registers, finds, sends and stores results.
*/

#include "sql_cache.h"

/** Memory of the cache, or of a given-up cache that threads still use */
struct Query_cache_area
{
  uchar *memory;                        /* Constant */
  size_t length;                        /* Constant */
  /*
    Counts one pin of the cache itself, and one for each pin of a result in the
    area. A thread adds a pin with the cache's lock, and only while the cache
    holds its own pin. It removes a pin without a lock.
  */
  std::atomic<uint32> pins;
};

/*
  Flag in Query_cache_pins::count: the thread that removes the last pin frees
  the query
*/
static constexpr uint32 ORPHAN= 1U << 31;

/*
  Nanoseconds for which a statement that does maintenance holds the cache's
  lock, before it pauses
*/
static constexpr ulonglong SLICE= 500000;

/**
  The right to do some maintenance, which one thread at a time has. There are
  two, each with a mutex that a thread holds only for a moment:

  1. the right to pack (FLUSH QUERY CACHE), with LOCK_pack;
  2. the right to walk along the tables (DROP DATABASE), with LOCK_database.
*/
struct Query_cache_right
{
  bool taken;
  mysql_cond_t given_back;

  bool begin(THD *thd, mysql_mutex_t *mutex);
  void end(mysql_mutex_t *mutex);
};

/** How a resize waits for threads that use an area */
struct Query_cache_resizes
{
  /* Number of resizes in wait_for_readers() */
  std::atomic<uint> waiting;
  /* Number of wake-ups. Written with the mutex */
  std::atomic<uint> events;
  mysql_mutex_t mutex;
  mysql_cond_t woken;
};

extern Query_cache_right query_cache_may_pack, query_cache_may_walk;
extern Query_cache_resizes query_cache_resizes;
extern PSI_stage_info stage_waiting_to_maintain_query_cache;

void query_cache_wake_resizes();
bool query_cache_slice_is_over(uint step, ulonglong deadline);

/* The block of which this table is the type-dependent header */
static inline Query_cache_block *block_of(Query_cache_table *table)
{
  return (Query_cache_block *) (((uchar*) table) -
                                ALIGN_SIZE(sizeof(Query_cache_block_table)) -
                                ALIGN_SIZE(sizeof(Query_cache_block)));
}

/* The block that contains this node, as Query_cache_block_table::block() */
static inline Query_cache_block *block_of(Query_cache_block_table *node)
{
  return (Query_cache_block *)
    (((uchar*) node) - ALIGN_SIZE(sizeof(Query_cache_block_table) * node->n) -
     ALIGN_SIZE(sizeof(Query_cache_block)));
}

inline void Query_cache_query::init_n_lock()
{
  res= 0;
  wri= 0;
  len= 0;
  ready= 0;
  registered= 0;
  hit_count= 0;
  pins.count= 0;
  pins.area= query_cache.area;
  pins.block= nullptr;
  pins.alive_at= 0;
  pin();
}
#endif /* QUERY_CACHE_PARTS_INCLUDED */
