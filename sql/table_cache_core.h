#ifndef TABLE_CACHE_CORE_INCLUDED
#define TABLE_CACHE_CORE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache. It knows only objects, and the shares that own
  them: no THD, no engine, no file. table_cache.cc makes it a cache of TABLEs,
  and unittest/sql/table_cache-t.cc tests it alone.

  An object belongs to one share for life. From add() on the cache counts it,
  and it is in one of two states:

  - used: it has a user (TABLE::in_use);
  - free: it has no user, and it is in a list of its share.

           add()      -----> used -- release() --> free
                              ^ ^                  | | |
                              | '--- acquire() ----' | |
     to be closed:            '---- evict() ---------' '-- purge() --> none
     forget() or release()

  Two verbs, take() and put(), move an object out of and into a list of its
  share, under the share's lock. Two others, link() and unlink(), move it into
  and out of the order of eviction, under order_mutex.

  A hit is one acquire() and one release(): one take() and one put(). It locks
  the share twice, and writes to the share and to the object, and to nothing
  that users of other shares write or read. It does not change the order.

  The order is three lists. A linked object is in exactly one of them. The core
  evicts

  1. from "first", the objects that were released with the stamp EVICT_FIRST;
  2. then from "ahead", those that were released with the stamp OPENED_AHEAD;
  3. then from "queue", all others, in the order of keys (table_cache_order.h).

  The key of an object in the queue is the time of its last release before it was
  linked, or of add(), in ticks of 8 microseconds (TICK_SHIFT). A hit changes the
  object's stamp, but not its key. So a linked object may have a newer stamp than
  its key, or may be used. A search for a victim links the former anew, and
  unlinks the latter; its release() will link it again. That is one step for each
  release at most, so the number of steps of a search is constant on average.

  Before a thread closes an object, the object has left the count, the order and
  its share. The thread holds no lock while it closes the object.

  Order of locks: the mutex of a share's owner (LOCK_table_share), order_mutex,
  the lock of one share (Table_cache_share::mutex). A thread that holds the last
  takes no other.
*/

#include "table_cache_order.h"
#include "table_cache_share.h"

/**
  The cache, for objects as described by A:

    A::Object, A::User         the cached objects, and their users
    A::Share_links             I_P_List adapter: links of the lists of a share
    A::Order_links             I_P_List adapter: links of the order
    A::share(Object*)          the share's part in this cache
    A::flushed(Object*)        must the objects of the share be closed?
    A::state(Object*)          its Table_cache_state
    A::stamp(const Object*), A::set_stamp(Object*, ulonglong)
                               valid while the object is free; a user who has
                               used it leaves another one than OPENED_AHEAD and
                               EVICT_FIRST
    A::user(Object*)           the user, NULL if the object is free
    A::set_user(Object*, User*)
    A::uncounted(Object*)      the cache does not count the object any more
    A::cpu()                   number of the CPU that runs this thread
    A::before_lock(User*)      acquire() is about to lock a share

  A limit has a function exceeded(count): must not so many objects stay? The
  result may change at any moment. A stamp is a number: the time of a release in
  microseconds, or OPENED_AHEAD or EVICT_FIRST, which are less than any time.
*/

