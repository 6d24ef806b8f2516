/* SPDX-License-Identifier: GPL-2.0-only */

/** @file table_cache_memory_limit: see table_cache_memory_limit.h. */

#include "mariadb.h"
#include "sql_base.h"
#include "table_cache_tables.h"
#include "my_return_memory.h"

ulonglong table_cache_memory;
size_t (*tc_innodb_evict)(size_t bytes);


/**
  table_cache_memory alone. Table_cache_limit would let TABLEs stay that take
  less than their part of it (Table_cache_memory_limit::PART).
*/

struct Bytes_limit
{
  bool exceeded(ulong) const { return Table_cache_memory_limit::excess(); }
};


/**
  Close the TABLEs that were released longest ago, while the limit is exceeded.

  @param limit  says which TABLEs may stay: see Table_cache_core
  @param bytes  stop when so many bytes are free
  @return how many bytes it has freed; 0 if the limit is not exceeded, or no
          TABLE is free
*/

template <class Limit>
static size_t evict_bytes(THD *thd, const Limit &limit, size_t bytes)
{
  size_t freed= 0;
  Table_list list;
  /* A few at a time: a thread that flushes one of them waits for all. */
  while (freed < bytes && tc.evict(thd, limit, 4, &list))
  {
    while (TABLE *table= list.pop_front())
      freed+= tc_close_evicted(thd, table);
  }
  return freed;
}


/**
  Make room: see table_cache_memory_limit.h.

  @param bytes            stop when so many bytes are free
  @param may_lock_engine  may this acquire dict_sys.latch? Not while the caller
                          closes a table, which InnoDB may do with locks held
  @param steps            how many definitions this may skip each time

  The caller holds no lock of either cache. This closes TABLEs.

  @return how many bytes it has freed
*/

static size_t make_room(THD *thd, size_t bytes, bool may_lock_engine, uint steps)
{
  size_t freed= 0;
  while (freed < bytes)
  {
    const size_t excess= Table_cache_memory_limit::excess();
    if (!excess)
      break;
    const size_t wanted= MY_MIN(excess, bytes - freed),
                 part= Table_cache_memory_limit::bytes() /
                      Table_cache_memory_limit::PART;
    size_t got= 0;
    if (tc_memory.tables.load(std::memory_order_relaxed) > part)
      got= evict_bytes(thd, Table_cache_limit(), wanted);
    if (!got && tc_memory.definitions.load(std::memory_order_relaxed) > part)
      got= tdc_evict_bytes(wanted, steps);
    if (!got && may_lock_engine && tc_innodb_evict)
      got= tc_innodb_evict(wanted);
    if (!got)
      got= tdc_evict_bytes(wanted, steps);
    if (!got)
      got= evict_bytes(thd, Bytes_limit(), wanted);
    if (!got)
      break;
    freed+= got;
  }
  if (freed)
    my_return_freed_memory(freed);
  return freed;
}


/**
  Make room for so many bytes that the caller has added.

  @param may_lock_engine  see make_room()
*/

void tc_make_room_for(THD *thd, size_t bytes, bool may_lock_engine)
{
  if (unlikely(Table_cache_memory_limit::excess()))
    make_room(thd, Table_cache_memory_limit::BUDGET * bytes, may_lock_engine,
              TDC_EVICT_STEPS);
}


/**
  @return how many bytes of definitions tdc_purge() should free: 0 if the limit is
  not exceeded, or definitions take less than their part of it
*/

size_t tdc_bytes_to_free()
{
  const size_t excess= Table_cache_memory_limit::excess();
  return likely(!excess) ||
         tc_memory.definitions.load(std::memory_order_relaxed) <=
         Table_cache_memory_limit::bytes() / Table_cache_memory_limit::PART ?
         0 : MY_MIN(excess, 65536);
}


/**
  A statement has set @@table_cache_memory: free the bytes by which the new
  limit is exceeded now, as far as objects can go. Other threads make room for
  what they open meanwhile, so this ends even if the limit is very low. A thread
  that is killed leaves the rest to them, too. Statements have used most of the
  definitions again, so this may skip all of them once.
*/

void tc_keep_memory_limit()
{
  static const size_t STEP= 1024 * 1024;
  THD *thd= current_thd;
  size_t left= Table_cache_memory_limit::excess();
  while (left && !thd->killed)
  {
    const size_t freed= make_room(thd, MY_MIN(left, STEP), true,
                                  TDC_EVICT_STEPS + 2 * (uint) tdc_records());
    if (!freed)
      break;
    left-= MY_MIN(left, freed);
  }
  my_return_memory();
}


/* ------------------------------------------------------ status variables */

static int show_bytes(SHOW_VAR *var, void *buff, size_t bytes)
{
  var->type= SHOW_LONGLONG;
  var->value= buff;
  *static_cast<ulonglong*>(buff)= bytes;
  return 0;
}


int show_tc_memory_used(THD *, SHOW_VAR *var, void *buff, system_status_var *,
                        enum enum_var_type)
{
  return show_bytes(var, buff, tc_memory.sum());
}


int show_tc_memory_tables(THD *, SHOW_VAR *var, void *buff,
                          system_status_var *, enum enum_var_type)
{
  return show_bytes(var, buff, tc_memory.tables);
}


int show_tc_memory_definitions(THD *, SHOW_VAR *var, void *buff,
                               system_status_var *, enum enum_var_type)
{
  return show_bytes(var, buff, tc_memory.definitions);
}


int show_tc_memory_innodb(THD *, SHOW_VAR *var, void *buff,
                          system_status_var *, enum enum_var_type)
{
  return show_bytes(var, buff, tc_memory.innodb);
}
