#ifndef TABLE_CACHE_H_INCLUDED
#define TABLE_CACHE_H_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/table_cache.h:
   Copyright (c) 2000, 2012, Oracle and/or its affiliates.
   Copyright (c) 2010, 2011 Monty Program Ab
   Copyright (C) 2013 Sergey Vojtovich and MariaDB Foundation */

/**
  @file
  Interface of the table definition cache (tdc_*: TABLE_SHAREs; see
  table_def_cache.cc) and of the table cache (tc_*: TABLEs; see
  table_cache.cc).
*/

#include "my_atomic_wrapper.h"
#include <atomic>

struct Default_row;

/**
  A TABLE_SHARE's place in the table definition cache.

  LOCK_table_share and COND_release have the same offsets as in MariaDB, because
  the Mroonga engine of distributions' packages locks LOCK_table_share. MariaDB
  has a key of 386 bytes in front of them. This patch set puts all other members
  there.
*/

struct TDC_element
{
  /**
    Database and name, each with its final 0: in short_key, or in memory of
    their own if they do not fit. Constant while a thread can find the element.
  */
  const uchar *m_key;
  uint m_key_length;
  /**
    True: the cache keeps no TABLE of this share any more, and the share goes
    with its last reference. Written under LOCK_table_share; the thread that
    sets it also purges the free TABLEs.
  */
  Atomic_relaxed<bool> flushed;
  /**
    There was no file with triggers when a TABLE of this share was opened; see
    tc_load_triggers(). Written under LOCK_table_share: the thread that opens a
    TABLE sets it; a new share and FLUSH TABLES clear it.
  */
  Atomic_relaxed<bool> no_triggers;
  /**
    Only scans (see tc_is_scan()) have used the share since it was read. Any
    other statement that uses it clears this, with or without a lock.
  */
  Atomic_relaxed<bool> only_scanned;
#define TDC_KNOWS_SCANS         /* MariaDB's TDC_element does not: ha_note_use.h */
  /** NULL: being opened, or gone. Written under LOCK_table_share. */
  TABLE_SHARE *share;
  /**
    The copy of the default row that this share uses together with other shares;
    NULL if it has its own. Only the thread that reads or deletes the share uses
    this.
  */
  Default_row *default_row;
  /** Links of an Unused_list. Protected by LOCK_unused_shares. */
  TDC_element *next, **prev;
  /** Bytes of the share without its statistics. Constant while it exists. */
  uint32 root_bytes;
  /** Bytes that the share has added to Table_cache_memory::definitions. */
  std::atomic<uint32> bytes;

  /*
    LOCK_table_share protects the members from here on to evictions, unless
    their comments say otherwise.
  */
  /** References: TABLEs of this share, and threads that need it to stay. */
  uint ref_count;
  /** Deadlock detectors that walk all_tables, which must not change then. */
  uint all_tables_refs;
  /** Threads that wait for the share to be flushed. */
  Wait_for_flush_list m_flush_tickets;
  /** All TABLEs of this share, used and free. */
  All_share_tables_list all_tables;
  /** Length of all_tables. */
  uint open_tables;
  /**
    Is this in unused_shares, or in scanned_shares? To write one of these, a
    thread holds LOCK_unused_shares and LOCK_table_share; to read it, one of
    them.
  */
  bool unused, scanned;
  /** Has the share been used since it joined its Unused_list? */
  bool used_again;
  /** Requests for a TABLE of this share that found none free. */
  ulonglong misses;
  /** TABLEs of this share that a scan has opened and released. */
  ulonglong scan_opens;
  /** TABLEs of this share that had to make room for others. */
  ulonglong evictions;

  /**
    The table cache's lists of free TABLEs: a TABLE_cache_share, which has 88 bytes
    beside its mutex, aligned to 64 bytes. See free_lists()
  */
  uchar free_lists[sizeof(mysql_mutex_t) + 88 + 56];
  /**
    Most names have less than half of the length that MariaDB allows. The mutex
    above takes 48 bytes on x86-64 and 56 on ARM64, in debug builds some 200.
  */
  uchar short_key[sizeof(mysql_mutex_t) < 64 ? 152 - sizeof(mysql_mutex_t) : 104];

