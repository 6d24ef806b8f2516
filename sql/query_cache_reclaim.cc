/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: invalidation, and giving back the memory of what has been
  invalidated. A part of sql_cache.cc, which includes it: so the embedded
  server, which has a list of source files of its own, has it, too.

  The idea. A table that has cached results is a TABLE block, and every query
  block has a node in the list of each of its tables' blocks. To invalidate a
  table is to mark its block dead and to take it out of the hash of tables
  (kill_table()): a few steps, whatever the number of results. From then on

  - no result of a query in the dead block's list is served: whoever finds a
    query asks is_dead(), which looks at the blocks of all its tables;
  - the next query that uses the table finds no block and makes a new one. So
    a block is one generation of a table's results, and a query remembers the
    generation of each of its tables by the node in the block's list.

  What is dead is reclaimed later and piece by piece (reclaim()): query by
  query is freed, and the block with its last one.

  Where things are. All of it is protected by the cache's lock
  (Query_cache::lock(), try_lock()) unless said otherwise.

  tables_blocks      Live tables that can be found in the hash 'tables'. No
                     order. A block has at least one query, but for the moment
                     in which its first one is being registered.
  dead_tables        Dead tables, in no hash, oldest first, but that those
                     whose queries are in use go to the end.
  (no list)          Tables that belong to one query (insert_table() with hash
                     == false: partitions). They cannot be found, so they
                     cannot be killed; the table that they are a part of can.
  queries_blocks     Queries with a complete result, live and dead, least
                     recently used first.
  incomplete_blocks  Queries whose result is being written, live and dead.
  queries            Hash of all these. Of queries with the same text at most
                     one is in it: a dead one makes way for a new one
                     (make_way()), and is 'unhashed' from then on.
  queries_in_cache   Counts the queries whose first table is live. That is all
                     live ones, and those of the dead that died by another
                     table, until they are reclaimed.
  retired            See below. Protected by structure_guard_mutex.

  A query block's own lock (Query_cache_query::lock) is held for reading while
  its result is being sent to a client, and for writing while a piece of its
  result is being copied, both without the cache's lock. A client may be slow.
  So nothing here waits for it while having the cache's lock: a query that
  cannot be locked at once is passed over. Stock MariaDB waited, and with it
  everybody.

  Why never a stale row. Register, find, kill are all done with the cache's
  lock, so they have an order. A result can be served only between its
  registration and the first kill of one of its tables. The callers of
  invalidate() are what they were, and when they return the table's results
  are dead, where they used to be freed. So every order of a statement's start,
  its registration and the invalidation that was right before is right now.
  A result still being written when its table is killed stays dead: its writer
  finds out with the next packet, or at the end (live_query()), and frees it.
  A result that is already on its way to a client when its table is killed is
  delivered, as before; its statement began before the writer's ended.

  Slices. Whatever may take long is cut into slices, during each of which the
  lock is held for at most SLICE (RECLAIM_SLICE by the thread), followed by a
  pause in which the lock is free for others: without the pause they would not
  get it, because they have to be woken up first. The threads that reclaim:

  - the writer itself, up to AT_ONCE queries, so that after small
    invalidations nothing is left behind;
  - who needs memory: before a live query is evicted, dead ones are freed;
  - the thread of reclaim_loop(), woken by want_reclaim() when the lock is
    released with something left.

  FLUSH QUERY CACHE (pack_in_slices()) and RESET QUERY CACHE
  (invalidate_all()) work in slices, too; the latter returns when what was
  there is freed, but for results that are being sent. FLUSH QUERY CACHE moves
  neither queries in use nor tables with more than PACK_TABLE_QUERIES queries,
  each of which points to its table.

  Resizing and disabling. retire() puts the whole area with its queries into
  the list 'retired', which is nobody's cache any more, in the time that it
  takes to tell the writers of incomplete results, as many as there are
  connections at most. What is left to do is to destroy the queries' locks,
  which has to wait for those who still read, and to free the area;
  free_retired() does that without the cache's lock, one thread for each area. So for a moment there are two areas, of which the new one
  has not been touched yet. resize() itself frees up to RETIRED_AT_ONCE
  queries and leaves the rest to the thread. Only if there is too little memory
  for the new area does it free all of the old one before, as it always did, or
  wait, with the cache's lock, until those who are freeing it have done so: they
  need no other lock than structure_guard_mutex for that.

  Locks, in order: LOCK_pack or LOCK_database, the cache's lock,
  structure_guard_mutex. Nobody has both of the first two.

  Costs that remain, all with the lock: the end of a result copies up to
  FIT_LENGTH bytes, FLUSH QUERY CACHE results of up to PACK_LENGTH; a query with
  many tables (partitions) or many blocks of result is freed as a whole, except
  that reclaim() cuts the latter; INFORMATION_SCHEMA.QUERY_CACHE_INFO is read as
  a whole.
