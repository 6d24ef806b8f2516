/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: a thread that loads the buffer pool (include/buf0pace.h) sleeps only if other
  threads need the CPUs, and then until it has had no more than its share of them.
*/

#define DISABLE_PSI_MEMORY
#include <my_global.h>
#include <my_sys.h>
#include "tap.h"
#include "buf0pace.h"

/** How many thousand nanoseconds a thread sleeps, given the same of its times */
static uint64_t pause(uint64_t ran, uint64_t waited, uint64_t passed, unsigned n_cpus)
{
  return buf_load_pace_t::pause({ran * 1000, waited * 1000, passed * 1000}, n_cpus) /
    1000;
}

#ifdef __linux__
/** @return how long this thread has had a CPU, in nanoseconds */
static uint64_t cpu_time()
{
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return uint64_t(used.tv_sec) * 1000000000 + used.tv_nsec;
}
#endif

/** The times are those of this thread. */
static void test_now()
{
#ifdef __linux__
  buf_load_pace_t pace;
  const auto begin= pace.now();
  if (begin.passed)
  {
    const uint64_t end= cpu_time() + 100000000;
    while (cpu_time() < end);
    /* Linux brings the times up to date at its ticks */
    const auto times= pace.now() - begin;
    ok(times.ran > 30000000 && times.ran < 200000000,
       "a thread that has had a CPU for 100 milliseconds knows it: %llu ns",
       ulonglong(times.ran));
    return;
  }
#endif
  skip(1, "the system does not say how long a thread has waited for a CPU");
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(9);

  ok(pause(1000, 2000, 3000, 2) == 7000,
     "on two CPUs it sleeps until it has had one for a tenth of the time");
  ok(pause(1000, 2000, 3000, 4) == 2000, "on four CPUs, a fifth");
  ok(pause(1000, 2000, 3000, 1) == 17000 && pause(1000, 2000, 3000, 0) == 17000,
     "on one CPU, or if their number is not known, a twentieth");
  ok(!pause(1000, 1001, 2001, 10) && !pause(1000, 9000, 10000, 64),
     "on ten or more it does not sleep");
  ok(!pause(1000, 0, 1000, 2), "nor if it had a CPU for itself");
  ok(!pause(1000, 900, 1900, 2), "nor if it had one for most of the time");
  ok(!pause(8000, 400, 20000, 2), "nor if it waited for the disk instead");
  ok(pause(500000, 1000000, 1500000, 2) == 100000,
     "it sleeps for 100 milliseconds at most");

  test_now();

  my_end(0);
  return exit_status();
}
