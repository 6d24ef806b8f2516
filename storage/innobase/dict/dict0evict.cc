/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/innobase/dict/dict0dict.cc:
   Copyright (c) 1996, 2016, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2012, Facebook Inc.
   Copyright (c) 2013, 2023, MariaDB Corporation. */

/**************************************************//**
@file dict/dict0evict.cc
Eviction of table definitions in slices

The data dictionary cache may have more tables than table_definition_cache
allows, until the master task evicts tables that no thread uses.  MariaDB's master
task does that in one go, with dict_sys.latch held exclusively: no thread opens a
table meanwhile, for seconds if there are many.

Here the master task works in slices:

- A run is one call of evict_table_LRU().  It has one or two turns.
- A turn is one walk along dict_sys.table_LRU.  It has any number of slices.
- In a slice the master task holds the latch for SLICE_US, or for one table if that
  takes longer.  Then it pauses for as long.

If the cache has at least twice as many tables as allowed, a slice is up to
MAX_LONGER times as long and the pause is HAND_OVER_US.  The pause gives a woken
waiter time to get the latch; without it the master task would take it again first.

A slice only evicts: it acquires the latch with lock_cache().  So threads that
prepare a table without the latch (dict0preload.cc) go on with the rows that they
have read.  It frees the memory of tables when it has released the latch (mem_later_t): free()
may wait for an arena of the heap.

How a slice finds its place
---------------------------
A thread adds a table at the head of dict_sys.table_LRU, and the table keeps its
place until a thread removes it.  (With table_cache_memory, a table in use may move
to the head: see 5.)  Eviction goes from the tail to the head.

When a slice ends, it notes the next PLACES tables on its way, by address and id.
The next slice continues from the first of these that is still in table_LRU.  The
noted tables before that one have left the list, so they need no visit.  All other
tables keep their places.  So a turn visits no table twice, and leaves none out.

Between slices another thread may

1. remove a noted table (DROP): the slice does not find the id;
2. move it to table_non_LRU (prevent_eviction()): can_be_evicted is false;
3. remove it and load it again: it is another object.  If that object happens to
   have the same address, it is near the head, like all tables loaded since: this
   turn ends early, and the next one starts from the tail;
4. remove all noted tables: this turn ends, too;
5. move it to the head (dict_memory_evict()): as 3.

The slice has no reference to the noted tables, so a thread can drop them.  The code
that removes tables need not know about slices.

The order of eviction
---------------------
In its first turn a run evicts only tables that only scans have used, such as a dump
(tc_is_scan() in table_cache_scan.cc).  dict_table_t::used, set by ha_note_use.h, is
false for these.  In its second turn it evicts all.  Tables that InnoDB itself uses,
without a handler, count as used: those of the persistent statistics, and the
auxiliary tables of a FULLTEXT INDEX.

The end of a run
----------------
When half of RUN_US has passed, the first turn ends, and the second one begins.  A run
ends if

1. its last turn has visited the tables that were in the list when the turn began (or
   half of them, if the caller says so);
2. table_LRU is not longer than table_definition_cache.  This is the present length,
   so it includes tables that other threads load meanwhile;
3. RUN_US has passed: the master task must write the log every second;
4. the server shuts down.

The next run evicts the rest.
*******************************************************/

#include "dict0dict.h"
#include "ha_prototypes.h"
#include "mem0stock.h"
#include "my_return_memory.h"
#include "mysqld.h"
#include "srv0srv.h"
#include "srv0start.h"
#ifdef ENABLED_DEBUG_SYNC
#include "debug_sync.h"
extern void *thd_attach_thd(THD*);
extern void thd_detach_thd(void*);
#endif
#include <chrono>
#include <thread>

bool dict_table_can_be_evicted(dict_table_t *table);

namespace
{

/** Length of a slice, and of the pause after it, in microseconds */
constexpr ulonglong SLICE_US= 200;
/** A slice may be so many times as long if the limit is exceeded by far */
constexpr ulint MAX_LONGER= 4;
/** The pause after such a slice, in microseconds */
constexpr ulonglong HAND_OVER_US= 50;
/** Length of a run at most, pauses included, in microseconds */
constexpr ulonglong RUN_US= 500000;
/** Number of tables ahead that a slice notes */
constexpr size_t PLACES= 8;

/** The place where a slice has ended */
class evict_place
{
  struct { const dict_table_t *table; table_id_t id; } ahead[PLACES];
  size_t n= 0;

public:
  /** Note a table and those ahead of it.
  @param table  the next one to visit */
  void note(dict_table_t *table) noexcept
  {
    ut_ad(dict_sys.locked());
    for (n= 0; table && n < PLACES; table= UT_LIST_GET_PREV(table_LRU, table))
      ahead[n++]= {table, table->id};
  }

