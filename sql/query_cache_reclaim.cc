/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: invalidation, and giving back the memory of invalidated results.
  A part of sql_cache.cc, which includes this file. So the embedded server has
  it, too, whose list of source files is another one.

  The idea. A table that has cached results is a TABLE block, and every query
  block has a node in the list of each of its tables' blocks. kill_table()
  invalidates a table: it marks the table's block dead and takes it out of the
  hash of tables. That is a few steps, whatever the number of results.
  invalidate_all() begins a new epoch: a table is live if it has the number of
  the current one. From then on

  - No result of a query in a dead block's list is served. A thread that finds
    a query calls is_dead(), which looks at the blocks of all its tables.
  - The next query that uses the table finds no block and makes a new one. So
    a block is one generation of a table's results, and a query remembers the
    generation of each of its tables by the node in the block's list.

  reclaim() frees dead results later and piece by piece: query by query, and the
  block with its last one.

  The lists and counters. The cache's lock (Query_cache::lock(), try_lock())
  protects all of them.

  tables_blocks      Live tables that can be found in the hash 'tables'. No
                     order. A block has at least one query, but for the moment
                     in which its first one is being registered.
  dead_tables        Dead tables, in no hash, youngest first.
  (no list)          Tables that belong to one query (insert_table() with hash
                     == false: partitions). Nobody can find them, so nobody
                     kills them, but their partitioned table can be killed.
  queries_blocks     Queries with a complete result, live and dead, least
                     recently used first.
  incomplete_blocks  Queries whose result is being written, live and dead.
  queries            Hash of all these. It has one query of each text at most:
                     make_way() removes a dead one for a new one.
  (no list)          Orphans: dead queries in use. See below.
  queries_in_cache   Counts the queries whose first table is live: all live
                     ones, and those dead ones that another table killed, until
                     they are reclaimed.
  dead_queries       Counts the others in the lists.

  Pins. A thread that uses a result without the cache's lock pins it
  (Query_cache_pins): a statement while it sends the result to its client,
  which may be slow, and the statement that writes the result while it copies a
  piece. A thread adds its pin with the cache's lock and removes it without.
  Nothing here waits for a pin:

  1. Eviction passes over a live query that is pinned.
  2. A dead query that is pinned becomes an orphan (detach()): it leaves all
     lists at once, and the thread that removes the last pin frees its memory.

  The memory of the whole cache, the area, has pins, too: one of the cache, and
  one with each pin of a result in it. give_up_area(), for a resize and for
  disabling, tells the writers of incomplete results, at most one a connection,
  and leaves the area with all that is in it to the last pin. So for a moment
  there are two areas, the new one still untouched. There are never more: if one
  client keeps a given-up area and another one keeps the next, a resize waits
  for one of them, without any lock (wait_for_readers()). If there is not enough
  memory for two, it waits in the same way until there is none.

  Why a stale row is never served. Registration, search and kill all have the
  cache's lock, so they have an order.

  1. A result can be served only between its registration and the first kill of
     one of its tables.
  2. invalidate() has the same callers as in MariaDB. When it returns, the
     table's results are dead; in MariaDB they are freed. So an order of a
     statement's start, its registration and the invalidation that was right
     there is right here.
  3. A result that is being written when its table is killed stays dead: its
     writer finds that out with the next packet, or at the end (live_query()),
     and frees it.
  4. A result that is on its way to a client when its table is killed is
     delivered, as in MariaDB: the statement began before the writer's ended.

  Slices. Work that may take long is cut into slices. Each holds the lock for at
  most SLICE (RECLAIM_SLICE in the thread), and a pause follows in which others
  get it: without the pause they would not, because they have to be woken up
  first. Three reclaim:

  1. The statement that invalidates frees up to AT_ONCE of its own queries, so
     small invalidations leave nothing behind.
  2. A statement that needs memory frees up to VICTIMS dead queries before it
     evicts a live one.
  3. The thread of reclaim_loop(). want_reclaim() wakes it when the lock is
     released and something dead is left. It keeps the memory as administrators
     expect it: without it Qcache_free_memory would not come back, and each
     statement that stores a result would pay for the invalidations of others.

  Eviction goes by size, not by the clock: make_room() frees the least
  recently used query and then its physical neighbours, until the gap
  suffices. An allocation does that for VICTIMS queries at most, and until it
  has evicted EVICT_LENGTH bytes, or as many as it wants if that is more. A long
  packet is stored in pieces of INSERT_PIECE bytes, between which the lock is
  free.

  FLUSH QUERY CACHE (pack_in_slices()) moves neither queries in use nor tables
  with more than PACK_TABLE_QUERIES queries, each of which points to its table.

  Locks, in order: LOCK_global_system_variables (a resize), LOCK_pack or
  LOCK_database, the cache's lock, structure_guard_mutex. No thread has both
  LOCK_pack and LOCK_database.

  Costs that remain, all with the lock: the end of a result copies up to
  FIT_LENGTH bytes, FLUSH QUERY CACHE results of up to PACK_LENGTH; a query with
  many tables (partitions) or many blocks of result is freed as a whole;
  INFORMATION_SCHEMA.QUERY_CACHE_INFO is read as a whole.
*/

#include "debug_sync.h"
#include "log.h"                                // sql_print_warning

/* All times in nanoseconds */
/* The lock is held by one slice of maintenance work that a statement asks for */
static constexpr ulonglong SLICE= 500000;
/*
  And of the thread's work. Shorter, for it adds to the waits of statements
  that have nothing to do with it: measured with one client, the longest of
  them was 0.54 ms with slices of 0.5 ms, 0.37 ms with these.
*/
static constexpr ulonglong RECLAIM_SLICE= 100000;
/* The shortest pause between two slices, as long again as the slice took */
static constexpr ulonglong PAUSE= 200000;
static constexpr ulonglong LONGEST_PAUSE= 50000000;
/* A killable wait for another FLUSH QUERY CACHE looks so often. Microseconds */
static constexpr ulong MAINTENANCE_POLL= 1000;
/* An invalidating statement frees so many of its own results, so long */
static constexpr uint AT_ONCE= 64;
static constexpr ulonglong AT_ONCE_TIME= 200000;
/* An allocation evicts so many queries for their age, with neighbours */
static constexpr uint VICTIMS= 64;
/* And so many bytes, enough for each piece of a packet */
static constexpr size_t EVICT_LENGTH= VICTIMS * Query_cache::INSERT_PIECE;
/*
  FLUSH QUERY CACHE: tables with more queries and blocks that are longer are
  not moved, longer results not joined
*/
static constexpr int32 PACK_TABLE_QUERIES= 1000;
static constexpr size_t PACK_LENGTH= 1 << 20;
/* A finished result is moved to a tighter gap if it is not longer */
static constexpr size_t FIT_LENGTH= 64 << 10;

