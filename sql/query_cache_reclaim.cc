/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/sql_cache.cc:
   Copyright (c) 2000, 2013, Oracle and/or its affiliates.
   Copyright (c) 2010, 2017, MariaDB Corporation */

/**
  @file

  Query cache: invalidation, and freeing the results that it leaves dead.

  The idea
  --------
  The cache has a TABLE block for each table with cached results. Every query
  block has one node per table of the query, in the list of that table's block.

  A statement that writes to a table invalidates its results in a few steps,
  however many there are: kill_table() marks the table's block dead and removes
  it from the hash of tables. invalidate_all() kills all tables at once: it
  begins a new epoch, and a table is live only if its block has the number of
  the current epoch. From then on

  1. No statement gets a result of a query in a dead block's list. A thread that
     finds a query calls is_dead(), which reads the blocks of all its tables.
  2. The next query that uses the table finds no block and makes a new one. So a
     block is one generation of a table's results. By its node in the block's
     list, a query remembers the generation of each of its tables.

  reclaim() frees dead results later, query by query. The last query of a table
  frees the table's block, too.

  The lists and counters
  ----------------------
  The cache's lock (Query_cache::lock(), try_lock()) protects all of them.

  tables_blocks      Live tables, all in the hash 'tables'. No order. Each has
                     at least one query, except while a thread registers its
                     first one.
  dead_tables        Dead tables, in no hash, youngest first.
  (no list)          Partitions: insert_table() with hash == false. Each belongs
                     to one query. They are in no hash, so they are not
                     invalidated by name; an invalidation of the partitioned
                     table kills the query.
  queries_blocks     Queries with a complete result, live and dead, least
                     recently used first.
  incomplete_blocks  Queries whose result a statement still writes, live and
                     dead.
  queries            Hash of the queries in both lists. It has at most one query
                     of each text: make_way() removes a dead one for a new one.
  (no list)          Orphans: dead queries in use, see query_cache_pins.cc.
  queries_in_cache   Counts the queries whose first table is live. These are
                     all live queries, and the dead queries of which statements
                     have invalidated only other tables than the first. A dead
                     query counts until a thread reclaims it. If a query's
                     registration kills its first table, the count stays right:
                     see registration_failed().
  dead_queries       Counts the other queries in queries_blocks and
                     incomplete_blocks.

  Why a client never gets a stale row
  -----------------------------------
  A thread holds the cache's lock while it registers a result, searches for one,
  or kills a table. So all of these happen in one order.

  1. The cache serves a result only between its registration and the first kill
     of one of its tables.
  2. invalidate() has the same callers as in MariaDB. When it returns, the
     table's results are dead; in unpatched MariaDB they are freed then. So
     in every order of a statement's start, registration and invalidation, this
     cache serves the result only if unpatched MariaDB does.
  3. If a thread kills a table while a statement still writes a result from it,
     the result stays dead. The writer notices that with its next packet or at
     the end (live_query()) and frees the result.
  4. If a thread kills a table while a statement sends a result from it, the
     client gets that result, as in MariaDB: the statement began before the
     writing statement ended.

  Three kinds of threads reclaim
  ------------------------------
  1. A statement that invalidates frees up to AT_ONCE of its own queries, so
     small invalidations leave nothing dead.
  2. A statement that needs memory frees some dead queries before it evicts a
     live one (query_cache_evict.cc).
  3. The thread of query_cache_slices.cc frees the rest.

  Order of locks: LOCK_global_system_variables (a resize), the right to pack or
  the right to walk (Query_cache_right), the cache's lock,
  structure_guard_mutex. No thread has both rights.

  Some costs under the cache's lock remain:

  1. At the end of a result, a statement copies up to FIT_LENGTH bytes.
  2. FLUSH QUERY CACHE copies results of up to PACK_LENGTH bytes.
  3. reclaim() frees a query as a whole, even if it has many tables (partitions)
     or many blocks of result.
  4. A query of INFORMATION_SCHEMA.QUERY_CACHE_INFO reads the whole cache.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"
#include "debug_sync.h"

/* Number of results that an invalidating statement frees itself */
static constexpr uint AT_ONCE= 64;
/* Nanoseconds after which it leaves the rest to the reclaiming thread */
static constexpr ulonglong AT_ONCE_TIME= 200000;


bool Query_cache::is_live(Query_cache_table *table)
{
  return table->epoch == epoch;
}


