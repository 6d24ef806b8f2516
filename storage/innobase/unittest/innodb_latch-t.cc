/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Threads that wait for a latch (sync/srw_lock.cc): they sleep, and each is woken.

  First, threads that wait for a shared latch while it goes from one exclusive owner to
  the next: how often they give up the CPU must not depend on how long the second one
  keeps it.  Then random operations on one latch by many threads: two that exclude each
  other never meet, and as the test ends, no thread was forgotten.
*/

#include <thread>
#include <vector>
#include <my_global.h>
#include <my_sys.h>
#include <sys/resource.h>
#include "tap.h"
#include "sux_lock.h"

ulong srv_n_spin_wait_rounds= 30;
uint srv_spin_wait_delay= 4;

static constexpr unsigned WAITERS= 16;
static srw_lock_low latch;

/** @return how often the process has given up the CPU by itself */
static long switches()
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

static void sleep_ms(unsigned ms)
{
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

/** Let threads wait for a shared latch that two threads own exclusively, one after
the other.
@return voluntary context switches while the second one has it */
static long handed_over()
{
  std::atomic<unsigned> begun{0};
  std::atomic<long> during{0};

  latch.wr_lock();
  std::vector<std::thread> threads;
  for (unsigned i= WAITERS; i--; )
    threads.emplace_back([&]
    { begun++; latch.rd_lock(); latch.rd_unlock(); });
  threads.emplace_back([&]
  {
    while (begun < WAITERS)
      sleep_ms(1);
    begun++;
    latch.wr_lock();
    const long before= switches();
    sleep_ms(200);
    during= switches() - before;
    latch.wr_unlock();
  });
  while (begun <= WAITERS)
    sleep_ms(1);
  sleep_ms(50);
  latch.wr_unlock();
  for (auto &thread : threads)
    thread.join();
  return during;
}

static std::atomic<unsigned> readers, updaters, writers;
static std::atomic<unsigned> met;

static void enter(std::atomic<unsigned> &mine, bool alone, bool no_update)
{
  mine++;
  if ((alone && (readers + updaters + writers != 1)) ||
      (!alone && writers) || (no_update && updaters != 1))
    met++;
}

static void random_operations(unsigned seed)
{
  for (unsigned i= 20000; i--; )
  {
    seed= seed * 1103515245 + 12345;
    switch (seed >> 16 & 7) {
    case 0:
      latch.wr_lock();
      enter(writers, true, false);
      writers--;
      latch.wr_unlock();
      break;
    case 1:
      latch.u_lock();
      enter(updaters, false, true);
      updaters--;
      latch.u_wr_upgrade();
      enter(writers, true, false);
      writers--;
      latch.wr_u_downgrade();
      enter(updaters, false, true);
      if (seed >> 24 & 1)
        std::this_thread::yield();
      updaters--;
      latch.u_unlock();
      break;
    default:
      latch.rd_lock();
      enter(readers, false, false);
      if (!(seed >> 24 & 15))
        std::this_thread::yield();
      readers--;
      latch.rd_unlock();
    }
  }
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(3);
  latch.init();

  /* The second owner may get the latch when all readers have had it.  Then nobody
  waits, and the round says nothing; so there are several. */
  long most= 0;
  for (unsigned i= 10; i--; )
  {
    const long during= handed_over();
    if (during > most)
      most= during;
  }
  ok(most < 50L * WAITERS, "waiting readers sleep (%ld switches)", most);

  std::vector<std::thread> threads;
  for (unsigned i= 0; i < WAITERS; i++)
    threads.emplace_back(random_operations, i);
  for (auto &thread : threads)
    thread.join();
  ok(met == 0, "exclusion");
  ok(!latch.is_locked_or_waiting(), "each thread was woken");

  latch.destroy();
  my_end(0);
  return exit_status();
}
