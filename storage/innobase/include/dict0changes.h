/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/dict0changes.h
Keep the count of changed rows of a table when InnoDB evicts its definition.

InnoDB calculates the persistent statistics of a table again when a tenth of its rows
has changed.  dict_table_t::stat_modified_counter counts these changes, and the eviction
of the definition frees it.  Without this file, a table that InnoDB evicts more often
than a tenth of it changes would keep its old statistics for ever.

1. When a table is evicted, dict_sys_t::remove() notes its count here.
2. When a thread has read the stored statistics of the table again,
   ha_innobase::statistics_init() gives the count back to it.
3. DROP TABLE forgets it.

The number of rows is not kept: the stored one is at most a tenth off, and a user may
have written another one there.

Tables whose identifiers are equal modulo CELLS share a cell.  The cell has the count of
the table that InnoDB evicted last, and the counts of the others are lost.  A count that
is lost or wrong does little harm: InnoDB calculates the statistics of that table earlier
or later than it would. */

#pragma once

#include "dict0mem.h"
#include <mutex>

class dict_changes_t
{
  static constexpr size_t CELLS= 65536;

  /** Protects cells. A thread holds it for one access, and acquires nothing meanwhile. */
  std::mutex mutex;
  /** 1 MiB, of which pages that no thread has written to take no memory. A cell without
  a table has the identifier 0. */
  struct { table_id_t id; uint64_t n_changes; } cells[CELLS];

public:
  /** Note that a table leaves the cache. The caller holds dict_sys.latch exclusively.
  @param table    table without references
  @param evicted  true: the table stays in the database; false: it may be gone */
  void remove(const dict_table_t &table, bool evicted) noexcept
  {
    const uint32_t stat= table.stat;
    /* Temporary tables have identifiers of their own. A table that nobody has used
    since it was loaded has no count of its own. */
    if (table.is_temporary() || (evicted && !table.stat_initialized(stat)))
      return;
    const bool counts= evicted && table.stats_is_persistent(stat) &&
      table.stats_is_auto_recalc(stat) && table.stat_modified_counter;
    std::lock_guard<std::mutex> lock(mutex);
    auto &cell= cells[table.id % CELLS];
    if (counts)
    {
      cell.id= table.id;
      cell.n_changes= table.stat_modified_counter;
    }
    else if (cell.id == table.id)
      cell.id= 0;
  }

  /** Give a table its count back. The caller has a reference to the table, has just
  read its statistics from mysql.innodb_table_stats, and does not hold stats_mutex. */
  void restore(dict_table_t *table) noexcept
  {
    uint64_t n_changes;
    {
      std::lock_guard<std::mutex> lock(mutex);
      auto &cell= cells[table->id % CELLS];
      if (cell.id != table->id)
        return;
      cell.id= 0;
      n_changes= cell.n_changes;
    }
    table->stats_mutex_lock();
    table->stat_modified_counter+= n_changes;
    table->stats_mutex_unlock();
  }

  /** Forget all tables, when InnoDB shuts down: the process may open another database. */
  void clear() noexcept
  {
    for (auto &cell : cells)
      if (cell.id)
        cell.id= 0;
  }
};

extern dict_changes_t dict_changes;