*/

#include "debug_sync.h"
#include "log.h"                                // sql_print_warning
#include <atomic>

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
/* Before looking again at dead queries all of which are in use */
static constexpr ulonglong PINNED_PAUSE= 50000000;
/* What an invalidating statement frees of what it has invalidated */
static constexpr uint AT_ONCE= 64;
static constexpr ulonglong AT_ONCE_TIME= 200000;
/* An allocation may evict that many, and more until the time is up */
static constexpr uint EVICT_AT_LEAST= 64;
static constexpr uint EVICT_STEP= 4;
static constexpr ulonglong EVICT_TIME= 1000000;
/* Queries in use to pass over in search of one that is not */
static constexpr uint PINNED_TRIES= 16;
/*
  FLUSH QUERY CACHE: tables with more queries and blocks that are longer are
  not moved, longer results not joined
*/
static constexpr int32 PACK_TABLE_QUERIES= 1000;
static constexpr size_t PACK_LENGTH= 1 << 20;
/* A finished result is moved to a tighter gap if it is not longer */
static constexpr size_t FIT_LENGTH= 64 << 10;
/* What resize() frees itself of the old area */
static constexpr uint RETIRED_AT_ONCE= 1000;

/*
  A resize() waits for the areas that the thread is freeing. Written, and waited
  for, under structure_guard_mutex. One flag is enough: who waits has the
  cache's lock.
*/
static std::atomic<bool> retired_awaited;
static mysql_cond_t COND_retired;

/** An area that is no longer the cache's */
struct Query_cache_retired
{
  Query_cache_retired *next;
  uchar *cache;
  size_t length;
  bool in_hand;                         /* somebody is freeing it */
  Query_cache_block *queries;           /* circular, their locks still exist */
};


/* The block of which this is the type dependent header */
static inline Query_cache_block *block_of(Query_cache_table *table)
{
  return (Query_cache_block *) (((uchar*) table) -
                                ALIGN_SIZE(sizeof(Query_cache_block_table)) -
                                ALIGN_SIZE(sizeof(Query_cache_block)));
}


/*****************************************************************************
  Dead or alive
*****************************************************************************/

/**
  Whether a table of the query has been invalidated since the query was
  registered.
*/

bool Query_cache::is_dead(Query_cache_block *query_block)
{
  Query_cache_block_table *node= query_block->table(0);
  for (TABLE_COUNTER_TYPE i= 0; i < query_block->n_tables; i++, node++)
  {
    if (node->parent->dead)
      return true;
  }
  return false;
}


/**
  Invalidate a table: put all its results out of reach.

  While locked: mark, unhash, move to dead_tables.
*/

void Query_cache::kill_table(Query_cache_block *table_block)
{
  Query_cache_table *table= table_block->table();
  DBUG_ASSERT(table->is_hashed() && !table->dead);

  my_hash_delete(&tables, (uchar*) table_block);
  table->set_hashed(0);
  table->dead= 1;
  double_linked_list_exclude(table_block, &tables_blocks);
  double_linked_list_simple_include(table_block, &dead_tables);
  queries_in_cache-= table->m_first_in_count;
}


/** What a statement frees itself of what it has invalidated. */

