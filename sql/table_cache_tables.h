#ifndef TABLE_CACHE_TABLES_INCLUDED
#define TABLE_CACHE_TABLES_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache (table_cache_core.h) for TABLEs. Only the files
  table_cache*.cc use this, and table_def_cache.cc, which initializes the lists of
  a share's free TABLEs.

  The core keeps what it needs in fields that TABLE has anyway, so TABLE has the
  size that MariaDB gives it:

  - next and prev, of a free TABLE: links of a list of its share;
  - global_free_next and global_free_prev: links of the order of eviction;
  - instance: the Table_cache_state, see there;
  - insert_values, of a free TABLE: the stamp. TABLE::init() sets it to NULL
    whenever a statement starts to use the TABLE, which may write it then.

  A hit does not use the Table_cache_weight, which follows each TABLE in memory
  (tc_alloc_table()).
*/

#include "table.h"
#include "sql_class.h"
#include "debug_sync.h"
#include "table_cache.h"
#include "table_cache_core.h"
#include "table_cache_machine.h"
#include "table_cache_memory.h"
#include "table_cache_parts.h"

/** A share's free TABLEs. */
typedef Table_cache_share<TABLE, TABLE_share> TABLE_cache_share;

/** A share's free TABLEs: at the beginning of a line of 64 bytes. */
static inline TABLE_cache_share *free_lists(TDC_element *element)
{
  static_assert(sizeof(TABLE_cache_share) + 64 - alignof(TDC_element) <=
                sizeof(element->free_lists), "");
  return reinterpret_cast<TABLE_cache_share*>
    (MY_ALIGN(reinterpret_cast<size_t>(element->free_lists), 64));
}


/** The bytes of a TABLE. Its user, or the thread that closes it, writes. */

struct Table_cache_weight
{
  /** Bytes of the connection when it began to open the TABLE. */
  int64 allocated_before;
  /**
    Bytes that do not change while the TABLE is open. NOT_ADDED until
    tc_add_table(), which asserts that tc_alloc_table() has made the TABLE.
  */
  uint32 constant;
  static constexpr uint32 NOT_ADDED= ~0U;
  /** Bytes added to Table_cache_memory::tables. Any thread reads this. */
  std::atomic<uint32> bytes;
};


/** Links of the order. MariaDB's TABLE has a friend of this name. */

struct Table_cache_instance
{
  static TABLE **next_ptr(TABLE *table) { return &table->global_free_next; }
  static TABLE ***prev_ptr(TABLE *table) { return &table->global_free_prev; }
};


/** TABLEs, as the core sees them. */

struct Cached_table: public Table_cache_machine
{
  typedef TABLE Object;
  typedef THD User;
  typedef TABLE_share Share_links;
  typedef Table_cache_instance Order_links;

  /**
    Flags in the state of a used TABLE: what its user does at the release.
    SCAN         use the stamp EVICT_FIRST
    SCAN_OPENED  (with SCAN) add 1 to scan_opens: this user has opened the TABLE
    AHEAD        use the stamp OPENED_AHEAD
    NO_USE       use the stamp that the TABLE had before
    WEIGH        find out how many bytes the TABLE takes
  */
  static constexpr uchar SCAN= 1, SCAN_OPENED= 2, AHEAD= 4, NO_USE= 8,
                         WEIGH= 16;

  static TABLE_cache_share *share(TABLE *table)
  { return free_lists(table->s->tdc); }
  static Table_cache_state &state(TABLE *table)
  {
    static_assert(sizeof(Table_cache_state) <= sizeof(table->instance), "");
    void *memory= &table->instance;
    return *static_cast<Table_cache_state*>(memory);
  }
  static uchar &flags(TABLE *table) { return state(table).flags; }
  static bool flushed(TABLE *table) { return table->s->tdc->flushed; }
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
  static THD *user(TABLE *table) { return table->in_use; }
  static void set_user(TABLE *table, THD *thd) { table->in_use= thd; }
  static Table_cache_weight *weight_of(TABLE *table)
  {
    static_assert(!(sizeof(TABLE) % alignof(Table_cache_weight)), "");
    return reinterpret_cast<Table_cache_weight*>(table + 1);
  }
  static uint32 weight(TABLE *table)
  { return weight_of(table)->bytes.load(std::memory_order_relaxed); }
  static void set_weight(TABLE *table, uint32 bytes)
  { weight_of(table)->bytes.store(bytes, std::memory_order_relaxed); }
  static void uncounted(TABLE *table)
  { tc_memory.tables.fetch_sub(weight(table), std::memory_order_relaxed); }

  static void before_lock(THD *thd __attribute__((unused)))
  { DEBUG_SYNC(thd, "tc_acquire_before_lock"); }

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

/**
  @@table_open_cache and @@table_cache_memory, which a client may set at any
  moment.

  Relaxed: a thread that sees a new limit late leaves too many TABLEs. But it asks
  with order_mutex held, like the thread that evicts for the new limit (tc_trim()).
  So it sees the new limit, or tc_trim() finds its TABLE.
*/

struct Table_cache_limit
{
  bool exceeded(ulong count) const
  {
    static_assert(sizeof(std::atomic<ulong>) == sizeof(tc_size), "");
    const ulong size= reinterpret_cast<const std::atomic<ulong>*>(&tc_size)->
                        load(std::memory_order_relaxed);
    return unlikely(count > size) ||
           !Table_cache_memory_limit::allows_tables();
  }
};

typedef Table_cache_core<Cached_table> Table_cache;

/** All TABLEs of the server. */
extern Table_cache tc;

/* table_cache.cc */
size_t tc_close_evicted(THD *thd, TABLE *table);
/* table_cache_memory.cc */
void tc_weigh_new(THD *thd, TABLE *table);
size_t tc_weigh_again(TABLE *table);
/* table_cache_scan.cc */
bool tc_scan_leaves_last(TDC_element *element);
void tc_count_scan_open(TDC_element *element);
/* table_cache_triggers.cc */
void tc_begin_purge();

#endif /* TABLE_CACHE_TABLES_INCLUDED */