  /** @return the table to go on from, or nullptr if no noted one is left */
  dict_table_t *find() const noexcept
  {
    ut_ad(dict_sys.locked());
    for (size_t i= 0; i < n; i++)
      if (dict_table_t *table= dict_sys.find_table(ahead[i].id))
        if (table == ahead[i].table && table->can_be_evicted)
          return table;
    return nullptr;
  }
};

/** @return whether a table counts as used by statements that are not scans */
bool is_used(const dict_table_t &table) noexcept
{
  if (table.used)
    return true;
  const char *name= strchr(table.name.m_name, '/');
  return table.is_stats_table() || (name && !strncmp(name, "/FTS_", 5));
}

/** @return about as many bytes as an eviction of a table frees */
size_t heap_bytes(const dict_table_t &table) noexcept
{
  size_t bytes= mem_heap_get_size(table.heap);
  for (const dict_index_t *index= UT_LIST_GET_FIRST(table.indexes); index;
       index= UT_LIST_GET_NEXT(indexes, index))
    bytes+= mem_heap_get_size(index->heap);
  return bytes;
}

/** Let other threads have the latch for a while.
@param us  for how long, in microseconds */
void let_others(ulonglong us) noexcept
{
#ifdef ENABLED_DEBUG_SYNC
  DBUG_EXECUTE_IF("dict_evict_between_slices",
                  THD *thd= innobase_create_background_thd("InnoDB eviction");
                  void *ctx= thd_attach_thd(thd);
                  debug_sync_set_action(thd, STRING_WITH_LEN
                                        ("now SIGNAL evict_paused "
                                         "WAIT_FOR evict_go"));
                  thd_detach_thd(ctx);
                  set_current_thd(nullptr);
                  destroy_background_thd(thd););
#endif
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

} // namespace

/** @return the number of tables that may stay in the cache:
@@table_definition_cache.  Read without a lock: a change takes effect in the next
run. */
ulint dict_max_definitions() noexcept
{
  DBUG_EXECUTE_IF("dict_evict_few", return 10;);
#ifdef MYSQL_DYNAMIC_PLUGIN
  return 400;
#else
  extern ulong tdc_size;        /* table_definition_cache */
  return tdc_size;
#endif
}

/** Evict unused, unlocked tables from table_LRU.
@param half whether to consider half the tables only (instead of all)
@return number of tables evicted */
ulint dict_sys_t::evict_table_LRU(bool half) noexcept
{
  const ulint max_tables= dict_max_definitions();
  /* Mostly there is nothing to do, and no reason to stop other threads. But if a thread
  hangs that has the latch exclusively, this one may be the only one that notices:
  see wait_t */
  bool fits;
  {
    const wait_t wait;
    freeze(SRW_LOCK_CALL);
    fits= UT_LIST_GET_LEN(table_LRU) <= max_tables;
    unfreeze();
  }
  if (fits || DBUG_IF("dict_evict_off"))
    return 0;

  ulint n_evicted= 0;
  size_t freed= 0;
  mem_later_t later;
  evict_place place;
  const ulonglong begin= microsecond_interval_timer();

  lock_cache(SRW_LOCK_CALL);
  ulonglong slice_begin= microsecond_interval_timer();
  for (bool used : {false, true})
  {
    ulint to_visit= UT_LIST_GET_LEN(table_LRU);
    /* Tables that a scan has loaded are at the head.  So the first turn walks the
    whole list; skipping a table is cheap. */
    if (half && used)
      to_visit-= to_visit / 2;

    for (dict_table_t *table= UT_LIST_GET_LAST(table_LRU);
         table && to_visit && UT_LIST_GET_LEN(table_LRU) > max_tables;
         to_visit--)
    {
      dict_table_t *const next= UT_LIST_GET_PREV(table_LRU, table);

      if ((used || !is_used(*table)) && dict_table_can_be_evicted(table))
      {
        freed+= heap_bytes(*table);
        remove(table, true);
        n_evicted++;
      }
      table= next;

      const ulonglong now= microsecond_interval_timer();
      /* Threads that load tables queue for the latch like this one.  The more
      the limit is exceeded, the longer is the slice, so that this thread evicts
      faster than they load. */
      const ulint excess= UT_LIST_GET_LEN(table_LRU) / std::max(max_tables,
                                                                ulint{1});
      if (now - slice_begin < SLICE_US * std::min(std::max(excess, ulint{1}),
                                                  MAX_LONGER) &&
          !DBUG_IF("dict_evict_between_slices"))
        continue;
      place.note(table);
      unlock_cache();
      later.free_all();
      if (freed)
        my_return_more_memory(freed);
      freed= 0;
      if (now - begin >= RUN_US || srv_shutdown_state != SRV_SHUTDOWN_NONE)
        return n_evicted;
      let_others(excess < 2 ? SLICE_US : HAND_OVER_US);
      lock_cache(SRW_LOCK_CALL);
      slice_begin= microsecond_interval_timer();
      /* The first turn may take at most half of the time */
      table= used || now - begin < RUN_US / 2 ? place.find() : nullptr;
    }
  }

  unlock_cache();
  later.free_all();
  if (freed)
    my_return_more_memory(freed);
  return n_evicted;
}
