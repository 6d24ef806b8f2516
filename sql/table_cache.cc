/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table definition cache and the table cache.

  The table definition cache (tdc_*) has one TDC_element for every table that
  somebody knows of: a TABLE_SHARE, and what is needed to find, count and flush
  it. The elements are in tdc_hash. The table cache (tc_*) has the TABLEs that
  are open on these shares, used or free; table_cache_core.h tells how the free
  ones are kept. This file connects the core with TABLEs and THDs.

  The life of a share
  -------------------
  - An element without a share is put into tdc_hash by the thread that opens
    the share. Others that find it wait, by looking again and again, until the
    share is there or the element is gone (tdc_acquire_share()).
  - Each TABLE holds a reference, and so does everybody who needs the share for
    a moment. The share stays while there is one.
  - Without any reference, the element is in unused_shares, the one that was
    used last at the end; tdc_purge() frees from the front what is beyond
    table_definition_cache. A share that was flushed is not kept.
  - A share that goes is first detached from its element (element->share= NULL,
    so nobody gets it any more), then those who wait for that are woken, then
    the element leaves the hash (tdc_delete_share()).

  The life of a TABLE
  -------------------
  A TABLE is in the all_tables list of its element from tc_add_table() until
  it is closed. It is in the used half if it has a user, TABLE::in_use, and in
  the free half, with in_use == NULL, if it is in the core's lists. in_use and
  lists change together, under the mutex of a shard.

  all_tables is written only when a TABLE is opened or closed, never by acquire
  or release. The deadlock detector walks it without a mutex: while it does so,
  all_tables_refs is not zero, and who wants to open or close a TABLE waits for
  COND_release. It walks only flushed shares, all TABLEs of which have a user:

  - a free TABLE is purged under LOCK_table_share together with setting
    'flushed', in one go;
  - a TABLE that somebody releases afterwards keeps its user and is closed
    (see "Flush" in table_cache_core.h);
  - a TABLE that is evicted gets the evicting thread as its user when it leaves
    the free half. That thread is not gone before the TABLE is, since it waits
    for the detector before it unlinks the TABLE.

  TABLEs are closed while no mutex is held.

  Locks, in the order in which they may be taken:

    LOCK_unused_shares                  unused_shares and its links
    TDC_element::LOCK_table_share       see TDC_element
    mutex of a shard (LOCK_table_cache) see table_cache_core.h

  What of TABLE belongs to the table cache while a TABLE is free: next and prev
  (links of the share's free list), global_free_next and global_free_prev (of
  the LRU list), instance (the shard), and opt_range_condition_rows (the stamp;
  TABLE::init() sets it to zero whenever a statement starts to use the TABLE).
  While it is used: instance (EVICT_FIRST or not). So no TABLE is larger than it
  would be without all this.
*/

#include "mariadb.h"
#include "lf.h"
#include "table.h"
#include "sql_base.h"
#include "sql_show.h"
#include "sql_trigger.h"
#include "debug_sync.h"
#include "table_cache_core.h"
#include "unireg.h"


/** @@table_definition_cache: how many shares may be cached. */
ulong tdc_size;
/** @@table_open_cache: how many TABLEs may be open, unless more are in use. */
ulong tc_size;
/** @@table_open_cache_instances: upper bound of shards. */
uint32 tc_instances;

static bool tdc_inited;

/** All elements, by database and table name. */
static LF_HASH tdc_hash;

/** Protects unused_shares, TDC_element::next and TDC_element::prev. */
static mysql_mutex_t LOCK_unused_shares;

/** Elements whose ref_count has come down to 0. Back: the youngest. */
static I_P_List<TDC_element,
                I_P_List_adapter<TDC_element, &TDC_element::next,
                                 &TDC_element::prev>,
                I_P_List_null_counter,
                I_P_List_fast_push_back<TDC_element> > unused_shares;

#ifdef HAVE_PSI_INTERFACE
static PSI_mutex_key key_LOCK_unused_shares, key_LOCK_table_share,
                     key_LOCK_table_cache;
