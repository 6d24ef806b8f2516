/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/sql_cache.cc:
   Copyright (c) 2000, 2013, Oracle and/or its affiliates.
   Copyright (c) 2010, 2017, MariaDB Corporation */

/**
  @file

  Query cache: debug builds check the lists and counters that
  query_cache_reclaim.cc describes.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

#if !defined(DBUG_OFF) || defined(USE_QUERY_CACHE_INTEGRITY_CHECK)

/** This allocator has no bins; print the counters of free memory instead. */

void Query_cache::bins_dump()
{
  DBUG_PRINT("qcache", ("free: %zu bytes in %zu of %zu blocks", free_memory,
                        free_memory_blocks, total_blocks));
}


/* Count the blocks of a ring, which must all be of the given type */
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
  Check the lists and counters that query_cache_reclaim.cc describes.

  @param locked whether the caller holds the cache's lock
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
        /* The writer changes an incomplete result without the cache's lock */
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