/* In Query_cache_pins::count: the thread that removes the last pin frees it */
static constexpr uint32 ORPHAN= 1U << 31;
static_assert(sizeof(Query_cache_pins) <= sizeof(mysql_rwlock_t),
              "pins take the place of a lock");

/*
  One stage for all waits here. performance_schema_max_stage_classes is 160 by
  default, and MariaDB has 158; mysys has the other new one.
*/
static PSI_stage_info stage_waiting_to_maintain_query_cache=
{ 0, "Waiting to maintain the query cache", 0 };


/* The block of which this is the type dependent header */
static inline Query_cache_block *block_of(Query_cache_table *table)
{
  return (Query_cache_block *) (((uchar*) table) -
                                ALIGN_SIZE(sizeof(Query_cache_block_table)) -
                                ALIGN_SIZE(sizeof(Query_cache_block)));
}


/*****************************************************************************
  Pins
*****************************************************************************/

/** The memory of the cache, or of one that was given up and is still in use */
struct Query_cache_area
{
  uchar *memory;                        /* Constant */
  size_t length;                        /* Constant */
  /*
    The cache's pin, and one with each pin of a result. While the cache has
    its pin, pins are added with its lock; they are removed without it.
  */
  std::atomic<uint32> pins;
};


/**
  Get the memory of a cache that is being made.

  @return whether there is not so much
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


/** Remove a pin of an area. The last one takes it. */

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
  query is not an orphan, as nobody made it one since the thread pinned it.

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
  The names that the rest of the query cache has for it. Only the statement that
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


void Query_cache_query::init_n_lock()
{
  res= 0; wri= 0; len= 0; ready= 0; registered= 0; hit_count= 0;
  pins.count= 0;
  pins.area= query_cache.area;
  pins.block= nullptr;
  pins.alive_at= 0;
  pin();
}


/** With the cache's lock: nobody uses the query but the caller, maybe. */

void Query_cache_query::unlock_n_destroy()
{
  DBUG_ASSERT(pins.count <= 1);
  if (pins.count)
    query_cache.unpin_area(pins.area);          // not the last pin
  pins.count= 0;
}


/*****************************************************************************
  Dead or alive
*****************************************************************************/

bool Query_cache::is_live(Query_cache_table *table)
{
  return table->epoch == epoch;
}


/**
  Whether a table of the query has been invalidated since the query was
  registered.

  A query may have thousands of tables (partitions). They are looked at again
  only if something was invalidated since.
*/

bool Query_cache::is_dead(Query_cache_block *query_block)
{
  Query_cache_pins *pins= &query_block->query()->pins;
  if (pins->alive_at == changes)
    return false;
  Query_cache_block_table *node= query_block->table(0);
  for (TABLE_COUNTER_TYPE i= 0; i < query_block->n_tables; i++, node++)
  {
    if (!is_live(node->parent))
      return true;
  }
  pins->alive_at= changes;
  return false;
}


/**
  Invalidate a table: put all its results out of reach.

  While locked: mark, unhash, move to dead_tables.

  @return number of its queries
*/

uint Query_cache::kill_table(Query_cache_block *table_block)
{
  Query_cache_table *table= table_block->table();
  DBUG_ASSERT(table->is_hashed() && is_live(table));

  my_hash_delete(&tables, (uchar*) table_block);
  table->epoch= 0;
  changes++;
  double_linked_list_exclude(table_block, &tables_blocks);
  double_linked_list_simple_include(table_block, &dead_tables);
  dead_tables= table_block;                     // the list is a ring
  queries_in_cache-= table->m_first_in_count;
  dead_queries+= table->m_first_in_count;
  return (uint) table->m_cached_query_count;
}


/**
  Free results for a statement that has invalidated some: its own, which come
  first in the list.

  @param own number of queries that it has invalidated
*/

void Query_cache::reclaim_at_once(uint own)
{
  reclaim(MY_MIN(own, AT_ONCE), my_interval_timer() + AT_ONCE_TIME);
}


/**
  The query that a reader has found in the hash, or nullptr if it is dead.
*/

Query_cache_block *Query_cache::find_live(Query_cache_block *query_block)
{
  return query_block && !is_dead(query_block) ? query_block : nullptr;
}


/**
  A statement that registers a query has found another one of the same text.

  @return that one, or nullptr if it was dead and is out of the way now
*/

Query_cache_block *Query_cache::make_way(Query_cache_block *query_block)
{
  if (!query_block || !is_dead(query_block))
    return query_block;
  bury(query_block);
  return nullptr;
}


/**
  The query that this thread writes, or nullptr if it died meanwhile. Then it
  is freed, and the thread's pointer reset. So is one while the cache is on its
  way to be disabled: insert() has begun to drop pieces of results.
*/

Query_cache_block *Query_cache::live_query(Query_cache_tls *tls)
{
  Query_cache_block *query_block= tls->first_query_block;
  if (!query_block || (!is_disabled() && !is_dead(query_block)))
    return query_block;
  free_query(query_block);
  DBUG_ASSERT(!tls->first_query_block);
  return nullptr;
}


/** The query has all its tables. From now on it can be found dead. */

void Query_cache::query_registered(Query_cache_block *query_block)
{
  double_linked_list_simple_include(query_block, &incomplete_blocks);
  query_block->query()->registered= 1;
}


