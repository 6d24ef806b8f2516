/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: the stock of memory (mem/mem0stock.cc) allocates runs of objects that do not
  overlap, keeps no more than a run on each shelf, and gives back to the heap all that it
  has taken.

  The test includes the source file, to count each allocation of the stock, and to do
  something else between two of them.
*/

#define DISABLE_PSI_MEMORY
#include <algorithm>
#include <thread>
#include <vector>
#include <my_global.h>
#include <my_sys.h>
#include "tap.h"
#include "univ.i"
#include "ut0new.h"

/** Blocks that the stock has taken from the heap and not freed */
static std::atomic<int> blocks{0};
/** Called after each allocation, without the stock's mutex, if the test sets it */
static thread_local void (*after_allocation)()= nullptr;

static void *counted_malloc(size_t size)
{
  void *memory= malloc(size);
  blocks++;
  if (after_allocation)
    after_allocation();
  return memory;
}

static void counted_free(void *memory)
{
  if (memory)
    blocks--;
  free(memory);
}

#undef ut_malloc_nokey
#define ut_malloc_nokey(size) counted_malloc(size)
#undef ut_free
#define ut_free(memory) counted_free(memory)
#include "../mem/mem0stock.cc"

void ut_dbg_assertion_failed(const char *expression, const char *, unsigned line)
{
  BAIL_OUT("line %u: assertion failed: %s", line, expression);
}

static mem_stock_t stock{mem_owner("mem0mem")};

/** Bytes that the stock allocates at a time, and keeps on a shelf at most; see
mem0stock.h */
static constexpr size_t RUN= 32768;
/** The size of the largest object that the stock keeps */
static constexpr size_t LARGEST= 4096;
/** An object of 100 bytes takes 128, so a run has 256 of them */
static constexpr size_t SIZE= 100;
static constexpr int OBJECTS= RUN / mem_stock_t::rounded(SIZE);

static void allocates_runs()
{
  std::vector<void*> objects;

  objects.push_back(stock.get(SIZE));
  ok(blocks == OBJECTS, "the first object allocates a run: %d blocks", blocks.load());
  for (int i= 1; i < OBJECTS; i++)
    objects.push_back(stock.get(SIZE));
  ok(blocks == OBJECTS, "the run serves the next objects");
  objects.push_back(stock.get(SIZE));
  ok(blocks == 2 * OBJECTS, "the object after them allocates another run");

  std::sort(objects.begin(), objects.end());
  bool apart= true;
  for (size_t i= 1; i < objects.size(); i++)
    apart&= static_cast<char*>(objects[i]) - static_cast<char*>(objects[i - 1]) >=
      ptrdiff_t(SIZE);
  ok(apart, "no two objects overlap");

  for (void *object : objects)
    stock.give(object, SIZE);
  ok(blocks == OBJECTS, "a shelf keeps one run, and what exceeds it is freed: %d blocks",
     blocks.load());
  for (int i= 2 * OBJECTS; i--; )
    stock.give(stock.get(SIZE), SIZE);
  ok(blocks == OBJECTS, "an object that was given back serves again and again");
  stock.close();
  ok(blocks == 0, "close() frees what is in stock");
}

static void large_objects()
{
  void *object= stock.get(LARGEST);
  ok(blocks == int(RUN / LARGEST), "an object of %zu bytes is kept in stock", LARGEST);
  stock.give(object, LARGEST);
  stock.close();
  object= stock.get(LARGEST + 1);
  ok(blocks == 1, "a larger one is allocated alone");
  stock.give(object, LARGEST + 1);
  ok(blocks == 0, "and freed when it is given back");
}

static void frees_later()
{
  std::vector<void*> objects;
  for (int i= 0; i < 2 * OBJECTS; i++)
    objects.push_back(stock.get(SIZE));
  {
    mem_later_t later;
    for (void *object : objects)
      stock.give(object, SIZE);
    ok(blocks == 2 * OBJECTS, "with a mem_later_t give() frees nothing: %d blocks",
       blocks.load());
    later.free_all();
    ok(blocks == OBJECTS, "free_all() frees what exceeds the shelf: %d blocks",
       blocks.load());
    stock.give(stock.get(LARGEST + 1), LARGEST + 1);
    ok(blocks == OBJECTS + 1, "large objects are freed later, too");
  }
  ok(blocks == OBJECTS, "its end frees them");
  stock.close();
}

static void sizes_that_share_a_shelf()
{
  void *object= stock.get(SIZE);
  stock.give(object, SIZE);
  ok(stock.get(SIZE + 1) == object, "sizes that are rounded to the same share a shelf");
  const int before= blocks;
  void *other= stock.get(SIZE - 32);
  ok(blocks > before, "other sizes do not");
  stock.give(object, SIZE + 1);
  stock.give(other, SIZE - 32);
  stock.close();
  ok(blocks == 0, "close() frees the objects of all shelves");
}

static void *others_object;

/** What another thread may do while this one allocates a run: it finds the shelf
empty, too, and allocates one for itself. */
static void another_thread_gets()
{
  after_allocation= nullptr;
  others_object= stock.get(SIZE);
}

static void two_threads_find_the_shelf_empty()
{
  after_allocation= another_thread_gets;
  void *object= stock.get(SIZE);
  ok(object != others_object, "both threads have an object");
  ok(blocks == OBJECTS + 1, "the second run is freed but for its object: %d blocks",
     blocks.load());
  stock.give(object, SIZE);
  stock.give(others_object, SIZE);
  ok(blocks == OBJECTS, "the shelf keeps one run");
  stock.close();
  ok(blocks == 0, "close() frees it");
}

static void many_threads()
{
  constexpr unsigned THREADS= 8, ROUNDS= 1000000, KEPT= 100;
  std::atomic<unsigned> started{0};
  std::atomic<unsigned> overwritten{0};
  std::vector<std::thread> threads;

  for (unsigned t= 0; t < THREADS; t++)
    threads.emplace_back([t, &started, &overwritten]
    {
      for (started++; started < THREADS; )
        std::this_thread::yield();
      struct { unsigned *object; size_t size; } kept[KEPT]{};
      unsigned random= t + 1;
      for (unsigned i= 0; i < ROUNDS; i++)
      {
        random= random * 1664525 + 1013904223;
        auto &k= kept[(random >> 8) % KEPT];
        const unsigned mark= t << 16 | unsigned(&k - kept);
        if (k.object)
        {
          overwritten+= k.object[0] != mark ||
            k.object[k.size / sizeof mark - 1] != mark;
          stock.give(k.object, k.size);
          k.object= nullptr;
        }
        else
        {
          k.size= 64 << ((random >> 20) % 4);
          k.object= static_cast<unsigned*>(stock.get(k.size));
          k.object[0]= k.object[k.size / sizeof mark - 1]= mark;
        }
      }
      for (auto &k : kept)
        if (k.object)
          stock.give(k.object, k.size);
    });
  for (std::thread &thread : threads)
    thread.join();
  ok(overwritten == 0, "%u threads: no object belongs to two of them", THREADS);
  ok(blocks <= int(RUN / 64 + RUN / 128 + RUN / 256 + RUN / 512),
     "each of the four shelves keeps one run at most: %d blocks", blocks.load());
  stock.close();
  ok(blocks == 0, "close() frees all");
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(24);
  allocates_runs();
  large_objects();
  frees_later();
  sizes_that_share_a_shelf();
  two_threads_find_the_shelf_empty();
  many_threads();
  my_end(MY_CHECK_ERROR);
  return exit_status();
}
