/* SPDX-License-Identifier: GPL-2.0-only */

/** @file table_cache_memory: see table_cache_memory.h. */

#include "mariadb.h"
#include "sql_base.h"
#include "table_cache_tables.h"
#ifdef WITH_PARTITION_STORAGE_ENGINE
#include "partition_info.h"
#include "ha_partition.h"
#endif

Table_cache_memory tc_memory;

/** Bytes that malloc() adds on average: 8, and what it rounds up. */
static constexpr size_t MALLOC_BYTES= 16;
/** Bytes that my_malloc() adds, malloc()'s included. */
static constexpr size_t MY_MALLOC_BYTES= 24 + MALLOC_BYTES;


/* ------------------------------------------------- the bytes of objects */

/** Bytes of the blocks of a root, with those that my_malloc() adds. */

static size_t root_bytes(const MEM_ROOT *root)
{
  size_t bytes= 0;
  for (const USED_MEM *list : { root->free, root->used })
  {
    for (const USED_MEM *block= list; block; block= block->next)
      bytes+= block->size + MY_MALLOC_BYTES;
  }
  return bytes;
}


/** Bytes that InnoDB's handlers of a TABLE have allocated without my_malloc(). */

static size_t engine_bytes(const TABLE *table)
{
  size_t bytes= 0;
  handler *file= table->file;
  if (!tc_memory.innodb_handler)
    return 0;
  if (file->ht->db_type == DB_TYPE_INNODB)
    return tc_memory.innodb_handler(file);
#ifdef WITH_PARTITION_STORAGE_ENGINE
  if (file->ht == partition_hton)
  {
    handler **child= static_cast<ha_partition*>(file)->get_child_handlers();
    for (; *child; child++)
    {
      if ((*child)->ht->db_type == DB_TYPE_INNODB)
        bytes+= tc_memory.innodb_handler(*child);
    }
  }
#endif
  return bytes;
}


/** Bytes of a TABLE now: the constant part, and the parts that can grow. */

static uint32 bytes_now(TABLE *table)
{
  DBUG_ASSERT(table->db_stat);
  const size_t bytes= Cached_table::weight_of(table)->constant +
                      root_bytes(&table->mem_root) + engine_bytes(table) +
                      tc_kept_record_bytes(table);
  return (uint32) MY_MIN(bytes, UINT_MAX32);
}


/**
  Allocate a TABLE for tc_add_table(), with a Table_cache_weight after it.

  Most engines allocate with my_malloc(), which counts the bytes of each
  connection. This function notes that count. tc_weigh_new() takes the growth of
  the count, less the TABLE's mem_root, as the constant part of the TABLE's
  bytes. my_malloc() has another count for memory that belongs to the connection
  itself (MY_THREAD_SPECIFIC).
*/

TABLE *tc_alloc_table(THD *thd)
{
  const int64 before= thd->status_var.global_memory_used;
  DBUG_EXECUTE_IF("tc_table_out_of_memory",
                  my_error(ER_OUTOFMEMORY, MYF(0), (int) sizeof(TABLE));
                  return NULL;);
  TABLE *table= static_cast<TABLE*>
    (my_malloc(key_memory_TABLE, sizeof(TABLE) + sizeof(Table_cache_weight),
               MYF(MY_WME)));
  if (table)
  {
    Table_cache_weight *weight= Cached_table::weight_of(table);
    weight->allocated_before= before;
    weight->constant= Table_cache_weight::NOT_ADDED;
    Cached_table::set_weight(table, 0);
  }
  return table;
}


/**
  Find out how many bytes a TABLE takes that the caller has just opened. The
  caller adds it to the table cache next.
*/

