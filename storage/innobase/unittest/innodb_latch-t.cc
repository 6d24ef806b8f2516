/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: threads that wait for a latch (sync/srw_lock.cc) sleep, and an owner wakes each
  of them.

  1. Readers wait while the latch passes from one exclusive owner to the next.  The number
     of their context switches must not depend on the time that the second owner keeps it.
  2. A few threads execute one operation each at the same moment, thousands of times.  They
     are so few that no later operation wakes a thread that an owner has forgotten.  If a
     thread sleeps for ever, SIGALRM ends the test.  Threads that exclude each other never
     have the latch together.

  Each test runs with a latch that spins before it sleeps, and with one that does not.
*/

#include <thread>
#include <vector>
#include <my_global.h>
#include <my_sys.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tap.h"
#include "sux_lock.h"

ulong srv_n_spin_wait_rounds= 30;
uint srv_spin_wait_delay= 4;

static constexpr unsigned WAITERS= 16;

/** @return number of voluntary context switches of the process */
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
@param waiting  set to the number of threads that still wait when the second owner has the
                latch
@return voluntary context switches while the second owner has the latch */
template<bool spinloop> static long handed_over(unsigned &waiting)
{
  static ssux_lock_impl<spinloop> latch;
  std::atomic<unsigned> begun{0}, admitted{0};
  std::atomic<long> during{0};

  latch.init();
  latch.wr_lock();
  std::vector<std::thread> threads;
  for (unsigned i= WAITERS; i--; )
    threads.emplace_back([&]
    { begun++; latch.rd_lock(); admitted++; latch.rd_unlock(); });
  threads.emplace_back([&]
  {
    while (begun < WAITERS)
      sleep_ms(1);
    begun++;
    latch.wr_lock();
    waiting= WAITERS - admitted;
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
  latch.destroy();
  return during;
}

/** One latch that threads use once in each round */
template<bool spinloop> class rounds
{
  static constexpr unsigned THREADS= 5, ROUNDS= 5000;
  /* init() relies on zeros */
  ssux_lock_impl<spinloop> latch{};
  std::atomic<unsigned> readers{0}, updaters{0}, writers{0};
  std::atomic<unsigned> arrived{0}, round{0};

  /** Keep the latch until other threads have come and sleep, or nearly so */
  static void let_others_come()
  {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  void shared()
  {
    readers++;
    if (writers)
      met++;
    let_others_come();
    readers--;
  }
  void update()
  {
    if (updaters++ || writers)
      met++;
    let_others_come();
    updaters--;
  }
  void exclusive()
  {
    if (writers++ || readers || updaters)
      met++;
    let_others_come();
    writers--;
  }

  void operation(unsigned which)
  {
    switch (which) {
    case 0:
      latch.wr_lock();
      exclusive();
      latch.wr_unlock();
      break;
    case 1:
      latch.u_lock();
      update();
      latch.u_wr_upgrade();
      exclusive();
      latch.wr_u_downgrade();
      update();
      latch.u_unlock();
      break;
    case 2:
      latch.wr_lock();
      exclusive();
      latch.wr_u_downgrade();
      latch.u_rd_downgrade();
      shared();
      latch.rd_unlock();
      break;
    case 3:
      if (!latch.wr_lock_try())
        break;
      exclusive();
      latch.wr_unlock();
      break;
    default:
      latch.rd_lock();
      shared();
      latch.rd_unlock();
    }
  }

  void work(unsigned seed)
  {
    for (unsigned n= 1; n <= ROUNDS; n++)
    {
      if (++arrived == THREADS)
      {
        arrived= 0;
        alarm(600);
        round= n;
      }
      else
        while (round < n)
          std::this_thread::yield();
      seed= seed * 1103515245 + 12345;
      operation(seed >> 16 & 7);
    }
  }

public:
  std::atomic<unsigned> met{0};
  bool vacant_at_the_end= false;

  rounds()
  {
    latch.init();
    std::vector<std::thread> threads;
    for (unsigned i= 0; i < THREADS; i++)
      threads.emplace_back([this, i]{ work(i + 1); });
    for (auto &thread : threads)
      thread.join();
    alarm(0);
    vacant_at_the_end= !latch.is_locked_or_waiting();
    latch.destroy();
  }
};

template<bool spinloop> static void test(const char *name)
{
  /* The second owner may get the latch when all readers have had it.  Such a round
  says nothing, so there are several. */
  long most= -1;
  for (unsigned i= 0; i < 100 && (i < 5 || most < 0); i++)
  {
    unsigned waiting= 0;
    const long during= handed_over<spinloop>(waiting);
    if (waiting >= WAITERS / 2 && during > most)
      most= during;
  }
  ok(most >= 0 && most < 50L * WAITERS, "%s: waiting readers sleep (%ld switches)",
     name, most);

  rounds<spinloop> used;
  ok(!used.met, "%s: exclusion", name);
  ok(used.vacant_at_the_end, "%s: nobody holds or waits at the end", name);
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(6);
  test<false>("sleeps at once");
  test<true>("spins first");
  my_end(0);
  return exit_status();
}
