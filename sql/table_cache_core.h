#ifndef TABLE_CACHE_CORE_INCLUDED
#define TABLE_CACHE_CORE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache: free objects, the order of eviction, the count.
  It knows only objects, and the shares that own them: no THD, no engine, no
  file. table_cache.cc makes it a cache of TABLEs, and
  unittest/sql/table_cache-t.cc tests it alone.

  An object belongs to one share for life. From add() on the cache counts it,
  and it is in one of two states:

  - used: it has a user (TABLE::in_use);
  - free: it has no user, and it is in a slot of its share. A slot is the list
    of the share's free objects in one place (table_cache_slot.h).

           add()      -----> used -- release() --> free
                              ^ ^                  | | |
                              | '--- acquire() ----' | |
     to be closed:            '---- evict() ---------' '-- purge() --> none
     forget() or release()

  A hit is one acquire() and one release(). Each locks one slot, usually the
  same one. It writes to the slot and to the object, and to nothing that other
  CPUs use. A hit does not change the order of eviction.

  The order of eviction has one mutex for the server. Only threads that open,
  close or evict objects take it, and release() in rare cases. An object that is
  in one of these three is linked:

  - the list of objects that are evicted before all others;
  - the list of objects that were opened ahead of their use, which come next;
  - a queue of all other linked objects (table_cache_order.h).

  A used object may be linked, too: a new one is, and one that was acquired
  stays linked until a thread that looks for a victim meets it. An object's key
  in the queue is the time of its last release before it was linked, or of add()
  if it is new. Later releases change its stamp, not its key. A thread that
  looks for a victim meets the objects in the order of their keys:

  1. A used object leaves the queue. Its next release() links it again.
  2. A free object that was released again after it was linked is inserted with
     its stamp as the new key.
  3. A free object found at a level of the queue above 0 is inserted again and
     lands at a lower level.
  4. Otherwise no free object of the server was released earlier: this one is
     the victim.

  Case 1 happens at most once for each release, case 2 too, and case 3 a few
  times for each object that is evicted. So the number of steps of an eviction
  is constant on average. After a long time with hits only, the first eviction
  would meet all objects. So after ENOUGH steps it takes the free object met so
  far that was released longest ago. If it has met none, it goes on to the first
  free one. With fewer steps, the order is exact.

  A thread closes an object after the object has left the count, the order and
  its slot. It holds no lock then.

  Locks: order_mutex, then the lock of one slot. The owner's mutex of a share
  comes before these.
*/

#include "my_global.h"
#include "my_sys.h"
#include "mysql/psi/mysql_thread.h"
#include "table_cache_machine.h"
#include "table_cache_order.h"
#include "table_cache_slot.h"

/**
  The cache, for objects as described by A:

    A::Object, A::User         the cached objects, and their users
    A::Share_links             I_P_List adapter: links of the list in a slot
    A::Order_links             I_P_List adapter: links of the order
    A::share(Object*)          the share's part in this cache
    A::state(Object*)          its Table_cache_state
    A::stamp(const Object*), A::set_stamp(Object*, ulonglong)
                               valid while the object is free
    A::user(Object*)           the user, NULL if the object is free
    A::set_user(Object*, User*)
    A::uncounted(Object*)      the cache does not count the object any more
    A::cpu()                   see Table_cache_machine
    A::locked()                a slot has been locked; tests count these

  A limit has allows(count): may the cache keep so many objects? The answer may
  change at any moment. A mark is an object that converts to bool. A stamp is a
  number: the time of a release, which grows with time, or OLDEST or
  EVICT_FIRST.
*/

