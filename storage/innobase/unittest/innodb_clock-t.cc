/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Tests of the clock that chooses the file to close (include/fil0clock.h), without the
  server:

  1. Each rule alone.
  2. Random operations, compared with a model: a list in the order in which the hand
     reaches the files, and a count for each file.
  3. The share of uses that find their file open, compared with a cache that closes files
     in the order of opening.
  4. Threads that use files while the hand moves, for ThreadSanitizer.
*/

#include <my_global.h>
#include <tap.h>
#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <thread>
#include <vector>
#include "fil0clock.h"

struct Fake
{
  fil_clock_place<Fake> clock{};
  int number= 0;
  bool in_use= false, written= false;
};

typedef fil_clock<Fake> Clock;

static unsigned judged;

static Clock::verdict judge(Fake &file)
{
  judged++;
  return file.in_use ? Clock::KEEP : file.written ? Clock::SYNC_FIRST
    : Clock::CLOSE;
}

static bool any(const Fake&) { return true; }

struct Files
{
  std::vector<std::unique_ptr<Fake>> files;
  Clock clock;
  explicit Files(int n)
  {
    for (int i= 0; i < n; i++)
    {
      files.emplace_back(new Fake);
      files.back()->number= i;
      clock.add(*files.back());
    }
  }
  Fake &operator[](size_t i) { return *files[i]; }
};

static void rules()
{
  Clock empty;
  ok(!empty.victim(judge).file && empty.validate(any), "an empty ring");

  Files f(4);
  ok(f.clock.victim(judge).file == &f[0] && f.clock.victim(judge).file == &f[1],
     "cold files in the order of opening");

  Files used(4);
  used[0].clock.used();
  ok(used.clock.victim(judge).file == &used[0], "one I/O makes no file hot");

  Files hot(4);
  for (int i= 0; i < 2; i++)
    hot[0].clock.used(), hot[1].clock.used();
  ok(hot[0].clock.is_hot() && hot.clock.victim(judge).file == &hot[2],
     "hot files are passed");
  ok(!hot[0].clock.is_hot(), "and are hot no more");

  Files all(4);
  for (auto &file : all.files)
    file->clock.used(), file->clock.used();
  ok(all.clock.victim(judge).file == &all[0],
     "if all are hot, one is found in the second round");

  Files written(4);
  written[0].written= written[1].written= true;
  ok(written.clock.victim(judge).file == &written[2],
     "a file that needs no sync goes first");
  written[2].in_use= written[3].in_use= true;
  const auto choice= written.clock.victim(judge);
  ok(choice.file == &written[0] && choice.how == Clock::SYNC_FIRST,
     "then the first of the written ones");
  written[0].in_use= written[1].in_use= true;
  ok(!written.clock.victim(judge).file &&
     written.clock.victim(judge).how == Clock::KEEP, "no file that is in use");

  Files many(10000);
  for (auto &file : many.files)
    file->written= true;
  judged= 0;
  const auto first= many.clock.victim(judge).how;
  const unsigned most= Clock::MAX_PASSED;
  ok(first == Clock::SYNC_FIRST && judged <= most,
     "among 10000 written files the hand looks at %u", judged);

  Files heated(10000);
  for (auto &file : heated.files)
    file->clock.used(), file->clock.used();
  ok(heated.clock.victim(judge).file == &heated[Clock::MAX_COOLED],
     "among 10000 hot files it does not go all the way round");

  Files busy(10000);
  for (auto &file : busy.files)
    file->in_use= true;
  busy[2000].in_use= false;
  judged= 0;
  const bool none= !busy.clock.victim(judge).file;
  ok(none && judged == Clock::MAX_LOOKED_AT,
     "among 10000 files in use it looks at %u", judged);
  ok(busy.clock.victim(judge).file == &busy[2000], "and then at those behind");

  Files one(1);
  Fake &watched= one[0];
  const uint8_t before= watched.clock.watch();
  ok(watched.clock.was_unused(before), "no I/O is seen where there was none");
  watched.clock.watch();
  watched.clock.used();
  ok(!watched.clock.was_unused(before), "an I/O is seen");
  watched.clock.used();
  ok(watched.clock.is_hot(), "and counts like those before and after");

  Files added(3);
  added.clock.victim(judge);
  Fake late;
  added.clock.add(late);
  added.clock.add(late);
  ok(added.clock.size() == 4 && added.clock.validate(any),
     "adding a file twice adds it once");
  std::vector<Fake*> order;
  for (int i= 0; i < 4; i++)
    order.push_back(added.clock.victim(judge).file);
  ok(order == (std::vector<Fake*>{&added[1], &added[2], &added[0], &late}),
     "the hand comes to a new file last");
  added.clock.remove(late);
  added.clock.remove(late);
  ok(added.clock.size() == 3 && added.clock.validate(any),
     "removing a file twice removes it once");
}

