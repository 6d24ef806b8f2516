/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef QUERY_CACHE_MEMORY_INCLUDED
#define QUERY_CACHE_MEMORY_INCLUDED

/**
  @file

  The allocator of the query cache. It cuts one area of memory into blocks
  that leave no byte between them.

  Every block begins with a header (the template's Block), which has the
  block's length and pointers to its two physical neighbours. The physical
  list is a ring: the last block's next neighbour is the first block. A walk
  ends when it is back at the first block.

  A block is either used or free. Two physical neighbours are never both free:
  release() merges them.

  A free block is in exactly one list, that of its size class. The classes are
  those of TLSF (two-level segregated fit; Masmano, Ripoll, Crespo and Real
  2004): the first level is the power of two, and the second level cuts it into
  SUBCLASSES equal parts. The lists are not sorted. One bit per class says
  whether its list is empty, so two 'find first bit' instructions find the next
  larger class that has a block. Therefore each function below takes a constant
  number of steps, however many blocks the area has:

    allocate()   examines up to TRIES blocks in the class of the wanted size.
                 If none of them is large enough, it takes the first block of
                 the next larger class that has one; each block there fits. It
                 makes the remainder a free block.
    allocate_tighter()  does the same, but only if the block it finds is
                 shorter than the one that the caller already has.
    release()    merges the block with its free neighbours and puts it into the
                 list of its class.
    trim()       cuts the end off a used block and frees it.
    extend()     lengthens a used block at the cost of the free block after it.

  A class spans at most 1/64 of its size; up to 1 kB a class has only one size.
  So the block that allocate() takes is at most 1.6 % longer than the best fit,
  which the sorted lists of MariaDB gave. (It may be longer if none of the first
  TRIES blocks of the class is long enough: then it is one of a larger class.)
  Keeping the lists sorted cost a walk through a list for every release: see bug
  28382 of 2007.

  The allocator never makes a block shorter than min_block, because its header
  would cost more than the block is worth. It leaves a remainder that short in
  the block that the caller asked for.

  The class knows nothing of queries, tables or locks. The caller makes sure
  that only one thread at a time calls it.

  Block must have:
    size_t length; Block *pnext, *pprev;   this class sets them in every block
    Block *next, *prev;                    this class uses them in free blocks,
                                           the caller in used ones
    bool is_free(); void mark_free(); void mark_used();
*/

#include <my_bit.h>
#include <my_valgrind.h>                        // MEM_NOACCESS

