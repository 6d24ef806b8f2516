/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: pins. A thread that uses a result without the cache's lock pins
  it (Query_cache_pins). There are two such uses:

  1. A statement sends the result to its client, which may be slow.
  2. The statement that writes the result copies a piece of it.

  A thread adds its pin with the cache's lock and removes it without. No thread
  waits for a pin:

  1. Eviction skips a live query that is pinned.
  2. A dead query that is pinned becomes an orphan (bury()): it leaves all lists
     at once, and the thread that removes the last pin frees its memory.

  The area, the memory of the whole cache, has pins, too: one of the cache, and
  one for each pin of a result in it. A statement that resizes or disables the
  cache removes the cache's pin and gives up the area with all its results. The
  thread that removes the last pin frees it.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

static_assert(sizeof(Query_cache_pins) <= sizeof(mysql_rwlock_t),
              "pins take the place of a lock");


/**
  Allocate the memory of a new cache.

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


/**
  Remove a pin of an area. The thread that removes the last one frees it.

  A resize may wait for that, or until the cache's own pin is the only one.
*/

void Query_cache::unpin_area(Query_cache_area *old)
{
  if (!old)
    return;
  /* Sequentially consistent: see query_cache_wake_resizes() */
  const uint32 pins= old->pins.fetch_sub(1);
  if (pins > 1)
  {
    if (pins == 2)
      query_cache_wake_resizes();
    return;
  }
#if defined(DBUG_OFF) && defined(HAVE_MADVISE) &&  defined(MADV_DODUMP)
  (void) madvise(old->memory, old->length, MADV_DODUMP);
#endif
  /* The allocator has poisoned the free blocks for AddressSanitizer */
  MEM_MAKE_ADDRESSABLE(old->memory, old->length);
  my_free(old->memory);
  given_up_memory-= old->length;
  given_up_areas--;
  delete old;
  query_cache_wake_resizes();
}


/**
  Pin the query. The caller holds the cache's lock; until unpin() it may use the
  query's result without the lock.

  Relaxed, because a thread that makes the query an orphan or gives up its area
  does so under that lock, so it sees the pin. unpin() orders what the caller has
  read before the memory is freed.
*/

void Query_cache_query::pin()
{
  DBUG_ASSERT(!(pins.count & ORPHAN));
  pins.area->pins.fetch_add(1, std::memory_order_relaxed);
  pins.count.fetch_add(1, std::memory_order_relaxed);
}


/**
  Remove the caller's pin. The caller may hold the cache's lock or not. If it
  does, it makes sure that no thread has made the query an orphan since it
  pinned the query.

  The area stays pinned until after free_orphan(): the orphan may be in the
  memory of a given-up cache.
*/

void Query_cache_query::unpin()
{
  Query_cache_area *area= pins.area;
  if (pins.count.fetch_sub(1, std::memory_order_acq_rel) == (ORPHAN | 1))
    query_cache.free_orphan(area, pins.block);
  query_cache.unpin_area(area);
}


/*
  The names by which sql_cache.cc calls this. Only the statement that writes a
  result pins it while it is incomplete. Only statements that read it pin it
  when it is complete.
*/

void Query_cache_query::lock_writing()
{
  DBUG_ASSERT(!is_pinned());
  pin();
}

void Query_cache_query::lock_reading() { pin(); }
void Query_cache_query::unlock_writing() { unpin(); }
void Query_cache_query::unlock_reading() { unpin(); }


/**
  Remove the caller's pin, if it has one, before the query is freed. No other
  thread uses the query. The caller holds the cache's lock.
*/

void Query_cache_query::unlock_n_destroy()
{
  DBUG_ASSERT(pins.count <= 1);
  if (pins.count)
    query_cache.unpin_area(pins.area);          // not the last pin
  pins.count= 0;
}
