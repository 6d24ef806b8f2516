/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/mem0stock.h
Allocate objects that live long side by side.

The memory of an open table consists of objects that live for different times:

1. the server's objects, three quarters of the memory: FLUSH TABLES frees them;
2. InnoDB's definition of the table: it stays after FLUSH TABLES, until InnoDB evicts it;
3. InnoDB's tablespace: it stays when InnoDB evicts the definition.

A thread that opens a table allocates all of these in turn.  If it took each object from
the heap, nearly every page of the heap would have some of InnoDB's objects, and could
not go back to the system when the others are freed.

So a thread that needs an object, and finds none in stock, allocates as many of that size
as fill RUN bytes.  They lie side by side, and those that it does not need yet are in
stock.  The stock has a shelf for each multiple of STEP bytes.  Objects that live for
different times have different stocks: fil_stock in fil0fil.cc, dict_stock in
dict0heap.h.  unittest/innodb_stock-t.cc drives a stock alone. */

#ifndef mem0stock_h
#define mem0stock_h

#include "univ.i"
#include "ut0new.h"
#include <mutex>

/** Choose an instrument of the performance schema: that of a file of MariaDB's, which
ut0new.h has to know.
@param file  such as "fil0fil", for memory/innodb/fil0fil */
constexpr uint32_t mem_owner(const char *file)
#ifdef UNIV_PFS_MEMORY
{ return cexpr_lookup_auto_event_name(file); }
#else
{ return file ? 0 : 1; }
#endif

/** Allocate memory.
@param size   bytes
@param owner  from mem_owner()
@return the memory, for ut_free(); the server ends if there is none */
void *mem_allocate(size_t size, uint32_t owner) noexcept;

/** While a thread has an object of this class, mem_stock_t::give() does not free memory,
but keeps it until free_all() frees it.  A thread that evicts tables under a latch calls
free_all() after it has released the latch, because free() waits while malloc_trim()
returns memory of that arena: some 20 ms (my_return_memory.c). */
class mem_later_t
{
  struct piece_t { piece_t *next; };
  /** The object of this thread, or nullptr */
  static thread_local mem_later_t *current;
  /** Only the thread that has made the object uses this */
  piece_t *first= nullptr;

public:
  mem_later_t() noexcept;
  ~mem_later_t() noexcept;
  mem_later_t(const mem_later_t&)= delete;

  /** Free a block, or keep it for free_all().
  @param memory  for ut_free(), at least sizeof(piece_t) bytes: from give(), the further
                 blocks of a heap (dict0heap.cc), or a table's name */
  static void free(void *memory) noexcept;

  /** Free what was kept. The caller holds no latch that others wait for. */
  void free_all() noexcept;
};

class mem_stock_t
{
  /** Difference of the sizes of two shelves.  malloc() rounds up to 16. */
  static constexpr size_t STEP= 32;
  /** Objects that are larger have pages of their own anyway */
  static constexpr size_t LARGEST= 4096;
  /** What to allocate at a time, and the most that give() puts on a shelf */
  static constexpr size_t RUN= 32768;

  struct piece_t { piece_t *next; };
  struct shelf_t
  {
    piece_t *first;
    size_t bytes;
  };

  /** Protects the shelves.  A thread that holds it takes no other latch, and
  allocates nothing. */
  std::mutex mutex;
  shelf_t shelves[LARGEST / STEP + 1]{};
  /** From mem_owner() */
  const uint32_t owner;

public:
  explicit constexpr mem_stock_t(uint32_t owner) : owner(owner) {}

  static constexpr size_t rounded(size_t size)
  { return (size + STEP - 1) / STEP * STEP; }

  /** @return memory of at least so many bytes, which the caller may give to give() or
  to ut_free(); the server ends if there is none */
  void *get(size_t size) noexcept;

  /** Put memory back on its shelf, or free it if that is full; see mem_later_t.
  @param size  as in get() */
  void give(void *memory, size_t size) noexcept;

  /** Free what is in stock when InnoDB shuts down. */
  void close() noexcept;
};

#endif /* mem0stock_h */
