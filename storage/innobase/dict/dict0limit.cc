/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file dict/dict0limit.cc
The bytes of table definitions and handlers, and eviction of definitions for
table_cache_memory (sql/table_cache_memory_limit.h).

The bytes of a dict_table_t in the cache are those of the heaps of the table, of its
indexes and of its foreign keys, plus the bytes that malloc() adds to each block.
dict_table_t::noted_bytes is what the table has added to the sum.  The sum leaves
out temporary tables; the tablespace (fil_space_t), which stays when the definition
goes; and memory that a thread allocates only for a moment.

A thread that exceeds the limit evicts definitions that no handler uses, by
dict_memory_evict().  The master task still evicts definitions beyond
table_definition_cache (dict0evict.cc).  dict_memory_evict() first looks at the
MAX_AT_HEAD tables at the head of dict_sys.table_LRU, where a scan leaves its tables.
Then it goes from the tail, like the master task.  But it moves the tables at the
tail that it cannot evict to the head, so that no other thread has to skip them soon.
So each call continues where the former one has ended, and no call has to remember a
place.
*******************************************************/

#include "ha_prototypes.h"
#include "mysqld.h"
#include "sql_class.h"
#include "dict0dict.h"
#include "dict0limit.h"
#include "mem0stock.h"
#include "row0ins.h"
#include "row0mysql.h"
#include "row0size.h"
#include "row0upd.h"
#include "ha_innodb.h"
#include "table_cache_memory_limit.h"
#include <chrono>
#include <thread>

bool dict_table_can_be_evicted(dict_table_t *table);

namespace
{

/** Length of a slice, if the first eviction does not take longer, and of the pause
after it, in microseconds: see dict0evict.cc */
constexpr ulonglong SLICE_US= 200, HAND_OVER_US= 50;
/** Number of tables that a call visits at most */
constexpr ulint MAX_VISITS= 512;
/** Number of these at the head of the list, where a scan leaves its tables */
constexpr ulint MAX_AT_HEAD= 8;
/** Bytes that malloc() adds on average: 8, and what it rounds up */
constexpr size_t MALLOC_BYTES= 16;

size_t heap_bytes(mem_heap_t *heap) noexcept
{
  return heap
    ? mem_heap_get_size(heap) + UT_LIST_GET_LEN(heap->base) * MALLOC_BYTES : 0;
}

size_t table_bytes(const dict_table_t &table) noexcept
{
  size_t bytes= heap_bytes(table.heap) + strlen(table.name.m_name) +
    MALLOC_BYTES;
  for (const dict_index_t *index= UT_LIST_GET_FIRST(table.indexes); index;
       index= UT_LIST_GET_NEXT(indexes, index))
    bytes+= heap_bytes(index->heap);
  for (const dict_foreign_t *foreign : table.foreign_set)
    bytes+= heap_bytes(foreign->heap);
  return bytes;
}

size_t handler_bytes(const handler *file) noexcept
{
  return static_cast<const ha_innobase*>(file)->memory_used();
}

/** Evict a table if no thread uses it.
@return how many bytes that has freed; 0 if the table is in use */
size_t evict_one(dict_table_t *table) noexcept
{
  if (table->get_ref_count() || !dict_table_can_be_evicted(table))
    return 0;
  const size_t bytes= table->noted_bytes;
  dict_sys.remove(table, true);
  return bytes;
}

/** Evict tables that no thread uses, for SLICE_US, but at least visit one table:
first those that only scans have used and that are at the head of table_LRU, then
from its tail.
@param bytes   stop when so many bytes are free
@param visits  number of visited tables; this adds those that it visits
@param freed   this adds the bytes of the evicted tables
@return whether its time was over */
bool evict_slice(size_t bytes, ulint *visits, size_t *freed) noexcept
{
  ut_ad(dict_sys.locked());
  const auto &list= dict_sys.table_LRU;
  const ulonglong begin= microsecond_interval_timer();
  const auto is_over= [begin]() {
    return microsecond_interval_timer() - begin >= SLICE_US;
  };

  for (dict_table_t *table= UT_LIST_GET_FIRST(list), *next;
       table && *freed < bytes && *visits < MAX_AT_HEAD; table= next)
  {
    next= UT_LIST_GET_NEXT(table_LRU, table);
    ++*visits;
    if (!table->used)
      *freed+= evict_one(table);
    if (is_over())
      return true;
  }

  for (ulint left= UT_LIST_GET_LEN(list);
       left && *freed < bytes && *visits < MAX_VISITS; left--)
  {
    dict_table_t *table= UT_LIST_GET_LAST(list);
    const size_t got= evict_one(table);
    ++*visits;
    *freed+= got;
    if (!got)
    {
      UT_LIST_REMOVE(dict_sys.table_LRU, table);
      UT_LIST_ADD_FIRST(dict_sys.table_LRU, table);
    }
    if (is_over())
      return true;
  }
  return false;
}

/** Evict some tables that no thread uses.
@param bytes  stop when so many bytes are free
@return how many bytes that has freed; 0 if all visited tables were in use */
size_t dict_memory_evict(size_t bytes) noexcept
{
  size_t freed= 0;
  ulint visits= 0;
  bool goes_on;
  mem_later_t later;                            /* free() may wait; not under the latch */
  if (!dict_sys.is_initialised())
    return 0;                                   /* InnoDB did not start */
  do
  {
    dict_sys.lock_cache(SRW_LOCK_CALL);
    goes_on= evict_slice(bytes, &visits, &freed);
    dict_sys.unlock_cache();
    later.free_all();
    /* The caller will call again: let waiting threads get the latch first */
    if (goes_on)
      std::this_thread::sleep_for(std::chrono::microseconds(HAND_OVER_US));
  }
  while (goes_on && !freed);
  return freed;
}

} // namespace