/** Random operations against a list in the order of the hand */
static void model(unsigned seed)
{
  std::mt19937 rnd(seed);
  const int N= 50;
  std::vector<std::unique_ptr<Fake>> files;
  for (int i= 0; i < N; i++)
  {
    files.emplace_back(new Fake);
    files.back()->number= i;
  }
  Clock clock;
  std::list<int> ring;                  // front: the hand looks at it next
  std::vector<int> count(N);
  bool same= true;

  for (int n= 0; n < 300000 && same; n++)
  {
    const int i= int(rnd() % N);
    Fake &file= *files[i];
    const bool is_in= std::find(ring.begin(), ring.end(), i) != ring.end();
    switch (rnd() % 6) {
    case 0:
      clock.add(file);
      if (!is_in)
        ring.push_back(i), count[i]= 0;
      break;
    case 1:
      if (rnd() % 4)
        break;
      clock.remove(file);
      ring.remove(i);
      break;
    case 2:
    case 3:
      file.clock.used();
      count[i]= std::min(count[i] + 1, 2);
      break;
    case 4:
      file.in_use= rnd() % 3 == 0;
      file.written= rnd() % 2;
      break;
    case 5:
      int expected= -1;
      Clock::verdict how= Clock::KEEP;
      for (size_t left= 2 * ring.size(); left && how != Clock::CLOSE; left--)
      {
        const int at= ring.front();
        ring.splice(ring.end(), ring, ring.begin());
        if (count[at] == 2)
        {
          count[at]= 1;
          continue;
        }
        const Fake &f= *files[at];
        if (f.in_use)
          continue;
        if (!f.written)
          expected= at, how= Clock::CLOSE;
        else if (how == Clock::KEEP)
          expected= at, how= Clock::SYNC_FIRST;
      }
      const auto choice= clock.victim(judge);
      same= choice.how == how &&
        (choice.file ? choice.file->number : -1) == expected;
    }
    same= same && clock.size() == ring.size();
    if (n % 100 == 0)
      same= same && clock.validate(any);
  }
  ok(same, "300000 random operations as in the model (seed %u)", seed);
}

/** Share of uses that find their file open, if 10 % of the files have 90 % of the uses */
static double hits(bool by_use, int files, size_t limit)
{
  std::mt19937 rnd(1);
  std::vector<std::unique_ptr<Fake>> all;
  for (int i= 0; i < files; i++)
    all.emplace_back(new Fake);
  Clock clock;
  std::deque<int> fifo;
  std::vector<bool> open(files);
  int found= 0;
  const int USES= 200000;
  for (int n= 0; n < USES; n++)
  {
    const int i= rnd() % 10 ? int(rnd() % (files / 10))
      : int(files / 10 + rnd() % (files - files / 10));
    if (by_use)
    {
      if (all[i]->clock.is_in_ring())
        found++;
      else
      {
        if (clock.size() == limit)
          clock.remove(*clock.victim(judge).file);
        clock.add(*all[i]);
      }
      all[i]->clock.used();
    }
    else if (open[i])
      found++;
    else
    {
      if (fifo.size() == limit)
      {
        open[fifo.front()]= false;
        fifo.pop_front();
      }
      fifo.push_back(i);
      open[i]= true;
    }
  }
  return double(found) / USES;
}

static void skew()
{
  for (size_t limit : {100, 250, 400})
  {
    const double use= hits(true, 2000, limit), age= hits(false, 2000, limit);
    ok(use > age, "of 2000 files %zu open: %.3f are found open, by age %.3f",
       limit, use, age);
  }
}

static void threads()
{
  Files files(100);
  std::atomic<bool> stop{false};
  std::vector<std::thread> users;
  for (int t= 0; t < 4; t++)
    users.emplace_back([&files, &stop, t]
    {
      std::mt19937 rnd(t);
      while (!stop)
        files[rnd() % 100].clock.used();
    });
  bool found= true;
  for (int i= 0; i < 20000; i++)
  {
    const auto choice= files.clock.victim(judge);
    /* Threads may make all files hot again before the hand is back. */
    if (choice.file)
    {
      files.clock.remove(*choice.file);
      files.clock.add(*choice.file);
    }
    found= found && files.clock.size() == 100;
  }
  stop= true;
  for (auto &user : users)
    user.join();
  ok(found && files.clock.validate(any), "used by threads while the hand moves");
}

int main(int argc, char **argv)
{
  const unsigned seed= argc > 1 ? unsigned(atoi(argv[1])) : 21;
  plan(24);
  rules();
  model(seed);
  skew();
  threads();
  return exit_status();
}