/**
  The query does not get all its tables. Called before it leaves those that it
  has.

  If one of its tables was killed during the registration and is its first one,
  then kill_table() has moved the query from queries_in_cache to dead_queries.
  store_query() does not add it to the former now, so take it out of both.

  @param last the table that it has or has not got, the one behind those it has
*/

void Query_cache::registration_failed(Query_cache_block *query_block,
                                      Query_cache_block_table *last)
{
  Query_cache_block_table *first= query_block->table(0);
  if ((first != last || first->parent) && !is_live(first->parent))
  {
    queries_in_cache++;
    dead_queries--;
  }
}


#ifndef DBUG_OFF
/** For tests: the first table of a query that is being registered is killed */

void Query_cache::fail_registration(Query_cache_block *query_block)
{
  kill_table(block_of(query_block->table(0)->parent));
}
#endif


/** The result is complete: from now on the query can be evicted. */

void Query_cache::query_complete(Query_cache_block *query_block)
{
  DBUG_ASSERT(query_block->query()->is_results_ready());
  double_linked_list_exclude(query_block, &incomplete_blocks);
  double_linked_list_simple_include(query_block, &queries_blocks);
}


/*****************************************************************************
  Freeing queries
*****************************************************************************/

/**
  Free a query that nobody has pinned but the caller, maybe.
*/

void Query_cache::free_query(Query_cache_block *query_block)
{
  DBUG_ENTER("Query_cache::free_query");
  detach(query_block);
  query_block->query()->unlock_n_destroy();
  free_query_internal(query_block);
  DBUG_VOID_RETURN;
}


/**
  Free a dead query, or let those who use it do that.
*/

void Query_cache::bury(Query_cache_block *query_block)
{
  Query_cache_pins *pins= &query_block->query()->pins;
  detach(query_block);
  pins->block= query_block;
  if (!pins->count.fetch_or(ORPHAN, std::memory_order_acq_rel))
    free_query_internal(query_block);
}


/**
  Free a query that was in use when it was buried. The caller has removed its
  last pin, but not that of its area.

  @param pinned the query's area: if that is no longer the cache's, the query
                goes with it
*/

void Query_cache::free_orphan(Query_cache_area *pinned,
                              Query_cache_block *query_block)
{
  lock_slice(current_thd);
  if (area == pinned)
    free_query_internal(query_block);
  unlock();
}


/** Remove a query from the hash, from all lists, and from its writer. */

void Query_cache::detach(Query_cache_block *query_block)
{
  Query_cache_query *query= query_block->query();
  Query_cache_block_table *node= query_block->table(0);
  DBUG_ENTER("Query_cache::detach");
  DBUG_ASSERT(query->registered);

  my_hash_delete(&queries, (uchar*) query_block);
  if (is_live(node->parent))
    queries_in_cache--;
  else
    dead_queries--;
  if (query->writer())
  {
    query->writer()->first_query_block= NULL;
    query->writer(0);
  }
  if (join_cursor == query_block)
    join_cursor= query_block->next == query_block ? NULL : query_block->next;
  double_linked_list_exclude(query_block, query->is_results_ready() ?
                             &queries_blocks : &incomplete_blocks);
  for (TABLE_COUNTER_TYPE i= 0; i < query_block->n_tables; i++)
    unlink_table(node++);
  if (!query->is_results_ready())
  {
    refused++;                          // it was never complete
    inserts--;
  }
  DBUG_VOID_RETURN;
}


/** Free the memory of a query that is in no list. */

void Query_cache::free_query_internal(Query_cache_block *query_block)
{
  if (Query_cache_block *first= query_block->query()->result())
  {
    Query_cache_block *block= first, *next;
    do
    {
      next= block->next;
      free_memory_block(block);
    } while ((block= next) != first);
  }
  free_memory_block(query_block);
}


/** Take a query's node out of its table's list; the last one takes the table */

void Query_cache::unlink_table(Query_cache_block_table *node)
{
  Query_cache_table *table= node->parent;
  Query_cache_block_table *neighbour= node->next;
  DBUG_ENTER("Query_cache::unlink_table");

  node->prev->next= node->next;
  node->next->prev= node->prev;
  table->m_cached_query_count--;
  table->m_first_in_count-= node->n == 0;
  DBUG_ASSERT(table->m_cached_query_count >= 0);

  if (neighbour->next == neighbour)
  {
    Query_cache_block *table_block= neighbour->block();
    DBUG_ASSERT(table_block == block_of(table));
    DBUG_ASSERT(!table->m_cached_query_count && !table->m_first_in_count);
    if (table->is_hashed())
    {
      const bool live= is_live(table);
      if (live)
        my_hash_delete(&tables, (uchar*) table_block);
      double_linked_list_exclude(table_block,
                                 live ? &tables_blocks : &dead_tables);
    }
    free_memory_block(table_block);
  }
  DBUG_VOID_RETURN;
}


/**
  The query that was used longest ago, or nullptr if there is none to evict.

  A query in use goes to the end, where it would be if its client had not been
  so slow. There are no more of them than pins.
*/

Query_cache_block *Query_cache::oldest_query()
{
  for (uint32 i= area->pins; i && queries_blocks; i--)
  {
    Query_cache_block *query_block= queries_blocks;
    if (!query_block->query()->is_pinned())
      return query_block;
    queries_blocks= query_block->next;  // the list is a ring
  }
  return nullptr;
}


/**
  Free dead queries.

  @param max_queries as many at most
  @param deadline    and not much longer than until then
  @return number of steps taken; 0 if nothing is dead
*/

uint Query_cache::reclaim(uint max_queries, ulonglong deadline)
{
  uint freed= 0;
  DBUG_EXECUTE_IF("query_cache_keep_dead", return 0;);

  while (dead_tables && freed < max_queries)
  {
    Query_cache_block *query_block= dead_tables->table(0)->next->block();
    /* The statement that registers it has killed one of its tables */
    if (!query_block->query()->registered)
      break;
    bury(query_block);
    if (++freed % 8 == 0 && my_interval_timer() >= deadline)
      break;
  }
  return freed;
}


/*****************************************************************************
  Memory. The work is done in query_cache_memory.h.
*****************************************************************************/

