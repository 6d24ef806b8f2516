/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table cache (tc_*): the TABLEs that are open, used or free.

  table_cache_core.h keeps the free TABLEs, and explains how. This file connects
  the core with TABLEs and THDs. It opens no TABLE, and closes those that are
  evicted. table_def_cache.cc has the shares, and lists the locks of both
  caches.

  The life of a TABLE
  -------------------
  A TABLE is in the all_tables list of its share's element from tc_add_table()
  until it is closed. It is in the used half if it has a user (TABLE::in_use).
  It is in the free half, with in_use == NULL, if it is in the core's lists.
  in_use and the lists change together, under the mutex of a shard.

  A thread writes all_tables only when it opens or closes a TABLE, never when it
  acquires or releases one. The deadlock detector walks all_tables without a
  mutex. While it does so, all_tables_refs is not zero, and a thread that opens
  or closes a TABLE waits for COND_release. The detector walks only flushed
  shares, and all TABLEs of a flushed share have a user:

  1. The thread that sets 'flushed' purges the free TABLEs under the same
     LOCK_table_share.
  2. A TABLE that a thread releases afterwards keeps its user and is closed
     (see "Flush" in table_cache_core.h).
  3. A TABLE that is evicted gets the evicting thread as its user when it leaves
     the free half. That thread outlives the TABLE, since it waits for the
     detector before it unlinks the TABLE.

  A thread holds no mutex while it closes TABLEs.

  Fields of TABLE
  ---------------
  The table cache uses fields that TABLE has anyway. So TABLE has the size that
  MariaDB gives it, and acquire and release write only to its first two cache
  lines. These fields belong to the table cache:

  1. While a TABLE is free:
     - next and prev: links of the share's free list;
     - global_free_next and global_free_prev: links of the LRU list;
     - instance: the shard;
     - insert_values: the stamp. TABLE::init() sets it to NULL whenever a
       statement starts to use the TABLE.
  2. While a TABLE is used:
     - instance: the flags SCAN, SCAN_OPENED and AHEAD.

  Scans
  -----
  A statement that says of itself that it will not come back to its tables is a
  scan. Only tc_is_scan() knows which statements are scans.

  1. A scan opens a TABLE: the TABLE is the first to be evicted when the scan
     releases it, and stays that while only scans use it.
  2. A scan finds an ordinary TABLE in the cache: the TABLE stays ordinary.
  3. Only scans have used a table (TDC_element::only_scanned): its definition is
     evicted before those of other tables, too, and so is InnoDB's definition of
     it (dict0evict.cc).
  4. LOCK TABLES is a scan as long as only scans use the tables that it has
     locked. So mariadb-dump, which locks a database before it reads it, is a
     scan. LOCK TABLES holds its tables for long. If its lock is not exclusive,
     it leaves the last free TABLE of a share to the other users, and opens one
     for itself. Otherwise a dump would force other users to open each of their
     tables again.
*/

#include "mariadb.h"
#include "table.h"
#include "sql_base.h"
#include "sql_show.h"
#include "sql_trigger.h"
#include "debug_sync.h"
#include "table_cache_core.h"
#include "table_cache_parts.h"


/** @@table_open_cache: how many TABLEs may be open, unless more are in use. */
ulong tc_size;
/** @@table_open_cache_instances: upper bound of shards. */
uint32 tc_instances;

#ifdef HAVE_PSI_INTERFACE
static PSI_mutex_key key_LOCK_table_cache;
static PSI_mutex_info tc_mutexes[]=
{
  { &key_LOCK_table_cache, "LOCK_table_cache", 0 }
};
#else
static const PSI_mutex_key key_LOCK_table_cache= 0;
#endif


/** A share's free TABLEs; linked through TABLE::next and TABLE::prev. */
typedef Table_cache_share<TABLE, TABLE_share> TABLE_cache_share;

/** The memory for it is part of the element, see TDC_element. */
static inline TABLE_cache_share *free_half(TDC_element *element)
{
  static_assert(sizeof(TDC_element) % alignof(TABLE_cache_share) == 0, "");
  return reinterpret_cast<TABLE_cache_share*>(element + 1);
}


/** TABLEs, as the core sees them. TABLE knows this struct as a friend. */