static PSI_mutex_info tc_mutexes[]=
{
  { &key_LOCK_unused_shares, "LOCK_unused_shares", PSI_FLAG_GLOBAL },
  { &key_LOCK_table_share, "TABLE_SHARE::tdc.LOCK_table_share", 0 },
  { &key_LOCK_table_cache, "LOCK_table_cache", 0 }
};
static PSI_cond_key key_COND_release;
static PSI_cond_info tc_conds[]=
{
  { &key_COND_release, "TABLE_SHARE::tdc.COND_release", 0 }
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
    In TABLE::instance of a used TABLE: to be released as first to evict. In
    that of a free one is the shard, in debug builds. Else it is not used.
  */
  static constexpr uint32 EVICT_FIRST= 1U << 31;

  static TABLE_cache_share *share(TABLE *table) 
  { return free_half(table->s->tdc); }
  static ulonglong &stamp(TABLE *table)
  { return table->opt_range_condition_rows; }
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

typedef Table_cache_core<Table_cache_instance> Table_cache;
typedef TABLE_cache_share::Free_list Table_list;

static Table_cache tc;

/** The clock when the cache was made, in its own unit and in nanoseconds. */
static ulonglong tc_start_clock, tc_start_nanoseconds;


/* ------------------------------------------------------------- the hash */

/**
  Get the caller's pins for tdc_hash: those of its connection, which it keeps,
  or some for the moment.
*/

class Pins
{
  LF_PINS *pins;
  bool borrowed;
public:
  explicit Pins(THD *thd): borrowed(!thd)
  {
    if (borrowed)
      pins= lf_hash_get_pins(&tdc_hash);
    else
    {
      if (!thd->tdc_hash_pins)
        thd->tdc_hash_pins= lf_hash_get_pins(&tdc_hash);
      pins= thd->tdc_hash_pins;
    }
  }
  ~Pins()
  {
    if (borrowed && pins)
      lf_hash_put_pins(pins);
  }
  Pins(const Pins &)= delete;
  void operator=(const Pins &)= delete;

  /** False if out of memory. */
  explicit operator bool() const { return pins != NULL; }
  operator LF_PINS*() const { return pins; }
};


/** Nothing of its last life is left in an element. */

static void assert_clean(TDC_element *element __attribute__((unused)))
{
  DBUG_ASSERT(!element->share);
  DBUG_ASSERT(!element->ref_count);
  DBUG_ASSERT(!element->all_tables_refs);
  DBUG_ASSERT(!element->open_tables);
  DBUG_ASSERT(element->all_tables.is_empty());
  DBUG_ASSERT(element->m_flush_tickets.is_empty());
  DBUG_ASSERT(!element->next);
  DBUG_ASSERT(!element->prev);
#ifndef DBUG_OFF
  tc.each_slot(free_half(element), [](const TABLE_cache_share::Slot &slot) {
    DBUG_ASSERT(slot.free.is_empty());
  });
#endif
}


/** tdc_hash has got memory for an element, which it will use many times. */

static void element_constructor(uchar *memory)
{
  TDC_element *element= reinterpret_cast<TDC_element*>(memory +
                                                       LF_HASH_OVERHEAD);
  mysql_mutex_init(key_LOCK_table_share, &element->LOCK_table_share,
                   MY_MUTEX_INIT_FAST);
  mysql_cond_init(key_COND_release, &element->COND_release, 0);
  element->flushed= element->no_triggers= false;
  element->share= NULL;
  element->next= NULL;
  element->prev= NULL;
  element->ref_count= element->all_tables_refs= element->open_tables= 0;
  element->misses= element->evictions= 0;
  element->m_flush_tickets.empty();
  element->all_tables.empty();
  tc.init_share(free_half(element));
}


static void element_destructor(uchar *memory)
{
  TDC_element *element= reinterpret_cast<TDC_element*>(memory +
                                                       LF_HASH_OVERHEAD);
  assert_clean(element);
  mysql_cond_destroy(&element->COND_release);
  mysql_mutex_destroy(&element->LOCK_table_share);
}


/** An element starts a new life under a new key. */

static void element_initializer(LF_HASH *, void *dst, const void *src)
{
  TDC_element *element= static_cast<TDC_element*>(dst);
  const LEX_CSTRING *key= static_cast<const LEX_CSTRING*>(src);
  assert_clean(element);
  memcpy(element->m_key, key->str, key->length);
  element->m_key_length= (uint) key->length;
  element->misses= element->evictions= 0;
  tc.reset_share(free_half(element));
}


static const uchar *element_key(const void *arg, size_t *length, my_bool)
{
  const TDC_element *element= static_cast<const TDC_element*>(arg);
  *length= element->m_key_length;
  return element->m_key;
}


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


static void close_tables(Table_list *list)
{
  while (TABLE *table= list->pop_front())
    close_table(table);
}


/**
  Make sure that no deadlock detector walks all_tables.

  While LOCK_table_share is kept from then on, none can begin to.
*/

static void wait_for_detectors(TDC_element *element)
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
  wait_for_detectors(element);
  element->all_tables.remove(table);
  element->open_tables--;
  element->evictions+= evicted;
  mysql_mutex_unlock(&element->LOCK_table_share);

  close_table(table);
}


/**
  Take all free TABLEs from a share.

  While LOCK_table_share is held: they leave the free half and all_tables.
  The caller closes them when it has unlocked.
*/

