#ifndef TABLE_CACHE_SLOT_INCLUDED
#define TABLE_CACHE_SLOT_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  What the core of the table cache (table_cache_core.h) keeps for each share,
  and for each object.
*/

#include "my_global.h"
#include "my_sys.h"
#include "my_cpu.h"
#include "mysql/psi/mysql_thread.h"
#include "sql_plist.h"
#include <atomic>

/** A test defines this to count the locks that it takes. */
#ifndef TABLE_CACHE_LOCKED
#define TABLE_CACHE_LOCKED() do {} while (0)
#endif

/** Where threads wait for the lock of any share. The cache has one. */
struct Table_cache_waits
{
  mysql_mutex_t mutex;
  mysql_cond_t cond;
};

/**
  The lock of a share, held for about ten instructions. The holder never waits
  for anything. A mysql_mutex_t does not fit in the cache line of what it
  protects.

  A thread that finds it locked spins for a microsecond or so. That is enough
  unless the holder has lost its CPU. Then the thread sleeps in the kernel.
*/

class Table_cache_lock
{
  enum : uint32 { FREE, LOCKED, AWAITED };
  /** AWAITED: locked, and a thread may sleep until it is unlocked. */
  std::atomic<uint32> word;

  bool trylock()
  {
    uint32 expected= FREE;
    return word.compare_exchange_strong(expected, LOCKED,
                                        std::memory_order_acquire,
                                        std::memory_order_relaxed);
  }

  ATTRIBUTE_NOINLINE void wait(Table_cache_waits *waits)
  {
    for (uint spins= 0; spins < 64; spins++)
    {
      MY_RELAX_CPU();
      if (word.load(std::memory_order_relaxed) == FREE && trylock())
        return;
    }
    mysql_mutex_lock(&waits->mutex);
    while (word.exchange(AWAITED, std::memory_order_acquire) != FREE)
      mysql_cond_wait(&waits->cond, &waits->mutex);
    mysql_mutex_unlock(&waits->mutex);
  }

  /** The waiting thread sets AWAITED under the mutex, so it does not miss this. */
  ATTRIBUTE_NOINLINE static void wake(Table_cache_waits *waits)
  {
    mysql_mutex_lock(&waits->mutex);
    mysql_cond_broadcast(&waits->cond);
    mysql_mutex_unlock(&waits->mutex);
  }

public:
  Table_cache_lock(): word(FREE) {}

  void lock(Table_cache_waits *waits)
  {
    if (unlikely(!trylock()))
      wait(waits);
    TABLE_CACHE_LOCKED();
  }
  /** Another thread may free the lock's memory before this returns. */
  void unlock(Table_cache_waits *waits)
  {
    if (unlikely(word.exchange(FREE, std::memory_order_release) == AWAITED))
      wake(waits);
  }
  void assert_locked() const
  { DBUG_ASSERT(word.load(std::memory_order_relaxed) != FREE); }
};


/** The cache's notes about an object. */

struct Table_cache_state
{
  /** Is the object in a list of its share? Needs the share's lock. */
  bool free;
  /**
    Which list of the order of eviction the object is in; 0: in none. To write
    this, a thread holds order_mutex, and in addition either holds the share's
    lock or is the object's user. To read it, a thread needs one of these three.
  */
  uchar linked;
  /** Belongs to the object's user, not to the core. Needs no lock. */
  uchar flags;
};


/**
  A share's free objects, in one cache line, or a half of one.

  A TABLE with its Fields and its handler is some kilobytes, and a thread gets it
  back cheaply if it is in the cache of the thread's CPU. So each quarter of the
  CPUs has a list. That costs no memory, because the line has room for it.
*/

template <class Object, class Links> struct alignas(64) Table_cache_share
{
  typedef I_P_List<Object, Links> Free_list;
  static constexpr uint LISTS= 4;

  /** Protects all other members. Any thread reads those that are atomic. */
  Table_cache_lock lock;
  /** Number of free objects. */
  std::atomic<uint32> elements;
  /** By the CPU that released the object. Front: released last. */
  Free_list free[LISTS];
  /**
    Number of hits since the share was opened, and the time of the last release,
    0 if there was none.
  */
  std::atomic<ulonglong> hits, last_release;

  Table_cache_share(): elements(0), hits(0), last_release(0) {}

  /** A free object: of this list, or else of any other one; NULL if none. */
  Object *front(uint list)
  {
    for (uint i= 0; i < LISTS; i++)
    {
      if (Object *object= free[(list + i) % LISTS].front())
        return object;
    }
    return NULL;
  }

  /** Add to a counter that has a lock: no atomic addition is needed. */
  template <class T> static void add(std::atomic<T> &counter, int n)
  {
    counter.store(counter.load(std::memory_order_relaxed) + n,
                  std::memory_order_relaxed);
  }
};

#endif /* TABLE_CACHE_SLOT_INCLUDED */