void Query_cache::reclaim_at_once()
{
  reclaim(AT_ONCE, my_interval_timer() + AT_ONCE_TIME);
}


/**
  What a reader has found in the hash, or nullptr if it is dead.
*/

Query_cache_block *Query_cache::find_live(Query_cache_block *query_block)
{
  return query_block && !is_dead(query_block) ? query_block : nullptr;
}


/**
  What a query that wants to be registered has found in its place.

  @return the block, or nullptr if it was dead and is in nobody's way now
*/

Query_cache_block *Query_cache::make_way(Query_cache_block *query_block)
{
  if (!query_block || !is_dead(query_block))
    return query_block;
  Query_cache_query *query= query_block->query();
  if (query->try_lock_writing())
    free_query(query_block);
  else
  {
    /* It is being sent, or its writer does not know yet */
    my_hash_delete(&queries, (uchar*) query_block);
    query->unhashed= 1;
  }
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
  /* Without the cache's lock nobody but the writer, that is us, has this one */
  mysql_rwlock_wrlock(&query_block->query()->lock);
  free_query(query_block);
  DBUG_ASSERT(!tls->first_query_block);
  return nullptr;
}


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
  Remove a query from the hash and the cache.

  @param query_block locked for writing; the lock is destroyed
*/

void Query_cache::free_query(Query_cache_block *query_block)
{
  DBUG_ENTER("Query_cache::free_query");
  if (!query_block->query()->unhashed)
    my_hash_delete(&queries, (uchar*) query_block);
  free_query_internal(query_block);
  DBUG_VOID_RETURN;
}


void Query_cache::free_query_internal(Query_cache_block *query_block)
{
  Query_cache_query *query= query_block->query();
  Query_cache_block_table *node= query_block->table(0);
  DBUG_ENTER("Query_cache::free_query_internal");

  if (!node->parent->dead)
    queries_in_cache--;                 // kill_table() has not done it

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

  Query_cache_block *result= query->result();
  if (!result || result->type != Query_cache_block::RESULT)
  {
    refused++;                          // it was never complete
    inserts--;
  }
  if (result)
  {
    Query_cache_block *block= result, *next;
    do
    {
      next= block->next;
      free_memory_block(block);
    } while ((block= next) != result);
  }

  query->unlock_n_destroy();
  free_memory_block(query_block);
  DBUG_VOID_RETURN;
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
      my_hash_delete(&tables, (uchar*) table_block);
      double_linked_list_exclude(table_block, &tables_blocks);
    }
    else if (table->dead)
      double_linked_list_exclude(table_block, &dead_tables);
    free_memory_block(table_block);
  }
  DBUG_VOID_RETURN;
}


/**
  Evict the query that was used longest ago.

  One that is in use is in use now. So it goes to the end, where it would be
  if its client had not been so slow.

  @return whether there was none to evict
*/

my_bool Query_cache::free_old_query()
{
  DBUG_ENTER("Query_cache::free_old_query");
  for (uint i= 0; i < PINNED_TRIES && queries_blocks; i++)
  {
    Query_cache_block *query_block= queries_blocks;
    if (query_block->query()->try_lock_writing())
    {
      if (!is_dead(query_block))
        lowmem_prunes++;
      free_query(query_block);
      DBUG_RETURN(0);
    }
    queries_blocks= query_block->next;  // the list is a ring
  }
  DBUG_RETURN(1);
}


/**
  Shorten a long result to one block.

  @return whether that was done within the time
*/

bool Query_cache::trim_results(Query_cache_query *query, ulonglong deadline)
{
  Query_cache_block *first= query->result();
  for (uint i= 1; first && first->next != first; i++)
  {
    Query_cache_block *block= first->next;
    double_linked_list_exclude(block, &first);
    free_memory_block(block);
    if (i % 64 == 0 && my_interval_timer() >= deadline)
      return false;
  }
  return true;
}


/**
  Free dead queries.

  @param max_queries as many at most
  @param deadline    and not much longer than until then
  @return number of steps taken; 0 if nothing is dead, or all of that is in use
*/