static void take_free_tables(TDC_element *element, Table_list *out)
{
  Table_list list;
  wait_for_detectors(element);
  tc.purge(free_half(element), element->flushed, &list);
  while (TABLE *table= list.pop_front())
  {
    element->all_tables.remove(table);
    element->open_tables--;
    out->push_front(table);
  }
}


/** Evict until the limit is kept, or nothing is free. */

static void evict_tables(THD *thd)
{
  DBUG_ASSERT(thd);
  while (TABLE *table= tc.evict(thd, tc_size))
  {
    DEBUG_SYNC(thd, "tc_evicted_table");
    remove_table(table, true);
  }
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

/* How often that was asked for; see tc_load_triggers() */
static std::atomic<uint> tc_purges;

static my_bool purge_share(void *arg, void *list)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  mysql_mutex_lock(&element->LOCK_table_share);
  take_free_tables(element, static_cast<Table_list*>(list));
  element->no_triggers= false;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return FALSE;
}


void tc_purge()
{
  Table_list list;
  tc_purges++;
  tdc_iterate(0, purge_share, &list);
  close_tables(&list);
}


/** @@table_open_cache has been set: keep the new limit from now on. */

void tc_trim()
{
  /* Either this thread sees who opens just now, or they see the new limit. */
  std::atomic_thread_fence(std::memory_order_seq_cst);
  evict_tables(current_thd);
}


/**
  Is this table opened only to fill a table of INFORMATION_SCHEMA?

  Then it is the first to be evicted when it is released, unless it had been
  open before: who looks at the schema does not disturb those who work with
  the tables. A view's tables are opened for what the view is opened for.
*/

bool tc_is_for_schema(const TABLE_LIST *tl)
{
  /* Children of a MERGE table are opened for what it is opened for. */
  while (tl->parent_l)
    tl= tl->parent_l;
  return const_cast<TABLE_LIST*>(tl)->top_table()->i_s_requested_object &
         OPTIMIZE_I_S_TABLE;
}


/**
  Load the triggers of a table into a TABLE that has just been opened.

  @return true if that failed (reported)

  Whether there is a file with triggers is looked up once in the life of a
  share, not for each TABLE: the file system's answer, as a rule 'no', was 4 %
  of opening one. Who makes such a file in SQL has an exclusive metadata lock
  and removes the share; who puts one there by hand has to FLUSH TABLES, as
  ever, for TABLEs that are open already. An answer from before a FLUSH TABLES
  is not kept: either it is seen here to have begun, or it finds what is kept.

  While LOCK_table_share is held: nothing but the answer is noted.
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

  @param evict_first  when it is released, let it be the first to be evicted

  The TABLE cannot be acquired or evicted before it is released.

  While LOCK_table_share is held: it joins all_tables.
  While no lock is held: others are evicted if there are too many now.
*/

void tc_add_table(THD *thd, TABLE *table, bool evict_first)
{
  TDC_element *element= table->s->tdc;
  DBUG_ASSERT(table->in_use == thd);

  if (evict_first)
    table->instance= Table_cache_instance::EVICT_FIRST;
  mysql_mutex_lock(&element->LOCK_table_share);
  wait_for_detectors(element);
  element->all_tables.push_front(table);
  element->open_tables++;
  mysql_mutex_unlock(&element->LOCK_table_share);

  ulong before= tc.add();
  std::atomic_thread_fence(std::memory_order_seq_cst);  /* see tc_trim() */
  if (before >= tc_size)
  {
    status_var_increment(thd->status_var.table_open_cache_overflows);
    evict_tables(thd);
  }
}


/**
  Acquire a free TABLE.

  @param element           is protected against removal
  @param keep_evict_first  if it was to be the first to be evicted, let it be
                           that again when it is released

  @return NULL if none is free
*/

TABLE *tc_acquire_table(THD *thd, TDC_element *element, bool keep_evict_first)
{
  TABLE *table= tc.acquire(free_half(element), thd);
  if (table)
  {
    if (unlikely(keep_evict_first && tc.was_evict_first(table)))
      table->instance= Table_cache_instance::EVICT_FIRST;
    /* It works, and is not tied to a MERGE table. */
    DBUG_ASSERT(table->db_stat && table->file);
    DBUG_ASSERT(!table->file->extra(HA_EXTRA_IS_ATTACHED_CHILDREN));
  }
  return table;
}


/**
  Release a TABLE that the caller uses.

  It is closed if it cannot be used again or if its share has been flushed.
  Else it is free, and others may acquire or evict it before this returns.

  While no lock is held: TABLEs are closed and evicted.
*/