/**
  The query to free if a block is to go, or nullptr if it has to stay.
*/

Query_cache_block *Query_cache::evictable(Query_cache_block *block)
{
  switch (block->type) {
  case Query_cache_block::QUERY:
    break;
  case Query_cache_block::TABLE:
    /* The last query takes its table along */
    if (block->table()->m_cached_query_count != 1)
      return nullptr;
    block= block->table(0)->next->block();
    break;
  case Query_cache_block::RESULT:
  case Query_cache_block::RES_CONT:
  case Query_cache_block::RES_BEG:
  case Query_cache_block::RES_INCOMPLETE:
    block= block->result()->parent();
    break;
  default:
    return nullptr;
  }
  Query_cache_query *query= block->query();
  return query->is_results_ready() && !query->is_pinned() ? block : nullptr;
}


/**
  Evict the query that was used longest ago, and its physical neighbours until
  there is a gap of a given length, or what is next to it has to stay.

  So what is evicted is about as much as is wanted. To evict by age alone would
  throw away much more until two neighbours happen to be among it.

  @return bytes that it has evicted; 0 if there was nothing to evict
*/

size_t Query_cache::make_room(size_t length)
{
  const size_t free_before= free_memory;
  Query_cache_block *query_block= oldest_query();
  if (!query_block)
    return 0;
  memory->set_gap(query_block->query()->result());
  do
  {
    if (!is_dead(query_block))
      lowmem_prunes++;
    free_query(query_block);
    Query_cache_block *gap= memory->gap();
    if (gap->length >= length)
      break;
    query_block= gap->pnext == first_block ? nullptr : evictable(gap->pnext);
    if (!query_block && gap != first_block)
      query_block= evictable(gap->pprev);
  } while (query_block);
  memory->set_gap(nullptr);
  return free_memory - free_before;
}


/**
  Take memory, if need be from the dead, then from the least recently used.

  Of these it evicts EVICT_LENGTH bytes, or as many as are wanted if that is
  more, and the rest of one gap. Where that does not suffice, as what lies
  between has to stay, more would not be likely to.

  @param len      length of the block
  @param not_less whether a shorter one will not do
  @param min      if a shorter one will do: the shortest that does
*/

Query_cache_block *
Query_cache::allocate_block(size_t len, my_bool not_less, size_t min)
{
  Query_cache_block *block;
  uint dead= VICTIMS, victims= VICTIMS;
  DBUG_ENTER("Query_cache::allocate_block");

  if (len >= MY_MIN(query_cache_size, query_cache_limit))
    DBUG_RETURN(0);               // in any case we don't have such a block

  const size_t length= ALIGN_SIZE(not_less ? len : MY_MIN(len, min));
  const size_t enough= MY_MAX(EVICT_LENGTH, length);
  size_t evicted= 0;
  while (!(block= memory->allocate(len, not_less, min)))
  {
    if (dead && reclaim(1, ULONGLONG_MAX))
    {
      dead--;
      continue;
    }
    if (!victims-- || evicted >= enough)
      break;
    const size_t room= make_room(length);
    if (!room)
      break;
    evicted+= room;
  }
  DBUG_RETURN(block);
}


void Query_cache::free_memory_block(Query_cache_block *block)
{
  memory->release(block);
}


my_bool Query_cache::append_next_free_block(Query_cache_block *block,
                                            size_t add_size)
{
  return memory->extend(block, add_size);
}


/**
  The last block of a result that is complete now is longer than need be: keep
  len bytes of it.

  A result begins with a block of query_cache_min_res_unit bytes if there is
  one, because its length is not known before its end. If what is left over
  became a free block each time, then two statements at a time that store their
  results would leave gaps between these, all a little shorter than what a new
  result begins with. So if there is a gap that the block's contents fit in,
  they move there, and the whole block is free for the next result.

  @param block the last block of a query that is locked for writing
*/

void Query_cache::fit_last_block(Query_cache_block *block, size_t len)
{
  Query_cache_block *to= len <= FIT_LENGTH ?
    memory->allocate_tighter(len, block) : nullptr;
  if (!to)
  {
    memory->trim(block, len);
    return;
  }
  Query_cache_query *query= block->result()->parent()->query();
  to->type= block->type;
  to->n_tables= 0;
  to->used= block->used;
  memcpy(to->data(), block->data(), block->used - block->headers_len());
  if (block->next == block)
    to->next= to->prev= to;
  else
  {
    to->next= block->next;
    to->prev= block->prev;
    to->next->prev= to->prev->next= to;
  }
  if (query->result() == block)
    query->result(to);
  memory->release(block);
}


void Query_cache::exclude_from_free_memory_list(Query_cache_block *block)
{
  memory->remove(block);
}


/*****************************************************************************
  Slices
*****************************************************************************/

/**
  Take the lock for maintenance, from any thread, and whether or not the cache
  is enabled.
*/

void Query_cache::lock_slice(THD *thd)
{
  if (thd)
  {
    lock(thd);
    return;
  }
  mysql_mutex_lock(&structure_guard_mutex);
  m_requests_in_progress++;
  while (m_cache_lock_status != UNLOCKED)
    mysql_cond_wait(&COND_cache_status_changed, &structure_guard_mutex);
  m_cache_lock_status= LOCKED;
  mysql_mutex_unlock(&structure_guard_mutex);
}


/**
  Let the others have the lock and take it again.

  @return whether there still is a cache
*/

bool Query_cache::next_slice(THD *thd)
{
  unlock();
#ifdef ENABLED_DEBUG_SYNC
  if (thd)
    DEBUG_SYNC(thd, "query_cache_slice_ends");
#endif
  my_sleep((SLICE + PAUSE) / 1000);
  lock_slice(thd);
  return query_cache_size > 0;
}


/** Whether a slice ends behind its step number 'step', counted from 1. */

static bool slice_is_over(uint step, ulonglong deadline)
{
  return step % 8 == 0 &&
         (my_interval_timer() >= deadline ||
          DBUG_IF("query_cache_short_slices"));
}


