#ifndef TABLE_CACHE_DUMP_INCLUDED
#define TABLE_CACHE_DUMP_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The functions and data that the parts of the plugin share; see
  table_cache_dump.cc.
*/

#define MYSQL_SERVER 1
#include <my_global.h>
#include "mysql_version.h"
#include "mysql/plugin.h"
#include "sql_class.h"
#include "sql_base.h"
#include "dump_file.h"

/** Name of the file in the data directory, and while a thread writes it. */
static const char dump_file_name[]= "table_cache.dump";
static const char dump_temporary_name[]= "table_cache.dump.tmp";
/** This file exists while the server loads the tables at startup. */
static const char dump_loading_name[]= "table_cache.loading";


/**
  The text of a dump file, and its tables. Between read() and destroy(), only
  'reached' changes.
*/

struct Dump
{
  char *text;
  Dump_entry *entries;
  size_t n;
  HASH by_key;
  /** Time at which the thread read the text, in microseconds. */
  ulonglong read_at;
  /**
    For each entry: TRUE if no thread need load it any more. The thread that
    loads the entry sets this when it has opened or skipped the table.
  */
  std::atomic<bool> *reached;

  const char *read(bool *missing);
  const Dump_entry *find(const uchar *key, uint length) const;
  void forget_rest();
  void destroy();
};

const char *dump_write(THD *thd, const Dump *loaded, ulong *tables);

bool dump_create_loading_file();
bool dump_loading_file_exists();
void dump_remove_loading_file();


/**
  One load of a dump by several threads.

  The daemon thread starts and joins the threads that load, and owns this
  object. Each of them takes the next entry by an atomic addition, so only one
  thread loads an entry.
*/

struct Load
{
  static constexpr uint MAX_THREADS= 32;

  const Dump *dump;
  /** Next entry to load; number of opened entries; number of skipped ones. */
  std::atomic<size_t> next, opened, skipped;
  /** Number of instances that the threads are about to open. */
  std::atomic<ulong> reserved;
  /** The threads must end early; the caches are full; number of threads. */
  std::atomic<bool> abort, full;
  std::atomic<uint> running;
  /** Number of threads to join; number of threads that start() wanted. */
  uint threads, wanted;
  pthread_t ids[MAX_THREADS];
  ulonglong begin;

  bool start(const Dump *dump, uint threads, bool abort);
  void join();
  /** @return whether no entry is left that a thread could load */
  bool complete() const { return full || opened + skipped == dump->n; }
  uint reserve(uint tables);
};

/**
  Performance schema: without a key, it would know neither the threads of this plugin
  nor, for as long as they stay open, the tables and files that these open.
*/
extern PSI_thread_key dump_thread_key;

/** The threads that load call these. */
void dump_load_thread_ends();
bool dump_load_pause(Load *load, THD *thd, ulonglong microseconds);

/** The THD of a thread of this plugin, which SHOW PROCESSLIST shows. */
THD *dump_new_thd();
void dump_attach_thd(THD *thd);
void dump_delete_thd(THD *thd);

#endif /* TABLE_CACHE_DUMP_INCLUDED */
