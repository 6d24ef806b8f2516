/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/sql_cache.cc:
   Copyright (c) 2000, 2013, Oracle and/or its affiliates.
   Copyright (c) 2010, 2017, MariaDB Corporation */

/**
  @file

  Query cache: FLUSH QUERY CACHE moves used blocks together, so that the free
  memory becomes one block.

  pack_in_slices() works in three steps:

  1. It reclaims the dead results.
  2. pack_blocks() moves all blocks towards the start of the area, with
     MariaDB's move_by_type().
  3. join_blocks() joins long results that are in several blocks. Then steps 2
     and 3 follow again, as often as in unpatched MariaDB.

  The thread works in slices, between which other threads get the cache's lock.
  A step keeps its position in Query_cache_memory's cursor or in join_cursor,
  which stay valid whatever those threads do.

  pack_blocks() does not move pinned queries, because threads use them without
  the lock. Nor does it move tables with more than PACK_TABLE_QUERIES queries,
  because each of these has a pointer to its table.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

/*
  pack_blocks() moves neither tables with more than PACK_TABLE_QUERIES queries
  nor blocks of more than PACK_LENGTH bytes. join_blocks() does not join results
  of more than PACK_LENGTH bytes
*/
static constexpr int32 PACK_TABLE_QUERIES= 1000;
static constexpr size_t PACK_LENGTH= 1 << 20;


/**
  Whether the defragmentation has to leave a block where it is.

  If not, it can move the block: no thread can begin to use it, because that
  needs the cache's lock, and the caller holds it.
*/

bool Query_cache::is_pinned(Query_cache_block *block)
{
  switch (block->type) {
  case Query_cache_block::FREE:
    return false;
  case Query_cache_block::TABLE:
    /*
      A table block that is not in the hash is dead, or a partition. The hash
      may have another table with the key of the partition, and move_by_type()
      would take that one out.
    */
    return !block->table()->is_hashed() || !is_live(block->table()) ||
      block->table()->m_cached_query_count > PACK_TABLE_QUERIES;
  case Query_cache_block::QUERY:
    break;
  default:
    if (block->length > PACK_LENGTH)
      return true;
    block= block->result()->parent();
  }
  Query_cache_query *query= block->query();
  /* Look for pins first: an orphan has no tables, which is_dead() reads */
  return query->writer() || query->is_pinned() || is_dead(block);
}


/**
  Make a free block of the bytes that move_by_type() has gained.

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
  Move all blocks towards the area's start, as far as pinned blocks let them.

  @return whether the cache still exists and no one has killed the thread
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
    /* Unset the cursor: move_by_type() would leave it inside a moved block */
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


/** Move a result that is in several blocks into one, if one is free. */

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

  @param moved set to whether there was a result to join
  @return whether the cache still exists and no one has killed the thread
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
  /* There is only one cursor, so only one thread at a time may pack */
  if (query_cache_may_pack.begin(thd, &LOCK_pack))
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
  query_cache_may_pack.end(&LOCK_pack);
  DBUG_VOID_RETURN;
}