/**
  Be the only one to do some maintenance.

  A thread that need not wait has no stage: MariaDB shows one for a flush, that
  of the cache's lock, and perfschema.stage_mdl_global counts them.

  @param killable whether the thread gives up if it is killed
  @return whether it has given up
*/

static bool lock_maintenance(THD *thd, mysql_mutex_t *mutex, bool killable)
{
  if (!mysql_mutex_trylock(mutex))
    return false;
  bool locked= false;
  PSI_stage_info old_stage= { 0, NULL, 0 };
  thd->backup_stage(&old_stage);
  THD_STAGE_INFO(thd, stage_waiting_to_maintain_query_cache);
  if (killable)
  {
    while (!thd->killed && !(locked= !mysql_mutex_trylock(mutex)))
      my_sleep(MAINTENANCE_POLL);
  }
  else
  {
    mysql_mutex_lock(mutex);
    locked= true;
  }
  THD_STAGE_INFO(thd, old_stage);
  return !locked;
}


/**
  DROP DATABASE: invalidate its tables.

  The loop turns the ring of live tables once: a step looks at its root and
  turns it by one. LOCK_database keeps others from turning it meanwhile. Other
  changes in the pauses do no harm: new tables come in behind us, and if some
  go away, or all, we meet some twice.
*/

void Query_cache::invalidate_database(THD *thd, const char *db)
{
  uint own= 0;
  DBUG_ENTER("Query_cache::invalidate_database");
  lock_maintenance(thd, &LOCK_database, false);
  lock(thd);
  ulong left= query_cache_size ? tables.records : 0;
  for (;;)
  {
    const ulonglong deadline= my_interval_timer() + SLICE;
    for (uint i= 1; left && tables_blocks; i++)
    {
      Query_cache_block *table_block= tables_blocks;
      tables_blocks= table_block->next;
      left--;
      if (!strcmp(table_block->table()->db(), db))
        own+= kill_table(table_block);
      if (slice_is_over(i, deadline))
        break;
    }
    if (!left || !tables_blocks || !next_slice(thd))
      break;
  }
  reclaim_at_once(own);
  unlock();
  mysql_mutex_unlock(&LOCK_database);
  DBUG_VOID_RETURN;
}


/**
  RESET QUERY CACHE, FLUSH TABLES, SET GLOBAL ft_boolean_syntax: all tables die
  at once, as a new epoch begins. Nobody waits until their memory is free.
*/

void Query_cache::invalidate_all()
{
  THD *thd= current_thd;
  DBUG_ENTER("Query_cache::invalidate_all");
  lock_slice(thd);
#ifdef ENABLED_DEBUG_SYNC
  if (thd)
    DEBUG_SYNC(thd, "wait_in_query_cache_flush2");
#endif
  if (query_cache_size)
  {
    if (!++epoch)
      epoch= 1;                         // 0 is that of killed tables
    changes++;
    my_hash_reset(&tables);
    if (tables_blocks)
    {
      if (dead_tables)
        double_linked_list_join(dead_tables, tables_blocks);
      dead_tables= tables_blocks;
      tables_blocks= nullptr;
    }
    dead_queries+= queries_in_cache;
    queries_in_cache= 0;
    reclaim_at_once(AT_ONCE);
  }
  DBUG_EXECUTE("check_querycache", check_integrity(1););
  unlock();
  DBUG_VOID_RETURN;
}


/*****************************************************************************
  FLUSH QUERY CACHE
*****************************************************************************/

#if MYSQL_VERSION_ID >= 110800
/**
  Whether a query has neighbours in the list of a table's queries that are its own:
  it names the table more than once.

  move_by_type() of MariaDB 11.8.6 loses such neighbours if it moves the query by
  less than their distance (MDEV-25365, which is fixed in 10.11.18).
*/

static bool has_own_neighbours(Query_cache_block *query_block)
{
  const Query_cache_block_table *first= query_block->table(0);
  const Query_cache_block_table *end= query_block->table(query_block->n_tables);
  for (const Query_cache_block_table *node= first; node < end; node++)
    if (node->next >= first && node->next < end)
      return true;
  return false;
}
#endif


/**
  Whether the defragmentation has to leave a block where it is.

  If not, nobody can use it before it is moved: that needs the cache's lock.
*/

bool Query_cache::is_pinned(Query_cache_block *block)
{
  switch (block->type) {
  case Query_cache_block::FREE:
    return false;
  case Query_cache_block::TABLE:
    /*
      One that is not in the hash is dead, or a partition. A table may have the
      key of the latter, and move_by_type() would take it out of the hash.
    */
    return !block->table()->is_hashed() || !is_live(block->table()) ||
      block->table()->m_cached_query_count > PACK_TABLE_QUERIES;
  case Query_cache_block::QUERY:
#if MYSQL_VERSION_ID >= 110800
    if (has_own_neighbours(block))
      return true;
#endif
    break;
  default:
    if (block->length > PACK_LENGTH)
      return true;
    block= block->result()->parent();
  }
  Query_cache_query *query= block->query();
  /* An orphan has no tables any more to tell whether it is dead */
  return query->writer() || query->is_pinned() || is_dead(block);
}


/**
  Make the bytes that move_by_type() has left over a free block.

  @return that block, merged with a free one behind it
*/

Query_cache_block *
Query_cache::close_gap(uchar *border, Query_cache_block *before, size_t gap)
{
  Query_cache_block *block= (Query_cache_block*) border;
  block->init(gap);
  block->mark_used();
  total_blocks++;
  block->pnext= before->pnext;
  before->pnext= block;
  block->pprev= before;
  block->pnext->pprev= block;
  memory->release(block);
  return block;
}


/**
  Move all blocks towards the area's start, as far as nothing pinned is in the
  way.

  @return whether there still is a cache and the thread was not killed
*/