void dict_memory_init() noexcept
{
  tc_memory.innodb_handler= handler_bytes;
  tc_innodb_evict= dict_memory_evict;
}

void dict_memory_note(dict_table_t *table) noexcept
{
  if (table->noted_bytes)
    dict_memory_add(table);
}

void dict_memory_add(dict_table_t *table) noexcept
{
  if (table->is_temporary())
    return;
  ut_ad(dict_sys.locked());
  const size_t bytes= table_bytes(*table);
  /* Unsigned: if the table takes less now, the addition wraps round */
  tc_memory.innodb.fetch_add(bytes - table->noted_bytes,
                             std::memory_order_relaxed);
  table->noted_bytes= bytes;
}

void dict_memory_forget(dict_table_t *table) noexcept
{
  ut_ad(dict_sys.locked());
  tc_memory.innodb.fetch_sub(table->noted_bytes, std::memory_order_relaxed);
  table->noted_bytes= 0;
}

void innobase_has_grown(const row_prebuilt_t *prebuilt) noexcept
{
  if (prebuilt && prebuilt->m_mysql_table)
    tc_table_has_grown(prebuilt->m_mysql_table);
}

void innobase_has_fetch_cache(const row_prebuilt_t *prebuilt) noexcept
{
  if (row_fetch_cache_stays(prebuilt))
    innobase_has_grown(prebuilt);
}

/** @return bytes that the handler has allocated without my_malloc(); tc_weigh_new()
counts the others */
size_t ha_innobase::memory_used() const
{
  const row_prebuilt_t *p= m_prebuilt;
  if (!p)
    return 0;
  size_t bytes= heap_bytes(p->heap) + heap_bytes(p->old_vers_heap) +
    m_upd_buf_size;
  if (p->mysql_template)
    bytes+= table->s->fields * sizeof *p->mysql_template + MALLOC_BYTES;
  if (p->fetch_cache[0])
    bytes+= MYSQL_FETCH_CACHE_SIZE * (p->mysql_row_len + 8) + MALLOC_BYTES;
  if (p->ins_node)
    bytes+= heap_bytes(p->ins_node->entry_sys_heap) +
      p->ins_node->entry_list.capacity() * sizeof(dtuple_t*);
  if (p->upd_node)
    bytes+= heap_bytes(p->upd_node->heap);
  return bytes;
}
