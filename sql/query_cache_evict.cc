/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: getting memory for a result, and eviction.

  query_cache_memory.h allocates and frees blocks. If it has none that is long
  enough, allocate_block() reclaims up to VICTIMS dead queries, one by one, and
  then evicts live ones.

  Eviction goes by size, not by the clock: make_room() frees the least recently
  used query and then its physical neighbours, until the gap suffices. An
  allocation does that for VICTIMS queries at most, and until it has evicted
  EVICT_LENGTH bytes, or as many as it wants if that is more. insert() stores a
  long packet in pieces of INSERT_PIECE bytes, and releases the lock between
  them.

  All of this needs the cache's lock.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"

/* An allocation evicts so many queries for their age, with neighbours */
static constexpr uint VICTIMS= 64;
/* And so many bytes, enough for each piece of a packet */
static constexpr size_t EVICT_LENGTH= VICTIMS * Query_cache::INSERT_PIECE;
/* A finished result is moved to a tighter gap if it is not longer */
static constexpr size_t FIT_LENGTH= 64 << 10;


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