bool Query_cache::pack_blocks(THD *thd)
{
  memory->set_cursor(first_block);
  for (;;)
  {
    const ulonglong deadline= my_interval_timer() + SLICE;
    Query_cache_block *block= memory->cursor(), *before= 0;
    uchar *border= 0;
    size_t gap= 0;
    bool done;
    /* Blocks that are being moved are no place to find again */
    memory->set_cursor(nullptr);
    do
    {
      Query_cache_block *next= block->pnext;
      if (border && is_pinned(block))
      {
        close_gap(border, before, gap);
        border= 0;
        gap= 0;
      }
      else
        move_by_type(&border, &before, &gap, block);
      done= (block= next) == first_block;
    } while (!done && my_interval_timer() < deadline &&
             !DBUG_IF("query_cache_short_slices"));
    if (border)
      block= close_gap(border, before, gap);
    DBUG_EXECUTE("check_querycache", check_integrity(1););
    if (done)
      return true;
    memory->set_cursor(block);
    if (!next_slice(thd) || !memory->cursor())
      return false;                             // resized meanwhile
    if (thd->killed)
    {
      memory->set_cursor(nullptr);
      return false;
    }
  }
}


/** Put a result that is in several blocks into one, if there is one. */

void Query_cache::join_result(Query_cache_block *query_block)
{
  Query_cache_query *query= query_block->query();
  const size_t headers= ALIGN_SIZE(sizeof(Query_cache_block)) +
                        ALIGN_SIZE(sizeof(Query_cache_result));
  Query_cache_block *to= memory->allocate(query->length() + headers, true, 0);
  if (!to)
    return;
  to->n_tables= 0;
  to->type= Query_cache_block::RESULT;
  to->used= headers;
  to->next= to->prev= to;
  to->result()->parent(query_block);

  Query_cache_block *first= query->result(), *block= first, *next;
  do
  {
    const size_t len= block->used - headers;
    memcpy((uchar*) to + to->used, block->result()->data(), len);
    to->used+= len;
    next= block->next;
    free_memory_block(block);
  } while ((block= next) != first);
  query->result(to);
}


/**
  Join the long results.

  @param moved set to whether there was something to do
  @return whether there still is a cache and the thread was not killed
*/

bool Query_cache::join_blocks(THD *thd, size_t join_limit, bool *moved)
{
  size_t left= queries.records;
  *moved= false;
  join_cursor= queries_blocks;
  while (left && join_cursor)
  {
    const ulonglong deadline= my_interval_timer() + SLICE;
    do
    {
      Query_cache_block *query_block= join_cursor;
      Query_cache_query *query= query_block->query();
      left--;
      join_cursor= query_block->next;
      if (query->length() > join_limit && query->length() <= PACK_LENGTH &&
          query->result()->next != query->result() && !query->is_pinned())
      {
        join_result(query_block);
        *moved= true;
      }
    } while (left && my_interval_timer() < deadline);
    if (left && !next_slice(thd))
      return false;
    if (thd->killed)
      break;
  }
  join_cursor= 0;
  return !thd->killed;
}


void Query_cache::pack_in_slices(THD *thd, size_t join_limit,
                                 uint iteration_limit)
{
  DBUG_ENTER("Query_cache::pack_in_slices");
  /* There is one cursor */
  if (lock_maintenance(thd, &LOCK_pack, true))
    DBUG_VOID_RETURN;
  lock_slice(thd);
  if (query_cache_size)
  {
    bool more= true;
    /* pack_blocks() does not move dead results, so free them first */
    while (reclaim(UINT_MAX, my_interval_timer() + SLICE) &&
           dead_tables && (more= next_slice(thd) && !thd->killed)) {}
    for (uint i= 1; more && pack_blocks(thd) && i < iteration_limit; i++)
    {
      if (!join_blocks(thd, join_limit, &more))
        break;
    }
  }
  unlock();
  mysql_mutex_unlock(&LOCK_pack);
  DBUG_VOID_RETURN;
}


/*****************************************************************************
  Resizing and disabling
*****************************************************************************/

/**
  Give up the area with all that is in it, if there is one.

  With the cache's lock, or when nobody has it or can get it. The statements
  that write results learn of it here. A thread that reads or copies has pinned
  the area.

  @return the area: the caller unpins it when it has no lock
*/

Query_cache_area *Query_cache::give_up_area()
{
  Query_cache_area *old= area;
  DBUG_ENTER("Query_cache::give_up_area");
  if (Query_cache_block *block= incomplete_blocks)
  {
    do
    {
      Query_cache_query *query= block->query();
      query->writer()->first_query_block= NULL;
      query->writer(0);
      refused++;
    } while ((block= block->next) != incomplete_blocks);
  }
  if (old)
  {
    given_up_areas++;
    given_up_memory+= old->length;
    my_hash_free(&queries);
    my_hash_free(&tables);
    memory->set_cursor(nullptr);
  }
  make_disabled();
  DBUG_RETURN(old);
}


/**
  Wait until only so many areas are in use. For a resize, with the cache's lock.

  The resize has LOCK_global_system_variables, which new connections need, so it
  releases both meanwhile. At start there is nothing to wait for. If another
  statement resizes or disables the cache meanwhile, or begins to, then this one
  gives up: the other one came later.

  @param number of the resize, as the caller has got it from 'settings'
  @param areas  that may be in use: given up ones, and the cache's
  @return whether the resize must give up: for that, or as it was killed
*/

bool Query_cache::wait_for_readers(ulonglong number, size_t areas)
{
  THD *thd= current_thd;
  PSI_stage_info old_stage= { 0, NULL, 0 };
  bool too_many, waited= false;
  resizes_waiting++;
  while ((too_many= given_up_areas + (area && area->pins > 1) > areas) &&
         settings == number && thd && !thd->killed)
  {
    unlock();
    mysql_mutex_unlock(&LOCK_global_system_variables);
    if (!waited)
      thd->backup_stage(&old_stage);
    waited= true;
    THD_STAGE_INFO(thd, stage_waiting_to_maintain_query_cache);
    my_sleep(10000);
    mysql_mutex_lock(&LOCK_global_system_variables);
    /* Only a look, so nobody has to give up anything for it */
    lock_slice(thd);
    DEBUG_SYNC(thd, "query_cache_resize_looks");
  }
  resizes_waiting--;
  if (waited)
    THD_STAGE_INFO(thd, old_stage);
  return too_many || settings != number;
}


