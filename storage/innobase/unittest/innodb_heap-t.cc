/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: while a thread has a mem_later_t, dict_heap_free() (dict/dict0heap.cc) frees no
  block of a heap, neither the first one nor those that were added to it. So a thread
  that evicts tables does not wait for the heap's arena with dict_sys.latch held.

  The test includes the source files, to count the blocks.
*/

#define DISABLE_PSI_MEMORY
#include <my_global.h>
#include <my_sys.h>
#include "tap.h"
#include "univ.i"
#include "ut0new.h"

/** Blocks that were allocated and not freed */
static int blocks;

static void *counted_malloc(size_t size)
{
  blocks++;
  return malloc(size);
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
#include "../dict/dict0heap.cc"

void ut_dbg_assertion_failed(const char *expression, const char *, unsigned line)
{
  BAIL_OUT("line %u: assertion failed: %s", line, expression);
}

/** So large that its first block is not kept in stock */
static constexpr ulint SIZE= 5000;

/** A heap with a second block, as mem_heap_add_block() adds it */
static mem_heap_t *create_heap()
{
  mem_heap_t *heap= dict_heap_create(SIZE);
  auto *block= static_cast<mem_block_t*>(mem_allocate(SIZE, mem_owner("mem0mem")));
  block->len= SIZE;
  UT_LIST_ADD_LAST(heap->base, block);
  return heap;
}

int main(int, char **argv)
{
  MY_INIT(argv[0]);
  plan(4);
  dict_heap_free(create_heap());
  ok(blocks == 0, "both blocks of a heap are freed");
  {
    mem_later_t later;
    dict_heap_free(create_heap());
    ok(blocks == 2, "with a mem_later_t none is freed at once: %d blocks", blocks);
    later.free_all();
    ok(blocks == 0, "free_all() frees both");
    dict_heap_free(create_heap());
  }
  ok(blocks == 0, "and so does its end");
  dict_stock.close();
  my_end(MY_CHECK_ERROR);
  return exit_status();
}
