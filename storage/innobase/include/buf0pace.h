/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/buf0pace.h
How much of the CPUs the load of the buffer pool takes while statements need them.

After a start, threads that load the pool compete with connections for the CPUs. Whatever
a statement needs it opens and reads itself. So if the CPUs are busy, it is better that
the load takes longer, and few statements wait for it.

Each thread of the load calls buf_load_pace_t::give_way() after each millisecond of work
or so. The thread sleeps if

 1. another thread has taken the CPU from it,
 2. it has had the CPU for less than half of the time, and
 3. it has used more than its share: a twentieth of all CPUs, so half of one CPU if there
    are ten.

A thread that has a CPU for itself does not sleep because of 1 and 2, and one that waits
for the disk most of the time because of 3. If there are more than ten CPUs, no thread
sleeps.
*/

#ifndef buf0pace_h
#define buf0pace_h

#include "univ.i"
#include "my_sys.h"
#include <algorithm>
#include <chrono>
#include <thread>
#ifdef HAVE_GETRUSAGE
# include <sys/resource.h>
#endif

/** The pace of one thread. No other thread uses the object. */
class buf_load_pace_t
{
public:
  /** What the thread has used */
  struct usage
  {
    /** time on a CPU, in microseconds */
    uint64_t cpu;
    /** time, in microseconds */
    uint64_t time;
    /** how often the thread gave up the CPU to wait */
    uint64_t waits;
    /** how often another thread took the CPU from it */
    uint64_t lost;

    usage operator-(const usage &u) const noexcept
    { return {cpu - u.cpu, time - u.time, waits - u.waits, lost - u.lost}; }
    /** @return what this thread has used until now; zeros if the system does not say */
    static usage now() noexcept
    {
#ifdef RUSAGE_THREAD
      struct rusage r;
      if (!getrusage(RUSAGE_THREAD, &r))
        return {
          uint64_t(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 +
            uint64_t(r.ru_utime.tv_usec + r.ru_stime.tv_usec),
          microsecond_interval_timer(), uint64_t(r.ru_nvcsw),
          uint64_t(r.ru_nivcsw)};
#endif
      return {0, 0, 0, 0};
    }
  };

  /** @return for how many microseconds a thread should sleep
  @param used    what it has used since it slept last
  @param n_cpus  number of CPUs */
  static uint64_t pause(const usage &used, unsigned n_cpus) noexcept
  {
    if (!used.lost || used.time < 2 * used.cpu)
      return 0;
    const uint64_t wanted= used.cpu * SHARE / std::max(n_cpus, 1U);
    return wanted > used.time ? std::min(wanted - used.time, +MAX_PAUSE) : 0;
  }

  /** Sleep if statements need the CPUs: for at most 100 milliseconds. */
  void give_way() noexcept
  {
    const usage used= usage::now() - begin;
    if (const uint64_t us= pause(used, unsigned(my_getncpus())))
      std::this_thread::sleep_for(std::chrono::microseconds(us));
    else if (used.time < JUDGED)
      return;
    begin= usage::now();
  }

private:
  /** 1 / the part of all CPUs that a thread may use while others need them */
  static constexpr uint64_t SHARE= 20;
  /** A sleep, in microseconds; so a shutdown does not wait for long */
  static constexpr uint64_t MAX_PAUSE= 100000;
  /** What happened longer ago than this does not count; in microseconds */
  static constexpr uint64_t JUDGED= 20000;

  /** what the thread had used when it slept last, or at most JUDGED ago */
  usage begin= usage::now();
};

#endif
