#ifndef TABLE_CACHE_PARTS_INCLUDED
#define TABLE_CACHE_PARTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The functions by which the table cache (table_cache*.cc) and the table
  definition cache (table_def_cache.cc) call each other. tc_opened_ahead() and
  tc_dump_state_* are for plugins that open tables ahead of their use.
*/

#include "sql_plist.h"

class THD;
struct TABLE_SHARE;
struct TABLE_share;
struct TDC_element;

/** TABLEs that have left the table cache; linked like free ones. */
typedef I_P_List<TABLE, TABLE_share> Table_list;

void tc_init(PSI_mutex_key order_key);
void tc_deinit();

void tc_wait_for_detectors(TDC_element *element);
void tc_take_free_tables(TDC_element *element, Table_list *out);
void tc_close_tables(Table_list *list);
uint tc_evict_unused(THD *thd, uint count);

void tc_opened_ahead(TABLE *table);
/*
  What SHOW PROCESSLIST shows of such a plugin's threads. It reads these texts
  without a lock, and may do so after the plugin was unloaded.
*/
extern const char tc_dump_state_started[], tc_dump_state_waiting[],
                  tc_dump_state_loading[];

/* Patches that may be missing */
#if __has_include("default_rows.h")
#include "default_rows.h"
#include "table_cache_record.h"
#else
struct Default_row;
static inline void default_rows_init() {}
static inline void default_rows_deinit() {}
static inline void release_default_row(Default_row *) {}
static inline size_t default_row_bytes() { return 0; }
static inline bool tc_take_record(THD *, TABLE *) { return false; }
static inline void tc_give_record(TABLE *) {}
static inline void tc_free_records() {}
static inline size_t tc_kept_record_bytes(const TABLE *) { return 0; }
#endif
#if __has_include("table_cache_memory_limit.h")
#include "table_cache_memory_limit.h"
#else
struct Table_cache_memory_limit
{
  static size_t bytes() { return 0; }
  static bool allows_tables(size_t= 0) { return true; }
};
static inline void tc_make_room_for(THD *, size_t, bool) {}
static inline size_t tdc_bytes_to_free() { return 0; }
#endif

/* table_cache_memory.cc */
void tdc_weigh_share(TDC_element *element, TABLE_SHARE *share, bool new_share);
size_t tdc_forget_weight(TDC_element *element);
/* table_def_cache.cc */
/** A thread that opens a table skips at most so many shares. */
static constexpr uint TDC_EVICT_STEPS= 64;
size_t tdc_evict_bytes(size_t bytes, uint steps);

#endif /* TABLE_CACHE_PARTS_INCLUDED */
