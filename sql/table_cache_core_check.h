#ifndef TABLE_CACHE_CORE_CHECK_INCLUDED
#define TABLE_CACHE_CORE_CHECK_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A check of the core of the table cache, for debug builds and tests.
*/

#include "table_cache_core.h"

/**
  Verify what must hold while order_mutex and the locks of all slots are free.

  1. Each object in the order is linked.
  2. If it is free, it is in a list, it has no user, and its share has a hint.

  Walks through all lists. This thread holds order_mutex, and waits for slots,
  which no other function of the core does.

  @param[out] n_free  number of free objects in the order
  @return NULL, or what is wrong
*/

template <class A> const char *Table_cache_core<A>::check(ulong *n_free)
{
  const char *wrong= NULL;
  ulong n= 0;
  *n_free= 0;
  auto check_object= [&](Object *object) {
    Slot *slot;
    for (uint tries= 0; !(slot= trylock_slot_of(object)); tries++)
      Table_cache_lock::pause(tries);
    const Table_cache_state &state= A::state(object);
    n++;
    *n_free+= state.free;
    if (!state.linked)
      wrong= "an object in the order is not linked";
    if (state.free && A::user(object))
      wrong= "a free object has a user";
    if (state.free && !(A::share(object)->hints & Share::bit(state.place)))
      wrong= "a hint is clear though there is a free object";
    if (state.free && **A::Share_links::prev_ptr(object) != object)
      wrong= "a free object is in no list";
    slot->lock.unlock();
  };
  mysql_mutex_lock(&order_mutex);
  for (Object *list : { first.front(), ahead.front() })
  {
    for (Object *object= list; object;
         object= *A::Order_links::next_ptr(object))
      check_object(object);
  }
  queue.each(check_object);
  if (n > count)
    wrong= "more objects are in the order than are counted";
  mysql_mutex_unlock(&order_mutex);
  return wrong;
}

#endif /* TABLE_CACHE_CORE_CHECK_INCLUDED */
