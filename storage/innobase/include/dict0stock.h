/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/dict0stock.h
Allocate the objects of the dictionary cache side by side; see dict0stock.cc */

#ifndef dict0stock_h
#define dict0stock_h

#include "mem0mem.h"

/** @return memory of at least so many bytes, which the caller may give to
dict_stock_give() or to ut_free(); the server ends if there is none */
void *dict_stock_get(size_t size) noexcept;

/** Give back memory.
@param size  as in dict_stock_get() */
void dict_stock_give(void *piece, size_t size) noexcept;

/** Free what is in stock when InnoDB shuts down. */
void dict_stock_close() noexcept;

/** Create the heap of a table or of an index.
@param size  what it will hold, as mem_heap_size_t has added it up */
mem_heap_t *dict_heap_create(ulint size) noexcept;

/** Free such a heap. (mem_heap_free() may do so, too.) */
void dict_heap_free(mem_heap_t *heap) noexcept;

#endif /* dict0stock_h */
