/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/table_cache.cc:
   Copyright (c) 2000, 2012, Oracle and/or its affiliates.
   Copyright (c) 2010, 2022, MariaDB Corporation.
   Copyright (C) 2013 Sergey Vojtovich and MariaDB Foundation */

/**
  @file
  The table cache (tc_*): the TABLEs that are open, used or free.

  table_cache_core.h keeps the free TABLEs, and explains how. This file connects
  the core with TABLEs and THDs. It opens no TABLE, and closes those that are
  evicted. table_cache_scan.cc says which statements do not count as users, and
  table_def_cache.cc has the shares, and lists the locks of both caches.

  The life of a TABLE
  -------------------
  A TABLE is in the all_tables list of its share's element from tc_add_table()
  until a thread closes it. It is used if it has a user (TABLE::in_use). It is
  free, with in_use == NULL, if it is in a list of the share's part in the core.
  in_use and that list change together, under the part's mutex.

  A thread writes all_tables only when it opens or closes a TABLE, never when it
  acquires or releases one. The deadlock detector walks all_tables without a
  mutex. While it does so, all_tables_refs is not zero, and a thread that opens
  or closes a TABLE waits for COND_release. The detector walks only flushed
  shares, and all TABLEs of a flushed share have a user:

  1. The thread that sets 'flushed' purges the free TABLEs under the same
     LOCK_table_share.
  2. A TABLE that a thread releases afterwards keeps its user and is closed
     (Table_cache_core::release()).
  3. A TABLE that is evicted gets the evicting thread as its user when it leaves
     that list. That thread outlives the TABLE, since it waits for the detector
     before it unlinks the TABLE. At shutdown the thread has no THD, but then no
     thread waits for a flush.

  A thread holds no mutex while it closes TABLEs.
*/

#include "mariadb.h"
#include "sql_base.h"
#include "debug_sync.h"
#include "my_return_memory.h"
#include "table_cache_tables.h"


/** @@table_open_cache: how many TABLEs may be open, unless more are in use. */
ulong tc_size;
/** @@table_open_cache_instances: only start-up uses it, to ask for descriptors. */
uint32 tc_instances;

Table_cache tc;
static const Table_cache_limit tc_limit;
/** Microseconds of microsecond_interval_timer(), like THD::start_utime. */
static Table_cache_clock tc_clock;


/* ------------------------------------------------------------ the TABLEs */

/** Close a TABLE that is in no list any more. */

static void close_table(TABLE *table)
{
  TABLE_SHARE *share= table->s;
  DBUG_ASSERT(table->file);
  delete table->triggers;
  tc_give_record(table);
  closefrm(table);
  my_free(table);
  tdc_release_share(share);
}


void tc_close_tables(Table_list *list)
{
  while (TABLE *table= list->pop_front())
    close_table(table);
}


/**
  Wait until no deadlock detector walks all_tables.

  None can begin to walk it while the caller goes on to hold LOCK_table_share.
*/

void tc_wait_for_detectors(TDC_element *element)
{
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  while (element->all_tables_refs)
    mysql_cond_wait(&element->COND_release, &element->LOCK_table_share);
}


/** Close a TABLE that has a user and is not counted any more. */

static void remove_table(TABLE *table, bool evicted)
{
  TDC_element *element= table->s->tdc;

  mysql_mutex_lock(&element->LOCK_table_share);
  tc_wait_for_detectors(element);
  element->all_tables.remove(table);
  element->open_tables--;
  element->evictions+= evicted;
  mysql_mutex_unlock(&element->LOCK_table_share);

  close_table(table);
}


/**
  Take all free TABLEs from a share.

  The caller holds LOCK_table_share. The TABLEs leave the core and all_tables.
  The caller closes them when it has unlocked.
*/

void tc_take_free_tables(TDC_element *element, Table_list *out)
{
  Table_list list;
  tc_wait_for_detectors(element);
  tc.purge(free_lists(element), &list);
  while (TABLE *table= list.pop_front())
  {
    element->all_tables.remove(table);
    element->open_tables--;
    out->push_front(table);
  }
}


