#ifndef TABLE_CACHE_ORDER_INCLUDED
#define TABLE_CACHE_ORDER_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A queue of objects in the order of their keys, for the order of eviction.

  The key of an object is the time of its last use. A new key is as a rule later
  than all others, and the caller always takes the least one. So this can be a
  radix heap: cheaper than a tree, and an object leaves it in O(1).

  A key is a number of digits of six bits. "least" is not more than any key in
  the queue. The highest digit in which a key differs from "least" is its level;
  level and digit name the list of the object. An example with decimal digits,
  and least = 5213:

      key 5213 to 5219  level 0, lists 3 to 9, one for each key
      key 5220 to 5299  level 1, lists 2 to 9, one for each ten
      key 5300 to 5999  level 2, and so on

  All keys in a list are less than those in the lists with higher digits of its
  level, and less than those of higher levels. When the first list that is not
  empty belongs to level 2, such as the one from 5400 to 5499, next() sets
  "least" to 5400 and returns the objects of this list one by one. The caller
  inserts each of them again, and it falls to level 1 or 0. An object falls once
  for each level at most: a key that is T ticks later than "least" when the
  object is inserted costs log64(T) steps, which is four for a minute in
  microseconds. An object that is used again while it waits does not pay: it is
  inserted with its new key when it is met.

  The lists have no order within themselves. Objects whose keys are equal leave
  the queue in any order.

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
  /** next() takes objects from lists[level][digit of least]. */
  uint level;

  static uint digit(ulonglong key, uint at)
  { return (uint) (key >> at * BITS) % DIGITS; }

public:
  Table_cache_order(): filled(), least(0), level(0) {}

  /** Insert an object. A key below "least" counts as "least". O(1) */
  void insert(Object *object, ulonglong key)
  {
    uint at= 0;
    if (key <= least)
      key= least;
    else
      while (key >> at * BITS >> BITS != least >> at * BITS >> BITS)
        at++;
    lists[at][digit(key, at)].push_front(object);
    filled[at]|= 1ULL << digit(key, at);
  }

  /** Remove an object from the queue, or from a list of its links. O(1) */
  static void remove(Object *object) { List().remove(object); }

  /**
    Find the object with the least key, as the keys were at insert().

    @return an object that is still in the queue; the caller removes it, and may
            insert it again. NULL if the queue is empty
  */
  Object *next()
  {
    for (;;)
    {
      if (Object *object= lists[level][digit(least, level)].front())
        return object;
      filled[level]&= ~(1ULL << digit(least, level));
      ulonglong bits;
      for (level= 0; !(bits= filled[level] >> digit(least, level)); level++)
      {
        if (level == LEVELS - 1)
        {
          level= 0;
          return NULL;
        }
      }
      /* Go to the first of these lists; lower digits of "least" become 0. */
      while (!(bits & 1))
      {
        bits>>= 1;
        least+= 1ULL << level * BITS;
      }
      if (level)
        least= least >> level * BITS << level * BITS;
    }
  }

  /**
    Of the objects that next() has returned and that were inserted again, one
    that is among those with the least keys; NULL if there is none.
  */
  Object *least_of_returned()
  {
    for (uint at= 0; at < level; at++)
    {
      while (filled[at])
      {
        const uint first= my_find_first_bit(filled[at]);
        if (Object *object= lists[at][first].front())
          return object;
        filled[at]&= ~(1ULL << first);
      }
    }
    return NULL;
  }

  /**
    Is there no object with a lesser key than this one?

    @pre next() has returned an object that had this key
  */
  bool is_least(ulonglong key) const { return !level && key <= least; }

  /** Call f(object) for each object, which must stay. For debugging. */
  template <class F> void each(F f)
  {
    for (auto &of_level : lists)
    {
      for (List &list : of_level)
      {
        typename List::Iterator it(list);
        while (Object *object= it++)
          f(object);
      }
    }
  }
};

#endif /* TABLE_CACHE_ORDER_INCLUDED */