void tc_release_table(TABLE *table)
{
  THD *thd= table->in_use;
  DBUG_ENTER("tc_release_table");
  DBUG_ASSERT(thd);
  DBUG_ASSERT(table->file);
  DBUG_ASSERT(!table->pos_in_locked_tables);

  DEBUG_SYNC(thd, "tc_release_table");
  if (table->needs_reopen())
  {
    tc.forget();
    remove_table(table, false);
    DBUG_VOID_RETURN;
  }
  bool evict_first= table->instance & Table_cache_instance::EVICT_FIRST;
  if (unlikely(evict_first))
    table->instance= 0;
  switch (tc.release(table, evict_first, table->s->tdc->flushed, tc_size)) {
  case Table_cache::IS_FREE:
    break;
  case Table_cache::IS_FREE_OVER_LIMIT:
    evict_tables(thd);
    break;
  case Table_cache::TO_BE_CLOSED:
    remove_table(table, false);
    break;
  }
  DBUG_VOID_RETURN;
}


/**
  Tell what the table cache knows of a share.

  While LOCK_table_share is held: one shard after the other is asked.
*/

void tc_get_share_info(TDC_element *element, TC_share_info *info)
{
  ulonglong last_release= 0;
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  info->open= element->open_tables;
  info->misses= element->misses;
  info->evictions= element->evictions;
  info->free= 0;
  info->hits= 0;
  tc.each_slot(free_half(element), [&](const TABLE_cache_share::Slot &slot) {
    info->free+= slot.elements();
    info->hits+= slot.hits;
    set_if_bigger(last_release, tc.last_release(slot));
  });
  /* A TABLE may move from shard to shard, and be counted twice. */
  set_if_smaller(info->free, info->open);
  info->in_use= info->open - info->free;
  info->ever_used= last_release != 0;
  info->idle_seconds= 0;
  ulonglong now= Table_cache_machine::now();
  if (!info->in_use && last_release && last_release < now)
  {
    /* The unit of the clock is found by comparing it with another one. */
    double ticks= (double) (now - tc_start_clock);
    double seconds= (double) (my_interval_timer() - tc_start_nanoseconds) / 1e9;
    info->idle_seconds= (ulonglong) ((double) (now - last_release) * seconds /
                                     ticks);
  }
}


/* ------------------------------------------------------------ the shares */

/** Number of elements, the shares of which are cached or being opened. */

ulong tdc_records()
{
  return lf_hash_size(&tdc_hash);
}


/**
  Free a share to which there is no reference, and its element.

  @pre LOCK_table_share is held, and the element is not in unused_shares.
  Unlocks.
*/

static void tdc_delete_share(TDC_element *element)
{
  DBUG_ENTER("tdc_delete_share");
  mysql_mutex_assert_owner(&element->LOCK_table_share);

  /* Nobody finds it from now on. */
  TABLE_SHARE *share= element->share;
  DBUG_ASSERT(share);
  element->share= NULL;
  PSI_CALL_release_table_share(share->m_psi);
  share->m_psi= NULL;

  /* Those who wait for it know it by their tickets. Let all of them go. */
  if (!element->m_flush_tickets.is_empty())
  {
    Wait_for_flush_list::Iterator it(element->m_flush_tickets);
    while (Wait_for_flush *ticket= it++)
      (void) ticket->get_ctx()->m_wait.set_status(MDL_wait::GRANTED);
    while (!element->m_flush_tickets.is_empty())
      mysql_cond_wait(&element->COND_release, &element->LOCK_table_share);
  }
  mysql_mutex_unlock(&element->LOCK_table_share);

  Pins pins(current_thd);
  DBUG_ASSERT(pins);
  assert_clean(element);
  lf_hash_delete(&tdc_hash, pins, element->m_key, element->m_key_length);
  free_table_share(share);
  DBUG_VOID_RETURN;
}


/** Take an element out of unused_shares, if it is there. */

static void tdc_unlink_unused(TDC_element *element)
{
  mysql_mutex_assert_owner(&LOCK_unused_shares);
  if (element->prev)
  {
    unused_shares.remove(element);
    element->next= NULL;
    element->prev= NULL;
  }
}


/**
  Free shares that nobody uses, those first that have not been used for longest.

  @param all  true: all of them, false: what table_definition_cache is exceeded by
*/

void tdc_purge(bool all)
{
  DBUG_ENTER("tdc_purge");
  while (all || tdc_records() > tdc_size)
  {
    mysql_mutex_lock(&LOCK_unused_shares);
    TDC_element *element= unused_shares.front();
    if (!element)
    {
      mysql_mutex_unlock(&LOCK_unused_shares);
      break;
    }
    tdc_unlink_unused(element);
    mysql_mutex_lock(&element->LOCK_table_share);
    bool in_use= element->ref_count != 0;
    mysql_mutex_unlock(&LOCK_unused_shares);
    if (in_use)
    {
      /* Somebody has just begun to use it, and will not find it in the list. */
      mysql_mutex_unlock(&element->LOCK_table_share);
    }
    else
      tdc_delete_share(element);
  }
  DBUG_VOID_RETURN;
}


