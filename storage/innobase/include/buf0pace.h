/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/buf0pace.h
How much of the CPUs the load of the buffer pool takes while statements need them.

After a start, threads that load the pool compete with connections for the CPUs. Whatever
a statement needs it opens and reads itself. So if the CPUs are busy, it is better that
the load takes longer, and few statements wait for it.

Each thread of the load calls buf_load_pace_t::give_way() after each millisecond of work
or so. The thread sleeps if

 1. it has waited for a CPU, while other threads had it, for longer than it has
    run, and
 2. it has run for more than its share: a twentieth of the time of all CPUs, so
    half of the time if there are ten.

The time during which the thread waited for the disk or for a mutex does not count in 1.
If there are ten CPUs or more, no thread sleeps, since 1 implies that 2 is false.

The limit of a control group is not a CPU that other threads have: a server in a container
does not sleep because of it. Only Linux says how long a thread has waited for a CPU; on
other systems no thread sleeps.
*/

#ifndef buf0pace_h
#define buf0pace_h

#include "univ.i"
#include "my_sys.h"
#include <algorithm>
#include <chrono>
#include <thread>
#ifdef __linux__
# include <fcntl.h>
# include <unistd.h>
#endif

/** The pace of one thread, which creates the object. No other thread uses it. */
class buf_load_pace_t
{
public:
  /** Times of a thread, in nanoseconds */
  struct usage
  {
    /** how long it has had a CPU */
    uint64_t ran;
    /** how long it has waited for a CPU */
    uint64_t waited;
    /** time that has passed */
    uint64_t passed;

    usage operator-(const usage &u) const noexcept
    { return {ran - u.ran, waited - u.waited, passed - u.passed}; }
  };

  buf_load_pace_t() noexcept
  {
#ifdef __linux__
    file= open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
#endif
    begin= now();
  }
  ~buf_load_pace_t()
  {
#ifdef __linux__
    if (file >= 0)
      close(file);
#endif
  }
  buf_load_pace_t(const buf_load_pace_t&)= delete;
  void operator=(const buf_load_pace_t&)= delete;

  /** @return the times of this thread until now; zeros if the system does not say */
  usage now() const noexcept
  {
#ifdef __linux__
    char text[64];
    const ssize_t len= file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
    if (len > 0)
    {
      /* See Documentation/scheduler/sched-stats.rst of Linux */
      text[len]= '\0';
      char *end;
      const uint64_t ran= strtoull(text, &end, 10);
      return {ran, strtoull(end, nullptr, 10), my_interval_timer()};
    }
#endif
    return {0, 0, 0};
  }

  /** @return for how many nanoseconds a thread should sleep
  @param used    its times since it slept last
  @param n_cpus  number of CPUs */
  static uint64_t pause(const usage &used, unsigned n_cpus) noexcept
  {
    if (used.waited <= used.ran)
      return 0;
    const uint64_t wanted= used.ran * SHARE / std::max(n_cpus, 1U);
    return wanted > used.passed
      ? std::min(wanted - used.passed, +MAX_PAUSE) : 0;
  }

  /** Sleep if statements need the CPUs: for at most 100 milliseconds. */
  void give_way() noexcept
  {
    const usage used= now() - begin;
    if (const uint64_t ns= pause(used, unsigned(my_getncpus())))
      std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    else if (used.passed < JUDGED)
      return;
    begin= now();
  }

private:
  /** 1 / the part of all CPUs that a thread may have while others need them */
  static constexpr uint64_t SHARE= 20;
  /** Longest sleep, in nanoseconds, so that a shutdown does not wait long */
  static constexpr uint64_t MAX_PAUSE= 100000000;
  /** What happened longer ago than this does not count; in nanoseconds */
  static constexpr uint64_t JUDGED= 20000000;

#ifdef __linux__
  /** what the kernel says about this thread, or -1 */
  int file;
#endif
  /** the times of the thread when it slept last, or at most JUDGED ago */
  usage begin;
};

#endif