  mysql_mutex_t LOCK_table_share;
  /** Signalled when ref_count, all_tables_refs or m_flush_tickets go down. */
  mysql_cond_t COND_release;

  void wait_for_refs(uint my_refs);
  void flush(THD *thd, bool mark_flushed);
  void flush_unused(bool mark_flushed);
};


/** The result of tc_get_share_info() for a share. */

struct TC_share_info
{
  uint open, in_use, free;
  /** Bytes of its TABLEs, and of its definition without InnoDB's. */
  ulonglong table_bytes, definition_bytes;
  ulonglong hits, misses, scan_opens, evictions;
  /** False: only scans, and plugins that open TABLEs ahead, have released one. */
  bool ever_used;
  /** Only scans have used the share since it was read. */
  bool only_scanned;
  /** Since its last release, scans not counted; 0 if it is in use. */
  ulonglong idle_seconds;
};


extern ulong tdc_size;
extern ulong tc_size;
extern uint32 tc_instances;

bool tdc_init();
void tdc_start_shutdown(bool use_dummy_thd= false);
void tdc_deinit();
ulong tdc_records();
void tdc_purge(bool all);
void tdc_trim(THD *thd);
TDC_element *tdc_lock_share(THD *thd, const char *db, const char *table_name);
void tdc_unlock_share(TDC_element *element);
int tdc_share_is_cached(THD *thd, const char *db, const char *table_name);
TABLE_SHARE *tdc_acquire_share(THD *thd, TABLE_LIST *tl, uint flags,
                               TABLE **out_table= nullptr);
void tdc_release_share(TABLE_SHARE *share);
void tdc_remove_referenced_share(THD *thd, TABLE_SHARE *share);
void tdc_remove_table(THD *thd, const char *db, const char *table_name);
int tdc_wait_for_old_version(THD *thd, const char *db, const char *table_name,
                             ulong wait_timeout, uint deadlock_weight);
int tdc_iterate(THD *thd, my_hash_walk_action action, void *argument,
                bool no_dups= false);

uint tc_records();
void tc_purge();
void tc_trim();
/** Is a statement of a kind that does not come back to its tables? */
enum Tc_scan
{
  TC_NO_SCAN= 0,
  TC_SCAN,
  /** Yes, and it holds the TABLE while other statements may use the table. */
  TC_SCAN_AND_HOLD,
  /** It does not even use the table: a backup lets the engine flush it. */
  TC_NO_USE
};

Tc_scan tc_is_scan(THD *thd, const TABLE_LIST *tl);
TABLE *tc_alloc_table(THD *thd);
void tc_add_table(THD *thd, TABLE *table, bool scan= false);
void tc_use_locked_table(THD *thd, TABLE *table, const TABLE_LIST *tl);
void tc_release_table(TABLE *table);
TABLE *tc_acquire_table(THD *thd, TDC_element *element,
                        Tc_scan scan= TC_NO_USE);
bool tc_load_triggers(THD *thd, TABLE *table);
TABLE *tc_exchange_for_triggers(THD *thd, TABLE *table);
void tc_get_share_info(TDC_element *element, TC_share_info *info);

int show_tc_active_instances(THD *thd, SHOW_VAR *var, void *buff,
                             system_status_var *, enum enum_var_type scope);
int show_tc_evictions(THD *thd, SHOW_VAR *var, void *buff,
                      system_status_var *, enum enum_var_type scope);
#ifndef DBUG_OFF
int show_tc_check(THD *thd, SHOW_VAR *var, void *buff,
                  system_status_var *, enum enum_var_type scope);
#endif


/**
  Make the key of a base table in the table definition cache.

  @param[out] key    at least MAX_DBKEY_LENGTH bytes
  @param db          name of the database
  @param table_name  name of the table

  Cuts names that are too long; the caller should make sure that they are not.

  @return length of the key: both names, each with its end
*/

inline uint tdc_create_key(char *key, const char *db, const char *table_name)
{
  char *table_part= strmake(key, db, NAME_LEN) + 1;
  char *end= strmake(table_part, table_name, NAME_LEN) + 1;
  return uint(end - key);
}
#endif /* TABLE_CACHE_H_INCLUDED */
