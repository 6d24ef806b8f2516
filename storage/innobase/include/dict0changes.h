/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/dict0changes.h
Keep the count of changed rows of a table when InnoDB evicts its definition.

InnoDB calculates the persistent statistics of a table again when a tenth of its rows
has changed.  dict_table_t counts these changes (stat_modified_counter) and the rows
(stat_n_rows), and the eviction of the definition frees both.  Without this file, a
table that InnoDB evicts more often than a tenth of it changes would keep its old
statistics for ever.

1. When a table is evicted, dict_sys_t::remove() keeps both numbers here.
2. When a thread has read the stored statistics of the table again,
   ha_innobase::statistics_init() gives the numbers back to it.
3. DROP TABLE forgets them.

The numbers of a table that is dropped by its identifier alone, or never used again,
stay until the server ends.  So there is a limit, MAX_KEPT. */

#pragma once

#include "dict0mem.h"
#include <mutex>
#include <new>
#include <unordered_map>

class dict_changes_t
{
  /** What the statistics of a table in the cache would have said */
  struct numbers { uint64_t n_changes, n_rows; };

  /** Some 4 MiB */
  static constexpr size_t MAX_KEPT= 65536;

  /** Protects tables. A thread holds it for one access to the hash, and waits for no
  other lock meanwhile. */
  std::mutex mutex;
  /** the numbers of tables that are not in the cache, or are there without statistics,
  by table identifier */
  std::unordered_map<table_id_t, numbers> tables;

public:
  /** Note that a table leaves the cache. The caller holds dict_sys.latch exclusively.
  @param table    table without references
  @param evicted  whether InnoDB evicts it; false: it is dropped */
  void remove(const dict_table_t &table, bool evicted) noexcept
  {
    const uint32_t stat= table.stat;
    /* A table that nobody has used since it was loaded has no numbers of its own */
    if (evicted && !table.stat_initialized(stat))
      return;
    std::lock_guard<std::mutex> lock(mutex);
    if (!evicted || !table.stat_modified_counter ||
        !table.stats_is_persistent(stat) || !table.stats_is_auto_recalc(stat))
    {
      tables.erase(table.id);
      return;
    }
    if (tables.size() >= MAX_KEPT)
      tables.erase(tables.begin());
    /* Without memory the table loses its numbers, as in MariaDB */
    try { tables[table.id]= {table.stat_modified_counter, table.stat_n_rows}; }
    catch (const std::bad_alloc&) {}
  }

  /** Give a table its numbers back. The caller has just read its statistics from
  mysql.innodb_table_stats, and holds no stats_mutex. */
  void restore(dict_table_t *table) noexcept
  {
    numbers found;
    {
      std::lock_guard<std::mutex> lock(mutex);
      const auto kept= tables.find(table->id);
      if (kept == tables.end())
        return;
      found= kept->second;
      tables.erase(kept);
    }
    /* A user may have changed the option, and written the statistics */
    if (!table->stats_is_auto_recalc())
      return;
    table->stats_mutex_lock();
    table->stat_modified_counter+= found.n_changes;
    table->stat_n_rows= found.n_rows;
    table->stats_mutex_unlock();
  }

  /** Forget all tables, when InnoDB shuts down. */
  void clear() noexcept { tables.clear(); }
};

extern dict_changes_t dict_changes;