/**
  Unpin an area that the cache has given up, without the cache's lock: to free
  gigabytes takes long. For a resize, which has the lock.

  Meanwhile there is a cache of no size. LOCK_global_system_variables keeps
  others from resizing it.
*/

void Query_cache::unpin_without_lock(Query_cache_area **old)
{
  unlock();
  unpin_area(*old);
  *old= nullptr;
  lock_slice(current_thd);
}


/**
  The work of resize(), with the cache's lock: give up the area and get one of
  another size. There are not more than two areas with the new one, and if there
  is too little memory for two, then there is only one. set_size becomes the
  size of the cache, 0 if there is none.

  @param      size as the administrator wants it
  @param[out] old  the caller unpins it when it has no lock
  @return whether it has given up while it waited for those who use an area
*/

bool Query_cache::replace_area(size_t size, Query_cache_area **old)
{
  const ulonglong number= ++settings;
  size_t new_size;
  DBUG_ENTER("Query_cache::replace_area");

  if (size && wait_for_readers(number, 1))
    DBUG_RETURN(true);
  *old= give_up_area();
  /* Nobody uses it. The new one must be the second, not the third */
  if (given_up_areas > 1)
    unpin_without_lock(old);
  no_memory= false;
  query_cache_size= size;
  new_size= init_cache();
  if (no_memory)
  {
    /* Free the old one first. Others do without the cache meanwhile */
    unpin_without_lock(old);
    if (wait_for_readers(number, 0))
    {
      if (m_cache_status == OK && !area)
      {
        m_cache_status= DISABLED;
        set_size= 0;
      }
      DBUG_RETURN(true);
    }
    query_cache_size= size;
    new_size= init_cache();
  }
  set_size= new_size;
  DBUG_RETURN(false);
}


/*****************************************************************************
  The thread
*****************************************************************************/

#ifdef HAVE_PSI_INTERFACE
static PSI_mutex_key key_LOCK_pack, key_LOCK_database;
static PSI_cond_key key_COND_reclaim;
static PSI_thread_key key_thread_reclaim;
static PSI_mutex_info reclaim_mutexes[]=
{
  { &key_LOCK_pack, "Query_cache::LOCK_pack", 0 },
  { &key_LOCK_database, "Query_cache::LOCK_database", 0 }
};
static PSI_cond_info reclaim_conds[]=
{{ &key_COND_reclaim, "Query_cache::COND_reclaim", 0 }};
static PSI_thread_info reclaim_threads[]=
{{ &key_thread_reclaim, "query_cache_reclaim", PSI_FLAG_GLOBAL }};
#endif


void Query_cache::init_reclaim()
{
#ifdef HAVE_PSI_INTERFACE
  PSI_stage_info *stages[]= { &stage_waiting_to_maintain_query_cache };
  mysql_mutex_register("sql", reclaim_mutexes,
                       array_elements(reclaim_mutexes));
  mysql_cond_register("sql", reclaim_conds, array_elements(reclaim_conds));
  mysql_thread_register("sql", reclaim_threads,
                        array_elements(reclaim_threads));
  mysql_stage_register("sql", stages, array_elements(stages));
#endif
  mysql_mutex_init(key_LOCK_pack, &LOCK_pack, MY_MUTEX_INIT_SLOW);
  mysql_mutex_init(key_LOCK_database, &LOCK_database, MY_MUTEX_INIT_SLOW);
  mysql_cond_init(key_COND_reclaim, &COND_reclaim, NULL);
  epoch= 1;
  changes= 1;
}


/** Called when the lock is released, with structure_guard_mutex */

void Query_cache::want_reclaim()
{
  /* Once is enough: the thread looks at the flag before it sleeps for long */
  if (dead_tables && !reclaim_wanted)
  {
    reclaim_wanted= true;
    mysql_cond_signal(&COND_reclaim);
  }
}


/**
  Free what is dead, slice by slice.

  reclaim_wanted and reclaim_stop are protected by structure_guard_mutex.
*/

void Query_cache::reclaim_loop()
{
  mysql_mutex_lock(&structure_guard_mutex);
  while (!reclaim_stop)
  {
    if (!reclaim_wanted)
    {
      mysql_cond_wait(&COND_reclaim, &structure_guard_mutex);
      continue;
    }
    reclaim_wanted= false;
    mysql_mutex_unlock(&structure_guard_mutex);

    ulonglong pause= LONGEST_PAUSE;
    if (!DBUG_IF("query_cache_thread_rests"))
    {
      lock_slice(NULL);
      const ulonglong begin= my_interval_timer();
      const uint freed= reclaim(UINT_MAX, begin + RECLAIM_SLICE);
      unlock();
      /* A slice may have been long by the clock, if the server was stopped */
      if (freed)
        pause= MY_MIN(my_interval_timer() - begin, LONGEST_PAUSE) + PAUSE;
    }
    /* Not a wait on a condition: that would go by the wall clock */
    my_sleep((ulong) (pause / 1000));
    mysql_mutex_lock(&structure_guard_mutex);
  }
  mysql_mutex_unlock(&structure_guard_mutex);
}


void *Query_cache::reclaim_thread_start(void *)
{
  my_thread_init();
  query_cache.reclaim_loop();
  my_thread_end();
  return NULL;
}


/**
  Start the thread with the first cache that is enabled.

  Without it all works, but dead results stay until somebody needs the memory.
*/

void Query_cache::start_reclaim_thread()
{
  mysql_mutex_lock(&structure_guard_mutex);
  if (m_cache_status == OK && !reclaim_thread_running)
  {
    reclaim_stop= false;
    if (int error= mysql_thread_create(key_thread_reclaim, &reclaim_thread, NULL,
                                       reclaim_thread_start, NULL))
      sql_print_warning("Can't create query cache reclaim thread (errno: %d)",
                        error);
    else
      reclaim_thread_running= true;
  }
  mysql_mutex_unlock(&structure_guard_mutex);
}