struct Table_cache_instance: public Table_cache_machine
{
  typedef TABLE Object;
  typedef THD User;
  typedef TABLE_share Share_links;

  struct Lru_links
  {
    static TABLE **next_ptr(TABLE *table) { return &table->global_free_next; }
    static TABLE ***prev_ptr(TABLE *table) { return &table->global_free_prev; }
  };

  /**
    Flags in TABLE::instance of a used TABLE. SCAN: release it as EVICT_FIRST.
    SCAN_OPENED, with SCAN: the user has opened it, and it is not counted in
    scan_opens yet. AHEAD: release it as OLDEST. In debug builds,
    TABLE::instance of a free TABLE is its shard.
  */
  static constexpr uint32 SCAN= 1U << 31, SCAN_OPENED= 1U << 30, AHEAD= 1U << 29;

  static TABLE_cache_share *share(TABLE *table)
  { return free_half(table->s->tdc); }
#if SIZEOF_CHARP >= 8
  static ulonglong stamp(const TABLE *table)
  { return reinterpret_cast<ulonglong>(table->insert_values); }
  static void set_stamp(TABLE *table, ulonglong stamp)
  { table->insert_values= reinterpret_cast<uchar*>(stamp); }
#else
  /* A pointer has no room for a stamp. TABLE::init() sets this to 0, too. */
  static ulonglong stamp(const TABLE *table)
  { return table->opt_range_condition_rows; }
  static void set_stamp(TABLE *table, ulonglong stamp)
  { table->opt_range_condition_rows= stamp; }
#endif
  static uint32 &place(TABLE *table) { return table->instance; }
  static THD *user(TABLE *table) { return table->in_use; }
  static void set_user(TABLE *table, THD *thd) { table->in_use= thd; }

#ifndef DBUG_OFF
  /** Tests say on which CPU a statement runs. */
  static uint cpu()
  {
    DBUG_EXECUTE_IF("table_cache_cpu_1", return 1;);
    DBUG_EXECUTE_IF("table_cache_cpu_2", return 2;);
    return Table_cache_machine::cpu();
  }
#endif
};

/** @@table_open_cache, read in the order that the core asks for. */

struct Table_cache_limit
{
  operator ulong() const
  {
    static_assert(sizeof(std::atomic<ulong>) == sizeof(tc_size), "");
    return reinterpret_cast<const std::atomic<ulong>*>(&tc_size)->load();
  }
};

typedef Table_cache_core<Table_cache_instance> Table_cache;

static Table_cache tc;
static const Table_cache_limit tc_limit;

/** The clock when the cache was made, in its own unit and in nanoseconds. */
static ulonglong tc_start_clock, tc_start_nanoseconds;


/* ------------------------------------------------------------ the TABLEs */

/** Close a TABLE that is in no list any more. */

static void close_table(TABLE *table)
{
  TABLE_SHARE *share= table->s;
  DBUG_ASSERT(table->file);
  delete table->triggers;
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
  Make sure that no deadlock detector walks all_tables.

  While the caller keeps LOCK_table_share from then on, none can begin to.
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

  The caller holds LOCK_table_share. The TABLEs leave the free half and
  all_tables. The caller closes them when it has unlocked.
*/

void tc_take_free_tables(TDC_element *element, Table_list *out)
{
  Table_list list;
  tc_wait_for_detectors(element);
  tc.purge(free_half(element), element->flushed, &list);
  while (TABLE *table= list.pop_front())
  {
    element->all_tables.remove(table);
    element->open_tables--;
    out->push_front(table);
  }
}


/**
  Evict a TABLE if the limit is exceeded.

  @return false if the limit is not exceeded, or no TABLE is free
*/

static bool evict_table(THD *thd)
{
  DBUG_ASSERT(thd);
  TABLE *table= tc.evict(thd, tc_limit);
  if (!table)
    return false;
  DEBUG_SYNC(thd, "tc_evicted_table");
  remove_table(table, true);
  return true;
}


/** Number of TABLEs in the cache, used and free. */

uint tc_records()
{
  return (uint) tc.records();
}


/**
  Close all free TABLEs.

  The definitions stay. Called by FLUSH TABLES and by the manager thread
  (@@flush_time), which has no THD.
*/

/* How often tc_purge() was called; see tc_load_triggers() */
static std::atomic<uint> tc_purges;

static my_bool purge_share(void *arg, void *list)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  mysql_mutex_lock(&element->LOCK_table_share);
  tc_take_free_tables(element, static_cast<Table_list*>(list));
  element->no_triggers= false;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return FALSE;
}