uint Query_cache::reclaim(uint max_queries, ulonglong deadline)
{
  uint freed= 0, pinned= 0, steps= 0;
  DBUG_EXECUTE_IF("query_cache_keep_dead", return 0;);

  while (dead_tables && freed < max_queries && pinned < PINNED_TRIES)
  {
    Query_cache_block *table_block= dead_tables;
    Query_cache_block_table *root= table_block->table(0), *node= root->next;
    Query_cache_block *query_block= node->block();
    if (query_block->query()->try_lock_writing())
    {
      if (!trim_results(query_block->query(), deadline))
      {
        mysql_rwlock_unlock(&query_block->query()->lock);
        return freed + 1;
      }
      free_query(query_block);
      freed++;
    }
    else
    {
      /* Behind all others, its table too: the next ones may be free */
      pinned++;
      root->next= node->next;
      root->next->prev= root;
      node->prev= root->prev;
      node->next= root;
      node->prev->next= root->prev= node;
      dead_tables= table_block->next;
    }
    if (++steps % 8 == 0 && my_interval_timer() >= deadline)
      break;
  }
  return freed;
}


/*****************************************************************************
  Memory. The work is done in query_cache_memory.h.
*****************************************************************************/

/**
  Take memory, if need be from the dead, then from the least recently used.

  @param len      length of the block
  @param not_less whether a shorter one will not do
  @param min      if a shorter one will do: the shortest that does
*/

Query_cache_block *
Query_cache::allocate_block(size_t len, my_bool not_less, size_t min)
{
  Query_cache_block *block;
  ulonglong deadline= 0;
  uint freed= 0;
  DBUG_ENTER("Query_cache::allocate_block");

  if (len >= MY_MIN(query_cache_size, query_cache_limit))
    DBUG_RETURN(0);               // in any case we don't have such a block

  while (!(block= memory->allocate(len, not_less, min)))
  {
    if (!deadline)
      deadline= my_interval_timer() + EVICT_TIME;
    else if (freed >= EVICT_AT_LEAST && my_interval_timer() >= deadline)
      break;
    uint dead= dead_tables ? reclaim(EVICT_STEP, deadline) : 0;
    if (!dead && free_old_query())
      break;
    freed+= MY_MAX(dead, 1);
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
  Be the only one to do some maintenance; waits as for the cache's lock do.

  Who need not wait has no stage: MariaDB shows one for a flush, that of the
  cache's lock, and perfschema.stage_mdl_global counts them.
*/

static void lock_maintenance(THD *thd, mysql_mutex_t *mutex)
{
  if (!mysql_mutex_trylock(mutex))
    return;
  Query_cache_wait_state wait_state(thd, __func__, __FILE__, __LINE__);
  mysql_mutex_lock(mutex);
}


/**
  DROP DATABASE: invalidate its tables.

  The ring of live tables is turned once, so that a step is to look at its
  root and to turn it by one. Nobody else turns it, or relies on where it
  begins, meanwhile: that is what LOCK_database is for. What others do in the
  pauses does not matter: new tables come in behind us, and if some go away we
  meet some twice.
*/

void Query_cache::invalidate_database(THD *thd, const char *db)
{
  DBUG_ENTER("Query_cache::invalidate_database");
  lock_maintenance(thd, &LOCK_database);
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
        kill_table(table_block);
      if (slice_is_over(i, deadline))
        break;
    }
    if (!left || !tables_blocks || !next_slice(thd))
      break;
  }
  reclaim_at_once();
  unlock();
  mysql_mutex_unlock(&LOCK_database);
  DBUG_VOID_RETURN;
}


/**
  RESET QUERY CACHE, FLUSH TABLES, SET GLOBAL ft_boolean_syntax

  The tables to kill are those at the root of the ring: as many as there were
  at first. New ones come in behind them, as nobody turns the ring meanwhile.
  LOCK_database is kept until they are dead, not until they are freed.
*/

