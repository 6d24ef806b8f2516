/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/innobase/mem/mem0mem.cc:
   Copyright (c) 1994, 2014, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2017, 2021, MariaDB Corporation. */

/** @file dict/dict0heap.cc
Heaps of tables and indexes in the dictionary cache; see dict0heap.h */

#include "dict0heap.h"

mem_stock_t dict_stock{mem_owner("mem0mem")};

/* As mem_heap_create(), with a first block from the stock */
mem_heap_t *dict_heap_create(ulint size) noexcept
{
  const ulint len= mem_stock_t::rounded(MEM_BLOCK_HEADER_SIZE +
                                        MEM_SPACE_NEEDED(size));
  mem_block_t *block= static_cast<mem_block_t*>(dict_stock.get(len));
  block->buf_block= nullptr;
#if MYSQL_VERSION_ID < 110800
  block->free_block= nullptr;
#endif
  ut_d(strcpy(block->file_name, "ct0heap"));
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
  /* dict_heap_create() has rounded the length; give() relies on that */
  ut_ad(heap->len == mem_stock_t::rounded(heap->len));
#if MYSQL_VERSION_ID < 110800
  ut_ad(!heap->free_block);
#endif
  while (mem_block_t *block= UT_LIST_GET_LAST(heap->base))
  {
    if (block == heap)
      break;
    UT_LIST_REMOVE(heap->base, block);
    mem_later_t::free(block);
  }
  dict_stock.give(heap, heap->len);
}
