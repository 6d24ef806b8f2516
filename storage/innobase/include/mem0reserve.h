/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/mem0reserve.h
Memory heaps as large as what they hold.

A mem_heap_t that is created for 100 bytes gets blocks of that size, then of
twice the block before. The object that it is created for never fits into the
first block, and of the last one half is unused, for as long as the table is in
the dictionary cache. The creator knows the sizes: see dict0size.h, row0size.h */

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

/** Make sure that the last block of a heap has room, so that the next
allocations do not create one of twice its size.
@param heap  a heap of type MEM_HEAP_DYNAMIC
@param n     what mem_heap_size_t has added up */
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
