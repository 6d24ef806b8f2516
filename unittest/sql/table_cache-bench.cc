/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Measures the core of the table cache, and a model of the design that it
  replaces. Prints one JSON object.

  A pair is an acquire and the release of the same object. Threads make pairs as
  fast as they can, on one share or on many in turn.

  The model, class Instances, does what MariaDB's table_cache.cc does for a hit,
  and nothing else:

  1. Each instance has a mutex and an LRU list.
  2. Each share has one free list for each instance, on a cache line of its own.
  3. The number of a connection gives its instance.
  4. A thread activates a further instance after 20,000 waits for a mutex that
     were not outnumbered by 80,000 acquisitions without a wait.

  The model is measured twice, as a control: 'instances' and 'again'.

  Threads are bound to the CPUs in turn. Two threads that the scheduler may move
  often end on one CPU, and then the rate says nothing about the cache.

  usage: table_cache-bench SECONDS core|instances THREADS...
  seconds of a measurement, which of the two designs is measured first, numbers
  of threads
*/

#include "my_global.h"
#include "my_sys.h"
#include "table_cache_objects.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

struct Test_user { ulonglong number, statement; };

typedef Test_access<Table_cache_machine> Access;
typedef Table_cache_core<Access> Core;
typedef I_P_List<Test_object, Access::Order_links, I_P_List_null_counter,
                 I_P_List_fast_push_back<Test_object> > Lru_list;

static const uint INSTANCES= 8;                 /* default of both designs */
static const ulong LIMIT= 100000;
static const Test_limit core_limit(LIMIT);
static const uint MANY= 1000;
static const ulonglong FIRST_TIME= 1000;

struct alignas(64) Instance_list
{
  Core::Free_list list;
};

struct Test_share
{
  std::atomic<bool> flushed;
  Core::Share part;                             /* in the core */
  Instance_list free[INSTANCES];                /* in the model */
};

template <> inline Core::Share *Access::share(Test_object *object)
{ return &object->share->part; }
template <> inline bool Access::flushed(Test_object *object)
{ return object->share->flushed; }

/** The model of the design that is replaced. */

class Instances
{
  struct alignas(64) Instance
  {
    mysql_mutex_t mutex;
    Lru_list lru;
    ulong records;
    uint waits, nowaits;
  };
  Instance instances[INSTANCES];
  std::atomic<uint> active;

public:
  Instances(): active(1)
  {
    for (Instance &i : instances)
    {
      mysql_mutex_init(0, &i.mutex, MY_MUTEX_INIT_FAST);
      i.records= 0;
      i.waits= i.nowaits= 0;
    }
  }
  ~Instances()
  {
    for (Instance &i : instances)
      mysql_mutex_destroy(&i.mutex);
  }

  Test_object *acquire(Test_share *share, Test_user *user)
  {
    uint n= active.load(std::memory_order_relaxed);
    Instance &i= instances[user->number % n];
    if (mysql_mutex_trylock(&i.mutex))
    {
      mysql_mutex_lock(&i.mutex);
      if (++i.waits == 20000)
      {
        if (n < INSTANCES)
          active.compare_exchange_weak(n, n + 1, std::memory_order_relaxed,
                                       std::memory_order_relaxed);
        i.waits= i.nowaits= 0;
      }
    }
    else if (++i.nowaits == 80000)
      i.waits= i.nowaits= 0;
    Test_object *object= share->free[user->number % n].list.pop_front();
    if (object)
    {
      object->user= user;
      i.lru.remove(object);
    }
    mysql_mutex_unlock(&i.mutex);
    return object;
  }

  void add(Test_object *object, Test_user *user)
  {
    object->number= user->number % active.load(std::memory_order_relaxed);
    Instance &i= instances[object->number];
    mysql_mutex_lock(&i.mutex);
    i.records++;
    mysql_mutex_unlock(&i.mutex);
  }

  void release(Test_object *object)
  {
    Instance &i= instances[object->number];
    mysql_mutex_lock(&i.mutex);
    if (object->share->flushed || i.records > LIMIT)
      abort();
    object->user= NULL;
    object->share->free[object->number].list.push_front(object);
    i.lru.push_back(object);
    mysql_mutex_unlock(&i.mutex);
  }
};


/** The same interface for the core. */

class Core_cache
{
  Core core;
  Table_cache_clock clock;
public:
  Core_cache()
  {
    core.init(my_getncpus(), 0);
  }
  void empty(Test_share *share)
  {
    Core::Free_list list;
    core.purge(&share->part, &list);
  }
  ~Core_cache() { core.destroy(); }

