/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Which table should make room? A simulation of policies of insertion, for
  working sets of several kinds together with a crawler. This is not a test: it
  prints misses.

    table_cache-policy [CACHE [TABLES [ACCESSES]]]

  The policies:

    lru       a released table is the last to be evicted
    twice     tables that were used only once since they were opened are evicted
              before tables that were used more often, both in the order of
              their release
    midpoint  the same, but at most five eighths of the cache are for tables
              that were used more often; beyond that, the one of them that was
              released longest ago joins the tables that were used once

  The columns are misses for 1,000 accesses of the users; accesses of the crawler
  are not counted. The program simulates the policies with plain lists. It runs
  lru and twice on the core (table_cache_core.h) as well, and fails if a hit
  ratio of the core differs from that of the lists by more than 0.1 percentage
  points.

  The last table compares the hit ratios of the core with those of exact LRU, for
  several times between two accesses: tables that were released in the same tick
  (Table_cache_core::TICK) may be evicted in any order.
*/

#include "table_cache_objects.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
#include <vector>

static ulonglong sim_clock= 1 << 20;
/** Microseconds between two accesses. */
static uint sim_step= 40;

struct Sim_machine
{
  static uint cpu() { return 0; }
};

typedef Test_access<Sim_machine> Access;
typedef Table_cache_core<Access> Core;
struct Test_user {};
struct Test_share { Core::Share part; };
template <> Core::Share *Access::share(Test_object *object)
{ return &object->share->part; }
template <> bool Access::flushed(Test_object *) { return false; }

/** The largest difference between the core and the model. */
static double most_different;

enum Policy { LRU, TWICE, MIDPOINT, POLICIES };


/** The core, used by one thread. */
struct Core_cache
{
  Core core;
  Test_user user;
  Aligned_array<Test_share> shares;
  Test_limit limit;
  bool twice;

  Core_cache(Policy policy, uint tables, ulong limit_arg):
    shares(tables), limit(limit_arg), twice(policy == TWICE)
  {
    core.init(1, 0);
  }

  ~Core_cache()
  {
    limit= 0;
    Core::Free_list list;
    while (core.evict(&user, limit, 1, &list))
      delete list.pop_front();
    core.destroy();
  }

  /** @return true if the table had to be opened */
  bool use(uint table)
  {
    Test_object *object= core.acquire(&shares[table].part, &user);
    const bool miss= !object;
    if (miss)
    {
      object= new Test_object();
      object->share= &shares[table];
      object->user= &user;
      bool room;
      delete core.add(object, sim_clock, limit, &room);
    }
    object->uses++;
    object->stamp= 0;
    sim_clock+= sim_step;
    core.release(object, twice && object->uses == 1 ? Core::EVICT_FIRST :
                                                      sim_clock,
                 limit);
    return miss;
  }
};


/** The same, and midpoint, with nothing but lists. */
struct Model_cache
{
  enum { OUT, PROBATION, KEPT };
  struct Known { int where; std::list<uint>::iterator it; };
  std::vector<Known> known;
  std::list<uint> probation, kept;      /* Front: to be evicted next */
  Policy policy;
  ulong limit, max_kept;

  Model_cache(Policy policy_arg, uint tables, ulong limit_arg):
    known(tables, Known{OUT, {}}), policy(policy_arg), limit(limit_arg),
    max_kept(policy == MIDPOINT ? limit * 5 / 8 : limit)
  {}

  void put(uint table, int where)
  {
    std::list<uint> &list= where == KEPT ? kept : probation;
    known[table]= Known{ where, list.insert(list.end(), table) };
  }

  bool use(uint table)
  {
    Known &k= known[table];
    const bool miss= k.where == OUT;
    if (!miss)
      (k.where == KEPT ? kept : probation).erase(k.it);
    else if (probation.size() + kept.size() >= limit)
    {
      std::list<uint> &list= probation.empty() ? kept : probation;
      known[list.front()].where= OUT;
      list.pop_front();
    }
    put(table, miss && policy != LRU ? PROBATION : KEPT);
    if (kept.size() > max_kept)
    {
      uint oldest= kept.front();
      kept.pop_front();
      put(oldest, PROBATION);
    }
    return miss;
  }
};