template <class Block> class Query_cache_memory
{
public:
  /* Lengths are multiples of this */
  static constexpr size_t unit= sizeof(double);

  /**
    @param free_memory  set to the bytes in free blocks
    @param free_blocks  set to the number of free blocks
    @param total_blocks set to the number of blocks
    The counters belong to the caller. Other threads may read them while they
    change.
  */
  Query_cache_memory(size_t *free_memory, size_t *free_blocks,
                     size_t *total_blocks)
    : m_free_memory(free_memory), m_free_blocks(free_blocks),
      m_total_blocks(total_blocks), m_first(nullptr), m_length(0),
      m_min_block(0), m_cursor(nullptr), m_gap(nullptr)
  {}

  /** Make the area one free block. */
  void init(void *area, size_t length, size_t min_block)
  {
    DBUG_ASSERT(length % unit == 0 && min_block % unit == 0);
    DBUG_ASSERT(min_block >= sizeof(Block) && length >= min_block);
    m_first_level= 0;
    memset(m_second_level, 0, sizeof m_second_level);
    memset(m_heads, 0, sizeof m_heads);
    m_first= static_cast<Block*>(area);
    m_length= length;
    m_min_block= min_block;
    m_cursor= m_gap= nullptr;
    m_first->length= length;
    m_first->pnext= m_first->pprev= m_first;
    m_first->mark_free();
    *m_total_blocks= 1;
    *m_free_memory= *m_free_blocks= 0;
    insert(m_first);
  }

  /**
    Take a block of len bytes or slightly more.

    @param len      bytes wanted
    @param not_less whether the caller cannot use a shorter block
    @param min      if it can: the shortest length that it can use
    @return the block, marked used; nullptr if there is none
  */
  Block *allocate(size_t len, bool not_less, size_t min)
  {
    len= align(len);
    Block *block= find(len);
    if (!block && !not_less)
      block= find_shorter(len, min);
    if (!block)
      return nullptr;
    return take(block, len);
  }

  /**
    Take a block of len bytes or slightly more from a free block that is shorter
    than a given block.

    @return the block, marked used; nullptr if there is no such free block
  */
  Block *allocate_tighter(size_t len, const Block *other)
  {
    len= align(len);
    Block *block= find(len);
    return block && block->length < other->length ? take(block, len) : nullptr;
  }

  /** Free a used block. */
  void release(Block *block)
  {
    DBUG_ASSERT(!block->is_free());
    block->mark_free();
    Block *other= block->pnext;
    if (other != m_first && other->is_free())
    {
      remove(other);
      join(block, other);
    }
    other= block->pprev;
    if (block != m_first && other->is_free())
    {
      remove(other);
      join(other, block);
      block= other;
    }
    insert(block);
  }

  /** Cut a used block to len bytes and release the rest. */
  void trim(Block *block, size_t len)
  {
    DBUG_ASSERT(!block->is_free() && len % unit == 0);
    DBUG_ASSERT(len >= m_min_block && block->length >= len + m_min_block);
    Block *rest= cut(block, len);
    rest->mark_used();
    release(rest);
  }

  /**
    Lengthen a used block at the cost of the free block after it.

    @param add  bytes wanted; if the free block is shorter, the used block gets
                all of it
    @return whether the block became longer
  */
  bool extend(Block *block, size_t add)
  {
    DBUG_ASSERT(!block->is_free());
    Block *other= block->pnext;
    if (other == m_first || !other->is_free())
      return false;
    const size_t want= align(block->length + add);
    remove(other);
    join(block, other);
    if (block->length >= want + m_min_block)
      insert(cut(block, want));
    return true;
  }

  /*
    Put a free block into the list of its class, or take it out. Public for the
    defragmentation, which moves blocks and changes the physical list itself.
  */
  void insert(Block *block)
  {
    DBUG_ASSERT(block->is_free());
    const Size_class c(block->length);
    Block **head= &m_heads[c.first][c.second];
    block->prev= nullptr;
    if ((block->next= *head))
      block->next->prev= block;
    *head= block;
    m_first_level|= 1ULL << c.first;
    m_second_level[c.first]|= 1ULL << c.second;
    *m_free_memory+= block->length;
    ++*m_free_blocks;
    /* To AddressSanitizer the whole area is allocated: poison the free part */
    MEM_NOACCESS(block + 1, block->length - sizeof(Block));
  }

  void remove(Block *block)
  {
    DBUG_ASSERT(block->is_free());
    MEM_MAKE_ADDRESSABLE(block + 1, block->length - sizeof(Block));
    if (block->next)
      block->next->prev= block->prev;
    if (block->prev)
      block->prev->next= block->next;
    else
    {
      const Size_class c(block->length);
      DBUG_ASSERT(m_heads[c.first][c.second] == block);
      if (!(m_heads[c.first][c.second]= block->next) &&
          !(m_second_level[c.first]&= ~(1ULL << c.second)))
        m_first_level&= ~(1ULL << c.first);
    }
    *m_free_memory-= block->length;
    --*m_free_blocks;
  }

  /*
    A position in the physical list that stays valid while other threads change
    the area. It always is the beginning of a block: of the block that it was
    set to or, after a merge, of the block that contains that one now.
  */
  Block *cursor() const { return m_cursor; }
  void set_cursor(Block *block) { m_cursor= block; }
  /* Another position: eviction sets it to a used block before it frees that */
  Block *gap() const { return m_gap; }
  void set_gap(Block *block) { m_gap= block; }

  Block *first() const { return m_first; }
  size_t length() const { return m_length; }

  /**
    Check all invariants above. The time grows with the number of blocks.

    @return nullptr, or the name of what is wrong
  */
  const char *check() const
  {
    size_t bytes= 0, blocks= 0, free_bytes= 0, free_blocks= 0;
    bool cursor_found= !m_cursor;
    const Block *block= m_first;
    do
    {
      if (block->length < m_min_block || block->length % unit)
        return "length of a block";
      if (block->pnext->pprev != block)
        return "physical links";
      if (block->pnext != m_first &&
          reinterpret_cast<const char*>(block) + block->length !=
          reinterpret_cast<const char*>(block->pnext))
        return "gap or overlap";
      if (block->is_free())
      {
        if (block->pnext != m_first && block->pnext->is_free())
          return "free neighbours not merged";
        free_bytes+= block->length;
        free_blocks++;
      }
      cursor_found|= block == m_cursor;
      bytes+= block->length;
      blocks++;
      if (bytes > m_length)
        return "more than the area";
    } while ((block= block->pnext) != m_first);
    if (bytes != m_length)
      return "less than the area";
    if (!cursor_found)
      return "cursor";
    if (free_bytes != *m_free_memory || free_blocks != *m_free_blocks ||
        blocks != *m_total_blocks)
      return "counters";
    for (uint i= 0; i < FIRST_LEVELS; i++)
    {
      if (!(m_first_level >> i & 1) != !m_second_level[i])
        return "first level bit";
      for (uint j= 0; j < SUBCLASSES; j++)
      {
        if (!(m_second_level[i] >> j & 1) != !m_heads[i][j])
          return "second level bit";
        const Block *prev= nullptr;
        for (block= m_heads[i][j]; block; prev= block, block= block->next)
        {
          const Size_class c(block->length);
          if (!block->is_free() || block->prev != prev ||
              c.first != i || c.second != j || !free_blocks--)
            return "list of a class";
        }
      }
    }
    return free_blocks ? "free block in no list" : nullptr;
  }

private:
  /* Turn a free block of at least len bytes into a used one of len bytes */
  Block *take(Block *block, size_t len)
  {
    remove(block);
    block->mark_used();
    if (block->length >= len + m_min_block)
      insert(cut(block, len));
    return block;
  }

  static constexpr uint SUBCLASS_BITS= 6, SUBCLASSES= 1U << SUBCLASS_BITS;
  static constexpr uint FIRST_LEVELS= 64 - 3 - SUBCLASS_BITS + 1;
  /* Number of blocks that find() examines in the class of the wanted size */
  static constexpr uint TRIES= 5;

  static size_t align(size_t len) { return (len + unit - 1) & ~(unit - 1); }

  static uint highest_bit(ulonglong n) { return my_bit_log2_uint64(n); }
  static uint lowest_bit(ulonglong n) { return my_bit_log2_uint64(n & -n); }

  struct Size_class
  {
    uint first, second;
    explicit Size_class(size_t length)
    {
      const ulonglong units= length / unit;
      if (units < SUBCLASSES)
      {
        first= 0;
        second= static_cast<uint>(units);
      }
      else
      {
        const uint bit= highest_bit(units);
        first= bit - SUBCLASS_BITS + 1;
        second= static_cast<uint>(units >> (bit - SUBCLASS_BITS)) &
                (SUBCLASSES - 1);
      }
    }
  };

  Block *find(size_t len) const
  {
    const Size_class c(len);
    Block *block= m_heads[c.first][c.second];
    for (uint i= 0; block && i < TRIES; i++, block= block->next)
    {
      if (block->length >= len)
        return block;
    }
    /* Two shifts, because one by c.second + 1 could be a shift by 64 */
    ulonglong bits= m_second_level[c.first] >> c.second >> 1;
    if (bits)
      return m_heads[c.first][c.second + 1 + lowest_bit(bits)];
    if (!(bits= m_first_level >> c.first >> 1))
      return nullptr;
    const uint first= c.first + 1 + lowest_bit(bits);
    return m_heads[first][lowest_bit(m_second_level[first])];
  }

  /* The longest block shorter than len, to within the width of a class */
  Block *find_shorter(size_t len, size_t min) const
  {
    const Size_class c(len);
    ulonglong bits= m_second_level[c.first] & ((2ULL << c.second) - 1);
    uint first= c.first;
    if (!bits)
    {
      if (!(bits= m_first_level & ((1ULL << c.first) - 1)))
        return nullptr;
      first= highest_bit(bits);
      bits= m_second_level[first];
    }
    Block *block= m_heads[first][highest_bit(bits)];
    return block->length >= min ? block : nullptr;
  }

  /* Cut a block after len bytes. The rest becomes a free block in no list */
  Block *cut(Block *block, size_t len)
  {
    Block *rest= reinterpret_cast<Block*>(reinterpret_cast<char*>(block) +
                                          len);
    rest->length= block->length - len;
    block->length= len;
    rest->pnext= block->pnext;
    rest->pprev= block;
    rest->pnext->pprev= rest;
    block->pnext= rest;
    rest->mark_free();
    ++*m_total_blocks;
    return rest;
  }

  /* Merge two physical neighbours, which are in no list, into one block */
  void join(Block *block, Block *other)
  {
    DBUG_ASSERT(block->pnext == other);
    block->length+= other->length;
    block->pnext= other->pnext;
    other->pnext->pprev= block;
    if (m_cursor == other)
      m_cursor= block;
    if (m_gap == other)
      m_gap= block;
    --*m_total_blocks;
  }

  size_t *const m_free_memory, *const m_free_blocks, *const m_total_blocks;
  Block *m_first;                       /* the block at the area's start */
  size_t m_length, m_min_block;
  Block *m_cursor, *m_gap;
  ulonglong m_first_level;              /* bit i: m_second_level[i] != 0 */
  ulonglong m_second_level[FIRST_LEVELS];/* bit j: m_heads[i][j] != 0 */
  Block *m_heads[FIRST_LEVELS][SUBCLASSES];
};

#endif /* QUERY_CACHE_MEMORY_INCLUDED */
