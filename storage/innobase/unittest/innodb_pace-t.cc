/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: a thread that loads the buffer pool (include/buf0pace.h) sleeps only if other
  threads need the CPUs, and then until it has used no more than its share of them.
*/

#define DISABLE_PSI_MEMORY
#include <my_global.h>
#include <my_sys.h>
#include "tap.h"
#include "buf0pace.h"

using usage= buf_load_pace_t::usage;

static uint64_t pause(usage used, unsigned n_cpus)
{
  return buf_load_pace_t::pause(used, n_cpus);
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(9);

  ok(pause({1000, 3000, 0, 1}, 2) == 7000,
     "on two CPUs it sleeps until it has used a tenth of the time");
  ok(pause({1000, 3000, 0, 1}, 4) == 2000, "on four CPUs, a fifth");
  ok(pause({1000, 3000, 0, 1}, 1) == 17000 && pause({1000, 3000, 0, 1}, 0) == 17000,
     "on one CPU, or if their number is not known, a twentieth");
  ok(!pause({1000, 2000, 0, 1}, 11) && !pause({1000, 3000, 0, 9}, 64),
     "on more than ten it does not sleep");
  ok(!pause({1000, 3000, 9, 0}, 2), "nor if no other thread took the CPU from it");
  ok(!pause({1000, 1900, 0, 1}, 2), "nor if it had the CPU for most of the time");
  ok(!pause({1000, 10000, 50, 1}, 2), "nor if it waited for the disk instead");
  ok(pause({500000, 1500000, 0, 100}, 2) == 100000,
     "it sleeps for 100 milliseconds at most");

  const usage begin= usage::now();
  if (!begin.time)
    skip(1, "the system does not say what a thread has used");
  else
  {
    usage used;
    do
    {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      used= usage::now() - begin;
    }
    while (!used.cpu);
    ok(used.waits && used.time >= used.waits * 100,
       "a thread that sleeps gives up the CPU and uses some of it");
  }

  my_end(0);
  return exit_status();
}