void tc_weigh_new(THD *thd, TABLE *table)
{
  Table_cache_weight *weight= Cached_table::weight_of(table);
  const int64 allocated= (int64) thd->status_var.global_memory_used -
                         weight->allocated_before;
  DBUG_ASSERT(weight->constant == Table_cache_weight::NOT_ADDED);
  const int64 others= allocated - (int64) root_bytes(&table->mem_root);
  /* Opening it may have freed the memory of another table. */
  const int64 least= sizeof(TABLE) + sizeof(Table_cache_weight);
  weight->constant= (uint32) MY_MIN(MY_MAX(others, least) +
                                    (int64) (2 * MY_MALLOC_BYTES),
                                    (int64) UINT_MAX32);
  const uint32 bytes= bytes_now(table);
  Cached_table::set_weight(table, bytes);
  tc_memory.tables.fetch_add(bytes, std::memory_order_relaxed);
}


/**
  Find out again how many bytes a TABLE and its share take.

  @pre The caller uses the TABLE, and its handler is open.
  @return the bytes of the TABLE
*/

size_t tc_weigh_again(TABLE *table)
{
  const uint32 bytes= bytes_now(table);
  /* Unsigned: if the TABLE takes less now, the addition wraps round. */
  tc_memory.tables.fetch_add((size_t) bytes - Cached_table::weight(table),
                             std::memory_order_relaxed);
  Cached_table::set_weight(table, bytes);
  tdc_weigh_share(table->s->tdc, table->s, false);
  return bytes;
}


/**
  An engine has allocated memory that a TABLE keeps after the statement: let the
  release of the TABLE find out how many bytes it takes.

  @pre The caller uses the TABLE. It may be a TABLE that is not in the cache.
*/

void tc_table_has_grown(TABLE *table)
{
  Cached_table::flags(table)|= Cached_table::WEIGH;
}


/** Bytes that the connection has allocated, without the TABLE's mem_root. */

int64 tc_other_bytes(const THD *thd, const TABLE *table)
{
  return (int64) thd->status_var.global_memory_used -
         (int64) root_bytes(&table->mem_root);
}


/**
  The TABLE keeps what the caller has allocated since tc_other_bytes() returned
  "before". The release of the TABLE finds out how many bytes it takes.

  @pre The caller uses the TABLE, which is in the cache.
*/

void tc_table_keeps(const THD *thd, TABLE *table, int64 before)
{
  Table_cache_weight *weight= Cached_table::weight_of(table);
  const int64 kept= tc_other_bytes(thd, table) - before;
  weight->constant+= (uint32) MY_MIN(MY_MAX(kept, 0),
                                     (int64) UINT_MAX32 - weight->constant);
  tc_table_has_grown(table);
}


/**
  Find out how many bytes a share takes.

  @param new_share  true: the caller has just read the share, and no other
                    thread knows it. False: the caller has a reference to the
                    share
*/

void tdc_weigh_share(TDC_element *element, TABLE_SHARE *share, bool new_share)
{
  if (new_share)
    element->root_bytes= (uint32)
      MY_MIN(root_bytes(&share->mem_root) + sizeof(TDC_element) +
             share->name_hash.array.max_element *
             share->name_hash.array.size_of_element, UINT_MAX32);
  size_t bytes= element->root_bytes;
  if (!new_share)
  {
    mysql_mutex_lock(&share->LOCK_share);
    if (const TABLE_STATISTICS_CB *stats= share->stats_cb)
      bytes+= sizeof(*stats) + MALLOC_BYTES + root_bytes(&stats->mem_root);
    mysql_mutex_unlock(&share->LOCK_share);
  }
  const uint32 now= (uint32) MY_MIN(bytes, UINT_MAX32);
  const uint32 before= element->bytes.exchange(now, std::memory_order_relaxed);
  tc_memory.definitions.fetch_add((size_t) now - before,
                                  std::memory_order_relaxed);
}


/** Subtract the bytes of a share that goes. @return how many */

size_t tdc_forget_weight(TDC_element *element)
{
  const uint32 bytes= element->bytes.exchange(0, std::memory_order_relaxed);
  tc_memory.definitions.fetch_sub(bytes, std::memory_order_relaxed);
  return bytes;
}
