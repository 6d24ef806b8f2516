#ifndef TABLE_CACHE_MACHINE_INCLUDED
#define TABLE_CACHE_MACHINE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The table cache's view of the machine: on which CPU a thread runs, which shard
  each CPU uses, and a clock that all CPUs share.

  table_cache_core.h takes these as template parameters, so that a test can put
  its own in their place.
*/

#include "my_global.h"
#include "my_sys.h"
#include <my_rdtsc.h>
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

  /** A clock that all CPUs share. It has no unit. */
  static ulonglong now()
  {
#if MY_TIMER_ROUTINE_CYCLES
    return my_timer_cycles();
#else
    return my_interval_timer();
#endif
  }

  /** The core has locked the mutex of a shard. A test counts these. */
  static void locked() {}
  /** evict() has read the bound of a shard. A test goes on from here. */
  static void has_read_bound(uint) {}

  /**
    Deal out CPUs to shards.

    1. The CPUs that this process may use now: each shard gets a block of
       consecutive numbers. On most machines these CPUs share more of their
       caches than other CPUs do.
    2. The CPUs that the process may get later, when it is given a larger set or
       a CPU is plugged in: the shards get them in turn.

    @param max_shards         upper bound
    @param usable             may this process use this CPU now?
    @param cpus               how many of these there are
    @param[out] map           shard of each of MAX_CPUS CPUs
    @param[out] one_cpu_each  no two usable CPUs have the same shard
    @return number of shards
  */
  template <class Usable>
  static uint deal_out(uint max_shards, const Usable &usable, uint cpus,
                       uchar *map, bool *one_cpu_each)
  {
    const uint n= MY_MIN(max_shards, cpus);
    *one_cpu_each= n == cpus;
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
  static uint map_cpus(uint max_shards, uchar *map, bool *one_cpu_each)
  {
#ifdef __linux__
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof(set), &set))
      return deal_out(max_shards, [&](uint cpu_no) {
                        return cpu_no < CPU_SETSIZE && CPU_ISSET(cpu_no, &set);
                      }, CPU_COUNT(&set), map, one_cpu_each);
#endif
    const uint cpus= MY_MAX(my_getncpus(), 1);
    return deal_out(max_shards, [&](uint cpu_no) { return cpu_no < cpus; },
                    cpus, map, one_cpu_each);
  }
};

#endif /* TABLE_CACHE_MACHINE_INCLUDED */