/** Close a TABLE that the core has evicted for this thread. @return its bytes */

size_t tc_close_evicted(THD *thd __attribute__((unused)), TABLE *table)
{
  const size_t bytes= Cached_table::weight(table);
  DEBUG_SYNC_C_IF_THD(thd, "tc_evicted_table");
  remove_table(table, true);
  return bytes;
}


/** Whatever the limits are, the oldest may go. */

struct No_table_needed
{
  bool exceeded(ulong count) const { return count != 0; }
};


/**
  Close TABLEs that are not in use, those first that were released longest ago.

  The caller holds no lock.

  @param count  how many at most
  @return how many it has closed; less than count only if no TABLE was free
*/

uint tc_evict_unused(THD *thd, uint count)
{
  uint closed= 0;
  Table_list list;
  while (closed < count &&
         tc.evict(thd, No_table_needed(), MY_MIN(count - closed, 4), &list))
  {
    while (TABLE *table= list.pop_front())
    {
      tc_close_evicted(thd, table);
      closed++;
    }
  }
  return closed;
}


/** Number of TABLEs in the cache, used and free. */

uint tc_records()
{
  return (uint) tc.records();
}


/** Take all free TABLEs from a share, for tc_purge(). */

static my_bool purge_share(void *arg, void *list)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  mysql_mutex_lock(&element->LOCK_table_share);
  tc_take_free_tables(element, static_cast<Table_list*>(list));
  element->no_triggers= false;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return FALSE;
}


/**
  Close all free TABLEs. The definitions stay.

  FLUSH TABLES calls this, and so does the manager thread (@@flush_time), which
  has no THD.
*/

void tc_purge()
{
  Table_list list;
  tc_begin_purge();
  tdc_iterate(0, purge_share, &list);
  THD *thd= current_thd;
  while (TABLE *table= list.pop_front())
  {
    const size_t bytes= Cached_table::weight(table);
    close_table(table);
    /* Do not wait: a statement may wait until a TABLE of the list is closed */
    if (thd)
      my_return_slice(bytes, FALSE);
  }
}


/**
  A statement has set @@table_open_cache: evict until the cache is within the
  new limit, or no TABLE is free. At shutdown there is no THD.

  Other threads evict one TABLE for each that they open, or that they release
  after this function found it used. So only the statement that sets the new
  limit pays for it. It evicts no more TABLEs than there are when it begins:
  with a low table_cache_memory, other threads could open TABLEs as fast as this
  one evicts them. KILL does not end it, because the cache would stay above the
  limit.

  Threads that open tables compete for the mutex of the order, so this function
  takes several TABLEs each time that it gets the mutex. A thread that flushes
  one of them waits until all of these are closed.
*/

void tc_trim()
{
  THD *thd= current_thd;
  Table_list list;
  uint left= tc_records();
  while (left && tc.evict(thd, tc_limit, MY_MIN(left, 32), &list))
  {
    size_t bytes= 0;
    while (TABLE *table= list.pop_front())
    {
      bytes+= tc_close_evicted(thd, table);
      left--;
    }
    if (thd)
      my_return_slice(bytes, TRUE);
  }
  if (thd)
    my_return_memory();
}


/**
  Add a TABLE that the caller has opened, and uses.

  @param scan  when the TABLE is released, let it be the first to be evicted

  No thread can acquire or evict the TABLE before the caller releases it.

  1. While the function holds LOCK_table_share, it adds the TABLE to all_tables.
  2. While it holds no lock, it evicts another TABLE if there are too many now,
     and makes room if table_cache_memory is exceeded.
*/

