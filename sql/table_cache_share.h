#ifndef TABLE_CACHE_SHARE_INCLUDED
#define TABLE_CACHE_SHARE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  What the core of the table cache (table_cache_core.h) keeps for each share,
  and for each object.
*/

#include "my_global.h"
#include "my_sys.h"
#include "mysql/psi/mysql_thread.h"
#include "sql_plist.h"
#include <atomic>

/** A test defines this to count the locks that it takes. */
#ifndef TABLE_CACHE_LOCKED
#define TABLE_CACHE_LOCKED() do {} while (0)
#endif

/** The cache's notes about an object. */

struct Table_cache_state
{
  /** Is the object in a list of its share? Needs the share's lock. */
  bool free;
  /**
    Which list of the order of eviction the object is in; 0: in none. To write
    this, a thread holds order_mutex, and in addition either holds the share's
    lock or is the object's user. To read it, a thread holds order_mutex, or it is
    the object's user and holds the share's lock.
  */
  uchar linked;
  /** Belongs to the object's user, not to the core. Needs no lock. */
  uchar flags;
};


/**
  A share's free objects.

  A TABLE with its Fields and its handler is some kilobytes, and a thread gets it
  back cheaply if it is in the cache of the thread's CPU. So each quarter of the
  CPUs has a list.

  An object may be equipped: it keeps something that only some users need, as a
  TABLE keeps the triggers that a statement has read which writes. Equipped
  objects have lists of their own, so that both kinds of users find theirs.
*/

template <class Object, class Links> struct Table_cache_share
{
  typedef I_P_List<Object, Links> Free_list;
  static constexpr uint LISTS= 4;

  /** Protects all other members. Any thread reads those that are atomic. */
  mysql_mutex_t mutex;
  /** Number of free objects. */
  std::atomic<uint32> elements;
  /** By the CPU that released the object. Front: released last. */
  Free_list free[LISTS];
  /**
    Number of hits since the share was opened, and the time of the last release,
    0 if there was none.
  */
  std::atomic<ulonglong> hits, last_release;
  /** Like "free", which has the others. */
  Free_list equipped[LISTS];

  explicit Table_cache_share(PSI_mutex_key key= 0):
    elements(0), hits(0), last_release(0)
  { mysql_mutex_init(key, &mutex, MY_MUTEX_INIT_FAST); }
  ~Table_cache_share() { mysql_mutex_destroy(&mutex); }

  void lock()
  {
    mysql_mutex_lock(&mutex);
    TABLE_CACHE_LOCKED();
  }
  void unlock() { mysql_mutex_unlock(&mutex); }

  /**
    An object of this list, or else of any other one; NULL if none. Then "list" has
    advanced by LISTS, so it means the same list.
  */
  static Object *front(Free_list (&lists)[LISTS], uint &list)
  {
    for (const uint end= list + LISTS; list != end; list++)
    {
      if (Object *object= lists[list % LISTS].front())
        return object;
    }
    return NULL;
  }

  /** A free object, an equipped one only if there is no other; NULL if none. */
  Object *front(uint list)
  {
    Object *object= front(free, list);
    return likely(object != NULL) ? object : front(equipped, list);
  }

  /**
    Add to a counter that has a lock: no atomic addition is needed. Relaxed, because
    a thread that needs the exact value holds the lock.
  */
  template <class T> static void add(std::atomic<T> &counter, int n)
  {
    counter.store(counter.load(std::memory_order_relaxed) + n,
                  std::memory_order_relaxed);
  }
};

#endif /* TABLE_CACHE_SHARE_INCLUDED */
