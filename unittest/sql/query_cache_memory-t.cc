/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Compare Query_cache_memory with a reference model.

  The model is a map of the used blocks: position and length, nothing else. All
  other bytes must be free. The test compares

  1. the counters with the model's, after every operation;
  2. the whole area with the model, every CHECK_EVERY operations: each block
     of the model is where it was and has the same contents, each byte is in a
     block, and all other blocks are free and merged.

  A generator chooses the operations, their sizes and their order. The test
  prints its seed; give it as the first argument to repeat a run. The second
  argument is the number of operations.
*/

#include <my_global.h>
#include <my_sys.h>
#include <tap.h>
#include <map>
#include <memory>
#include <vector>
#include <random>
#include "query_cache_memory.h"

struct Block
{
  size_t length;
  Block *pnext, *pprev, *next, *prev;
  bool free;
  bool is_free() const { return free; }
  void mark_free() { free= true; }
  void mark_used() { free= false; }
};

typedef Query_cache_memory<Block> Memory;

static const size_t MIN_BLOCK= 512, CHECK_EVERY= 1000;
static std::mt19937_64 rnd;

static size_t below(size_t n) { return rnd() % n; }

/* A random size. Each power of two is less likely than the one before it */
static size_t random_size(size_t max)
{
  size_t limit= MIN_BLOCK;
  while (limit < max && below(3))
    limit*= 2;
  return MIN_BLOCK + below(limit);
}

class Area
{
public:
  Area(size_t size, size_t max_block)
    : m_memory(&m_free_memory, &m_free_blocks, &m_total_blocks),
      m_area(size / sizeof(double)), m_size(size), m_max_block(max_block)
  {
    m_memory.init(m_area.data(), size, MIN_BLOCK);
  }

  /** One random operation. @return whether all is well */
  bool step()
  {
    const size_t what= below(100);
    /* fill and drain in turn, so that both ends are met */
    const size_t alloc_share= m_filling ? 60 : 30;
    if (what < alloc_share)
      return allocate();
    if (m_used.empty())
    {
      m_filling= true;
      return true;
    }
    const size_t i= below(m_order.size());
    if (what < alloc_share + 4)
      return trim(m_order[i]);
    if (what < alloc_share + 8)
      return tighter(i);
    if (what < alloc_share + 16)
      return extend(m_order[i]);
    return release(i);
  }

  bool counters() const
  {
    return m_free_memory == m_size - m_used_bytes &&
      m_total_blocks == m_free_blocks + m_used.size();
  }

  /** The whole area against the model */
  const char *check() const
  {
    if (const char *error= m_memory.check())
      return error;
    auto used= m_used.begin();
    const Block *block= m_memory.first();
    do
    {
      if (block->is_free())
        continue;
      if (used == m_used.end() || used->first != block ||
          used->second != block->length)
        return "used blocks are not those of the model";
      if (!holds_stamp(block))
        return "a used block was written to";
      ++used;
    } while ((block= block->pnext) != m_memory.first());
    return used == m_used.end() ? nullptr : "a used block is lost";
  }

  /** Release all blocks: one free block must be left. */
  bool drain()
  {
    while (!m_order.empty())
      if (!release(below(m_order.size())))
        return false;
    return !check() && m_free_blocks == 1 && m_total_blocks == 1 &&
      m_free_memory == m_size;
  }

  size_t blocks() const { return m_used.size(); }
  size_t refused() const { return m_refused; }
  size_t moved() const { return m_moved; }

private:
  /* The first and last 8 bytes after the header identify the block */
  static ulonglong stamp_of(const Block *block)
  { return reinterpret_cast<size_t>(block) ^ (block->length << 40); }

  static char *body(Block *block)
  { return reinterpret_cast<char*>(block + 1); }

  static void stamp(Block *block)
  {
    const ulonglong s= stamp_of(block);
    memcpy(body(block), &s, sizeof s);
    memcpy(reinterpret_cast<char*>(block) + block->length - sizeof s, &s,
           sizeof s);
  }

  static bool holds_stamp(const Block *block)
  {
    const ulonglong s= stamp_of(block);
    return !memcmp(block + 1, &s, sizeof s) &&
      !memcmp(reinterpret_cast<const char*>(block) + block->length - sizeof s,
              &s, sizeof s);
  }

  void add(Block *block)
  {
    m_used[block]= block->length;
    m_used_bytes+= block->length;
    stamp(block);
  }

  void forget(Block *block)
  {
    m_used_bytes-= m_used[block];
    m_used.erase(block);
  }