template <class A> class Table_cache_core
{
public:
  typedef typename A::Object Object;
  typedef typename A::User User;
  typedef Table_cache_share<Object, typename A::Share_links> Share;
  typedef typename Share::Free_list Free_list;

  /** Stamps that are less than any time: see release(). */
  static constexpr ulonglong OPENED_AHEAD= 1, EVICT_FIRST= 2;
  /** A search for a victim examines at most ENOUGH + 1 objects. */
  static constexpr uint ENOUGH= 1024;
  /**
    A tick has 2^TICK_SHIFT microseconds: less than the shortest statement.
    Objects that were released in the same tick are evicted in any order. With
    shorter ticks a search takes more steps.
  */
  static constexpr uint TICK_SHIFT= 3;

private:
  /** A purge takes at most so many objects while it holds the locks. */
  static constexpr uint PURGE_AT_ONCE= 64;
  /** Values of Table_cache_state::linked: the list that the object is in. */
  enum : uchar { NOWHERE, FIRST, AHEAD, QUEUE };

  /**
    CPUs i and j use the same list of a share if i and j, shifted to the right by
    this, are equal modulo LISTS. Constant.
  */
  uint cpu_shift;

  /**
    Protects the next members, and the links of the order in the objects. An
    object that is linked is not closed while a thread holds the mutex.
  */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) mysql_mutex_t order_mutex;
  /** Front: released longest ago. */
  I_P_List<Object, typename A::Order_links, I_P_List_null_counter,
           I_P_List_fast_push_back<Object> > first;
  /** Front: released last. */
  I_P_List<Object, typename A::Order_links> ahead;
  Table_cache_order<Object, typename A::Order_links> queue;
  /** Number of objects, used and free. Any thread reads this and the next. */
  std::atomic<ulong> count;
  /** Number of objects evicted. */
  std::atomic<ulonglong> evicted;

  /** This CPU's list of free objects. */
  uint own_list() const { return A::cpu() >> cpu_shift; }

  /** Take a free object out of its locked share, and give it this user. */
  static void take(Object *object, Share *share, User *user)
  {
    mysql_mutex_assert_owner(&share->mutex);
    DBUG_ASSERT(A::state(object).free && !A::user(object));
    Free_list().remove(object);         /* It does not need the list's head. */
    Share::add(share->elements, -1);
    A::state(object).free= false;
    A::set_user(object, user);
  }

  /** Put a used object into its locked share, and take its user away. */
  void put(Object *object, Share *share, ulonglong stamp, bool equipped)
  {
    mysql_mutex_assert_owner(&share->mutex);
    DBUG_ASSERT(!A::state(object).free && A::state(object).linked &&
                A::user(object));
    A::set_user(object, NULL);
    A::set_stamp(object, stamp);
    A::state(object).free= true;
    (equipped ? share->equipped : share->free)[own_list() % Share::LISTS].
      push_front(object);
    Share::add(share->elements, 1);
    if (likely(stamp > EVICT_FIRST &&
               stamp > share->last_release.load(std::memory_order_relaxed)))
      share->last_release.store(stamp, std::memory_order_relaxed);
  }

  /**
    Put an object into the order. The caller holds order_mutex. It also is the
    object's user, or holds the lock of the object's share.
  */
  void link(Object *object, ulonglong stamp)
  {
    mysql_mutex_assert_owner(&order_mutex);
    uchar &linked= A::state(object).linked;
    if (likely(stamp > EVICT_FIRST))
    {
      linked= QUEUE;
      queue.insert(object, stamp >> TICK_SHIFT);
    }
    else if (stamp == EVICT_FIRST)
    {
      linked= FIRST;
      first.push_back(object);
    }
    else
    {
      linked= AHEAD;
      ahead.push_front(object);
    }
  }

  /** Undo link(), under the same locks. */
  void unlink(Object *object)
  {
    mysql_mutex_assert_owner(&order_mutex);
    uchar &linked= A::state(object).linked;
    if (unlikely(linked == FIRST))
      first.remove(object);
    else if (linked)
      queue.remove(object);             /* This works for "ahead", too. */
    linked= NOWHERE;
  }

  /** An object leaves the count and the order, and will be closed. */
  void uncount(Object *object)
  {
    unlink(object);
    DBUG_ASSERT(count);
    Share::add(count, -1);
    A::uncounted(object);
  }

  /** The linked object that a search for victims meets next, NULL if none. */
  Object *next_in_order()
  {
    Object *object= first.front() ? first.front() : ahead.front();
    return object ? object : queue.next();
  }

  /**
    Evict the objects that were released longest ago, while the limit is
    exceeded. An object that this meets in the order belongs to one of three
    cases:

    1. It is used. It leaves the order until it is released.
    2. It is free, but others may have been released earlier. It is linked anew
       with its stamp.
    3. It is free, and was released with EVICT_FIRST or OPENED_AHEAD, or no
       object of the queue was released in an earlier tick: it is a victim.

    After many hits, a search would meet all objects that were used meanwhile. So
    after ENOUGH of them it takes the free object met so far that was released
    longest ago. If all were used, it evicts none.

    Each add() and each release_slowly() calls this once, and evicts at most one
    object. Nevertheless the count is within the limit whenever no object is used
    and no thread is in one of these functions. Let U be the number of used
    objects that are not linked, and E the number of objects above the limit. E
    never becomes greater than U:

    - An add() that evicts no object raises E by 1. Its search has unlinked at
      least one used object, which raises U, or it has left no object linked, so
      U is the number of all objects.
    - Only release_slowly() and forget() lower U. If they close the object or evict
      another one, they lower E, too. Otherwise the search ends as that of add().
    - When no object is used, U is 0. So E is 0.

    @param most      evict at most so many
    @param[out] out  gets the victims, the last one first. The caller is their
                     user now, and closes them
    @return true if the search met ENOUGH objects, and evicted none
  */
  template <class Limit>
  bool take_victims(const Limit &limit, User *user, uint most, Free_list *out)
  {
    /* The free object met so far that was released longest ago. Linked. */
    Object *oldest= NULL;
    ulonglong oldest_stamp= ~0ULL;
    mysql_mutex_assert_owner(&order_mutex);
    for (uint met= 0; most && unlikely(limit.exceeded(count)); met++)
    {
      const bool enough= met >= ENOUGH;
      if (unlikely(enough && (met > ENOUGH || !oldest || !out->is_empty())))
        return out->is_empty();
      Object *object= enough ? oldest : next_in_order();
      if (!object)
        break;
      if (object == oldest)
      {
        oldest= NULL;
        oldest_stamp= ~0ULL;
      }
      Share *share= A::share(object);
      share->lock();
      const bool free= A::state(object).free;
      const ulonglong stamp= free ? A::stamp(object) : 0;
      if (free && (enough || stamp <= EVICT_FIRST ||
                   (A::state(object).linked == QUEUE &&
                    queue.is_least(stamp >> TICK_SHIFT))))
      {
        take(object, share, user);
        share->unlock();
        uncount(object);
        Share::add(evicted, 1);
        out->push_front(object);
        most--;
        continue;
      }
      unlink(object);
      if (free)
        link(object, stamp);
      share->unlock();
      if (free && stamp < oldest_stamp)
      {
        oldest= object;
        oldest_stamp= stamp;
      }
    }
    return false;
  }

  /** Release an object that has to be linked in the order, or closed. */
  template <class Limit> ATTRIBUTE_NOINLINE
  Object *release_slowly(Object *object, ulonglong stamp, bool equipped,
                         const Limit &limit)
  {
    User *user= A::user(object);
    Share *share= A::share(object);
    Free_list to_close;
    mysql_mutex_lock(&order_mutex);
    share->lock();
    if (unlikely(A::flushed(object)))
    {
      share->unlock();
      uncount(object);
      to_close.push_front(object);
    }
    else
    {
      unlink(object);
      link(object, stamp);
      put(object, share, stamp, equipped);
      share->unlock();
      take_victims(limit, user, 1, &to_close);
    }
    mysql_mutex_unlock(&order_mutex);
    return to_close.pop_front();
  }

