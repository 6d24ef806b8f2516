/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/dict0heap.h
Heaps of tables and indexes in the dictionary cache, whose first blocks lie side by
side.

When InnoDB loads a table, it makes two versions of each index: it frees the first
one when it has made the second one.  If the first versions went back to the heap, they
would leave holes between the objects that stay.  So they go back to the stock. */

#ifndef dict0heap_h
#define dict0heap_h

#include "mem0mem.h"
#include "mem0stock.h"

/** The first blocks of these heaps, and the names of tables. */
extern mem_stock_t dict_stock;

/** Create the heap of a table or of an index.
@param size  what it will hold, as mem_heap_size_t has added it up */
mem_heap_t *dict_heap_create(ulint size) noexcept;

/** Free such a heap. (mem_heap_free() may do so, too.) */
void dict_heap_free(mem_heap_t *heap) noexcept;

#endif /* dict0heap_h */