/**
  Find a share, and lock its element.

  While it is locked, the share stays, and no reference comes or goes. Unlock
  with tdc_unlock_share().

  @return NULL if there is none; MY_ERRPTR if out of memory
*/

TDC_element *tdc_lock_share(THD *thd, const char *db, const char *table_name)
{
  char key[MAX_DBKEY_LENGTH];
  DBUG_ENTER("tdc_lock_share");

  Pins pins(thd);
  if (unlikely(!pins))
    DBUG_RETURN((TDC_element*) MY_ERRPTR);

  uint length= tdc_create_key(key, db, table_name);
  TDC_element *element= static_cast<TDC_element*>
    (lf_hash_search(&tdc_hash, pins, key, length));
  if (!element)
    DBUG_RETURN(NULL);

  mysql_mutex_lock(&element->LOCK_table_share);
  bool there= element->share && !element->share->error;
  if (unlikely(!there))
    mysql_mutex_unlock(&element->LOCK_table_share);
  lf_hash_search_unpin((LF_PINS*) pins);
  DBUG_RETURN(there ? element : NULL);
}


void tdc_unlock_share(TDC_element *element)
{
  mysql_mutex_unlock(&element->LOCK_table_share);
}


/** @return 1 if the table definition cache knows this table, 0 if not, -1 if
            out of memory */

int tdc_share_is_cached(THD *thd, const char *db, const char *table_name)
{
  char key[MAX_DBKEY_LENGTH];
  Pins pins(thd);
  if (unlikely(!pins))
    return -1;
  uint length= tdc_create_key(key, db, table_name);
  if (!lf_hash_search(&tdc_hash, pins, key, length))
    return 0;
  lf_hash_search_unpin((LF_PINS*) pins);
  return 1;
}


/**
  Read a table's definition into an element that is in the hash already, and
  has no share yet, which keeps all others from using it.

  @return the share, with one reference; NULL if that failed (reported)
*/

static TABLE_SHARE *tdc_open_share(THD *thd, TABLE_LIST *tl, uint flags,
                                   const char *key, uint key_length)
{
  Pins pins(thd);
  TDC_element *element= static_cast<TDC_element*>
    (lf_hash_search(&tdc_hash, pins, key, key_length));
  /* No other thread deletes an element that has no share. */
  lf_hash_search_unpin((LF_PINS*) pins);
  DBUG_ASSERT(element);

  TABLE_SHARE *share= alloc_table_share(tl->db.str, tl->table_name.str, key,
                                        key_length);
  if (share)
  {
    /* Whoever asks for a share wants it to be discovered where necessary. */
    open_table_def(thd, share, flags | GTS_USE_DISCOVERY);
    if (checked_unlikely(share->error))
    {
      free_table_share(share);
      share= NULL;
    }
  }
  if (!share)
  {
    lf_hash_delete(&tdc_hash, pins, key, key_length);
    return NULL;
  }

  mysql_mutex_lock(&element->LOCK_table_share);
  share->tdc= element;
  element->share= share;
  element->flushed= element->no_triggers= false;
  element->ref_count++;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return share;
}


/**
  A statement asks for a TABLE of this share, and gets none from the cache.
  element is NULL if the share is not there either.
*/

static void count_miss(THD *thd, TDC_element *element)
{
  status_var_increment(thd->status_var.table_open_cache_misses);
  if (element)
  {
    mysql_mutex_assert_owner(&element->LOCK_table_share);
    element->misses++;
  }
}


/**
  Get the share of a table or view, and if possible a free TABLE of it.

  @param flags           what it may be, and how to look for it (GTS_*)
  @param[out] out_table  if given: a TABLE, which holds the reference to the
                         share, or NULL, then the caller has got a reference

  The definition is read if the cache does not have it.

  @return NULL if there is no such table or view, or another error occurred
          (reported)
*/