  /* Longest run of free bytes in the model */
  size_t longest_free() const
  {
    size_t longest= 0;
    const char *end= reinterpret_cast<const char*>(m_area.data());
    for (const auto &used : m_used)
    {
      const char *begin= reinterpret_cast<const char*>(used.first);
      longest= MY_MAX(longest, (size_t) (begin - end));
      end= begin + used.second;
    }
    const char *area_end= reinterpret_cast<const char*>(m_area.data()) +
      m_size;
    return MY_MAX(longest, (size_t) (area_end - end));
  }

  bool allocate()
  {
    const size_t len= random_size(m_max_block);
    const bool not_less= below(2);
    const size_t min= MIN_BLOCK + below(len - MIN_BLOCK + 1);
    Block *block= m_memory.allocate(len, not_less, min);
    if (!block)
    {
      m_refused++;
      m_filling= false;
      /*
        A class spans at most 1/64 of its size, but this check allows 1/32: a
        refusal is right if no free run is that much longer than len. It walks
        small areas only.
      */
      return m_used.size() > 1000 || longest_free() < len + len / 32 + 16;
    }
    /* It overlaps no other block, and has a length that the caller accepts */
    auto after= m_used.lower_bound(block);
    if (after != m_used.end() &&
        reinterpret_cast<char*>(block) + block->length >
        reinterpret_cast<char*>(after->first))
      return false;
    if (after != m_used.begin())
    {
      --after;
      if (reinterpret_cast<char*>(after->first) + after->second >
          reinterpret_cast<char*>(block))
        return false;
    }
    if (block->is_free() || block->length < (not_less ? len : min) ||
        block->length >= len + Memory::unit + MIN_BLOCK)
      return false;
    add(block);
    m_order.push_back(block);
    return true;
  }

  bool release(size_t i)
  {
    Block *block= m_order[i];
    if (!holds_stamp(block))
      return false;
    m_order[i]= m_order.back();
    m_order.pop_back();
    forget(block);
    m_memory.release(block);
    return true;
  }

  bool trim(Block *block)
  {
    const size_t len= MIN_BLOCK + below(block->length) / 8 * 8;
    if (block->length < len + MIN_BLOCK)
      return true;
    forget(block);
    m_memory.trim(block, len);
    if (block->length != len)
      return false;
    add(block);
    return true;
  }

  /* Move contents that need less than their block to a shorter free block */
  bool tighter(size_t i)
  {
    Block *block= m_order[i];
    const size_t len= MIN_BLOCK + below(block->length - MIN_BLOCK + 1);
    Block *to= m_memory.allocate_tighter(len, block);
    if (!to)
      return true;
    m_moved++;
    if (to->is_free() || to->length < len || to->length >= block->length ||
        to->length >= len + Memory::unit + MIN_BLOCK)
      return false;
    add(to);
    m_order.push_back(to);
    return release(i);
  }

  bool extend(Block *block)
  {
    const size_t old= block->length, wanted= 8 + below(2 * MIN_BLOCK);
    const bool last= block->pnext == m_memory.first();
    const bool can= !last && block->pnext->is_free();
    const size_t most= can ? old + block->pnext->length : old;
    forget(block);
    if (m_memory.extend(block, wanted) != can)
      return false;
    if (can && (block->length <= old || block->length > most ||
                block->length < MY_MIN(most, old + wanted) ||
                block->length >= old + wanted + Memory::unit + MIN_BLOCK))
      return false;
    add(block);
    return true;
  }

  size_t m_free_memory, m_free_blocks, m_total_blocks;
  Memory m_memory;
  std::vector<double> m_area;
  const size_t m_size, m_max_block;
  std::map<Block*, size_t> m_used;
  std::vector<Block*> m_order;          /* the same, to pick at random */
  size_t m_used_bytes= 0, m_refused= 0, m_moved= 0;
  bool m_filling= true;
};


/* Random operations on an area until it is met full and empty many times */
static void run(size_t size, size_t max_block, size_t operations)
{
  std::unique_ptr<Area> area_ptr(new Area(size, max_block));
  Area &area= *area_ptr;
  const char *error= nullptr;
  size_t i;
  for (i= 0; i < operations && !error; i++)
  {
    if (!area.step())
      error= "operation";
    else if (!area.counters())
      error= "counters and model differ";
    else if (i % CHECK_EVERY == 0)
      error= area.check();
  }
  if (!error)
    error= area.check();
  ok(!error, "%zu operations on %zu kB, blocks up to %zu kB: %s%s at %zu",
     operations, size / 1024, max_block / 1024, error ? error : "no",
     error ? "" : " difference", i);
  ok(area.refused() > 0, "the area was full %zu times", area.refused());
  ok(area.moved() > 0, "%zu times there was a tighter gap", area.moved());
  ok(area.drain(), "released in random order, it is one block again");
}


