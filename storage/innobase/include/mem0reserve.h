/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/mem0reserve.h
Size memory heaps to their contents.

A mem_heap_t that a thread creates for 100 bytes has a first block of that size,
and each further block is twice as long as the one before. The objects of a table
never fit into the first block, and half of the last one stays unused, as long as
the table is in the dictionary cache. But the thread can compute the size in
advance: see dict0size.h, row0size.h */

#ifndef mem0reserve_h
#define mem0reserve_h

#include "mem0mem.h"

/** Adds up what mem_heap_alloc() will take from a block. */
class mem_heap_size_t
{
  ulint m_bytes= 0;
public:
  mem_heap_size_t &add(ulint n, ulint times= 1)
  {
    m_bytes+= MEM_SPACE_NEEDED(n + REDZONE_SIZE) * times;
    return *this;
  }
  operator ulint() const { return m_bytes; }
};

/** Make sure that the last block of a heap has n free bytes, so that the next
allocations do not create a block of twice its size.
@param heap  a heap of type MEM_HEAP_DYNAMIC
@param n     bytes, as mem_heap_size_t has added them up */
inline void mem_heap_reserve(mem_heap_t *heap, ulint n)
{
  mem_block_t *block= UT_LIST_GET_LAST(heap->base);
  ut_ad(heap->type == MEM_HEAP_DYNAMIC);
  if (mem_block_get_len(block) - mem_block_get_free(block) < n)
    UT_LIST_INSERT_AFTER(heap->base, block,
                         mem_heap_create_block(heap, n, heap->type,
                                               heap->file_name, heap->line));
}

#endif /* mem0reserve_h */