TABLE_SHARE *tdc_acquire_share(THD *thd, TABLE_LIST *tl, uint flags,
                               TABLE **out_table)
{
  TABLE_SHARE *share;
  TDC_element *element;
  const char *key;
  const uint key_length= get_table_def_key(tl, &key);
  const my_hash_value_type hash_value= tl->mdl_request.key.tc_hash_value();
  DBUG_ENTER("tdc_acquire_share");

  Pins pins(thd);
  if (unlikely(!pins))
    DBUG_RETURN(NULL);

  for (;;)
  {
    element= static_cast<TDC_element*>
      (lf_hash_search_using_hash_value(&tdc_hash, pins, hash_value, key,
                                       key_length));
    if (!element)
    {
      const LEX_CSTRING name= { key, key_length };
      int res= lf_hash_insert(&tdc_hash, pins, &name);
      if (res < 0)
        DBUG_RETURN(NULL);
      if (res > 0)
        continue;                       /* Somebody was faster. */
      if (!(share= tdc_open_share(thd, tl, flags, key, key_length)))
        DBUG_RETURN(NULL);

      tdc_purge(false);
      if (out_table)
      {
        mysql_mutex_lock(&share->tdc->LOCK_table_share);
        count_miss(thd, share->tdc);
        mysql_mutex_unlock(&share->tdc->LOCK_table_share);
        *out_table= NULL;
      }
      share->m_psi= PSI_CALL_get_table_share(false, share);
      break;
    }

    /* What is in the cache is not discovered again. */
    DBUG_ASSERT(!(flags & GTS_FORCE_DISCOVERY));

    const bool wants_table= out_table && (flags & GTS_TABLE);
    if (wants_table &&
        (*out_table= tc_acquire_table(thd, element, tc_is_for_schema(tl))))
    {
      lf_hash_search_unpin((LF_PINS*) pins);
      DBUG_ASSERT(!(flags & GTS_NOLOCK));
      DBUG_ASSERT(element->share);
      DBUG_ASSERT(!element->share->error);
      DBUG_ASSERT(!element->share->is_view);
      status_var_increment(thd->status_var.table_open_cache_hits);
      DBUG_RETURN(element->share);
    }

    mysql_mutex_lock(&element->LOCK_table_share);
    share= element->share;
    if (wants_table)
      count_miss(thd, share ? element : NULL);
    /* Locked, or waiting for the share of another life: both need no pin. */
    lf_hash_search_unpin((LF_PINS*) pins);
    if (!share)
    {
      mysql_mutex_unlock(&element->LOCK_table_share);
      std::this_thread::yield();
      continue;
    }

    if (unlikely(share->error))
      open_table_error(share, share->error, share->open_errno);
    else if (share->is_view && !(flags & GTS_VIEW))
      open_table_error(share, OPEN_FRM_NOT_A_TABLE, ENOENT);
    else if (!share->is_view && !(flags & GTS_TABLE))
      open_table_error(share, OPEN_FRM_NOT_A_VIEW, ENOENT);
    else
    {
      bool was_unused= !element->ref_count++;
      mysql_mutex_unlock(&element->LOCK_table_share);
      if (was_unused)
      {
        mysql_mutex_lock(&LOCK_unused_shares);
        tdc_unlink_unused(element);
        mysql_mutex_unlock(&LOCK_unused_shares);
      }
      break;
    }
    mysql_mutex_unlock(&element->LOCK_table_share);
    DBUG_RETURN(NULL);
  }

  DBUG_PRINT("exit", ("share: %p  ref_count: %u",
                      share, share->tdc->ref_count));
  if (flags & GTS_NOLOCK)
  {
    /* The caller only wants to know that there is one. It may be gone now. */
    tdc_release_share(share);
    share= UNUSABLE_TABLE_SHARE;
  }
  DBUG_RETURN(share);
}


/** Give back a reference to a share. */

void tdc_release_share(TABLE_SHARE *share)
{
  TDC_element *element= share->tdc;
  bool last;
  DBUG_ENTER("tdc_release_share");
  DBUG_PRINT("enter", ("share: %p  table: %s.%s", share, share->db.str,
                       share->table_name.str));

  mysql_mutex_lock(&element->LOCK_table_share);
  DBUG_ASSERT(element->ref_count);
  if (!(last= element->ref_count == 1))
  {
    element->ref_count--;
    mysql_cond_broadcast(&element->COND_release);
  }
  mysql_mutex_unlock(&element->LOCK_table_share);
  if (!last)
    DBUG_VOID_RETURN;

  /* The last reference, it seems: both locks are needed, in their order. */
  mysql_mutex_lock(&LOCK_unused_shares);
  mysql_mutex_lock(&element->LOCK_table_share);
  if (--element->ref_count)
    mysql_cond_broadcast(&element->COND_release);
  else if (element->flushed || tdc_records() > tdc_size)
  {
    mysql_mutex_unlock(&LOCK_unused_shares);
    tdc_delete_share(element);
    DBUG_VOID_RETURN;
  }
  else
  {
    DBUG_ASSERT(!element->prev);
    unused_shares.push_back(element);
  }
  mysql_mutex_unlock(&element->LOCK_table_share);
  mysql_mutex_unlock(&LOCK_unused_shares);
  DBUG_VOID_RETURN;
}


/**
  Remove a share to which the caller has a reference.

  @pre exclusive metadata lock, so that no other thread uses a TABLE of it
*/

void tdc_remove_referenced_share(THD *thd, TABLE_SHARE *share)
{
  TDC_element *element= share->tdc;
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, share->db.str,
                                             share->table_name.str,
                                             MDL_EXCLUSIVE));
  element->flush_unused(true);
  mysql_mutex_lock(&element->LOCK_table_share);
  DEBUG_SYNC(thd, "before_wait_for_refs");
  element->wait_for_refs(1);
  DBUG_ASSERT(element->all_tables.is_empty());
  element->ref_count--;
  tdc_delete_share(element);
}


