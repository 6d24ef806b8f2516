/* SPDX-License-Identifier: GPL-2.0-only */

/** @file mem/mem0stock.cc
Allocate objects that live long side by side; see mem0stock.h */

#include "mem0stock.h"
#include "ut0new.h"

void *mem_allocate(size_t size, uint32_t owner) noexcept
{
#ifdef UNIV_PFS_MEMORY
  void *memory= ut_allocator<byte>().allocate(size, nullptr, owner, false, false);
#else
  void *memory= ut_malloc_nokey(size);
#endif
  ut_a(memory);
  return memory;
}

thread_local mem_later_t *mem_later_t::current;

mem_later_t::mem_later_t() noexcept
{
  ut_ad(!current);
  current= this;
}

mem_later_t::~mem_later_t() noexcept
{
  ut_ad(current == this);
  current= nullptr;
  free_all();
}

void mem_later_t::free(void *memory) noexcept
{
  if (!current)
  {
    ut_free(memory);
    return;
  }
  piece_t *const piece= static_cast<piece_t*>(memory);
  MEM_MAKE_ADDRESSABLE(piece, sizeof *piece);
  piece->next= current->first;
  current->first= piece;
}

void mem_later_t::free_all() noexcept
{
  while (piece_t *piece= first)
  {
    first= piece->next;
    ut_free(piece);
  }
}

void *mem_stock_t::get(size_t size) noexcept
{
  ut_ad(size);
  size= rounded(size);
  if (size > LARGEST)
    return mem_allocate(size, owner);

  shelf_t &shelf= shelves[size / STEP];
  mutex.lock();
  if (piece_t *piece= shelf.first)
  {
    shelf.first= piece->next;
    shelf.bytes-= size;
    mutex.unlock();
    MEM_MAKE_ADDRESSABLE(piece, size);
    MEM_UNDEFINED(piece, size);
    return piece;
  }
  mutex.unlock();

  piece_t *const piece= static_cast<piece_t*>(mem_allocate(size, owner)), *last= piece;
  for (size_t n= RUN / size; --n; last= last->next)
    last->next= static_cast<piece_t*>(mem_allocate(size, owner));
  last->next= nullptr;
  piece_t *rest= piece->next;
  mutex.lock();
  if (!shelf.first)
  {
    shelf.first= rest;
    shelf.bytes= (RUN / size - 1) * size;
    rest= nullptr;
  }
  mutex.unlock();
  /* Another thread has filled the shelf meanwhile */
  while (rest)
  {
    piece_t *const next= rest->next;
    ut_free(rest);
    rest= next;
  }
  return piece;
}

void mem_stock_t::give(void *memory, size_t size) noexcept
{
  size= rounded(size);
  if (size <= LARGEST)
  {
    shelf_t &shelf= shelves[size / STEP];
    piece_t *piece= static_cast<piece_t*>(memory);
    std::lock_guard<std::mutex> guard(mutex);
    if (shelf.bytes + size <= RUN)
    {
      MEM_MAKE_ADDRESSABLE(piece, size);
      piece->next= shelf.first;
      shelf.first= piece;
      shelf.bytes+= size;
      MEM_NOACCESS(piece + 1, size - sizeof *piece);
      return;
    }
  }
  mem_later_t::free(memory);
}

void mem_stock_t::close() noexcept
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