void tc_purge()
{
  Table_list list;
  tc_purges++;
  tdc_iterate(0, purge_share, &list);
  tc_close_tables(&list);
}


/**
  @@table_open_cache has been set: evict until the new limit is kept, or no
  TABLE is free.

  Other threads evict one TABLE for each that they open or release meanwhile. So
  only the statement that sets the new limit pays for it.
*/

void tc_trim()
{
  /* Either this thread sees what others release just now, or they see the new
     limit; see "The count" in table_cache_core.h. */
  std::atomic_thread_fence(std::memory_order_seq_cst);
  THD *thd= current_thd;
  while (evict_table(thd)) {}
}


/**
  Does the statement say of itself that it will not come back to this table?

  Then the server evicts first the tables that the statement opens: a user who
  dumps or checks all tables, or reads the schema, does not disturb the users
  who work with some of them. The server opens a view's tables for the same
  purpose as the view, and the children of a MERGE table for the same purpose as
  the MERGE table.
*/

Tc_scan tc_is_scan(THD *thd, const TABLE_LIST *tl)
{
  const LEX *lex= thd->lex;
  switch (lex->sql_command) {
  case SQLCOM_SELECT:
    /*
      mariadb-dump and mydumper write SQL_NO_CACHE. So do applications, which
      come back, but their SELECTs have a condition or a limit.
    */
    if (lex->sql_cache == LEX::SQL_NO_CACHE &&
        !lex->first_select_lex()->where &&
        !lex->first_select_lex()->limit_params.explicit_limit)
      return TC_SCAN;
    break;
  case SQLCOM_CHECK:
  case SQLCOM_CHECKSUM:
  case SQLCOM_ANALYZE:
  case SQLCOM_OPTIMIZE:
  case SQLCOM_REPAIR:
  case SQLCOM_SHOW_CREATE:
  case SQLCOM_SHOW_FIELDS:
  case SQLCOM_SHOW_KEYS:
  case SQLCOM_SHOW_TRIGGERS:
    return TC_SCAN;
  case SQLCOM_LOCK_TABLES:              /* see tc_use_locked_table() */
    return tl->lock_type < TL_FIRST_WRITE ? TC_SCAN_AND_HOLD : TC_SCAN;
  case SQLCOM_FLUSH:
    if (lex->type & REFRESH_FOR_EXPORT)
      return TC_SCAN_AND_HOLD;
    break;
  default:
    break;
  }
  /* A table that is opened to fill one of INFORMATION_SCHEMA */
  while (tl->parent_l)
    tl= tl->parent_l;
  return const_cast<TABLE_LIST*>(tl)->top_table()->i_s_requested_object &
         OPTIMIZE_I_S_TABLE ? TC_SCAN : TC_NO_SCAN;
}


/**
  Load the triggers of a table into a TABLE that has just been opened.

  @return true if that failed (reported)

  The server asks the file system for a file with triggers once in the life of a
  share, not for each TABLE: the answer, as a rule 'no', was 4 % of the cost of
  opening one. The answer may become wrong in two ways:

  1. A statement makes such a file. It has an exclusive metadata lock, and
     removes the share.
  2. A user puts such a file there by hand. As ever, that user has to FLUSH
     TABLES, for TABLEs that are open already. An answer from before a FLUSH
     TABLES is not kept: either this function sees that FLUSH TABLES has begun,
     or FLUSH TABLES finds the answer and clears it.

  While it holds LOCK_table_share, this only notes the answer.
*/

bool tc_load_triggers(THD *thd, TABLE *table)
{
  TABLE_SHARE *share= table->s;
  TDC_element *element= share->tdc;
  if (element->no_triggers && !element->flushed)
    return false;
  const uint purges= tc_purges;
  errno= 0;
  if (Table_triggers_list::check_n_load(thd, &share->db, &share->table_name,
                                        table, false))
    return true;
  if (!table->triggers && errno == ENOENT)
  {
    DEBUG_SYNC(thd, "tc_no_triggers");
    mysql_mutex_lock(&element->LOCK_table_share);
    if (purges == tc_purges)
      element->no_triggers= true;
    mysql_mutex_unlock(&element->LOCK_table_share);
  }
  return false;
}