/**
  Remove the share of a table, and all its TABLEs.

  @pre exclusive metadata lock, so that no other thread uses a TABLE of it
*/

void tdc_remove_table(THD *thd, const char *db, const char *table_name)
{
  DBUG_ENTER("tdc_remove_table");
  DBUG_PRINT("enter", ("name: %s.%s", db, table_name));
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, db, table_name,
                                             MDL_EXCLUSIVE));

  mysql_mutex_lock(&LOCK_unused_shares);
  TDC_element *element= tdc_lock_share(thd, db, table_name);
  if (!element)
  {
    mysql_mutex_unlock(&LOCK_unused_shares);
    DBUG_VOID_RETURN;
  }
  /* Out of memory for pins: the caller has a table open, and so has pins. */
  DBUG_ASSERT(element != MY_ERRPTR);

  if (!element->ref_count)
  {
    tdc_unlink_unused(element);
    mysql_mutex_unlock(&LOCK_unused_shares);
    tdc_delete_share(element);
    DBUG_VOID_RETURN;
  }
  mysql_mutex_unlock(&LOCK_unused_shares);

  TABLE_SHARE *share= element->share;
  element->ref_count++;
  mysql_mutex_unlock(&element->LOCK_table_share);
  tdc_remove_referenced_share(thd, share);
  DBUG_VOID_RETURN;
}


/**
  If the share of a table has been flushed, wait until it is gone.

  @param wait_timeout     in seconds
  @param deadlock_weight  of this wait, for the deadlock detector

  @return true if that failed: killed, timeout, deadlock, out of memory
          (reported)
*/

int tdc_wait_for_old_version(THD *thd, const char *db, const char *table_name,
                             ulong wait_timeout, uint deadlock_weight)
{
  TDC_element *element= tdc_lock_share(thd, db, table_name);
  if (!element)
    return FALSE;
  if (element == MY_ERRPTR)
    return TRUE;
  if (!element->flushed)
  {
    tdc_unlock_share(element);
    return FALSE;
  }
  struct timespec abstime;
  set_timespec(abstime, wait_timeout);
  /* Unlocks. */
  return element->share->wait_for_old_version(thd, &abstime, deadlock_weight);
}


/**
  Wait until nobody else has a reference.

  @param my_refs  number of the caller's own references

  @pre LOCK_table_share is held; an exclusive metadata lock keeps others from
  getting new references.

  Others may still be closing TABLEs that they evicted or flushed. They are
  not waited for like TABLEs in use (TABLE_SHARE::wait_for_old_version()), as
  that would include the caller's own. Each of them gives back its reference
  and signals COND_release when it is done.
*/

void TDC_element::wait_for_refs(uint my_refs)
{
  while (ref_count > my_refs)
    mysql_cond_wait(&COND_release, &LOCK_table_share);
}


/**
  Close all TABLEs of a share but those that the caller uses.

  @param mark_flushed  remove the share, too, when its last reference goes

  @pre exclusive metadata lock
*/

void TDC_element::flush(THD *thd, bool mark_flushed)
{
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, share->db.str,
                                             share->table_name.str,
                                             MDL_EXCLUSIVE));
  flush_unused(mark_flushed);

  mysql_mutex_lock(&LOCK_table_share);
  uint my_refs= 0;
  All_share_tables_list::Iterator it(all_tables);
  while (TABLE *table= it++)
    my_refs+= table->in_use == thd;
  wait_for_refs(my_refs);
#ifndef DBUG_OFF
  it.rewind();
  while (TABLE *table= it++)
    DBUG_ASSERT(table->in_use == thd);
#endif
  mysql_mutex_unlock(&LOCK_table_share);
}


/** Close all free TABLEs of a share; see flush(). */

void TDC_element::flush_unused(bool mark_flushed)
{
  Table_list list;

  mysql_mutex_lock(&LOCK_table_share);
  /* A detector must not see a flushed share that has free TABLEs. */
  wait_for_detectors(this);
  if (mark_flushed)
    flushed= true;
  take_free_tables(this, &list);
  mysql_mutex_unlock(&LOCK_table_share);

  close_tables(&list);
}


/* ------------------------------------------------- all elements in turn */

/** What tdc_iterate() has visited already. */

struct Visited
{
  HASH keys;
  MEM_ROOT root;
  my_hash_walk_action action;
  void *argument;
};


static const uchar *visited_key(const void *arg, size_t *length, my_bool)
{
  const LEX_CUSTRING *key= static_cast<const LEX_CUSTRING*>(arg);
  *length= key->length;
  return key->str;
}