void Query_cache::invalidate_all()
{
  THD *thd= current_thd;
  DBUG_ENTER("Query_cache::invalidate_all");
  bool killing= true;                           // and having LOCK_database
  lock_maintenance(thd, &LOCK_database);
  lock_slice(thd);
#ifdef ENABLED_DEBUG_SYNC
  if (thd)
    DEBUG_SYNC(thd, "wait_in_query_cache_flush2");
#endif
  if (query_cache_size)
  {
    ulong left= tables.records;
    size_t to_free= queries.records;
    do
    {
      const ulonglong deadline= my_interval_timer() + SLICE;
      for (uint i= 1; left && tables_blocks; i++)
      {
        kill_table(tables_blocks);
        left--;
        if (slice_is_over(i, deadline))
          break;
      }
      if (tables_blocks && left)
        continue;
      left= 0;
      if (killing)
        mysql_mutex_unlock(&LOCK_database);
      killing= false;
      const size_t before= queries.records;
      if (!reclaim(UINT_MAX, deadline) || !dead_tables ||
          to_free <= before - queries.records)
        break;
      to_free-= before - queries.records;
    } while (next_slice(thd));
  }
  DBUG_EXECUTE("check_querycache", check_integrity(1););
  unlock();
  if (killing)
    mysql_mutex_unlock(&LOCK_database);
  DBUG_VOID_RETURN;
}


/*****************************************************************************
  FLUSH QUERY CACHE
*****************************************************************************/

