#ifndef TABLE_CACHE_MEMORY_LIMIT_INCLUDED
#define TABLE_CACHE_MEMORY_LIMIT_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  table_cache_memory: a limit, in bytes, for open tables and cached definitions
  together. table_cache_memory.h says which bytes count.

  A thread that has added an object, and finds the limit exceeded, frees other
  objects: tc_make_room_for(). It frees at most BUDGET times the bytes that it has
  added. So its work is bounded by that of opening the object, and several such
  threads remove an excess that another one has caused. It begins with the
  objects that are cheapest to get back:

  1. TABLEs, in their order of eviction, while TABLEs take more than a PART of
     the limit;
  2. unused shares, in the order of tdc_purge(), while shares take more than a
     PART of it;
  3. InnoDB's definitions that no handler uses;
  4. if that frees nothing: shares and TABLEs, even if they have less than their
     PART.

  A TABLE is cheap to open while its definitions are cached, so TABLEs go first.
  The PART keeps some of them as long as there are unused definitions. Only
  TABLEs in use, and the definitions that belong to them, may exceed the limit.
*/

#include "table_cache_memory.h"

/** @@table_cache_memory */
extern ulonglong table_cache_memory;

struct Table_cache_memory_limit
{
  /** A kind may take 1/PART of the limit before it makes room for others. */
  static constexpr uint PART= 4;
  /** A thread frees at most so many times the bytes that it has added. */
  static constexpr uint BUDGET= 4;

  /** @@table_cache_memory, which a client may set at any moment. 0: no limit */
  static size_t bytes()
  {
    static_assert(sizeof(std::atomic<ulonglong>) == sizeof(table_cache_memory),
                  "");
    const ulonglong bytes=
      reinterpret_cast<const std::atomic<ulonglong>*>(&table_cache_memory)->
        load(std::memory_order_relaxed);
    return static_cast<size_t>(MY_MIN(bytes, (ulonglong) SIZE_T_MAX));
  }
  /** By how much the limit is exceeded. */
  static size_t excess()
  {
    const size_t max= bytes(), now= likely(!max) ? 0 : tc_memory.sum();
    return now > max ? now - max : 0;
  }
  /** May all TABLEs stay, and others that take so many bytes come? */
  static bool allows_tables(size_t more= 0)
  {
    const size_t max= bytes();
    return likely(!max) || tc_memory.sum() + more <= max ||
           tc_memory.tables.load(std::memory_order_relaxed) + more <= max / PART;
  }
};

/**
  Free some of InnoDB's definitions that no handler uses. InnoDB sets this when it
  starts, before any thread opens a table. @return how many bytes
*/
extern size_t (*tc_innodb_evict)(size_t bytes);

void tc_make_room_for(THD *thd, size_t bytes, bool may_lock_engine);
size_t tdc_bytes_to_free();
void tc_keep_memory_limit();

int show_tc_memory_used(THD *thd, SHOW_VAR *var, void *buff,
                        system_status_var *, enum enum_var_type scope);
int show_tc_memory_tables(THD *thd, SHOW_VAR *var, void *buff,
                          system_status_var *, enum enum_var_type scope);
int show_tc_memory_definitions(THD *thd, SHOW_VAR *var, void *buff,
                               system_status_var *, enum enum_var_type scope);
int show_tc_memory_innodb(THD *thd, SHOW_VAR *var, void *buff,
                          system_status_var *, enum enum_var_type scope);

#endif /* TABLE_CACHE_MEMORY_LIMIT_INCLUDED */