/**
  Add a TABLE that the caller has opened, and uses.

  @param scan  when the TABLE is released, let it be the first to be evicted

  No thread can acquire or evict the TABLE before the caller releases it.

  With LOCK_table_share held, this adds the TABLE to all_tables. Then, with no
  lock held, it evicts another TABLE if there are too many now.
*/

void tc_add_table(THD *thd, TABLE *table, bool scan)
{
  TDC_element *element= table->s->tdc;
  DBUG_ASSERT(table->in_use == thd);

  if (scan)
    table->instance= Table_cache_instance::SCAN |
                     Table_cache_instance::SCAN_OPENED;
  mysql_mutex_lock(&element->LOCK_table_share);
  tc_wait_for_detectors(element);
  element->all_tables.push_front(table);
  element->open_tables++;
  mysql_mutex_unlock(&element->LOCK_table_share);

  if (tc.add() >= tc_limit)
  {
    status_var_increment(thd->status_var.table_open_cache_overflows);
    evict_table(thd);
  }
}


/** Number of free TABLEs of a share. It is a guess if the share is in use. */

static uint free_tables(TDC_element *element)
{
  uint n= 0;
  tc.read_slots(free_half(element), [&](const TABLE_cache_share::Slot &slot) {
    n+= slot.elements();
  });
  return n;
}


/**
  Whether the process has an eighth of its descriptors left, or less. Files that are
  not opened by mysys, as InnoDB's, are not counted.
*/

static bool few_descriptors_left()
{
  const uint32 opened= my_atomic_load32_explicit(&my_file_opened,
                                                 MY_MEMORY_ORDER_RELAXED);
  return DBUG_IF("table_cache_few_descriptors") ||
    opened >= my_file_limit - my_file_limit / 8;
}


/**
  Acquire a free TABLE.

  @param element  is protected against removal
  @param scan     TC_SCAN: if the TABLE was the first to be evicted, let it be
                  that again when it is released. TC_SCAN_AND_HOLD: do so, too,
                  but leave the last free TABLE, if there is room for another,
                  or if opening another evicts one that a scan has opened, and
                  if that can have descriptors. LOCK TABLES must not fail for
                  a courtesy.

  @return NULL if no TABLE is free, or the last one is left
*/