/**
  Whether the defragmentation has to leave a block where it is.

  If not, it can be moved without waiting: whoever wants to lock its query has
  to have the cache's lock first, and we have that.
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
    return !block->table()->is_hashed() ||
      block->table()->m_cached_query_count > PACK_TABLE_QUERIES;
  case Query_cache_block::QUERY:
    if (is_dead(block))
      return true;
    break;
  default:
    if (block->length > PACK_LENGTH)
      return true;
    block= block->result()->parent();
  }
  Query_cache_query *query= block->query();
  if (query->writer() || !query->try_lock_writing())
    return true;
  mysql_rwlock_unlock(&query->lock);
  return false;
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

  @return whether there still is a cache
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
    } while (!done && my_interval_timer() < deadline);
    if (border)
      block= close_gap(border, before, gap);
    DBUG_EXECUTE("check_querycache", check_integrity(1););
    if (done)
      return true;
    memory->set_cursor(block);
    if (!next_slice(thd) || !memory->cursor())
      return false;                             // resized meanwhile
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
  @return whether there still is a cache
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
          query->result()->next != query->result() &&
          query->try_lock_writing())
      {
        join_result(query_block);
        *moved= true;
        mysql_rwlock_unlock(&query->lock);
      }
    } while (left && my_interval_timer() < deadline);
    if (left && !next_slice(thd))
      return false;
  }
  join_cursor= 0;
  return true;
}


void Query_cache::pack_in_slices(THD *thd, size_t join_limit,
                                 uint iteration_limit)
{
  DBUG_ENTER("Query_cache::pack_in_slices");
  /* There is one cursor */
  lock_maintenance(thd, &LOCK_pack);
  lock_slice(thd);
  if (query_cache_size)
  {
    bool more= true;
    /* What is dead is not moved, so away with it first */
    while (reclaim(UINT_MAX, my_interval_timer() + SLICE) &&
           dead_tables && (more= next_slice(thd))) {}
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
  Give up the area with all that is in it.

  With the cache's lock, or when nobody has it or can get it. The statements
  that write results are told. Readers are not, they have their queries locked.

  @param guarded whether the caller has structure_guard_mutex
*/

void Query_cache::retire(bool guarded)
{
  DBUG_ENTER("Query_cache::retire");
  if (Query_cache_block *block= incomplete_blocks)
  {
    do
    {
      Query_cache_query *query= block->query();
      query->writer()->first_query_block= NULL;
      query->writer(0);
      refused++;
    } while ((block= block->next) != incomplete_blocks);
    if (queries_blocks)
      double_linked_list_join(queries_blocks->prev, incomplete_blocks);
    else
      queries_blocks= incomplete_blocks;
  }
  if (cache)
  {
    if (Query_cache_retired *old= new (std::nothrow) Query_cache_retired)
    {
      old->cache= cache;
      old->length= query_cache_size + additional_data_size;
      old->queries= queries_blocks;
      old->in_hand= false;
      if (!guarded)
        mysql_mutex_lock(&structure_guard_mutex);
      old->next= retired;
      retired= old;
      if (!guarded)
        mysql_mutex_unlock(&structure_guard_mutex);
    }
    else
    {
      /* Its readers may go on with it, so nobody else frees it now */
      sql_print_error("Out of memory: the %zu bytes of the old query cache "
                      "are lost until the server ends",
                      query_cache_size + additional_data_size);
    }
    my_hash_free(&queries);
    my_hash_free(&tables);
    memory->set_cursor(nullptr);
  }
  make_disabled();
  DBUG_VOID_RETURN;
}


/**
  Free what retire() has left.

  @param wait whether to go on until all is freed, waiting for readers and for
              those who are freeing some of it. The caller has the cache's lock,
              so nothing is retired meanwhile. Otherwise what takes longer is
              left to reclaim_loop()
  @return number of steps taken

  An area stays in the list until it is freed. What is in hand belongs to the
  thread that has it, but for its link, and those who hold the queries' locks.
*/

uint Query_cache::free_retired(bool wait)
{
  uint freed= 0;
  DBUG_ENTER("Query_cache::free_retired");
  mysql_mutex_lock(&structure_guard_mutex);
  Query_cache_retired *old= retired;
  while (old && (wait || freed < RETIRED_AT_ONCE))
  {
    if (old->in_hand)
    {
      if (wait)
      {
        retired_awaited= true;
        mysql_cond_wait(&COND_retired, &structure_guard_mutex);
        retired_awaited= false;
      }
      old= wait ? retired : old->next;
      continue;
    }
    if (DBUG_IF("query_cache_hold_retired") && current_thd && !wait)
    {
      /* Leave it to the thread, see that it has it */
      mysql_mutex_unlock(&structure_guard_mutex);
      my_sleep(1000);
      mysql_mutex_lock(&structure_guard_mutex);
      old= retired;
      if (old && old->in_hand)
        break;
      continue;
    }
    old->in_hand= true;
    mysql_mutex_unlock(&structure_guard_mutex);
    while (DBUG_IF("query_cache_hold_retired") && !current_thd &&
           !retired_awaited && !reclaim_stop)
      my_sleep(1000);

    while (Query_cache_block *block= old->queries)
    {
      Query_cache_query *query= block->query();
      if (wait)
        mysql_rwlock_wrlock(&query->lock);
      else if (freed >= RETIRED_AT_ONCE || !query->try_lock_writing())
        break;
      query->unlock_n_destroy();
      double_linked_list_exclude(block, &old->queries);
      freed++;
    }
    const bool empty= !old->queries;
    if (empty)
    {
#if defined(DBUG_OFF) && defined(HAVE_MADVISE) &&  defined(MADV_DODUMP)
      (void) madvise(old->cache, old->length, MADV_DODUMP);
#endif
      /* Free blocks in it are out of bounds for AddressSanitizer */
      MEM_MAKE_ADDRESSABLE(old->cache, old->length);
      my_free(old->cache);
      freed++;
    }

    mysql_mutex_lock(&structure_guard_mutex);
    Query_cache_retired *next= old->next;
    if (empty)
    {
      Query_cache_retired **link= &retired;
      while (*link != old)
        link= &(*link)->next;
      *link= next;
      delete old;
    }
    else
      old->in_hand= false;      // a reader is in the way, maybe not in the next
    if (retired_awaited)
      mysql_cond_signal(&COND_retired);
    old= next;
  }
  if (retired && !reclaim_wanted)
  {
    reclaim_wanted= true;
    mysql_cond_signal(&COND_reclaim);
  }
  mysql_mutex_unlock(&structure_guard_mutex);
  DBUG_RETURN(freed);
}


/**
  Second try of resize(), with the cache's lock: init_cache() has failed. There
  may be too little memory for the old area and the new one, so wait until the
  former is freed.
*/

size_t Query_cache::init_without_retired(size_t size)
{
  DBUG_ENTER("Query_cache::init_without_retired");
  free_retired(true);
  query_cache_size= size;
  DBUG_RETURN(init_cache());
}


/*****************************************************************************
  The thread
*****************************************************************************/

void Query_cache::init_reclaim()
{
  mysql_mutex_init(0, &LOCK_pack, MY_MUTEX_INIT_SLOW);
  mysql_mutex_init(0, &LOCK_database, MY_MUTEX_INIT_SLOW);
  mysql_cond_init(0, &COND_reclaim, NULL);
  mysql_cond_init(0, &COND_retired, NULL);
}


/** Called when the lock is released, with structure_guard_mutex */

void Query_cache::want_reclaim()
{
  /* Once is enough: the thread looks at the flag before it sleeps for long */
  if ((dead_tables || retired) && !reclaim_wanted)
  {
    reclaim_wanted= true;
    mysql_cond_signal(&COND_reclaim);
  }
}


/**
  Free what is dead, slice by slice, and what is retired.

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

    uint freed= free_retired(false);
    lock_slice(NULL);
    const ulonglong begin= my_interval_timer();
    freed+= reclaim(UINT_MAX, begin + RECLAIM_SLICE);
    unlock();
    /* A slice may have been long by the clock, if the server was stopped */
    const ulonglong took= my_interval_timer() - begin;
    const ulonglong pause= freed ? MY_MIN(took, PINNED_PAUSE) + PAUSE
                                 : PINNED_PAUSE;
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

  Without it all works, but that dead results wait for who needs their memory.
*/

void Query_cache::start_reclaim_thread()
{
  mysql_mutex_lock(&structure_guard_mutex);
  if (m_cache_status == OK && !reclaim_thread_running)
  {
    reclaim_stop= false;
    if (int error= mysql_thread_create(0, &reclaim_thread, NULL,
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
  mysql_cond_destroy(&COND_retired);
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
    size_t query_blocks= 0, live_tables= 0, dead= 0, hashed= 0, counted= 0;
    size_t results= 0, results_found= 0, first_in_live= 0;
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
        if (table->is_hashed() != (my_hash_search(&tables, key, length) ==
                                   (uchar*) block))
          error= "table and hash";
        if (table->is_hashed() && table->dead)
          error= "dead table in hash";
        live_tables+= table->is_hashed();
        dead+= table->dead;
        if (!table->dead)
          first_in_live+= first;
        break;
      }
      case Query_cache_block::QUERY:
      {
        Query_cache_query *query= block->query();
        query_blocks++;
        if (query->is_results_ready() == (query->writer() != NULL))
          error= "complete query with a writer or vice versa";
        if (query->writer() && query->writer()->first_query_block != block)
          error= "writer of a query";
        size_t length;
        const uchar *key= query_cache_query_get_key((uchar*) block, &length,
                                                    0);
        if ((my_hash_search(&queries, key, length) == (uchar*) block) ==
            query->unhashed)
          error= "query and hash";
        if (query->unhashed && !is_dead(block))
          error= "live query in no hash";
        hashed+= !query->unhashed;
        for (TABLE_COUNTER_TYPE i= 0; i < block->n_tables; i++)
        {
          if (block->table(i)->n != i ||
              block_of(block->table(i)->parent)->type !=
              Query_cache_block::TABLE)
            error= "node of a query";
        }
        counted+= !block->table(0)->parent->dead;
        /* What is being written is changed without the lock */
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
        else if (block->result()->parent()->query()->is_results_ready())
          results++;
        break;
      default:
        error= "type of a block";
      }
    } while ((block= block->pnext) != first_block);
    if (!error &&
        (query_blocks != complete + incomplete || hashed != queries.records ||
         live_tables != live_ring || live_tables != tables.records ||
         dead != dead_ring || counted != queries_in_cache ||
         counted != first_in_live || results != results_found))
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
