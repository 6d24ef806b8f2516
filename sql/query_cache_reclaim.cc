/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: invalidation, and freeing the results that it has killed.

  The idea
  --------
  A table that has cached results is a TABLE block, and every query block has a
  node in the list of each of its tables' blocks. kill_table() invalidates a
  table: it marks the table's block dead and takes it out of the hash of tables.
  That is a few steps, whatever the number of results. invalidate_all() begins a
  new epoch: a table is live if it has the number of the current one. From then
  on

  - No statement gets a result of a query in a dead block's list. A thread that
    finds a query calls is_dead(), which looks at the blocks of all its tables.
  - The next query that uses the table finds no block and makes a new one. So a
    block is one generation of a table's results, and a query remembers the
    generation of each of its tables by the node in the block's list.

  reclaim() frees dead results later and piece by piece: query by query, and the
  block with its last one.

  The lists and counters
  ----------------------
  The cache's lock (Query_cache::lock(), try_lock()) protects all of them.

  tables_blocks      Live tables that can be found in the hash 'tables'. No
                     order. A block has at least one query, but for the moment
                     in which its first one is being registered.
  dead_tables        Dead tables, in no hash, youngest first.
  (no list)          Tables that belong to one query (insert_table() with hash
                     == false: partitions). No thread can find them, so none
                     kills them, but it can kill their partitioned table.
  queries_blocks     Queries with a complete result, live and dead, least
                     recently used first.
  incomplete_blocks  Queries whose result is being written, live and dead.
  queries            Hash of all these. It has one query of each text at most:
                     make_way() removes a dead one for a new one.
  (no list)          Orphans: dead queries in use, see query_cache_pins.cc.
  queries_in_cache   Counts the queries whose first table is live: all live
                     ones, and those dead ones that another table killed, until
                     a thread reclaims them.
  dead_queries       Counts the others in the lists.

  Why a stale row is never served
  -------------------------------
  Registration, search and kill all have the cache's lock, so they have an order.

  1. The cache serves a result only between its registration and the first kill
     of one of its tables.
  2. invalidate() has the same callers as in MariaDB. When it returns, the
     table's results are dead; in MariaDB they are freed. So an order of a
     statement's start, its registration and the invalidation that was right
     there is right here.
  3. If a result is being written when its table is killed, it stays dead: its
     writer finds that out with the next packet, or at the end (live_query()),
     and frees it.
  4. If a result is on its way to a client when its table is killed, the client
     gets it, as in MariaDB: the statement began before the writer's ended.

  Three threads reclaim
  ---------------------
  1. A statement that invalidates frees up to AT_ONCE of its own queries, so
     small invalidations leave nothing behind.
  2. A statement that needs memory frees some dead queries before it evicts a
     live one (query_cache_evict.cc).
  3. The thread of query_cache_slices.cc frees the rest.

  Locks, in order: LOCK_global_system_variables (a resize), LOCK_pack or
  LOCK_database, the cache's lock, structure_guard_mutex. No thread has both
  LOCK_pack and LOCK_database.

  Costs that remain, all with the lock: the end of a result copies up to
  FIT_LENGTH bytes, FLUSH QUERY CACHE results of up to PACK_LENGTH; reclaim()
  frees a query with many tables (partitions) or many blocks of result as a
  whole; a query of INFORMATION_SCHEMA.QUERY_CACHE_INFO reads the whole cache.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"
#include "debug_sync.h"

/* An invalidating statement frees so many of its own results */
static constexpr uint AT_ONCE= 64;
/* And not much longer than so long. Nanoseconds */
static constexpr ulonglong AT_ONCE_TIME= 200000;


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
  The query that a statement has found in the hash, or nullptr if it is dead.
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
  The query that this thread writes, or nullptr if it died meanwhile. Then this
  frees it, and resets the thread's pointer. It does the same while another
  thread disables the cache: insert() has begun to drop pieces of results.
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


/**
  Free a query. No other thread has pinned it, but the caller may have.
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
  Free a dead query, or leave that to the threads that use it.
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
    Query_cache_block *table_block= block_of(neighbour);
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
    Query_cache_block *query_block= block_of(dead_tables->table(0)->next);
    /* The statement that registers it has killed one of its tables */
    if (!query_block->query()->registered)
      break;
    bury(query_block);
    if (++freed % 8 == 0 && my_interval_timer() >= deadline)
      break;
  }
  return freed;
}


/**
  DROP DATABASE: invalidate its tables.

  The loop turns the ring of live tables once: a step looks at its root and
  turns it by one. LOCK_database keeps other threads from turning it meanwhile.
  Other changes in the pauses do no harm: new tables come in behind the root, and
  if some go away, or all, the loop meets some twice.
*/

void Query_cache::invalidate_database(THD *thd, const char *db)
{
  uint own= 0;
  DBUG_ENTER("Query_cache::invalidate_database");
  query_cache_lock_maintenance(thd, &LOCK_database, false);
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
      if (query_cache_slice_is_over(i, deadline))
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
  at once, as a new epoch begins. The statement does not wait until their memory
  is free.
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