void tc_add_table(THD *thd, TABLE *table, bool scan)
{
  TDC_element *element= table->s->tdc;
  DBUG_ASSERT(table->in_use == thd);

  tc_weigh_new(thd, table);
  Cached_table::flags(table)= Cached_table::WEIGH |
    (scan ? Cached_table::SCAN | Cached_table::SCAN_OPENED : 0);
  mysql_mutex_lock(&element->LOCK_table_share);
  tc_wait_for_detectors(element);
  element->all_tables.push_front(table);
  element->open_tables++;
  mysql_mutex_unlock(&element->LOCK_table_share);

  bool room;
  TABLE *victim= tc.add(table, tc_clock.at(thd->start_utime), tc_limit,
                        &room);
  if (!room)
    status_var_increment(thd->status_var.table_open_cache_overflows);
  if (victim)
    tc_close_evicted(thd, victim);
  tc_make_room_for(thd, Cached_table::weight(table), true);
}


/**
  Acquire a free TABLE.

  @param element  the caller makes sure that no thread removes it
  @param scan     TC_SCAN: if the TABLE has the stamp EVICT_FIRST, its release
                  sets that stamp again. TC_SCAN_AND_HOLD: likewise, but see
                  tc_scan_leaves_last(). TC_NO_USE: the TABLE keeps its place in
                  the order of eviction, and its share's counters do not change

  The TABLE may have no second record buffer: see tc_take_record().

  @return NULL if no TABLE is free, or the caller leaves the last one to others
*/

TABLE *tc_acquire_table(THD *thd, TDC_element *element, Tc_scan scan)
{
  if (unlikely(scan == TC_SCAN_AND_HOLD) && tc_scan_leaves_last(element))
    return NULL;
  TABLE *table= tc.acquire(free_lists(element), thd, scan != TC_NO_USE);
  if (table)
  {
    if (unlikely(scan))
    {
      if (scan == TC_NO_USE)
        Cached_table::flags(table)= Cached_table::NO_USE;
      else if (Cached_table::stamp(table) == Table_cache::EVICT_FIRST)
        Cached_table::flags(table)= Cached_table::SCAN;
    }
    else if (unlikely(element->only_scanned))
      element->only_scanned= false;
    /* The TABLE works, and is not tied to a MERGE table. */
    DBUG_ASSERT(table->db_stat && table->file);
    DBUG_ASSERT(!table->file->extra(HA_EXTRA_IS_ATTACHED_CHILDREN));
  }
  return table;
}


/**
  Mark a TABLE that the caller has opened for later users: a plugin opens the
  tables that were in use before a restart.

  Until a statement has used the TABLE, the server evicts it after the TABLEs of
  scans, but before all TABLEs that a statement has used, and before those that
  were opened ahead earlier. TC_share_info::ever_used does not count it as used.
*/

void tc_opened_ahead(TABLE *table)
{
  DBUG_ASSERT(table->in_use);
  Cached_table::flags(table)= Cached_table::AHEAD | Cached_table::WEIGH;
}

const char tc_dump_state_started[]= "Initialized",
           tc_dump_state_waiting[]= "Waiting to dump or load the table cache",
           tc_dump_state_loading[]= "Loading the table cache";


/**
  See tc_release_table(). The compiler makes two functions of this, so a TABLE
  without triggers takes no step more because others have some.
*/

template <bool has_triggers>
static inline void release_table(THD *thd, TABLE *table)
{
  ulonglong stamp= tc_clock.at(thd->start_utime);
  size_t grown= 0;
  uchar &flags= Cached_table::flags(table);
  if (unlikely(flags))
  {
    if (flags & Cached_table::NO_USE)
      stamp= Cached_table::stamp(table);
    else if (flags & (Cached_table::SCAN | Cached_table::AHEAD))
    {
      stamp= Table_cache::OPENED_AHEAD;
      if (flags & Cached_table::SCAN)
        stamp= Table_cache::EVICT_FIRST;
      /* The statement may have left such a number there: it is no stamp. */
      Cached_table::set_stamp(table, 0);
    }
    /* ALTER TABLE ... PARTITION closes the handler before it gets here. */
    if (flags & Cached_table::WEIGH && !table->needs_reopen())
      grown= tc_weigh_again(table);
    if (flags & Cached_table::SCAN_OPENED)
      tc_count_scan_open(table->s->tdc);
    flags= 0;
  }
  if (unlikely(table->needs_reopen()))
  {
    tc.forget(table);
    remove_table(table, false);
    return;
  }
  TABLE *to_close= tc.release<has_triggers>(table, stamp, tc_limit);
  if (unlikely(to_close != NULL))
  {
    if (to_close == table && table->s->tdc->flushed)
      remove_table(table, false);
    else
      tc_close_evicted(thd, to_close);
  }
  if (unlikely(grown))
    tc_make_room_for(thd, grown, false);
}