/**
  Whether a thread has invalidated a table of the query since the query was
  registered.

  A query may have thousands of tables (partitions). So the function reads them
  again only if a thread has invalidated a table since the last call found the
  query alive: alive_at is the value that 'changes' had then.
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
  Invalidate a table: from now on no statement gets any of its results.

  The caller holds the cache's lock. The function marks the table's block as
  dead, takes it out of the hash, and moves it to dead_tables.

  @return number of the table's queries
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
  Free results right after a statement has invalidated them. Their tables come
  first in dead_tables.

  @param own number of queries that the statement has invalidated
*/

void Query_cache::reclaim_at_once(uint own)
{
  reclaim(MY_MIN(own, AT_ONCE), my_interval_timer() + AT_ONCE_TIME);
}


/**
  Check a query that a statement has found in the hash.

  @return the query, or nullptr if it is dead
*/

Query_cache_block *Query_cache::find_live(Query_cache_block *query_block)
{
  return query_block && !is_dead(query_block) ? query_block : nullptr;
}


/**
  Make way for a new query: remove a query with the same text if it is dead.

  @param query_block the query that the statement has found in the hash, or
                     nullptr
  @return that query if it is live and stays; nullptr if the way is free
*/

Query_cache_block *Query_cache::make_way(Query_cache_block *query_block)
{
  if (!query_block || !is_dead(query_block))
    return query_block;
  bury(query_block);
  return nullptr;
}


/**
  Find the query whose result this thread writes. If it is dead, free it and
  reset the thread's pointer. Do the same while another thread disables the
  cache, because insert() may already have dropped a piece of the result.

  @return the query; nullptr if it was dead or there is none
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


/** The query has all its tables. From now on other threads can kill it. */

void Query_cache::query_registered(Query_cache_block *query_block)
{
  double_linked_list_simple_include(query_block, &incomplete_blocks);
  query_block->query()->registered= 1;
}


/**
  Correct the counters if a query cannot get all its tables. The caller then
  unlinks the query from the tables that it has got.

  If the registration has killed the first table of the query, kill_table() has
  moved the query from queries_in_cache to dead_queries. But store_query() has
  not added it to queries_in_cache, and will not. So undo that.

  @param last all nodes before this one are linked; this one is linked too if it
              has a parent
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
/** For tests: kill the first table of a query during its registration */

void Query_cache::fail_registration(Query_cache_block *query_block)
{
  kill_table(block_of(query_block->table(0)->parent));
}
#endif


/** The result is complete. From now on other threads can evict the query. */

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
  Free a dead query. If threads have pinned it, make it an orphan: the thread
  that removes the last pin frees it.
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
  Free an orphan. The caller has removed its last pin, but still has the pin of
  its area.

  @param pinned the query's area. If the cache has given that up, the query's
                memory goes with the area
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


/**
  Unlink a query's node from its table's list. If it was the last node, free the
  table's block.
*/

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

  @param max_queries number of queries to free at most
  @param deadline    time to end soon after, by my_interval_timer()
  @return number of queries freed; 0 if there was none to free
*/

uint Query_cache::reclaim(uint max_queries, ulonglong deadline)
{
  uint freed= 0;
  DBUG_EXECUTE_IF("query_cache_keep_dead", return 0;);

  while (dead_tables && freed < max_queries)
  {
    Query_cache_block *query_block= block_of(dead_tables->table(0)->next);
    /* A statement is registering this query and has killed one of its tables */
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

  The loop turns the ring of live tables once: each step examines the root and
  makes the next table the root. Only one thread at a time may do this, so no
  other thread turns the ring between two slices. Two other changes do no harm:

  1. A thread adds a table. The table is then the last one before the root,
     where the loop has been already.
  2. A thread removes some tables, or all. Then the loop examines some twice.

  A user may kill the statement while it waits for another thread's walk. The
  statement has dropped the tables already, so it must still invalidate them. It
  invalidates the tables of all databases, which needs no walk.
*/

void Query_cache::invalidate_database(THD *thd, const char *db)
{
  uint own= 0;
  DBUG_ENTER("Query_cache::invalidate_database");
  if (query_cache_may_walk.begin(thd, &LOCK_database))
  {
    invalidate_all();
    DBUG_VOID_RETURN;
  }
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
  query_cache_may_walk.end(&LOCK_database);
  DBUG_VOID_RETURN;
}


/**
  RESET QUERY CACHE, FLUSH TABLES, SET GLOBAL ft_boolean_syntax: begin a new
  epoch, which kills all tables at once. The statement does not wait for their
  memory.
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
      epoch= 1;                         // 0 is the epoch of killed tables
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
