/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/sql_cache.cc:
   Copyright (c) 2000, 2013, Oracle and/or its affiliates.
   Copyright (c) 2010, 2017, MariaDB Corporation */

/**
  @file

  Query cache: allocation of memory for a result, and eviction.

  query_cache_memory.h allocates and frees blocks. If it has no block that is
  long enough, allocate_block()

  1. reclaims up to VICTIMS dead queries, one by one, then
  2. evicts live queries: make_room() frees the least recently used query (LRU)
     and then its physical neighbours, until their free block is long enough.

  A limit of bytes and of steps bounds the eviction, not a limit of time: one
  allocation calls make_room() at most VICTIMS times, and no more after it has
  evicted EVICT_LENGTH bytes, or the wanted length if that is more.
  query_cache_insert() stores a long packet in pieces of INSERT_PIECE bytes: for
  each it calls insert(), which takes the lock and releases it.

  The caller of every function here holds the cache's lock.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

/* One allocation evicts at most so many LRU queries, each with neighbours */
static constexpr uint VICTIMS= 64;
/*
  After so many bytes an allocation starts no further eviction. It is more than
  any piece of a packet needs.
*/
static constexpr size_t EVICT_LENGTH= VICTIMS * Query_cache::INSERT_PIECE;
/* fit_last_block() moves at most this many bytes to a tighter block */
static constexpr size_t FIT_LENGTH= 64 << 10;


/**
  Find the least recently used query that no thread has pinned.

  The function moves each pinned query that it meets to the end of the list: a
  client is reading it right now. The area has at least one pin per pinned
  query, so the loop need not look at more queries than that.

  @return the query, or nullptr if there is none to evict
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
  Find the query whose eviction frees a given block.

  @return the query, or nullptr if the block has to stay
*/

Query_cache_block *Query_cache::evictable(Query_cache_block *block)
{
  switch (block->type) {
  case Query_cache_block::QUERY:
    break;
  case Query_cache_block::TABLE:
    /* A table's block goes with its last query */
    if (block->table()->m_cached_query_count != 1)
      return nullptr;
    block= block_of(block->table(0)->next);
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
  Evict the least recently used query, and then its physical neighbours until
  their free block has the given length, or until both its neighbours have to
  stay.

  So an allocation evicts about as many bytes as it wants. Eviction by age alone
  would throw away many more before two of the victims happened to be
  neighbours.

  @return bytes evicted; 0 if there was nothing to evict
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
  Allocate a block. If none is free, first reclaim dead queries, then evict the
  least recently used ones.

  The function starts no further eviction once it has evicted EVICT_LENGTH
  bytes, or the wanted length if that is more. If no block is long enough even
  then, blocks that have to stay separate the free ones, and more eviction would
  hardly help.

  @param len      length of the block
  @param not_less whether the caller cannot use a shorter block
  @param min      if it can: the shortest length that it can use
  @return the block, or nullptr
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
  Shorten the last block of a result that has just become complete.

  A statement does not know the length of its result before the end, so it
  begins with a block of query_cache_min_res_unit bytes if it can get one. If
  this function always made the unused rest a free block, then two statements
  that store results at the same time would leave free blocks between these, all
  slightly too short for the beginning of a new result. So the function looks
  for a shorter free block that the contents fit in, and moves them there. Then
  the whole old block is free for the next result.

  @param block the last block of a query that is locked for writing
  @param len   bytes of the block to keep
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