/**
  Release a TABLE that the caller uses.

  1. If the TABLE cannot be used again, or its share has been flushed, the
     function closes it.
  2. Otherwise the TABLE is free, and other threads may acquire or evict it
     before the function returns. It evicts one TABLE if the limit is exceeded,
     and makes room if the TABLE has grown.

  The thread holds no lock while it closes or evicts a TABLE.
*/

void tc_release_table(TABLE *table)
{
  THD *thd= table->in_use;
  DBUG_ENTER("tc_release_table");
  DBUG_ASSERT(thd);
  DBUG_ASSERT(table->file);
  DBUG_ASSERT(!table->pos_in_locked_tables);

  DEBUG_SYNC(thd, "tc_release_table");
  if (likely(!table->triggers))
  {
    tc_give_record(table);
    release_table<false>(thd, table);
  }
  else
    release_table<true>(thd, table);
  DBUG_VOID_RETURN;
}


/**
  Get the state and the counters of a share.

  @pre The caller holds LOCK_table_share. The function does not lock the core, so
  it delays no hit, only threads that open or close a TABLE of this share. If
  other threads use the share, it may read the counters at different times.
*/

void tc_get_share_info(TDC_element *element, TC_share_info *info)
{
  const TABLE_cache_share *part= free_lists(element);
  const ulonglong last_release=
    part->last_release.load(std::memory_order_relaxed);
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  info->open= element->open_tables;
  info->misses= element->misses;
  info->scan_opens= element->scan_opens;
  info->only_scanned= element->only_scanned;
  info->evictions= element->evictions;
  info->definition_bytes= element->bytes.load(std::memory_order_relaxed);
  info->table_bytes= 0;
  All_share_tables_list::Iterator it(element->all_tables);
  while (TABLE *table= it++)
    info->table_bytes+= Cached_table::weight(table);
  info->hits= part->hits.load(std::memory_order_relaxed);
  info->free= part->elements.load(std::memory_order_relaxed);
  set_if_smaller(info->free, info->open);
  info->in_use= info->open - info->free;
  info->ever_used= last_release != 0;
  info->idle_seconds= 0;
  const ulonglong now= microsecond_interval_timer();
  if (!info->in_use && last_release && last_release < now)
    info->idle_seconds= (now - last_release) / 1000000;
}


/* ------------------------------------- for the table definition cache */

void tc_init(PSI_mutex_key order_key)
{
  uint cpus= MY_MAX(my_getncpus(), 1);
  DBUG_EXECUTE_IF("table_cache_4_cpus", cpus= 4;);
  tc.init(cpus, order_key);
}


void tc_deinit()
{
  DBUG_ASSERT(!tc_memory.tables);
  tc_free_records();
  tc.destroy();
}


/* --------------------------------------------------- status variables */

int show_tc_active_instances(THD *, SHOW_VAR *var, void *buff,
                             system_status_var *, enum enum_var_type)
{
  var->type= SHOW_UINT;
  var->value= buff;
  *static_cast<uint*>(buff)= 1;
  return 0;
}


/*
  This counter is global, not per session: STATUS_VAR has no room for it. It is
  a part of THD, whose layout engines and plugins know.
*/

int show_tc_evictions(THD *, SHOW_VAR *var, void *buff, system_status_var *,
                      enum enum_var_type)
{
  var->type= SHOW_LONGLONG;
  var->value= buff;
  *static_cast<ulonglong*>(buff)= tc.evictions();
  return 0;
}