static my_bool visit_once(void *arg, void *visited_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Visited *visited= static_cast<Visited*>(visited_arg);
  uchar *bytes;
  LEX_CUSTRING *key;

  if (!multi_alloc_root(&visited->root, &key, sizeof(*key),
                        &bytes, (size_t) element->m_key_length, NullS))
    return TRUE;
  key->length= element->m_key_length;
  key->str= bytes;
  memcpy(bytes, element->m_key, key->length);
  if (my_hash_insert(&visited->keys, reinterpret_cast<uchar*>(key)))
    return FALSE;
  return visited->action(element, visited->argument);
}


/**
  Call action(element, argument) for each element, until one returns true.

  @param thd      the caller's, NULL if it has none
  @param no_dups  while elements come and go, the walk through the hash may
                  begin anew: visit none twice

  The element does not go away during the call, but it may have no share: its
  share may be in the middle of being opened, or going. To know, lock its
  LOCK_table_share.

  @return what action returned; an error number if out of memory
*/

int tdc_iterate(THD *thd, my_hash_walk_action action, void *argument,
                bool no_dups)
{
  Pins pins(thd);
  if (!pins)
    return ER_OUTOFMEMORY;
  if (!no_dups)
    return lf_hash_iterate(&tdc_hash, pins, action, argument);

  Visited visited;
  init_alloc_root(PSI_INSTRUMENT_ME, &visited.root, 4096, 4096,
                  MYF(thd ? MY_THREAD_SPECIFIC : 0));
  my_hash_init(PSI_INSTRUMENT_ME, &visited.keys, &my_charset_bin,
               tdc_records(), 0, 0, visited_key, 0,
               HASH_UNIQUE | (thd ? HASH_THREAD_SPECIFIC : 0));
  visited.action= action;
  visited.argument= argument;
  int res= lf_hash_iterate(&tdc_hash, pins, visit_once, &visited);
  my_hash_free(&visited.keys);
  free_root(&visited.root, MYF(0));
  return res;
}


/* ------------------------------------------------------- start and end */

bool tdc_init()
{
  uchar map[Table_cache::MAX_CPUS];
  bool one_cpu_each;
  DBUG_ENTER("tdc_init");
#ifdef HAVE_PSI_INTERFACE
  mysql_mutex_register("sql", tc_mutexes, array_elements(tc_mutexes));
  mysql_cond_register("sql", tc_conds, array_elements(tc_conds));
#endif
  uint shards= Table_cache_machine::map_cpus(tc_instances, map,
                                             &one_cpu_each);
  DBUG_EXECUTE_IF("table_cache_8_shards",
                  for (uint i= 0; i < Table_cache::MAX_CPUS; i++)
                    map[i]= (uchar) (i % (shards= 8)););
  if (tc.init(shards, map, one_cpu_each, key_LOCK_table_cache))
    DBUG_RETURN(true);
  tc_start_clock= Table_cache_machine::now();
  tc_start_nanoseconds= my_interval_timer();

  mysql_mutex_init(key_LOCK_unused_shares, &LOCK_unused_shares,
                   MY_MUTEX_INIT_FAST);
  lf_hash_init(&tdc_hash, (uint) (sizeof(TDC_element) +
                                  Table_cache::share_size(shards)),
               LF_HASH_UNIQUE, 0, 0, element_key, &my_charset_bin);
  tdc_hash.alloc.constructor= element_constructor;
  tdc_hash.alloc.destructor= element_destructor;
  tdc_hash.initializer= element_initializer;
  tdc_inited= true;
  DBUG_RETURN(false);
}


/**
  The server begins to shut down: cache nothing from now on.

  What the plugins still open while they go is closed at once, so it holds
  no references to the engines longer than necessary.
*/

void tdc_start_shutdown()
{
  DBUG_ENTER("tdc_start_shutdown");
  if (tdc_inited)
  {
    tc_size= 0;
    tdc_size= 0;
    purge_tables();
  }
  DBUG_VOID_RETURN;
}


void tdc_deinit()
{
  DBUG_ENTER("tdc_deinit");
  if (tdc_inited)
  {
    tdc_inited= false;
    lf_hash_destroy(&tdc_hash);
    mysql_mutex_destroy(&LOCK_unused_shares);
    tc.destroy();
  }
  DBUG_VOID_RETURN;
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
  There is no room for these in STATUS_VAR: it is a part of THD, the layout of
  which engines and plugins know. So they are counted per shard, and global.
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


/** What must hold for a share while its LOCK_table_share is held. */

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

  The server need not be at rest. What holds only then (the number of TABLEs
  of all shares is the count; the limit is exceeded only if nothing is free) is
  looked at again for some seconds: it is wrong if it stays wrong while nobody
  opens or closes a TABLE.

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
