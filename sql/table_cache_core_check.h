#ifndef TABLE_CACHE_CORE_CHECK_INCLUDED
#define TABLE_CACHE_CORE_CHECK_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A check of the core of the table cache, for debug builds and tests.
*/

#include "table_cache_core.h"

/** Call f(object) for each object, which must stay. */

template <class Object, class Links> template <class F>
void Table_cache_order<Object, Links>::each(F f)
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


/**
  Verify what must hold while order_mutex and the locks of all shares are free:
  the notes of each object in the order agree with the lists that it is in.

  @param[out] n_free  number of free objects in the order
  @return NULL, or what is wrong
*/

template <class A> const char *Table_cache_core<A>::check(ulong *n_free)
{
  const char *wrong= NULL;
  ulong n= 0;
  *n_free= 0;
  auto check_object= [&](Object *object) {
    Share *share= A::share(object);
    const Table_cache_state &state= A::state(object);
    share->lock();
    n++;
    *n_free+= state.free;
    if (!state.linked)
      wrong= "an object in the order is not linked";
    if (state.free && A::user(object))
      wrong= "a free object has a user";
    if (state.free && !share->elements)
      wrong= "a share has a free object and does not count it";
    if (state.free && **A::Share_links::prev_ptr(object) != object)
      wrong= "a free object is in no list";
    share->unlock();
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
