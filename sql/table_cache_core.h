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
  is constant on average. Two cases could take long, and end after ENOUGH steps:

  1. After a long time with hits only, the first eviction would meet all objects.
     So it takes the free object met so far that was released longest ago. With
     fewer steps, the order is exact.
  2. If all objects met so far were used, the thread evicts none. It has taken
     ENOUGH used objects out of the queue. The release of each of these evicts
     one; see evict_over().

  A thread closes an object after the object has left the count, the order and
  its slot. It holds no lock then.

  Locks: order_mutex, then the lock of one slot. The owner's mutex of a share
  comes before these. A thread that holds order_mutex never waits for a slot,
  whose holder may have lost its CPU: it passes by the objects of a slot that is
  locked, or unlocks order_mutex and tries again. It holds order_mutex for a
  bounded number of steps.
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
  /** A search for a victim takes at most so many steps, and one or two more. */
  static constexpr uint ENOUGH= 1024;

private:
  /** A purge takes at most so many objects while it holds the locks. */
  static constexpr uint PURGE_AT_ONCE= 64;
  /** Values of Table_cache_state::linked. LINKED: in "ahead" or the queue. */
  static constexpr uchar LINKED= 1, LINKED_FIRST= 2;

  /** Read by everybody, written by init(). */
  uint n_shards;
  uchar shard_of_cpu[MAX_CPUS];

  /**
    Protects the lists, the links of the order in the objects, and the count. An
    object that is linked is not closed while a thread holds the mutex.
  */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) mysql_mutex_t order_mutex;
  /* order_mutex protects the next five. */
  /** Objects to evict before all others. Front: released longest ago. */
  I_P_List<Object, typename A::Order_links, I_P_List_null_counter,
           I_P_List_fast_push_back<Object> > first;
  /** Then these: opened ahead of their use. Front: released last. */
  I_P_List<Object, typename A::Order_links> ahead;
  /** All other linked objects, used or free. */
  Table_cache_order<Object, typename A::Order_links> queue;
  /** Number of objects, used and free. Any thread reads this and the next. */
  std::atomic<ulong> count;
  /** Number of objects evicted. */
  std::atomic<ulonglong> evicted;

  /** How a search for a victim ends: see take_victim() and evict_over(). */
  enum Found { VICTIM, NO_NEED, ALL_USED, MORE_USED, BUSY };

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

  /**
    Lock the slot of an object that cannot be closed meanwhile.

    @return NULL if another thread has locked it, or moves the object
  */
  static Slot *trylock_slot_of(Object *object)
  {
    const std::atomic<uchar> &place= A::state(object).place;
    const uint seen= place.load(std::memory_order_relaxed);
    Slot *slot= A::share(object)->slot(seen);
    if (unlikely(!slot->lock.trylock()))
      return NULL;
    A::locked();
    /* Acquire: the object may have been in another place meanwhile. */
    if (likely(seen == place.load(std::memory_order_acquire)))
      return slot;
    slot->lock.unlock();
    return NULL;
  }

  /** The same, but wait for it. Only check() calls this with order_mutex. */
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
      queue.insert(object, stamp);
    else if (stamp == EVICT_FIRST)
      first.push_back(object);
    else
      ahead.push_front(object);
  }

  /** Remove a linked object from its list. Only order_mutex is needed. */
  void remove_from_list(Object *object)
  {
    if (unlikely(A::state(object).linked == LINKED_FIRST))
      first.remove(object);
    else
      queue.remove(object);
  }

  /** Undo link(), under the same locks. */
  void unlink(Object *object)
  {
    mysql_mutex_assert_owner(&order_mutex);
    if (A::state(object).linked)
      remove_from_list(object);
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

  /**
    Find the object to evict; see the @file comment.

    The objects of slots that are locked leave the order until the search ends.
    They stay linked, and no other thread sees that they are in no list, because
    this thread holds order_mutex. Then they are the first ones that the next
    search meets.

    @param[out]    victim
    @param[in,out] steps   this adds how many objects it has met
    @retval VICTIM     there is a victim
    @retval ALL_USED   no linked object is left: all objects were used when a
                       thread met them
    @retval MORE_USED  this has met ENOUGH objects, all of them used
    @retval BUSY       this has met an object whose slot was locked, and then no
                       victim
  */
  Found take_victim(User *user, Object **victim, uint *steps)
  {
    /* The free object met so far that was released longest ago. Linked. */
    Object *oldest= NULL;
    ulonglong oldest_stamp= 0;
    I_P_List<Object, typename A::Order_links> busy;
    Found found;
    mysql_mutex_assert_owner(&order_mutex);
    for (uint met= 0;; met++, ++*steps)
    {
      const bool enough= met >= ENOUGH;
      Object *object= enough ? oldest : first.front();
      if (likely(!object && !enough) && likely(!(object= ahead.front())))
        object= queue.next();
      if (!object)
      {
        found= !busy.is_empty() ? BUSY : enough ? MORE_USED : ALL_USED;
        break;
      }
      Slot *slot= trylock_slot_of(object);
      if (unlikely(!slot))
      {
        remove_from_list(object);
        busy.push_front(object);
        if (object == oldest)
          oldest= NULL;
        continue;
      }
      const bool free= A::state(object).free;
      const ulonglong stamp= free ? A::stamp(object) : 0;
      const bool is_victim= free && (enough || stamp <= EVICT_FIRST ||
                                     queue.is_least(stamp));
      if (is_victim)
      {
        take(object, slot, user);
        if (slot->free.is_empty())
          A::share(object)->clear_hint(A::state(object).place);
      }
      unlink(object);
      if (free && !is_victim)
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
      if (is_victim)
      {
        *victim= object;
        found= VICTIM;
        break;
      }
    }
    while (Object *object= busy.pop_front())
    {
      if (A::state(object).linked == LINKED_FIRST)
        first.push_front(object);
      else
        queue.insert(object, 0);
    }
    return found;
  }

  /**
    Evict one object if the limit is exceeded. The caller holds order_mutex. This
    unlocks it while it waits for a slot.

    Each add() evicts at most one object, and so does each release_slowly().
    After the limit was lowered, evict() calls this repeatedly. Then, when no
    thread is in one of these functions, and no object is used, the count is
    within the limit:

    1. Let U be the number of used objects that are not linked, and E the number
       by which the count exceeds the limit. Nothing makes E greater than U:
    2. An add() that evicts none adds 1 to E. If it returns because of MORE_USED,
       it has added ENOUGH to U. If because of ALL_USED, all objects are in U.
    3. An object leaves U only by release_slowly() or forget(). Either it is
       closed or another one is evicted, so E becomes less by 1, too; or the
       search ends as in 2.
    4. When no object is used, U is 0.

    @return VICTIM, ALL_USED or MORE_USED; NO_NEED if the limit is not exceeded
  */
  template <class Limit>
  Found evict_over(const Limit &limit, User *user, Object **victim,
                   uint *steps)
  {
    mysql_mutex_assert_owner(&order_mutex);
    *victim= NULL;
    for (uint tries= 0; unlikely(!limit.allows(count)); tries++)
    {
      const Found found= take_victim(user, victim, steps);
      if (likely(found != BUSY))
      {
        if (found == VICTIM)
        {
          uncount(*victim);
          evicted++;
        }
        return found;
      }
      mysql_mutex_unlock(&order_mutex);
      Table_cache_lock::pause(tries);
      mysql_mutex_lock(&order_mutex);
    }
    return NO_NEED;
  }

  template <class Limit> Object *evict_over(const Limit &limit, User *user)
  {
    Object *victim;
    uint steps= 0;
    evict_over(limit, user, &victim, &steps);
    return victim;
  }

  /** Lock order_mutex, then a slot, without waiting for the slot. */
  void lock_order_and(Slot *slot)
  {
    for (uint tries= 0;; tries++)
    {
      mysql_mutex_lock(&order_mutex);
      if (likely(slot->lock.trylock()))
        break;
      mysql_mutex_unlock(&order_mutex);
      Table_cache_lock::pause(tries);
    }
    A::locked();
  }

  /**
    Make the slots of a share that has two objects. If out of memory, the share
    keeps using only its home; the next add() tries again.
  */
  ATTRIBUTE_NOINLINE void make_slots(Share *share)
  {
    typename Share::Lone_slot *slots= Share::alloc_slots(n_shards);
    if (!slots)
      return;
    mysql_mutex_lock(&order_mutex);
    if (!share->slots)
    {
      share->slots.store(slots, std::memory_order_release);
      slots= NULL;
    }
    mysql_mutex_unlock(&order_mutex);
    aligned_free(slots);
  }

  /** Remove the objects of a slot, a few at a time. */
  void purge_slot(Share *share, Slot *slot, uint place, Free_list *out)
  {
    lock_order_and(slot);
    for (uint n= slot->elements.load(std::memory_order_relaxed);;)
    {
      for (uint some= MY_MIN(n, PURGE_AT_ONCE); some; some--, n--)
      {
        Object *object= slot->free.front();
        if (!object)
        {
          n= 0;
          break;
        }
        take(object, slot, NULL);
        uncount(object);
        out->push_front(object);
      }
      if (slot->free.is_empty())
        share->clear_hint(place);
      slot->lock.unlock();
      mysql_mutex_unlock(&order_mutex);
      if (!n)
        break;
      lock_order_and(slot);
    }
  }

  /** Release an object that has to be linked in the order, or closed. */
  template <class Mark, class Limit> ATTRIBUTE_NOINLINE
  Object *release_slowly(Object *object, Slot *slot, ulonglong stamp,
                         const Mark &flushed, const Limit &limit)
  {
    User *user= A::user(object);
    Object *to_close= NULL;
    lock_order_and(slot);
    unlink(object);
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

  /** How many bytes a share has got since its memory was initialized. */
  size_t slot_bytes(const Share *share) const
  {
    return share->slots.load(std::memory_order_relaxed) ?
           n_shards * sizeof(typename Share::Lone_slot) : 0;
  }

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
    const bool needs_slots= share->objects++ && unlikely(!share->slots);
    link(object, now);
    Object *victim= evict_over(limit, A::user(object));
    mysql_mutex_unlock(&order_mutex);
    if (unlikely(needs_slots))
      make_slots(share);
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

    @param most      how many at most. The function takes fewer if it would
                     hold the mutex for too long
    @param[out] out  the objects, the last one first. The caller is their user
                     now, and closes them
    @return how many; 0 if the limit is not exceeded, or no object is free
  */
  template <class Limit>
  uint evict(User *user, const Limit &limit, uint most, Free_list *out)
  {
    uint n= 0;
    Found found;
    do
    {
      Object *object;
      uint steps= 0;
      mysql_mutex_lock(&order_mutex);
      while ((found= evict_over(limit, user, &object, &steps)) == VICTIM)
      {
        out->push_front(object);
        if (++n >= most || steps >= ENOUGH)
          break;
      }
      mysql_mutex_unlock(&order_mutex);
    } while (found == MORE_USED && !n);
    return n;
  }

  /**
    Remove all free objects of a share.

    If the share is flushed, none is left: when this has locked a slot, no thread
    puts another object into it. Otherwise other threads may do that meanwhile.

    If a thread makes the slots after this has looked for them, then an object
    gets to one of them from its home, whose lock its user takes after this
    has held it (own_slot()). So release() sees the mark of a flushed share.

    @param[out] out  gets the objects. They have no user
  */
  void purge(Share *share, Free_list *out)
  {
    uint place= 0;
    each_slot(share, [&](Slot &slot) {
      purge_slot(share, &slot, place++, out);
    });
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
    queue.each(check_object);
    if (n > count)
      wrong= "more objects are in the order than are counted";
    mysql_mutex_unlock(&order_mutex);
    return wrong;
  }
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
