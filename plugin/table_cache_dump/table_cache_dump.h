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

/** The file, in the data directory, and its name while it is written. */
static const char dump_file_name[]= "table_cache.dump";
static const char dump_temporary_name[]= "table_cache.dump.tmp";
/** This file exists while the server loads the tables at startup. */
static const char dump_loading_name[]= "table_cache.loading";


/**
  A text that was read, and its tables. Until destroy(), only 'reached' changes.
*/

struct Dump
{
  char *text;
  Dump_entry *entries;
  size_t n;
  HASH by_key;
  /** When the text was read, in microseconds. */
  ulonglong read_at;
  /**
    For each entry: is there no more need to load it? The thread that loads the
    entry sets this when it has opened or skipped the table.
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
  A run of the threads that load.

  The daemon thread starts and joins them, and owns this object. Each thread takes
  the next entry by an atomic addition, so only one of them loads an entry.
*/

struct Load
{
  static constexpr uint MAX_THREADS= 32;

  const Dump *dump;
  /** The next entry; how many have been opened, and how many could not be. */
  std::atomic<size_t> next, opened, skipped;
  /** Instances that the threads are about to open. */
  std::atomic<ulong> reserved;
  /** End before all is loaded; the caches were full; threads that run. */
  std::atomic<bool> abort, full;
  std::atomic<uint> running;
  /** Threads to be joined, and how many there were to be. */
  uint threads, wanted;
  pthread_t ids[MAX_THREADS];
  ulonglong begin;

  bool start(const Dump *dump, uint threads, bool abort);
  void join();
  /** No entry is left that could be loaded. */
  bool complete() const { return full || opened + skipped == dump->n; }
  uint reserve(uint tables);
};

/** The threads that load call these. */
void dump_load_thread_ends();
bool dump_load_pause(Load *load, THD *thd, ulonglong microseconds);

/** The THD of a thread of this plugin, which SHOW PROCESSLIST shows. */
THD *dump_new_thd();
void dump_attach_thd(THD *thd);
void dump_delete_thd(THD *thd);

#endif /* TABLE_CACHE_DUMP_INCLUDED */