TABLE *tc_acquire_table(THD *thd, TDC_element *element, Tc_scan scan)
{
  if (unlikely(scan == TC_SCAN_AND_HOLD) && !element->only_scanned &&
      (tc_records() < tc_size || tc.has_evict_first()) &&
      !few_descriptors_left() && free_tables(element) == 1)
    return NULL;
  TABLE *table= tc.acquire(free_half(element), thd);
  if (table)
  {
    if (unlikely(scan))
    {
      if (tc.was_evict_first(table))
        table->instance= Table_cache_instance::SCAN;
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
  A statement under LOCK TABLES uses a TABLE that is locked.

  A TABLE that LOCK TABLES has opened becomes an ordinary one with the first
  statement that uses it and is no scan. Functions and triggers lock the tables
  that they use, and are part of the statement around them.
*/

void tc_use_locked_table(THD *thd, TABLE *table, const TABLE_LIST *tl)
{
  DBUG_ASSERT(table->in_use == thd);
  if (thd->locked_tables_mode == LTM_LOCK_TABLES && !tc_is_scan(thd, tl))
  {
    table->instance= 0;
    table->s->tdc->only_scanned= false;
  }
}


/**
  The caller has opened this TABLE for users who are still to come, such as
  those of before a restart. Until one of them has used it, the server evicts it
  before any TABLE that somebody has used, and before those that were opened
  ahead earlier. TC_share_info::ever_used does not count it as used.
*/

void tc_opened_ahead(TABLE *table)
{
  DBUG_ASSERT(table->in_use);
  table->instance= Table_cache_instance::AHEAD;
}


/** A scan gives back a TABLE that it has opened. */

static void count_scan_open(TDC_element *element)
{
  mysql_mutex_lock(&element->LOCK_table_share);
  element->scan_opens++;
  mysql_mutex_unlock(&element->LOCK_table_share);
}


/**
  Release a TABLE that the caller uses.

  1. If the TABLE cannot be used again, or its share has been flushed, this
     closes it.
  2. Otherwise the TABLE is free, and other threads may acquire or evict it
     before this returns. This evicts one TABLE if the limit is exceeded.

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
  Table_cache::Order order= Table_cache::NEWEST;
  if (unlikely(table->instance & (Table_cache_instance::SCAN |
                                  Table_cache_instance::AHEAD)))
  {
    order= table->instance & Table_cache_instance::SCAN ?
           Table_cache::EVICT_FIRST : Table_cache::OLDEST;
    if (table->instance & Table_cache_instance::SCAN_OPENED)
      count_scan_open(table->s->tdc);
    table->instance= 0;
  }
  if (table->needs_reopen())
  {
    tc.forget();
    remove_table(table, false);
    DBUG_VOID_RETURN;
  }
  switch (tc.release(table, order, table->s->tdc->flushed, tc_limit)) {
  case Table_cache::IS_FREE:
    break;
  case Table_cache::IS_FREE_OVER_LIMIT:
    evict_table(thd);
    break;
  case Table_cache::TO_BE_CLOSED:
    remove_table(table, false);
    break;
  }
  DBUG_VOID_RETURN;
}


/**
  Get what the table cache knows of a share.

  @pre The caller holds LOCK_table_share. The function locks nothing, so a query
  that reads all shares disturbs nobody. While a share is in use, its counters
  may be of different moments.
*/

void tc_get_share_info(TDC_element *element, TC_share_info *info)
{
  ulonglong last_release= 0;
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  info->open= element->open_tables;
  info->misses= element->misses;
  info->scan_opens= element->scan_opens;
  info->only_scanned= element->only_scanned;
  info->evictions= element->evictions;
  info->free= 0;
  info->hits= 0;
  tc.read_slots(free_half(element), [&](const TABLE_cache_share::Slot &slot) {
    info->free+= slot.elements();
    info->hits+= slot.hits.load(std::memory_order_relaxed);
    const ulonglong last= slot.last_release.load(std::memory_order_relaxed);
    set_if_bigger(last_release, last);
  });
  /* A TABLE may move from shard to shard, and be counted twice. */
  set_if_smaller(info->free, info->open);
  info->in_use= info->open - info->free;
  info->ever_used= last_release != 0;
  info->idle_seconds= 0;
  ulonglong now= Table_cache_machine::now();
  if (!info->in_use && last_release && last_release < now)
  {
    /* Compare the clock with another one, to find its unit. */
    double ticks= (double) (now - tc_start_clock);
    double seconds= (double) (my_interval_timer() - tc_start_nanoseconds) / 1e9;
    info->idle_seconds= (ulonglong) ((double) (now - last_release) * seconds /
                                     ticks);
  }
}


/* ------------------------------------- for the table definition cache */

bool tc_init()
{
  uchar map[Table_cache::MAX_CPUS];
  bool one_cpu_each;
#ifdef HAVE_PSI_INTERFACE
  mysql_mutex_register("sql", tc_mutexes, array_elements(tc_mutexes));
#endif
  uint shards= Table_cache_machine::map_cpus(tc_instances, map,
                                             &one_cpu_each);
  DBUG_EXECUTE_IF("table_cache_8_shards",
                  for (uint i= 0; i < Table_cache::MAX_CPUS; i++)
                    map[i]= (uchar) (i % (shards= 8)););
  if (tc.init(shards, map, one_cpu_each, key_LOCK_table_cache))
    return true;
  tc_start_clock= Table_cache_machine::now();
  tc_start_nanoseconds= my_interval_timer();
  return false;
}


void tc_deinit()
{
  tc.destroy();
}


/** How many bytes the table cache needs behind each element. */

size_t tc_part_size()
{
  return Table_cache::share_size(tc.active_shards());
}


/** Initialize the table cache's part of an element whose memory is new. */

void tc_init_part(TDC_element *element)
{
  tc.init_share(free_half(element));
}


/** Reset it: an element without TABLEs starts a new life. */

void tc_reset_part(TDC_element *element)
{
  tc.reset_share(free_half(element));
}


void tc_assert_no_free(TDC_element *element __attribute__((unused)))
{
#ifndef DBUG_OFF
  tc.each_slot(free_half(element), [](const TABLE_cache_share::Slot &slot) {
    DBUG_ASSERT(slot.free.is_empty());
  });
#endif
}


/* --------------------------------------------------- status variables */

int show_tc_active_instances(THD *, SHOW_VAR *var, void *buff,
                             system_status_var *, enum enum_var_type)
{
  var->type= SHOW_UINT;
  var->value= buff;
  *static_cast<uint*>(buff)= tc.active_shards();
  return 0;
}


/*
  There is no room for these in STATUS_VAR: it is a part of THD, whose layout
  engines and plugins know. So each shard counts them, and they are global.
*/

static int show_tc_counter(SHOW_VAR *var, void *buff, ulonglong value)
{
  var->type= SHOW_LONGLONG;
  var->value= buff;
  *static_cast<ulonglong*>(buff)= value;
  return 0;
}


int show_tc_evictions(THD *, SHOW_VAR *var, void *buff, system_status_var *,
                      enum enum_var_type)
{
  return show_tc_counter(var, buff, tc.evictions());
}


int show_tc_remote_hits(THD *, SHOW_VAR *var, void *buff, system_status_var *,
                        enum enum_var_type)
{
  return show_tc_counter(var, buff, tc.remote_hits());
}


#ifndef DBUG_OFF

/* ------------------------------------------------ the check, for debugging */

struct Share_check
{
  ulong open, free;
  const char *wrong;
};


/** Check what must hold for a share while its LOCK_table_share is held. */

static my_bool check_share(void *arg, void *check_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Share_check *check= static_cast<Share_check*>(check_arg);
  uint n= 0;

  mysql_mutex_lock(&element->LOCK_table_share);
  All_share_tables_list::Iterator it(element->all_tables);
  while (TABLE *table= it++)
  {
    if (table->s != element->share)
      check->wrong= "a TABLE is in the list of another share";
    n++;
  }
  if (n != element->open_tables)
    check->wrong= "a share has another number of TABLEs than it says";
  if (n > element->ref_count)
    check->wrong= "a share has more TABLEs than references";
  if (n && !element->share)
    check->wrong= "there are TABLEs without a share";
  check->open+= n;
  tc.each_slot(free_half(element), [&](const TABLE_cache_share::Slot &slot) {
    check->free+= slot.elements();
    if (element->flushed && !slot.free.is_empty())
      check->wrong= "a flushed share has a free TABLE";
  });
  mysql_mutex_unlock(&element->LOCK_table_share);
  return check->wrong != NULL;
}


/**
  Walk through all structures of both caches, and verify what the comments of
  this file and of table_cache_core.h say of them.

  The server need not be at rest. Two facts hold only at rest: the number of
  TABLEs of all shares is the count, and the limit is exceeded only if no TABLE
  is free. The function looks at them again for some seconds: there is an error
  if one of them stays wrong while nobody opens or closes a TABLE.

  @return NULL, or what is wrong
*/

static const char *tc_find_error(THD *thd)
{
  const char *wrong= NULL;
  for (uint tries= 0; tries < 200; tries++)
  {
    if ((wrong= tc.check()))
      return wrong;
    Share_check check= { 0, 0, NULL };
    ulong before= tc.records();
    if (tdc_iterate(thd, check_share, &check, true) && check.wrong)
      return check.wrong;
    if (before != tc.records())
      wrong= NULL;
    else if (check.open != before)
      wrong= "the count of the cache is not the number of TABLEs";
    else if (check.free && before > tc_size)
      wrong= "the limit is exceeded, and there are free TABLEs";
    else
      return NULL;
    my_sleep(10000);
  }
  return wrong;
}


/**
  Debug_table_cache_check: reading this status variable runs the check.

  mysql-test/include/check-testcase.test reads it before and after every test.
*/

int show_tc_check(THD *thd, SHOW_VAR *var, void *buff, system_status_var *,
                  enum enum_var_type)
{
  const char *wrong= tc_find_error(thd);
  if (wrong)
    sql_print_error("Table cache: %s", wrong);
  DBUG_ASSERT(!wrong);
  var->type= SHOW_CHAR;
  var->value= const_cast<char*>(wrong ? wrong : "OK");
  return 0;
}
#endif
