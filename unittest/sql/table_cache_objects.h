#ifndef TABLE_CACHE_OBJECTS_INCLUDED
#define TABLE_CACHE_OBJECTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The objects that the test and the benchmark of the table cache's core keep in
  it: each has the members of TABLE that the core needs, and nothing else.
*/

#include "table_cache_core.h"
#include "table_cache_machine.h"
#include <aligned.h>
#include <new>

struct Test_user;
struct Test_share;

/** The sum of the weights of all counted objects, like tc_memory.tables. */
static inline std::atomic<size_t> &test_weight()
{
  static std::atomic<size_t> sum(0);
  return sum;
}

/** A limit of the number of objects, and of their weight. */
struct Test_limit
{
  std::atomic<ulong> count;
  std::atomic<size_t> weight;

  Test_limit(ulong count_arg): count(count_arg), weight(~(size_t) 0) {}
  ulong operator=(ulong count_arg) { return count= count_arg; }
  bool exceeded(ulong n) const { return n > count || test_weight() > weight; }
};

struct Test_object
{
  Test_object *share_next, **share_prev;
  Test_object *order_next, **order_prev;
  Test_share *share;
  Test_user *user;
  ulonglong stamp;
  Table_cache_state state;
  uint32 number;
  uint32 weight;
  /** Like a TABLE that has read its triggers. Only the user writes it. */
  bool equipped;
  /** Only the user writes it, without a lock: shows if there are two. */
  ulonglong uses;
};

/** An array of objects that are aligned as their type asks for. */
template <class T> class Aligned_array
{
  T *elements;
  size_t n;
public:
  explicit Aligned_array(size_t n_arg):
    elements(static_cast<T*>(aligned_malloc(n_arg * sizeof(T), alignof(T)))),
    n(n_arg)
  {
    for (T &element : *this)
      new (&element) T();
  }
  ~Aligned_array()
  {
    for (T &element : *this)
      element.~T();
    aligned_free(elements);
  }
  Aligned_array(const Aligned_array &)= delete;
  void operator=(const Aligned_array &)= delete;
  T *begin() { return elements; }
  T *end() { return elements + n; }
  size_t size() const { return n; }
  T &operator[](size_t i) { return elements[i]; }
};

/** M says on which CPU a thread runs. */
template <class M> struct Test_access: public M
{
  typedef Test_object Object;
  typedef Test_user User;
  typedef I_P_List_adapter<Test_object, &Test_object::share_next,
                           &Test_object::share_prev> Share_links;
  typedef I_P_List_adapter<Test_object, &Test_object::order_next,
                           &Test_object::order_prev> Order_links;
  static Table_cache_share<Object, Share_links> *share(Object *object);
  static bool flushed(Object *object);
  static void before_lock(User *) {}
  static ulonglong stamp(const Object *object) { return object->stamp; }
  static void set_stamp(Object *object, ulonglong stamp)
  { object->stamp= stamp; }
  static Table_cache_state &state(Object *object) { return object->state; }
  static void uncounted(Object *object) { test_weight()-= object->weight; }
  static User *user(Object *object) { return object->user; }
  static void set_user(Object *object, User *user) { object->user= user; }
};

#endif /* TABLE_CACHE_OBJECTS_INCLUDED */