template <class A> class Table_cache_core
{
public:
  typedef typename A::Object Object;
  typedef typename A::User User;
  typedef Table_cache_share<Object, typename A::Share_links> Share;
  typedef typename Share::Slot Slot;
  typedef typename Slot::Free_list Free_list;

  /** One bit of the hints is for the home. */
  static constexpr uint MAX_SHARDS= 63;
  static constexpr uint MAX_CPUS= Table_cache_machine::MAX_CPUS;
  /** Stamps that are less than any time: see release(). */
  static constexpr ulonglong OLDEST= 1, EVICT_FIRST= 2;

private:
  /** Steps after which a thread takes the oldest object that it has met. */
  static constexpr uint ENOUGH= 1024;
  /** Values of Table_cache_state::linked. LINKED: in "ahead" or "used". */
  static constexpr uchar LINKED= 1, LINKED_FIRST= 2;

  /** Read by everybody, written by init(). */
  uint n_shards;
  uchar shard_of_cpu[MAX_CPUS];

  /** Protects the lists, the links of the order in the objects, and the count. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) mysql_mutex_t order_mutex;
  /** Objects to evict before all others. Front: released longest ago. */
  I_P_List<Object, typename A::Order_links, I_P_List_null_counter,
           I_P_List_fast_push_back<Object> > first;
  /** Then these: opened ahead of their use. Front: released last. */
  I_P_List<Object, typename A::Order_links> ahead;
  /** All other linked objects, used or free. */
  Table_cache_order<Object, typename A::Order_links> used;
  /** Number of objects, used and free. Any thread reads this and the next. */
  std::atomic<ulong> count;
  /** Number of objects evicted. */
  std::atomic<ulonglong> evicted;

  /** Number of hits in the place of another shard than the thread's own. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) std::atomic<ulonglong> remote;


  /** The place to which this thread releases an object of a share. */
  uint own_place(Share *share) const
  {
    if (share->objects.load(std::memory_order_relaxed) <= 1 ||
        unlikely(!share->slots.load(std::memory_order_acquire)))
      return 0;
    return 1 + shard_of_cpu[A::cpu() % MAX_CPUS];
  }

  static void lock(Slot *slot)
  {
    slot->lock.lock();
    A::locked();
  }

  /** Lock the slot of an object that cannot be closed meanwhile. */
  static Slot *lock_slot_of(Object *object)
  {
    const std::atomic<uchar> &place= A::state(object).place;
    for (;;)
    {
      const uint seen= place.load(std::memory_order_relaxed);
      Slot *slot= A::share(object)->slot(seen);
      lock(slot);
      /* Acquire: the object may have been in another place meanwhile. */
      if (likely(seen == place.load(std::memory_order_acquire)))
        return slot;
      slot->lock.unlock();
    }
  }

  /** Find the slot to which the user of an object releases it. */
  Slot *own_slot(Object *object)
  {
    Share *share= A::share(object);
    std::atomic<uchar> &place= A::state(object).place;
    const uint before= place.load(std::memory_order_relaxed),
               own= own_place(share);
    if (unlikely(before != own))
    {
      Slot *slot= share->slot(before);
      lock(slot);
      /* Release: lock_slot_of() then sees the writes under the old lock. */
      place.store((uchar) own, std::memory_order_release);
      slot->lock.unlock();
    }
    return share->slot(own);
  }

  /** Take an object out of its locked slot, and give it this user. */
  static void take(Object *object, Slot *slot, User *user)
  {
    Table_cache_state &state= A::state(object);
    slot->lock.assert_locked();
    DBUG_ASSERT(state.free && state.linked && !A::user(object));
    slot->free.remove(object);
    Slot::add(slot->elements, -1);
    state.free= false;
    A::set_user(object, user);
  }

  /** Put an object into its locked slot, and take its user away. */
  static void put(Object *object, Slot *slot, ulonglong stamp)
  {
    Table_cache_state &state= A::state(object);
    slot->lock.assert_locked();
    DBUG_ASSERT(!state.free && state.linked && A::user(object));
    A::set_user(object, NULL);
    A::set_stamp(object, stamp);
    state.free= true;
    slot->free.push_front(object);
    Slot::add(slot->elements, 1);
    if (likely(stamp > EVICT_FIRST &&
               stamp > slot->last_release.load(std::memory_order_relaxed)))
      slot->last_release.store(stamp, std::memory_order_relaxed);
    A::share(object)->set_hint(state.place.load(std::memory_order_relaxed));
  }

  /**
    Get an object from a locked slot, and unlock the slot. A thread that takes
    the last object of its own place leaves the hint set. It usually releases
    the object to the same place, so clearing the hint would write the word that
    all CPUs read, twice per statement.
  */
  static Object *take_front(Share *share, Slot *slot, uint place, bool own,
                            User *user, uint uses)
  {
    A::locked();
    Object *object= slot->free.front();
    if (likely(object != NULL))
    {
      take(object, slot, user);
      Slot::add(slot->hits, uses);
    }
    if ((!own || unlikely(!object)) && slot->free.is_empty())
      share->clear_hint(place);
    slot->lock.unlock();
    return object;
  }

  /**
    Get an object from any place that has a hint. In the first round the thread
    skips slots that are locked. In the next rounds it waits for them.
  */
  ATTRIBUTE_NOINLINE
  Object *acquire_anywhere(Share *share, uint own, User *user, uint uses)
  {
    for (bool wait= false;; wait= true)
    {
      const ulonglong hints= share->hints.load(std::memory_order_acquire);
      if (!hints)
        return NULL;
      uint place= own;
      do
      {
        if (!(hints & Share::bit(place)))
          continue;
        Slot *slot= share->slot(place);
        if (wait)
          slot->lock.lock();
        else if (!slot->lock.trylock())
          continue;
        Object *object= take_front(share, slot, place, place == own, user, uses);
        if (!object)
          continue;
        if (own && place && place != own)
          remote.fetch_add(uses, std::memory_order_relaxed);
        return object;
      } while ((place= place == n_shards ? 0 : place + 1) != own);
    }
  }

  /**
    Link an object in the order. The caller holds order_mutex. It also is the
    object's user, or holds the lock of the object's slot.
  */
  void link(Object *object, ulonglong stamp)
  {
    mysql_mutex_assert_owner(&order_mutex);
    A::state(object).linked= stamp == EVICT_FIRST ? LINKED_FIRST : LINKED;
    if (likely(stamp > EVICT_FIRST))
      used.insert(object, stamp);
    else if (stamp == EVICT_FIRST)
      first.push_back(object);
    else
      ahead.push_front(object);
  }

  /** Undo link(), under the same locks. */
  void unlink(Object *object)
  {
    mysql_mutex_assert_owner(&order_mutex);
    if (unlikely(A::state(object).linked == LINKED_FIRST))
      first.remove(object);
    else if (A::state(object).linked)
      used.remove(object);
    A::state(object).linked= 0;
  }

  /** An object leaves the count and the order, and will be closed. */
  void uncount(Object *object)
  {
    unlink(object);
    DBUG_ASSERT(count && A::share(object)->objects);
    count--;
    A::share(object)->objects--;
    A::uncounted(object);
  }

  /** Find the object to evict; see the @file comment. NULL if none is free. */
  Object *take_victim(User *user)
  {
    /* The free object met so far that was released longest ago. Linked. */
    Object *oldest= NULL;
    ulonglong oldest_stamp= 0;
    for (uint met= 0;; met++)
    {
      const bool enough= met >= ENOUGH && oldest;
      Object *object= enough ? oldest : first.front();
      if (likely(!object) && likely(!(object= ahead.front())) &&
          !(object= used.next()))
        return NULL;
      Slot *slot= lock_slot_of(object);
      const bool free= A::state(object).free;
      const ulonglong stamp= free ? A::stamp(object) : 0;
      const bool victim= free && (enough || stamp <= EVICT_FIRST ||
                                  used.is_least(stamp));
      if (victim)
      {
        take(object, slot, user);
        if (slot->free.is_empty())
          A::share(object)->clear_hint(A::state(object).place);
      }
      unlink(object);
      if (free && !victim)
      {
        link(object, stamp);
        if (!oldest || stamp < oldest_stamp)
        {
          oldest= object;
          oldest_stamp= stamp;
        }
      }
      else if (object == oldest)
        oldest= NULL;
      slot->lock.unlock();
      if (victim)
        return object;
    }
  }

  /**
    Evict one object if the limit is exceeded.

    Each add() evicts at most one object. When all have returned, the count is
    within the limit or no object is free: if a thread finds no victim, it has
    unlinked every object, so each next release takes release_slowly(), which
    calls this again. After the limit was lowered, evict() calls this
    repeatedly.
  */
  template <class Limit> Object *evict_over(const Limit &limit, User *user)
  {
    mysql_mutex_assert_owner(&order_mutex);
    if (likely(limit.allows(count)))
      return NULL;
    Object *victim= take_victim(user);
    if (victim)
    {
      uncount(victim);
      evicted++;
    }
    return victim;
  }

  /** Release an object that has to be linked in the order, or closed. */
  template <class Mark, class Limit> ATTRIBUTE_NOINLINE
  Object *release_slowly(Object *object, Slot *slot, ulonglong stamp,
                         const Mark &flushed, const Limit &limit)
  {
    User *user= A::user(object);
    Object *to_close= NULL;
    mysql_mutex_lock(&order_mutex);
    unlink(object);
    lock(slot);
    if (flushed)
      to_close= object;
    else
    {
      link(object, stamp);
      put(object, slot, stamp);
    }
    slot->lock.unlock();
    if (to_close)
      uncount(object);
    else
      to_close= evict_over(limit, user);
    mysql_mutex_unlock(&order_mutex);
    return to_close;
  }

public:
  /**
    Make an empty cache.

    @param shards  number of shards, 1 to MAX_SHARDS
    @param map     shard of each of MAX_CPUS CPUs
    @param key     instrumentation of order_mutex
  */
  void init(uint shards, const uchar *map, PSI_mutex_key key)
  {
    DBUG_ASSERT(shards && shards <= MAX_SHARDS);
    n_shards= shards;
    memcpy(shard_of_cpu, map, sizeof(shard_of_cpu));
    mysql_mutex_init(key, &order_mutex, MY_MUTEX_INIT_FAST);
    count= 0;
    evicted= remote= 0;
  }

  /** Free an empty cache. No thread may use shares any more. */
  void destroy()
  {
    DBUG_ASSERT(count == 0);
    mysql_mutex_destroy(&order_mutex);
  }

  uint active_shards() const { return n_shards; }
  /** Number of objects, used and free. */
  ulong records() const { return count.load(std::memory_order_relaxed); }
  ulonglong evictions() const
  { return evicted.load(std::memory_order_relaxed); }
  ulonglong remote_hits() const
  { return remote.load(std::memory_order_relaxed); }

  /**
    Call f(Slot &) for each slot of a share. The slot is not locked, so f may
    only read its counters, unless f locks it.
  */
  template <class F> void each_slot(Share *share, F f) const
  {
    f(share->home);
    if (share->slots.load(std::memory_order_acquire))
    {
      for (uint place= 1; place <= n_shards; place++)
        f(*share->slot(place));
    }
  }

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
    Share *share= A::share(object);
    Table_cache_state &state= A::state(object);
    state.place.store(0, std::memory_order_relaxed);
    state.free= false;
    mysql_mutex_lock(&order_mutex);
    *room= limit.allows(count + 1);
    count++;
    if (share->objects++ && unlikely(!share->slots))
      share->make_slots(n_shards);
    link(object, now);
    Object *victim= evict_over(limit, A::user(object));
    mysql_mutex_unlock(&order_mutex);
    return victim;
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
    Get a free object of a share, and make it used.

    The object is the one that was released last to the place of this thread's
    CPU, if there is one, and otherwise one of any place that has a hint.

    @param uses  1; 0: it does not count as a hit
    @pre The memory of the share cannot go away.
    @return NULL if all hints were clear at one moment during the call, so the
            share had no free object then
  */
  Object *acquire(Share *share, User *user, uint uses= 1)
  {
    const uint own= own_place(share);
    if (likely(share->hints.load(std::memory_order_acquire) & Share::bit(own)))
    {
      Slot *slot= share->slot(own);
      if (likely(slot->lock.trylock()))
      {
        if (Object *object= take_front(share, slot, own, true, user, uses))
          return object;
      }
    }
    return acquire_anywhere(share, own, user, uses);
  }

  /** Was the stamp EVICT_FIRST when the caller acquired the object? */
  static bool was_evict_first(Object *object)
  { return A::stamp(object) == EVICT_FIRST; }

  /**
    Is an object linked that was released with the stamp EVICT_FIRST? If it is
    free, it is the next victim.
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
                    - OLDEST: after those, the last released first: tables are
                      opened ahead in the order in which they will be needed;
                    - the stamp that the object had when the caller acquired it:
                      as before, because the caller did not use it
    @param flushed  mark of the share. The thread that sets it calls purge()
                    afterwards. purge() locks each slot after the mark was set,
                    so either purge() finds the object, or release() sees the
                    mark
    @param limit    as for add()

    @return an object that the caller has to close, or NULL. If the share is
            flushed, that is the object given back. Otherwise it is one that
            this call has evicted, and other threads may use or close the one
            given back by now
  */
  template <class Mark, class Limit>
  Object *release(Object *object, ulonglong stamp, const Mark &flushed,
                  const Limit &limit)
  {
    Slot *slot= own_slot(object);
    lock(slot);
    /*
      No relinking needed: the key under which the object is queued may be older
      than its stamp, never newer.
    */
    if (likely(A::state(object).linked && !flushed) &&
        (likely(stamp > EVICT_FIRST) || stamp == A::stamp(object)))
    {
      put(object, slot, stamp);
      slot->lock.unlock();
      return NULL;
    }
    slot->lock.unlock();
    return release_slowly(object, slot, stamp, flushed, limit);
  }

  /**
    Evict the objects that were released longest ago, while the limit is
    exceeded and an object is free.

    @param most      how many at most
    @param[out] out  the objects, the last one first. The caller is their user
                     now, and closes them
    @return how many
  */
  template <class Limit>
  uint evict(User *user, const Limit &limit, uint most, Free_list *out)
  {
    uint n= 0;
    mysql_mutex_lock(&order_mutex);
    for (Object *object; n < most && (object= evict_over(limit, user)); n++)
      out->push_front(object);
    mysql_mutex_unlock(&order_mutex);
    return n;
  }

  /**
    Remove all free objects of a share.

    @param[out] out  gets the objects. They have no user
  */
  void purge(Share *share, Free_list *out)
  {
    uint place= 0;
    /* add() makes slots under this mutex, so the loop misses none. */
    mysql_mutex_lock(&order_mutex);
    each_slot(share, [&](Slot &slot) {
      lock(&slot);
      while (Object *object= slot.free.front())
      {
        take(object, &slot, NULL);
        uncount(object);
        out->push_front(object);
      }
      share->clear_hint(place++);
      slot.lock.unlock();
    });
    mysql_mutex_unlock(&order_mutex);
  }

  /**
    Verify what must hold while order_mutex and the locks of all slots are free.

    1. Each object in the order is linked.
    2. If it is free, it is in a list, it has no user, and its share has a hint.

    For debugging and tests: walks through all lists.

    @param[out] n_free  number of free objects in the order
    @return NULL, or what is wrong
  */
  const char *check(ulong *n_free)
  {
    const char *wrong= NULL;
    ulong n= 0;
    *n_free= 0;
    auto check_object= [&](Object *object) {
      Slot *slot= lock_slot_of(object);
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
    for (Object *object= first.front(); object;
         object= *A::Order_links::next_ptr(object))
      check_object(object);
    for (Object *object= ahead.front(); object;
         object= *A::Order_links::next_ptr(object))
      check_object(object);
    used.each(check_object);
    if (n > count)
      wrong= "more objects are in the order than are counted";
    mysql_mutex_unlock(&order_mutex);
    return wrong;
  }
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