public:
  /**
    Make an empty cache.

    @param cpus       number of CPUs; CPUs with higher numbers may come later
    @param order_key  instrumentation of order_mutex
  */
  void init(uint cpus, PSI_mutex_key order_key)
  {
    for (cpu_shift= 0; (cpus - 1) >> cpu_shift >= Share::LISTS; )
      cpu_shift++;
    mysql_mutex_init(order_key, &order_mutex, MY_MUTEX_INIT_FAST);
    evicted= count= 0;
  }

  /** Free an empty cache. No thread may use shares any more. */
  void destroy()
  {
    DBUG_ASSERT(count == 0);
    mysql_mutex_destroy(&order_mutex);
  }

  /** Number of objects, used and free. Relaxed: it may change at any moment. */
  ulong records() const { return count.load(std::memory_order_relaxed); }
  ulonglong evictions() const { return evicted; }

  /**
    Add a new object, which has a user.

    @param now        time
    @param limit      how many objects may stay; may change meanwhile
    @param[out] room  was there room for the object?
    @return another object, which the caller has to close, or NULL
  */
  template <class Limit>
  Object *add(Object *object, ulonglong now, const Limit &limit, bool *room)
  {
    Free_list victims;
    A::state(object).free= false;
    mysql_mutex_lock(&order_mutex);
    *room= !limit.exceeded(count + 1);
    Share::add(count, 1);
    link(object, now);
    take_victims(limit, A::user(object), 1, &victims);
    mysql_mutex_unlock(&order_mutex);
    return victims.pop_front();
  }

  /** Remove an object that is in use: the caller will close it. */
  void forget(Object *object)
  {
    mysql_mutex_lock(&order_mutex);
    DBUG_ASSERT(!A::state(object).free);
    uncount(object);
    mysql_mutex_unlock(&order_mutex);
  }

  /**
    Get a free object of a share, and make it used: one that was released last
    to the list of this CPU, or else to another one. It is an equipped one only if
    the share has no other.

    @param uses  1; 0: it does not count as a hit
    @pre The memory of the share cannot go away.
    @return NULL if the share had no free object at one moment during the call
  */
  Object *acquire(Share *share, User *user, uint uses= 1)
  {
    /* Relaxed: a thread that sees this late only opens another object. */
    if (!share->elements.load(std::memory_order_relaxed))
      return NULL;
    A::before_lock(user);
    share->lock();
    Object *object= share->front(own_list());
    if (likely(object != NULL))
    {
      take(object, share, user);
      Share::add(share->hits, uses);
    }
    share->unlock();
    return object;
  }

  /**
    Get an equipped one, if there is one: for a user who got another one from
    acquire(), and will release() that with its stamp. So this is no hit.
  */
  Object *acquire_equipped(Share *share, User *user)
  {
    uint list= own_list();
    share->lock();
    Object *object= Share::front(share->equipped, list);
    if (object)
      take(object, share, user);
    share->unlock();
    return object;
  }

  /**
    Is there an object linked as one of the first to be evicted? Probably it is
    the next victim, unless others have used it since.
  */
  bool has_evict_first()
  {
    mysql_mutex_lock(&order_mutex);
    const bool has= !first.is_empty();
    mysql_mutex_unlock(&order_mutex);
    return has;
  }

  /**
    Give back an object, which the caller uses.

    @param stamp    decides when the object is evicted:
                    - the time: when it is the one released longest ago;
                    - EVICT_FIRST: before all others;
                    - OPENED_AHEAD: after those, the last released first: tables are
                      opened ahead in the order in which they will be needed;
                    - the stamp that the object had when the caller acquired it:
                      as before, because the caller did not use it
    @param limit    as for add()
    @tparam equipped  does the object have what acquire_equipped() looks for?

    The thread that sets the mark of a flushed share calls purge() afterwards.
    purge() locks the share after the mark was set, so either purge() finds the
    object, or this sees the mark.

    @return an object that the caller has to close, or NULL. If the share is
            flushed, that is the object given back. Otherwise it is one that
            this call has evicted, and other threads may use or close the one
            given back by now
  */
  template <bool equipped= false, class Limit>
  Object *release(Object *object, ulonglong stamp, const Limit &limit)
  {
    Share *share= A::share(object);
    share->lock();
    /*
      No relinking needed: the key under which the object is queued may be older
      than its stamp, never newer.
    */
    const bool usual= likely(A::state(object).linked && !A::flushed(object)) &&
      (likely(stamp > EVICT_FIRST) || stamp == A::stamp(object));
    if (likely(usual))
      put(object, share, stamp, equipped);
    share->unlock();
    return likely(usual) ? NULL :
                           release_slowly(object, stamp, equipped, limit);
  }

  /**
    Evict the objects that were released longest ago, while the limit is exceeded
    and an object is free.

    @param most      how many at most. The function takes fewer if it would hold
                     the mutex for too long
    @param[out] out  the objects, the last one first. The caller is their user
                     now, and closes them
    @return has it evicted any? No, if the limit is not exceeded, or no object
            is free
  */
  template <class Limit>
  bool evict(User *user, const Limit &limit, uint most, Free_list *out)
  {
    bool more;
    do
    {
      mysql_mutex_lock(&order_mutex);
      more= take_victims(limit, user, most, out);
      mysql_mutex_unlock(&order_mutex);
    } while (more);
    return !out->is_empty();
  }

  /**
    Remove all free objects of a share. If the share is flushed, none is left:
    once this has locked the share, no thread puts an object into it.

    @param[out] out  gets the objects. They have no user
  */
  void purge(Share *share, Free_list *out)
  {
    for (uint left= 0; !left; )
    {
      mysql_mutex_lock(&order_mutex);
      share->lock();
      Object *object;
      for (left= PURGE_AT_ONCE; left && (object= share->front(0)); left--)
      {
        take(object, share, NULL);
        uncount(object);
        out->push_front(object);
      }
      share->unlock();
      mysql_mutex_unlock(&order_mutex);
    }
  }

  /** Verify the cache. For debugging and tests: see table_cache_core_check.h */
  const char *check(ulong *n_free);
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
