/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/fil0stock.h
Allocate the objects of tablespaces side by side.

A tablespace stays when InnoDB evicts the definition of its table, so its objects
stay, too. If a thread allocated them when it loads the table, they would lie between
the table's definition and its handler. When these are freed, they would keep two or
three pages of the heap in use: half as much memory as a table of one column takes. So
a thread that needs one object allocates several, and keeps the rest in stock.
ut_free() frees each of them, like any other. Only fil0fil.cc includes this. */

#ifndef fil0stock_h
#define fil0stock_h

#include "fil0fil.h"
#include <cstring>

/** Pieces of memory of one size. fil_system.mutex protects the stock. */
class fil_stock_t
{
  /** Bytes to allocate at a time */
  static constexpr size_t RUN= 32768;
  struct piece_t { piece_t *next; } *first= nullptr;

  /** @return like ut_malloc_nokey(), which only works in a .cc file */
  static void *allocate(size_t size) noexcept
  {
#ifdef UNIV_PFS_MEMORY
    return ut_allocator<byte>(mem_key_other)
      .allocate(size, nullptr, INVALID_AUTOEVENT_IDX, false, false);
#else
    return ::malloc(size);
#endif
  }

public:
  /** @param size  the same for each call
  @return zeroed memory that the caller will give to ut_free(); the server ends if
  there is none, as in ut_zalloc_nokey() */
  void *get(size_t size) noexcept
  {
    mysql_mutex_assert_owner(&fil_system.mutex);
    if (!first)
      for (size_t n= RUN / size; n--; )
      {
        piece_t *piece= static_cast<piece_t*>(allocate(size));
        ut_a(piece);
        piece->next= first;
        first= piece;
      }
    piece_t *piece= first;
    first= piece->next;
    return memset(piece, 0, size);
  }

  /** Free the stock when InnoDB shuts down. */
  void clear() noexcept
  {
    while (piece_t *piece= first)
    {
      first= piece->next;
      ut_free(piece);
    }
  }
};

/** The stocks of objects that fil_space_t::create() and fil_space_t::add() need. */
struct fil_stocks_t
{
  /** "./database/table.ibd": most names are shorter */
  static constexpr size_t NAME= 64;
  fil_stock_t spaces, nodes, names;

  /** @return copy of the name of a file, for ut_free() */
  char *copy_name(const char *name) noexcept
  {
    const size_t size= strlen(name) + 1;
    return size > NAME ? mem_strdup(name)
      : static_cast<char*>(memcpy(names.get(NAME), name, size));
  }

  void clear() noexcept
  {
    spaces.clear();
    nodes.clear();
    names.clear();
  }
};

static fil_stocks_t fil_stocks;

#endif /* fil0stock_h */
