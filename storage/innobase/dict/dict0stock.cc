/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file dict/dict0stock.cc
A stock of memory for the objects of the dictionary cache.

InnoDB keeps the definition of a table when FLUSH TABLES closes the table and frees
the server's definition of it, which take three quarters of the memory.  A thread
that opens the table allocates all of it in turn.  If it took each object from the
heap, nearly every page of the heap would have some of InnoDB's objects, which would
keep the page from going back to the system.

So a thread that needs an object allocates as many of that size as fill RUN bytes.
They lie side by side, and the rest is in stock for the next ones.  The stock has a
shelf for each multiple of STEP bytes.

When InnoDB loads a table, it makes a first version of each index, and frees that
when it has made the second one.  If these went back to the heap, they would leave
holes between the objects that stay.  So they go back to their shelf, unless it is
full.
*******************************************************/

#include "dict0stock.h"
#include <mutex>

namespace
{

/** Difference of the sizes of two shelves.  malloc() rounds up to 16. */
constexpr size_t STEP= 32;
/** Objects that are larger have pages of their own anyway */
constexpr size_t LARGEST= 4096;
/** What to allocate at a time, and the most that may be on a shelf: some pages */
constexpr size_t RUN= 32768;

struct piece_t { piece_t *next; };

struct shelf_t
{
  piece_t *first;
  size_t bytes;
};

/** Protects the shelves.  A thread that holds it takes no other latch of InnoDB. */
std::mutex stock_mutex;
shelf_t shelves[LARGEST / STEP + 1];

constexpr size_t rounded(size_t size) { return (size + STEP - 1) / STEP * STEP; }

/** @return like ut_malloc_nokey(), which needs the name of this file in ut0new.h */
void *allocate(size_t size) noexcept
{
#ifdef UNIV_PFS_MEMORY
  return ut_allocator<byte>(mem_key_other)
    .allocate(size, nullptr, INVALID_AUTOEVENT_IDX, false, false);
#else
  return ut_malloc_nokey(size);
#endif
}

} // namespace


void *dict_stock_get(size_t size) noexcept
{
  size= rounded(size);
  if (size > LARGEST)
    return allocate(size);

  shelf_t &shelf= shelves[size / STEP];
  std::lock_guard<std::mutex> guard(stock_mutex);
  if (!shelf.first)
    for (size_t n= RUN / size; n--; shelf.bytes+= size)
    {
      piece_t *piece= static_cast<piece_t*>(allocate(size));
      piece->next= shelf.first;
      shelf.first= piece;
    }
  piece_t *piece= shelf.first;
  shelf.first= piece->next;
  shelf.bytes-= size;
  MEM_MAKE_ADDRESSABLE(piece, size);
  MEM_UNDEFINED(piece, size);
  return piece;
}

void dict_stock_give(void *piece, size_t size) noexcept
{
  size= rounded(size);
  if (size <= LARGEST)
  {
    shelf_t &shelf= shelves[size / STEP];
    std::lock_guard<std::mutex> guard(stock_mutex);
    if (shelf.bytes + size <= RUN)
    {
      MEM_MAKE_ADDRESSABLE(piece, size);
      static_cast<piece_t*>(piece)->next= shelf.first;
      shelf.first= static_cast<piece_t*>(piece);
      shelf.bytes+= size;
      MEM_NOACCESS(static_cast<piece_t*>(piece) + 1, size - sizeof(piece_t));
      return;
    }
  }
  ut_free(piece);
}

void dict_stock_close() noexcept
{
  for (shelf_t &shelf : shelves)
  {
    while (piece_t *piece= shelf.first)
    {
      shelf.first= piece->next;
      ut_free(piece);
    }
    shelf.bytes= 0;
  }
}

/* As mem_heap_create(), with a first block from the stock */
mem_heap_t *dict_heap_create(ulint size) noexcept
{
  const ulint len= rounded(MEM_BLOCK_HEADER_SIZE + MEM_SPACE_NEEDED(size));
  mem_block_t *block= static_cast<mem_block_t*>(dict_stock_get(len));
  block->buf_block= nullptr;
#if MYSQL_VERSION_ID < 110800
  block->free_block= nullptr;
#endif
  ut_d(strcpy(block->file_name, "0stock"));
  ut_d(block->line= __LINE__);
  mem_block_set_len(block, len);
  mem_block_set_type(block, MEM_HEAP_DYNAMIC);
  mem_block_set_free(block, MEM_BLOCK_HEADER_SIZE);
  mem_block_set_start(block, MEM_BLOCK_HEADER_SIZE);
  block->total_size= len;
  MEM_NOACCESS(block + 1, len - sizeof *block);
  UT_LIST_INIT(block->base, &mem_block_t::list);
  UT_LIST_ADD_FIRST(block->base, block);
  return block;
}

void dict_heap_free(mem_heap_t *heap) noexcept
{
  ut_ad(heap->type == MEM_HEAP_DYNAMIC);
  /* Else its block is shorter than a piece: dict_heap_create() has not made it */
  ut_ad(heap->len % STEP == 0);
#if MYSQL_VERSION_ID < 110800
  ut_ad(!heap->free_block);
#endif
  while (mem_block_t *block= UT_LIST_GET_LAST(heap->base))
  {
    if (block == heap)
      break;
    mem_heap_block_free(heap, block);
  }
  dict_stock_give(heap, heap->len);
}
