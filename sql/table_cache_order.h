#ifndef TABLE_CACHE_ORDER_INCLUDED
#define TABLE_CACHE_ORDER_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A queue of objects in the order of their keys, for the order of eviction.

  A key is a number of ticks: the time of an object's last use. A new key is
  usually later than all others, and the caller always takes the least one. So a
  radix heap will do: it is cheaper than a tree, and an object leaves it in O(1).

  A key is read in base 64, as digits of six bits. No key in the queue is less
  than "least". The highest digit in which a key differs from "least" is the
  key's level. The level and the key's digit there name the list of the object.
  An example with decimal digits, and least = 5213:

      keys 5213 to 5219  level 0, lists 3 to 9, one for each key
      keys 5220 to 5299  level 1, lists 2 to 9, one for each ten
      keys 5300 to 5999  level 2, and so on

  1. All keys in a list are less than those in the lists with higher digits of
     the same level, and less than those of higher levels.
  2. In each level, the lists below the digit of "least" are empty.

  Suppose that the first list that is not empty is the one of level 2 with the
  keys from 5400 to 5499. next() sets "least" to 5400, and returns the objects
  of this list one by one. The caller takes those with the key 5400 for good,
  and inserts the others again, at level 1 or 0. So an object moves at most once
  for each level: log64(T) times if its key is T ticks later than "least" when
  it is inserted.

  Objects whose keys are equal leave the queue in any order.

  The caller protects the queue by a mutex.
*/

#include "my_global.h"
#include "my_bit.h"
#include "sql_plist.h"

template <class Object, class Links> class Table_cache_order
{
  typedef I_P_List<Object, Links> List;
  static constexpr uint BITS= 6, DIGITS= 1 << BITS, LEVELS= 64 / BITS + 1;

  List lists[LEVELS][DIGITS];
  /** A bit for each list of a level. Clear: the list is empty. */
  ulonglong filled[LEVELS];
  ulonglong least;
  /** next() takes objects from the list of "least" in this level. */
  uint level;

  static uint digit(ulonglong key, uint at)
  { return (uint) (key >> at * BITS) % DIGITS; }

public:
  Table_cache_order(): filled(), least(0), level(0) {}

  /** Insert an object. A key below "least" counts as "least". O(1) */
  void insert(Object *object, ulonglong key)
  {
    uint at= 0;
    if (unlikely(!least))
      least= key;                               /* The first object of all */
    set_if_bigger(key, least);
    for (ulonglong rest= key ^ least; rest >>= BITS; )
      at++;
    lists[at][digit(key, at)].push_front(object);
    filled[at]|= 1ULL << digit(key, at);
  }

  /** Remove an object. O(1), because I_P_List does not need the list's head. */
  static void remove(Object *object) { List().remove(object); }

  /**
    Find an object of the list that has the least keys. While the caller empties
    that list, objects that it inserts again may have lesser ones.

    @return an object that is still in the queue; the caller has to remove it, and
            may insert it again. NULL if the queue is empty
  */
  Object *next()
  {
    while (lists[level][digit(least, level)].is_empty())
    {
      filled[level]&= ~(1ULL << digit(least, level));
      for (level= 0; !filled[level]; level++)
      {
        if (level == LEVELS - 1)
        {
          level= 0;
          return NULL;
        }
      }
      /* The first digit that has a list; lower digits become 0. */
      least= (least >> level * BITS >> BITS << BITS |
              my_find_first_bit(filled[level])) << level * BITS;
    }
    return lists[level][digit(least, level)].front();
  }

  /**
    True only if no key in the queue is less than this one. It may be false for the
    least one, too, because "least" is a lower bound.
  */
  bool is_least(ulonglong key) const { return key <= least; }

  /** Call f(object) for each object: see table_cache_core_check.h */
  template <class F> void each(F f);
};

#endif /* TABLE_CACHE_ORDER_INCLUDED */