  Test_object *acquire(Test_share *share, Test_user *user)
  { return core.acquire(&share->part, user); }
  void add(Test_object *object, Test_user *)
  {
    bool room;
    if (core.add(object, FIRST_TIME, core_limit, &room))
      abort();
  }
  void release(Test_object *object)
  {
    if (core.release(object, clock.at(object->user->statement),
                     core_limit))
      abort();
  }
};


static double seconds;

/** Objects that were opened, to be freed when no list holds them any more. */
typedef std::vector<Test_object*> Opened;


/** Bind the calling thread to one of the CPUs that the process may use. */

static void bind_thread(ulonglong number)
{
#ifdef __linux__
  cpu_set_t usable, one;
  if (sched_getaffinity(getpid(), sizeof(usable), &usable))
    return;
  CPU_ZERO(&one);
  number%= CPU_COUNT(&usable);
  for (uint cpu= 0; cpu < CPU_SETSIZE; cpu++)
  {
    if (CPU_ISSET(cpu, &usable) && !number--)
      CPU_SET(cpu, &one);
  }
  pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
#endif
}


/** @return pairs a second */

template <class Cache>
static double measure(Cache *cache, Aligned_array<Test_share> &shares,
                      uint threads, Opened *all_opened)
{
  std::atomic<bool> stop(false), start(false);
  std::atomic<uint> ready(0);
  std::atomic<ulonglong> pairs(0);
  std::vector<Opened> opened(threads);
  std::vector<std::thread> list;

  for (ulonglong number= 0; number < threads; number++)
  {
    list.emplace_back([&, number]() {
      my_thread_init();
      bind_thread(number);
      Test_user user;
      user.number= number;
      user.statement= FIRST_TIME;
      ulonglong n= 0;
      size_t at= shares.size() * number / threads;
      ready++;
      while (!start)
        std::this_thread::yield();
      while (!stop.load(std::memory_order_relaxed))
      {
        for (uint i= 0; i < 100; i++)
        {
          Test_share *share= &shares[at];
          user.statement+= 10;              /* microseconds, as in a server */
          if (++at == shares.size())
            at= 0;
          Test_object *object= cache->acquire(share, &user);
          if (!object)
          {
            object= new Test_object();
            object->share= share;
            object->user= &user;
            opened[number].push_back(object);
            cache->add(object, &user);
          }
          cache->release(object);
          n++;
        }
      }
      pairs+= n;
      my_thread_end();
    });
  }
  while (ready < threads)
    std::this_thread::yield();
  ulonglong from= my_interval_timer();
  start= true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop= true;
  for (std::thread &t : list)
    t.join();
  double took= (double) (my_interval_timer() - from) / 1e9;

  for (Opened &mine : opened)
    all_opened->insert(all_opened->end(), mine.begin(), mine.end());
  return (double) pairs / took;
}


int main(int argc, char **argv)
{
  MY_INIT(argv[0]);
  if (argc < 4 || !((seconds= atof(argv[1])) > 0))
  {
    fprintf(stderr, "usage: %s SECONDS core|instances THREADS...\n", argv[0]);
    return 1;
  }

  const char *comma= "[";
  for (uint n_shares : {1U, MANY})
  {
    for (int n= 3; n < argc; n++)
    {
      uint threads= (uint) atoi(argv[n]);
      double instances, core, again;
      double *turns[]= { &instances, &core, &again };
      if (!strcmp(argv[2], "core"))
        std::swap(turns[0], turns[1]);
      for (double *result : turns)
      {
        Aligned_array<Test_share> shares(n_shares);
        for (Test_share &share : shares)
          share.flushed= false;
        Opened opened;
        if (result == &core)
        {
          Core_cache cache;
          *result= measure(&cache, shares, threads, &opened);
          for (Test_share &share : shares)
            cache.empty(&share);
        }
        else
        {
          Instances cache;
          *result= measure(&cache, shares, threads, &opened);
        }
        for (Test_object *object : opened)
          delete object;
      }
      printf("%s\n  {\"shares\": %u, \"threads\": %u, \"instances\": %.0f, "
             "\"core\": %.0f, \"again\": %.0f}",
             comma, n_shares, threads, instances, core, again);
      fflush(stdout);
      comma= ",";
    }
  }
  printf("\n]\n");
  my_end(0);
  return 0;
}
