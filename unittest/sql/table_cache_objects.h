#ifndef TABLE_CACHE_OBJECTS_INCLUDED
#define TABLE_CACHE_OBJECTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The objects that the test and the benchmark of the table cache's core keep in
  it: each has the members of TABLE that the core needs, and nothing else.
*/

#include "table_cache_core.h"

struct Test_user;
struct Test_share;

struct Test_object
{
  Test_object *share_next, **share_prev;
  Test_object *lru_next, **lru_prev;
  Test_share *share;
  Test_user *user;
  ulonglong stamp;
  uint32 place;
  uint32 number;
  /** Only the user writes it, without a lock: shows if there are two. */
  ulonglong uses;
};

/** M says on which CPU a thread runs, and how late it is. */
template <class M> struct Test_access: public M
{
  typedef Test_object Object;
  typedef Test_user User;
  typedef I_P_List_adapter<Test_object, &Test_object::share_next,
                           &Test_object::share_prev> Share_links;
  typedef I_P_List_adapter<Test_object, &Test_object::lru_next,
                           &Test_object::lru_prev> Lru_links;
  static Table_cache_share<Object, Share_links> *share(Object *object);
  static ulonglong stamp(const Object *object) { return object->stamp; }
  static void set_stamp(Object *object, ulonglong stamp)
  { object->stamp= stamp; }
  static uint32 &place(Object *object) { return object->place; }
  static User *user(Object *object) { return object->user; }
  static void set_user(Object *object, User *user) { object->user= user; }
};

#endif /* TABLE_CACHE_OBJECTS_INCLUDED */