/** xorshift64*: the same everywhere. */
struct Random
{
  ulonglong state;
  explicit Random(ulonglong s): state(s) {}
  double operator()()
  {
    state^= state >> 12;
    state^= state << 25;
    state^= state >> 27;
    return (double) ((state * 2685821657736338717ULL) >> 11) / 9007199254740992.;
  }
  uint operator()(uint n) { return (uint) ((*this)() * n); }
};


/** Numbers below n, of which number i has the weight 1 / (i + 1)^s. */
struct Zipf
{
  std::vector<double> sum;
  std::vector<uint> number;             /* in an order of chance */
  Zipf(uint n, double s, Random &random): sum(n), number(n)
  {
    double total= 0;
    for (uint i= 0; i < n; i++)
    {
      sum[i]= total+= pow(i + 1, -s);
      number[i]= i;
    }
    shuffle(random);
  }
  void shuffle(Random &random)
  {
    for (uint i= (uint) number.size(); i > 1; i--)
      std::swap(number[i - 1], number[random(i)]);
  }
  uint operator()(Random &random) const
  {
    double x= random() * sum.back();
    size_t i= std::lower_bound(sum.begin(), sum.end(), x) - sum.begin();
    return number[std::min(i, sum.size() - 1)];
  }
};


struct Use { uint table; bool crawler; };
typedef std::vector<Use> Trace;

static uint cache_size= 2000, tables= 20000, accesses= 2000000;

/** Users by next(), and between them a crawler that uses each table in turn. */
static Trace crawl(Random &random, double part, uint repeat,
                   const std::function<uint()> &next)
{
  Trace trace;
  uint at= 0, again= 0;
  while (trace.size() < accesses)
  {
    if (random() < part)
    {
      trace.push_back({ at % tables, true });
      if (++again == repeat)
      {
        at++;
        again= 0;
      }
    }
    else
      trace.push_back({ next(), false });
  }
  return trace;
}


/** Pages of sites of 12 tables: 20 statements, which use 7 of the tables. */
static Trace pages(Random &random, double part)
{
  const uint sites= tables / 12;
  Zipf zipf(sites, 1, random);
  Trace trace;
  uint at= 0;
  while (trace.size() < accesses)
  {
    const bool crawler= random() < part;
    const uint site= crawler ? at++ % sites : zipf(random);
    const uint first= random(12);
    for (uint i= 0; i < 20; i++)
      trace.push_back({ site * 12 + (first + i % 7) % 12, crawler });
  }
  return trace;
}


static void run(const char *name, const Trace &trace)
{
  double misses[POLICIES];
  for (uint policy= 0; policy < POLICIES; policy++)
  {
    Model_cache model((Policy) policy, tables, cache_size);
    Core_cache core((Policy) policy, tables, cache_size);
    ulong n= 0, missed= 0, core_missed= 0;
    for (size_t i= 0; i < trace.size(); i++)
    {
      const bool miss= model.use(trace[i].table),
                 core_miss= policy != MIDPOINT && core.use(trace[i].table);
      if (i >= trace.size() / 5 && !trace[i].crawler)
      {
        n++;
        missed+= miss;
        core_missed+= core_miss;
      }
    }
    if (policy != MIDPOINT && n)
    {
      /* Of the hit ratio, in percentage points. */
      const double differs= 100. * fabs((double) core_missed -
                                        (double) missed) / (double) n;
      set_if_bigger(most_different, differs);
    }
    misses[policy]= n ? 1000. * (double) missed / (double) n : 0;
  }
  printf("%-52s %7.1f %7.1f %7.1f\n", name, misses[LRU], misses[TWICE],
         misses[MIDPOINT]);
}