void Query_cache::end_reclaim()
{
  mysql_mutex_lock(&structure_guard_mutex);
  const bool running= reclaim_thread_running;
  reclaim_stop= true;
  reclaim_thread_running= false;
  mysql_cond_signal(&COND_reclaim);
  mysql_mutex_unlock(&structure_guard_mutex);
  if (running)
    pthread_join(reclaim_thread, NULL);
  mysql_cond_destroy(&COND_reclaim);
  mysql_mutex_destroy(&LOCK_database);
  mysql_mutex_destroy(&LOCK_pack);
}


/*****************************************************************************
  Checks, for debug builds
*****************************************************************************/

#if !defined(DBUG_OFF) || defined(USE_QUERY_CACHE_INTEGRITY_CHECK)

/** The bins are gone; this is what can be said about free memory instead. */

void Query_cache::bins_dump()
{
  DBUG_PRINT("qcache", ("free: %zu bytes in %zu of %zu blocks", free_memory,
                        free_memory_blocks, total_blocks));
}


/* Length of a ring of blocks, which must be of the given type */
static size_t check_ring(Query_cache_block *root,
                         Query_cache_block::block_type type, const char **error)
{
  size_t count= 0;
  if (Query_cache_block *block= root)
  {
    do
    {
      if (block->next->prev != block || block->type != type)
      {
        *error= "ring of blocks";
        return 0;
      }
      count++;
    } while ((block= block->next) != root);
  }
  return count;
}


/**
  Check all that is said at the top of this file.

  @param locked whether the caller has the lock
  @return whether something is wrong
*/

my_bool Query_cache::check_integrity(bool locked)
{
  THD *thd= current_thd;
  DBUG_ENTER("check_integrity");
  if (!locked)
    lock_slice(thd);
  const char *error= NULL;
  if (query_cache_size)
  {
    size_t query_blocks= 0, live_tables= 0, dead= 0, counted= 0;
    size_t counted_dead= 0, results= 0, results_found= 0;
    size_t first_in_live= 0, first_in_dead= 0;
    if (!(error= memory->check()) &&
        (my_hash_check(&queries) || my_hash_check(&tables)))
      error= "hash";
    const size_t complete= check_ring(queries_blocks, Query_cache_block::QUERY,
                                      &error);
    const size_t incomplete= check_ring(incomplete_blocks,
                                        Query_cache_block::QUERY, &error);
    const size_t live_ring= check_ring(tables_blocks, Query_cache_block::TABLE,
                                       &error);
    const size_t dead_ring= check_ring(dead_tables, Query_cache_block::TABLE,
                                       &error);
    Query_cache_block *block= first_block;
    do
    {
      if (error)
        break;
      switch (block->type) {
      case Query_cache_block::FREE:
        break;
      case Query_cache_block::TABLE:
      {
        Query_cache_table *table= block->table();
        Query_cache_block_table *root= block->table(0), *node= root;
        int32 nodes= 0, first= 0;
        while ((node= node->next) != root)
        {
          if (node->next->prev != node || node->parent != table)
            error= "list of a table's queries";
          nodes++;
          first+= node->n == 0;
        }
        if (nodes != table->m_cached_query_count ||
            first != table->m_first_in_count)
          error= "counters of a table";
        size_t length;
        const uchar *key= query_cache_table_get_key((uchar*) block, &length,
                                                    0);
        const bool live= is_live(table);
        if ((table->is_hashed() && live) !=
            (my_hash_search(&tables, key, length) == (uchar*) block))
          error= "table and hash";
        if (table->is_hashed())
          (live ? live_tables : dead)++;
        (live ? first_in_live : first_in_dead)+= first;
        break;
      }
      case Query_cache_block::QUERY:
      {
        Query_cache_query *query= block->query();
        if (query->pins.count & ORPHAN)
          break;
        query_blocks++;
        if (!query->registered || query->pins.area != area)
          error= "query";
        if (query->is_results_ready() == (query->writer() != NULL))
          error= "complete query with a writer or vice versa";
        if (query->writer() && query->writer()->first_query_block != block)
          error= "writer of a query";
        size_t length;
        const uchar *key= query_cache_query_get_key((uchar*) block, &length,
                                                    0);
        if (my_hash_search(&queries, key, length) != (uchar*) block)
          error= "query and hash";
        for (TABLE_COUNTER_TYPE i= 0; i < block->n_tables; i++)
        {
          if (block->table(i)->n != i ||
              block_of(block->table(i)->parent)->type !=
              Query_cache_block::TABLE)
            error= "node of a query";
        }
        (is_live(block->table(0)->parent) ? counted : counted_dead)++;
        /* Its writer changes an incomplete result without the lock */
        if (Query_cache_block *result= query->is_results_ready() ?
                                       query->result() : NULL)
        {
          Query_cache_block *first= result;
          if (first->type != Query_cache_block::RESULT)
            error= "type of a result";
          do
          {
            if (result->next->prev != result ||
                result->result()->parent() != block)
              error= "blocks of a result";
            results_found++;
          } while ((result= result->next) != first);
        }
        break;
      }
      case Query_cache_block::RESULT:
      case Query_cache_block::RES_CONT:
      case Query_cache_block::RES_BEG:
      case Query_cache_block::RES_INCOMPLETE:
        if (block->result()->parent()->type != Query_cache_block::QUERY)
          error= "parent of a result";
        else
        {
          Query_cache_query *query= block->result()->parent()->query();
          results+= query->is_results_ready() && !(query->pins.count & ORPHAN);
        }
        break;
      default:
        error= "type of a block";
      }
    } while ((block= block->pnext) != first_block);
    if (!error &&
        (query_blocks != complete + incomplete ||
         query_blocks != queries.records ||
         live_tables != live_ring || live_tables != tables.records ||
         dead != dead_ring || counted != queries_in_cache ||
         counted != first_in_live || counted_dead != dead_queries ||
         counted_dead != first_in_dead || results != results_found))
      error= "counts";
  }
  if (error)
  {
    DBUG_PRINT("error", ("query cache: %s", error));
    fprintf(stderr, "query cache is damaged: %s\n", error);
  }
  DBUG_ASSERT(!error);
  if (!locked)
    unlock();
  DBUG_RETURN(error != NULL);
}

#endif
