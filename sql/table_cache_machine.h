#ifndef TABLE_CACHE_MACHINE_INCLUDED
#define TABLE_CACHE_MACHINE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table cache's view of the machine: on which CPU a thread runs, and which
  shard each CPU uses.

  The core (table_cache_core.h) gets the CPU from its template parameter A, and
  the shard of each CPU from the caller of init(). A test can supply its own.
*/

#include "my_global.h"
#include "my_sys.h"
#include <atomic>

#ifdef __linux__
#include <sched.h>
#ifdef __has_include
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#ifdef RSEQ_SIG                 /* else the C library does not register it */
#define TABLE_CACHE_HAVE_RSEQ
#endif
#endif
#endif
#endif


struct Table_cache_machine
{
  /** CPUs with higher numbers share the entries of those with lower ones. */
  static constexpr uint MAX_CPUS= 1024;

  /** Number of the CPU that runs this thread, which may change at any time. */
  static uint cpu()
  {
#ifdef __linux__
#ifdef TABLE_CACHE_HAVE_RSEQ
    /* The kernel keeps the number up to date here: one load, and no call. */
    int cpu_id= *reinterpret_cast<volatile const int*>
      (static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset +
       offsetof(struct rseq, cpu_id));
    if (likely(cpu_id >= 0))
      return cpu_id;
#endif
    int cpu_no= sched_getcpu();
    return cpu_no < 0 ? 0 : cpu_no;
#else
    /* Not known: deal the threads out, like MariaDB deals out connections. */
    static std::atomic<uint> threads;
    static thread_local uint number= threads.fetch_add(1);
    return number;
#endif
  }

  /**
    Deal out CPUs to shards.

    1. The CPUs that this process may use now: each shard gets a block of
       consecutive numbers. On most machines these CPUs share more of their
       caches than other CPUs do.
    2. The CPUs that the process may get later, when it is given a larger set or
       a CPU is plugged in: the shards get them in turn.

    @param max_shards  upper bound
    @param usable      may this process use this CPU now?
    @param cpus        how many of these there are
    @param[out] map    shard of each of MAX_CPUS CPUs
    @return number of shards
  */
  template <class Usable>
  static uint deal_out(uint max_shards, const Usable &usable, uint cpus,
                       uchar *map)
  {
    const uint n= MY_MIN(max_shards, cpus);
    for (uint cpu_no= 0, seen= 0; cpu_no < MAX_CPUS; cpu_no++)
    {
      if (usable(cpu_no) && seen < cpus)
        map[cpu_no]= (uchar) (seen++ * n / cpus);
      else
        map[cpu_no]= (uchar) (cpu_no % n);
    }
    return n;
  }

  /** deal_out() with the CPUs of this machine that this process may use. */
  static uint map_cpus(uint max_shards, uchar *map)
  {
#ifdef __linux__
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof(set), &set))
      return deal_out(max_shards, [&](uint cpu_no) {
                        return cpu_no < CPU_SETSIZE && CPU_ISSET(cpu_no, &set);
                      }, CPU_COUNT(&set), map);
#endif
    const uint cpus= MY_MAX(my_getncpus(), 1);
    return deal_out(max_shards, [&](uint cpu_no) { return cpu_no < cpus; },
                    cpus, map);
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

class Table_cache_clock
{
  /** Every release reads this. About one per RESOLUTION of time writes it. */
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