/** Print the hit ratio of the core, and that of exact LRU. */
static void compare(uint n_tables, uint limit, double s, uint step)
{
  Random random(22);
  Zipf zipf(n_tables, s, random);
  Model_cache model(LRU, n_tables, limit);
  Core_cache core(LRU, n_tables, limit);
  ulong n= 0, missed= 0, core_missed= 0;
  sim_step= step;
  for (uint i= 0; i < 600000; i++)
  {
    const uint table= zipf(random);
    const bool miss= model.use(table), core_miss= core.use(table);
    if (i < 200000)
      continue;
    n++;
    missed+= miss;
    core_missed+= core_miss;
  }
  const double hits= 1 - (double) missed / (double) n,
               core_hits= 1 - (double) core_missed / (double) n;
  printf("%8u %8u %6.1f %6u %9.4f %9.4f\n", n_tables, limit, s, step, core_hits,
         hits);
  set_if_bigger(most_different, 100 * fabs(core_hits - hits));
}


int main(int argc, char **argv)
{
  MY_INIT(argv[0]);
  if (argc > 1)
    cache_size= (uint) atoi(argv[1]);
  if (argc > 2)
    tables= (uint) atoi(argv[2]);
  if (argc > 3)
    accesses= (uint) atoi(argv[3]);
  printf("cache %u, tables %u; misses for 1,000 accesses of the users\n%-52s "
         "%7s %7s %7s\n", cache_size, tables, "", "lru", "twice", "midpoint");
  char name[80];
  for (double s : { 0.8, 1.0, 1.2 })
  {
    for (double part : { 0.0, 0.05, 0.2, 0.5 })
    {
      Random random(22);
      Zipf zipf(tables, s, random);
      snprintf(name, sizeof(name), "Zipf %.1f, crawler %.0f %%", s, 100 * part);
      run(name, crawl(random, part, 1, [&]() { return zipf(random); }));
    }
  }
  {
    Random random(22);
    Zipf zipf(tables, 1, random);
    run("Zipf 1.0, crawler 20 %, three uses of each table",
        crawl(random, 0.2, 3, [&]() { return zipf(random); }));
  }
  for (double part : { 0.0, 0.2, 0.5 })
  {
    Random random(22);
    snprintf(name, sizeof(name), "pages of sites, Zipf 1.0, crawler %.0f %%",
             100 * part);
    run(name, pages(random, part));
  }
  for (double part : { 0.0, 0.2, 0.5 })
  {
    Random random(22);
    snprintf(name, sizeof(name), "half a cache of tables, evenly, crawler %.0f %%",
             100 * part);
    run(name, crawl(random, part, 1,
                    [&]() { return random(cache_size / 2); }));
  }
  for (uint every : { 10 * cache_size, 100 * cache_size })
  {
    Random random(22);
    Zipf zipf(tables, 1, random);
    uint n= 0;
    snprintf(name, sizeof(name), "Zipf 1.0, other tables after %u uses", every);
    run(name, crawl(random, 0, 1, [&]() {
      if (++n % every == 0)
        zipf.shuffle(random);
      return zipf(random);
    }));
  }
  for (double wide : { 0.9, 1.05, 1.25 })
  {
    Random random(22);
    const uint width= (uint) (cache_size * wide);
    uint at= 0, n= 0, base= 0;
    snprintf(name, sizeof(name), "%.2f caches of tables, evenly", wide);
    run(name, crawl(random, 0, 1, [&]() { return random(width); }));
    snprintf(name, sizeof(name), "%.2f caches of tables, in turn", wide);
    run(name, crawl(random, 0, 1, [&]() { return at++ % width; }));
    snprintf(name, sizeof(name), "%.2f caches of tables, evenly, others each %u",
             wide, 20 * width);
    run(name, crawl(random, 0, 1, [&]() {
      if (++n % (20 * width) == 0)
        base+= width;
      return (base + random(width)) % tables;
    }));
  }
  printf("%8s %8s %6s %6s %9s %9s\n", "tables", "cache", "Zipf", "us", "core",
         "exact");
  for (uint step : { 10, 40, 1000 })
  {
    compare(20000, 4000, 1, step);
    compare(20000, 1000, 1, step);
    compare(20000, 1000, 0, step);
    compare(20000, 64, 1, step);
    compare(100000, 16384, 1, step);
    compare(1000, 400, 0.8, step);
  }
  printf("hit ratios of the core differ by %.4f points at most\n",
         most_different);
  my_end(0);
  return most_different > 0.1;
}