/* The size classes promise which block is taken */
static void fits()
{
  size_t free_memory, free_blocks, total_blocks;
  const size_t size= 1 << 20;
  std::vector<double> area(size / sizeof(double));
  std::unique_ptr<Memory> memory_ptr(new Memory(&free_memory, &free_blocks,
                                                &total_blocks));
  Memory &memory= *memory_ptr;
  memory.init(area.data(), size, MIN_BLOCK);

  /* Holes of every length from 512 to 1016 bytes, kept apart */
  std::vector<Block*> holes;
  for (size_t len= MIN_BLOCK; len < 2 * MIN_BLOCK; len+= 8)
  {
    holes.push_back(memory.allocate(len, true, 0));
    memory.allocate(MIN_BLOCK, true, 0);
  }
  for (Block *hole : holes)
    memory.release(hole);
  bool exact= true;
  for (size_t len= MIN_BLOCK; len < 2 * MIN_BLOCK; len+= 8)
    exact&= memory.allocate(len, true, 0) == holes[(len - MIN_BLOCK) / 8];
  ok(exact, "up to 1 kB a block of exactly the wanted size is found");
  ok(!memory.check(), "and nothing is lost");

  memory.init(area.data(), size, MIN_BLOCK);
  Block *rest= memory.allocate(size / 2, true, 0);
  Block *all= memory.allocate(size / 2, true, 0);
  ok(rest && all && !memory.allocate(MIN_BLOCK, false, MIN_BLOCK),
     "a full area gives nothing");
  memory.release(rest);
  ok(!memory.allocate(size, true, 0) && !memory.allocate(size, false, size),
     "nothing shorter than agreed on is given");
  ok(memory.allocate(size, false, MIN_BLOCK) == rest &&
     rest->length == size / 2, "if that was agreed on, the longest there is");
  ok(!memory.check() && free_memory == 0 && free_blocks == 0 &&
     total_blocks == 2, "and the counters say so");

  /*
    allocate_tighter() takes a gap only if it is shorter than the given block
  */
  memory.init(area.data(), size, MIN_BLOCK);
  Block *gap= memory.allocate(1024, true, 0), *wide;
  memory.allocate(MIN_BLOCK, true, 0);
  wide= memory.allocate(4096, true, 0);
  ok(!memory.allocate_tighter(1000, wide), "what is long is not cut");
  memory.release(gap);
  ok(!memory.allocate_tighter(1032, wide), "a gap too short is no gap");
  ok(memory.allocate_tighter(1000, wide) == gap && !memory.check(),
     "the gap that fits is");

  /* The cursor stays at the beginning of a block, whatever blocks merge */
  memory.init(area.data(), size, MIN_BLOCK);
  Block *a= memory.allocate(1024, true, 0), *b= memory.allocate(1024, true, 0),
        *c= memory.allocate(1024, true, 0);
  memory.set_cursor(c);
  memory.release(c);
  ok(memory.cursor() == c, "the cursor stays where the free block begins");
  memory.release(b);
  ok(memory.cursor() == b, "a merge takes the cursor to the new beginning");
  memory.release(a);
  ok(memory.cursor() == a && !memory.check(), "and again");

  /* So does the gap, which begins as a used block and grows to either side */
  memory.init(area.data(), size, MIN_BLOCK);
  a= memory.allocate(1024, true, 0);
  b= memory.allocate(1024, true, 0);
  c= memory.allocate(1024, true, 0);
  memory.allocate(1024, true, 0);
  memory.set_gap(b);
  memory.release(b);
  ok(memory.gap() == b && b->length == 1024, "the gap is where the block was");
  memory.release(c);
  ok(memory.gap() == b && b->length == 2048, "its next neighbour is added");
  memory.release(a);
  ok(memory.gap() == a && a->length == 3072, "the one before it is, too");
}


int main(int argc, char **argv)
{
  MY_INIT(argv[0]);
  const ulonglong seed= argc > 1 ? strtoull(argv[1], nullptr, 0)
                                 : std::random_device()();
  const size_t operations= argc > 2 ? strtoull(argv[2], nullptr, 0)
                                    : 10000000;
  plan(15 + 5 * 4);
  diag("seed %llu, %zu operations", seed, operations);
  rnd.seed(seed);
  fits();
  /* From an area of a few blocks to one of some thousand */
  run(16 << 10, 4 << 10, operations / 5);
  run(64 << 10, 64 << 10, operations / 5);
  run(512 << 10, 4 << 10, operations / 5);
  run(1 << 20, 512 << 10, operations / 5);
  run(4 << 20, 8 << 10, operations / 5);
  my_end(0);
  return exit_status();
}
