#ifndef TABLE_CACHE_MACHINE_INCLUDED
#define TABLE_CACHE_MACHINE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table cache's view of the machine: the CPU that runs a thread, and the
  time. A test can supply its own.
*/

#include "my_global.h"
#include <atomic>
#ifdef __linux__
#include <sched.h>
#endif


struct Table_cache_machine
{
  /** Number of the CPU that runs this thread, which may change at any time. */
  static uint cpu()
  {
#ifdef __linux__
    return (uint) MY_MAX(sched_getcpu(), 0);
#else
    return 0;
#endif
  }
};


/**
  The time of a release, without reading a clock. It is the later one of two
  times, in the same unit:

  1. the start of the statement;
  2. a time at most RESOLUTION before the start of the newest statement that has
     released an object. So an object that a long statement releases counts as
     new, like the objects that other statements release at that time.
*/

class alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) Table_cache_clock
{
  /**
    Every release reads this, so nothing else is in this cache line and the next.
    About one release per RESOLUTION of time writes it. Relaxed: if a thread sees a
    value late, or two threads write at once and the older time stays, the objects
    that are released then only look older by that difference.
  */
  std::atomic<ulonglong> recent;

public:
  /** In microseconds, if that is the unit. */
  static constexpr ulonglong RESOLUTION= 1 << 16;

  Table_cache_clock(): recent(0) {}

  /** @param statement  when the caller's statement began */
  ulonglong at(ulonglong statement)
  {
    const ulonglong last= recent.load(std::memory_order_relaxed);
    if (unlikely(statement > last + RESOLUTION))
      recent.store(statement, std::memory_order_relaxed);
    return MY_MAX(statement, last);
  }
};

#endif /* TABLE_CACHE_MACHINE_INCLUDED */
