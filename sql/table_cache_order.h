#ifndef TABLE_CACHE_ORDER_INCLUDED
#define TABLE_CACHE_ORDER_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A queue of objects in the order of their keys, for the order of eviction.

  The key of an object is the time of its last use. A new key is usually later
  than all others, and the caller always takes the least one. So a radix heap
  will do: it is cheaper than a tree, and an object leaves it in O(1).

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
  of this list one by one. The caller inserts each of them again, and it lands
  at level 1 or 0. This happens to an object at most once for each level: a key
  that is T ticks later than "least" when its object is inserted costs log64(T)
  steps, which is four for a minute in microseconds. An object that is used
  again while it waits skips the other steps: the caller inserts it with its new
  key.

  In two cases the caller can take an object without inserting it again. To find
  out, it calls is_least():

  1. The object is the last one in the list, and its key is less than the keys
     of the objects that the caller has inserted again. So its key is the least
     of all. This is usual, because lists are last in, first out.
  2. The caller is about to remove n objects for good, and fewer than n other
     objects can have lesser keys. These are the objects that are left in the
     list, and the objects that the caller has inserted at lower levels
     meanwhile, except those in lists with a greater digit.

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
  /** Number of objects inserted since next() last found the list empty. */
  uint32 lengths[LEVELS][DIGITS];
  /** A bit for each list of a level. Clear: the list is empty. */
  ulonglong filled[LEVELS];
  ulonglong least;
  /** next() takes objects from this level; see current(). */
  uint level;
  /**
    Upper bound of the number of objects in the current() list, not counting the
    one that next() has returned. It has no meaning at level 0, where all keys
    of a list are equal.
  */
  uint32 left;
  /** No key in the levels below the current() list's is less than this. */
  ulonglong below;
  /** Number of objects inserted there since next() chose the current() list. */
  ulong spread;
  /** Lower bound of how many of these have keys greater than "counted". */
  ulong greater;
  ulonglong counted;

  static uint digit(ulonglong key, uint at)
  { return (uint) (key >> at * BITS) % DIGITS; }

  /** Set "greater" for a key in the current() list, and for all lesser ones. */
  void count_greater(ulonglong key)
  {
    const ulonglong up_to= (2ULL << digit(key, level - 1)) - 1;
    counted= key | ((1ULL << (level - 1) * BITS) - 1);
    greater= 0;
    for (ulonglong rest= filled[level - 1] & ~up_to; rest; rest&= rest - 1)
      greater+= lengths[level - 1][my_find_first_bit(rest)];
  }

  List &current() { return lists[level][digit(least, level)]; }

public:
  Table_cache_order():
    lengths(), filled(), least(0), level(0), left(0), below(0), spread(0),
    greater(0), counted(0)
  {}

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
    uint32 &length= lengths[at][digit(key, at)];
    length+= length != ~0U;
    filled[at]|= 1ULL << digit(key, at);
    if (at < level)
    {
      set_if_smaller(below, key);
      spread++;
    }
  }

  /**
    Remove an object from the queue, or from any other list that uses the same
    link members; I_P_List::remove() does not need the head. O(1)
  */
  static void remove(Object *object) { List().remove(object); }

  /**
    Find the object with the least key, as the keys were at insert().

    @return an object that is still in the queue; the caller has to remove it, and
            may insert it again. NULL if the queue is empty
  */
  Object *next()
  {
    while (current().is_empty())
    {
      filled[level]&= ~(1ULL << digit(least, level));
      lengths[level][digit(least, level)]= 0;
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
      Object *front= current().front();
      left= front && !*Links::next_ptr(front) ? 1 :
            lengths[level][digit(least, level)];
      below= ~0ULL;
      spread= greater= 0;
      counted= 0;
    }
    left--;
    return current().front();
  }

  /**
    Is this key one of the n least ones?

    @param key  the key that the object has now that next() has returned
    @param n    if it is not 1, the caller means to go on until it has removed n
                objects for good. Then any of the n objects with the least keys may
                be the first
  */
  bool is_least(ulonglong key, ulong n)
  {
    if (key <= least)
      return true;
    if (left >= n || (key ^ least) >> level * BITS)
      return false;
    if (key < below)
      return true;
    if (left + 1 >= n)
      return false;
    if (key > counted || left + spread >= n + greater)
      count_greater(key);
    return left + spread < n + greater;
  }

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
