/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: the use of a result without the cache's lock.

  A thread that uses a result without the lock pins it (Query_cache_pins): a
  statement while it sends the result to its client, which may be slow, and the
  statement that writes the result while it copies a piece. A thread adds its pin
  with the cache's lock and removes it without. No thread waits for a pin:

  1. Eviction passes over a live query that is pinned.
  2. A dead query that is pinned becomes an orphan (bury()): it leaves all lists
     at once, and the thread that removes the last pin frees its memory.

  The memory of the whole cache, the area, has pins, too: one of the cache, and
  one with each pin of a result in it. So a cache that is resized or disabled
  gives up its area with all that is in it, and the last pin frees it.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

static_assert(sizeof(Query_cache_pins) <= sizeof(mysql_rwlock_t),
              "pins take the place of a lock");


/**
  Get the memory of a cache that is being made.

  @return whether there is too little memory
*/

bool Query_cache::get_area(size_t length)
{
  no_memory= true;
  DBUG_EXECUTE_IF("query_cache_one_area", if (given_up_areas) return true;);
  if (!(area= new (std::nothrow) Query_cache_area))
    return true;
  if (!(cache= (uchar*) my_malloc_lock(length, MYF(0))))
  {
    delete area;
    area= nullptr;
    return true;
  }
  area->memory= cache;
  area->length= length;
  area->pins= 1;
  no_memory= false;
  return false;
}


/** Remove a pin of an area. The thread that removes the last one frees it. */

void Query_cache::unpin_area(Query_cache_area *old)
{
  if (!old || old->pins.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
#if defined(DBUG_OFF) && defined(HAVE_MADVISE) &&  defined(MADV_DODUMP)
  (void) madvise(old->memory, old->length, MADV_DODUMP);
#endif
  /* Free blocks in it are out of bounds for AddressSanitizer */
  MEM_MAKE_ADDRESSABLE(old->memory, old->length);
  my_free(old->memory);
  given_up_memory-= old->length;
  given_up_areas--;
  delete old;
}


/** With the cache's lock: use this query's result without it from now on. */

void Query_cache_query::pin()
{
  DBUG_ASSERT(!(pins.count & ORPHAN));
  pins.area->pins.fetch_add(1, std::memory_order_relaxed);
  pins.count.fetch_add(1, std::memory_order_relaxed);
}


/**
  Use it no longer. The thread may have the cache's lock or not. If it has, the
  query is not an orphan: no thread made it one since this one pinned it.

  The area stays pinned until the orphan is freed: its memory may be that of a
  cache that was given up.
*/

void Query_cache_query::unpin()
{
  Query_cache_area *area= pins.area;
  if (pins.count.fetch_sub(1, std::memory_order_acq_rel) == (ORPHAN | 1))
    query_cache.free_orphan(area, pins.block);
  query_cache.unpin_area(area);
}


/*
  The names that sql_cache.cc has for this. Only the statement that
  writes a result pins it while it is incomplete, and only those that read it
  do so when it is complete.
*/

void Query_cache_query::lock_writing()
{
  DBUG_ASSERT(!is_pinned());
  pin();
}

void Query_cache_query::lock_reading() { pin(); }
void Query_cache_query::unlock_writing() { unpin(); }
void Query_cache_query::unlock_reading() { unpin(); }


/** With the cache's lock: no thread uses the query, but the caller may. */

void Query_cache_query::unlock_n_destroy()
{
  DBUG_ASSERT(pins.count <= 1);
  if (pins.count)
    query_cache.unpin_area(pins.area);          // not the last pin
  pins.count= 0;
}
