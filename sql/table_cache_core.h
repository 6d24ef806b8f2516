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

  The order of eviction has one mutex for the server. A thread takes it to open,
  close or evict an object, to ask has_evict_first(), and in release() if the
  object has to be linked or is to be evicted soon. An object in the
  order is "linked": it is in one of three lists. The core evicts

  1. from "first", the objects that were released with the stamp EVICT_FIRST;
  2. then from "ahead", the objects that were released with the stamp OLDEST;
  3. then from "queue", all others, in the order of keys (table_cache_order.h).

  The key of an object in the queue is the time of its last release before it
  was linked, or of add(). A hit changes the object's stamp, but not its key. So
  a linked object may have a newer stamp than its key, or may be in use. When
  take_victims() meets such an object, it links it anew or unlinks it.

  Before a thread closes an object, the object has left the count, the order and
  its slot. The thread holds no lock while it closes the object.

  Order of locks: the owner's mutex of a share, order_mutex, the lock of one
  slot. The thread that has locked a slot may have lost its CPU. So a thread
  that holds order_mutex never waits for a slot: it skips the objects of a
  locked slot, or unlocks order_mutex and tries again. It holds order_mutex for
  a bounded number of steps.
*/

#include "table_cache_machine.h"
#include "table_cache_order.h"
#include "table_cache_slot.h"
#include "mysql/psi/mysql_thread.h"

/**
  The cache, for objects as described by A:

    A::Object, A::User         the cached objects, and their users
    A::Share_links             I_P_List adapter: links of the list in a slot
    A::Order_links             I_P_List adapter: links of the order
    A::share(Object*)          the share's part in this cache
    A::flushed(Object*)        must the objects of the share be closed?
    A::state(Object*)          its Table_cache_state
    A::stamp(const Object*), A::set_stamp(Object*, ulonglong)
                               valid while the object is free
    A::user(Object*)           the user, NULL if the object is free
    A::set_user(Object*, User*)
    A::uncounted(Object*)      the cache does not count the object any more
    A::cpu()                   see Table_cache_machine
    A::before_lock(User*)      acquire() is about to lock a slot

  A limit has a function excess(count). It returns 0 if 'count' objects may
  stay. Otherwise it returns how many of them are too many, or a lesser number
  above 0. The result may change at any moment. A stamp is a number: the time of
  a release, or OLDEST or EVICT_FIRST, which are less than any time.
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
  typedef I_P_List<Object, typename A::Order_links> Order_list;

  /** A purge takes at most so many objects while it holds the locks. */
  static constexpr uint PURGE_AT_ONCE= 64;
  /** Values of Table_cache_state::linked. LINKED: in "ahead" or the queue. */
  static constexpr uchar LINKED= 1, LINKED_FIRST= 2;
  /** How a search for victims ends: see take_victims(). */
  enum Found { ENDED, MORE, BUSY };

  /** Read by everybody, written by init(). */
  uint n_shards;
  uchar shard_of_cpu[MAX_CPUS];

  /**
    Protects the lists, the links of the order in the objects, and the counts. An
    object that is linked is not closed while a thread holds the mutex.
  */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) mysql_mutex_t order_mutex;
  /* order_mutex protects the next five. */
  /** Objects to evict before all others. Front: released longest ago. */
  I_P_List<Object, typename A::Order_links, I_P_List_null_counter,
           I_P_List_fast_push_back<Object> > first;
  /** Then these: opened ahead of their use. Front: released last. */
  Order_list ahead;
  /** All other linked objects, used or free. */
  Table_cache_order<Object, typename A::Order_links> queue;
  /** Number of objects, used and free. Any thread reads this and the next. */
  std::atomic<ulong> count;
  /** Number of objects evicted. */
  std::atomic<ulonglong> evicted;

  /** Number of hits in the place of another shard than the thread's own. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) std::atomic<ulonglong> remote;


  /** The place of this thread's CPU for an object of a share. */
  uint own_place(Share *share) const
  {
    if (share->objects.load(std::memory_order_relaxed) <= 1 ||
        unlikely(!share->slots.load(std::memory_order_acquire)))
      return 0;
    return 1 + shard_of_cpu[A::cpu() % MAX_CPUS];
  }

  /** The slot of an object. Acquire: pairs with take_front(). */
  static Slot *slot_of(Object *object)
  {
    return A::share(object)->
      slot(A::state(object).place.load(std::memory_order_acquire));
  }

  /**
    Lock the slot of an object that cannot be closed meanwhile.

    @return NULL if another thread has locked it, or moves the object
  */
  static Slot *trylock_slot_of(Object *object)
  {
    Slot *slot= slot_of(object);
    if (unlikely(!slot->lock.trylock()))
      return NULL;
    if (likely(slot == slot_of(object)))
      return slot;
    slot->lock.unlock();
    return NULL;
  }

  /** Take an object out of its locked slot, and give it this user. */
  static void take(Object *object, Slot *slot, User *user, bool keep_hint)
  {
    Table_cache_state &state= A::state(object);
    slot->lock.assert_locked();
    DBUG_ASSERT(state.free && state.linked && !A::user(object));
    slot->free.remove(object);
    Slot::add(slot->elements, -1);
    state.free= false;
    A::set_user(object, user);
    if (!keep_hint && slot->free.is_empty())
      A::share(object)->clear_hint(state.place.load(std::memory_order_relaxed));
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
    Get an object from a locked slot, and unlock the slot. The object's user will
    release it to the place "own", that of the thread's CPU.

    A thread that takes the last object of its own place leaves the hint set,
    because it will release the object to the same place. If it cleared the hint
    and set it again, each statement would write twice to a word that all CPUs
    read.
  */
  static Object *take_front(Share *share, Slot *slot, uint place, uint own,
                            User *user, uint uses)
  {
    Object *object= slot->free.front();
    if (likely(object != NULL))
    {
      take(object, slot, user, place == own);
      Slot::add(slot->hits, uses);
      /*
        Release: a thread that reads the new place sees what take() has written
        under the old lock. From here on the new lock protects the object.
      */
      if (unlikely(place != own))
        A::state(object).place.store((uchar) own, std::memory_order_release);
    }
    else
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
      for (uint i= 0; i <= n_shards; i++)
      {
        /* Home, which is no CPU's; then from this CPU's place on */
        const uint place= i ? 1 + (own + i + n_shards - 2) % n_shards : 0;
        if (!(hints & Share::bit(place)))
          continue;
        Slot *slot= share->slot(place);
        if (wait)
          slot->lock.lock();
        else if (!slot->lock.trylock())
          continue;
        Object *object= take_front(share, slot, place, own, user, uses);
        if (!object)
          continue;
        if (own && place && place != own)
          remote.fetch_add(uses, std::memory_order_relaxed);
        return object;
      }
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

  /** Remove an object from its list, if any. Only order_mutex is needed. */
  void remove_from_list(Object *object)
  {
    mysql_mutex_assert_owner(&order_mutex);
    if (unlikely(A::state(object).linked == LINKED_FIRST))
      first.remove(object);
    else if (A::state(object).linked)
      queue.remove(object);
  }

  /** Undo link(), under the same locks. */
  void unlink(Object *object)
  {
    remove_from_list(object);
    A::state(object).linked= 0;
  }

  /** An object leaves the count and the order, and will be closed. */
  void uncount(Object *object)
  {
    unlink(object);
    DBUG_ASSERT(count && A::share(object)->objects);
    Slot::add(count, -1);
    Slot::add(A::share(object)->objects, -1);
    A::uncounted(object);
  }

  /** Make these linked objects, which are in no other list, the first ones. */
  void put_back(Order_list *busy)
  {
    while (Object *object= busy->pop_front())
      if (A::state(object).linked == LINKED_FIRST)
        first.push_front(object);
      else
        ahead.push_front(object);
  }

  /**
    Evict the objects that were released longest ago, while the limit is
    exceeded. The thread goes through "first", then "ahead", then the queue in
    the order of keys. An object that it meets belongs to one of three cases:

    1. The object is used. It leaves the order. Its next release() links it
       again.
    2. The object is free, but others may have been released earlier. The thread
       links it again, with its stamp as the new key. So the object moves back
       in the queue, or to a lower level of it, or from another list into the
       queue.
    3. The object is free, and no free object of the server was released
       earlier: it is a victim. Older objects do not count if their slots were
       locked, or if this thread is about to evict them as well. (If another
       thread raises the limit or closes objects meanwhile, such an older object
       may stay.)

    Case 1 happens at most once for each release, and case 2 once for each
    release and a few times for each object that is evicted. So the number of
    steps is constant on average. A single search could still take long. It
    stops after ENOUGH steps:

    1. After a long time with hits only, the first search would meet all
       objects. So it takes the free object met so far that was released longest
       ago.
    2. If all objects met so far were used, the search finds no victim. Later,
       the release of each of these evicts one: see evict_over().

    If the slot of an object is locked, the object leaves its list until there
    is a victim, or the search ends. It stays linked. No other thread sees that
    it is in no list, because this thread holds order_mutex. Afterwards, such
    objects are the first ones that a thread meets.

    @param most      evict at most so many
    @param all       the caller goes on until the limit is not exceeded, so that the
                     order among the victims does not matter
    @param[out] out  gets the victims
    @retval ENDED  there is a victim, or the limit is not exceeded, or no linked
                   object is left: all objects were used when a thread met them
    @retval BUSY   no victim: the slot of an object was locked, or another thread
                   has acquired the one that this had chosen after ENOUGH steps
    @retval MORE   this has met ENOUGH objects, and all of them were used
  */
  template <class Limit>
  Found take_victims(const Limit &limit, User *user, uint most, bool all,
                     Free_list *out)
  {
    /* The free object met so far that was released longest ago. Linked. */
    Object *oldest= NULL;
    ulonglong oldest_stamp= 0;
    Order_list busy;
    bool lost= false;
    Found found= ENDED;
    ulong excess;
    mysql_mutex_assert_owner(&order_mutex);
    for (uint met= 0; most && unlikely(excess= limit.excess(count)); met++)
    {
      const bool enough= met >= ENOUGH;
      Object *object= enough ? oldest : first.front();
      const bool in_queue= likely(!object && !enough) &&
                           likely(!(object= ahead.front()));
      if (likely(in_queue))
        object= queue.next();
      if (unlikely(!object || (enough && !out->is_empty())))
      {
        if (out->is_empty())
          found= !busy.is_empty() || lost ? BUSY : enough ? MORE : ENDED;
        break;
      }
      if (object == oldest)
        oldest= NULL;
      Slot *slot= trylock_slot_of(object);
      if (unlikely(!slot))
      {
        remove_from_list(object);
        busy.push_front(object);
        continue;
      }
      const bool free= A::state(object).free;
      const ulonglong stamp= free ? A::stamp(object) : 0;
      if (free && (enough || stamp <= EVICT_FIRST ||
                   (in_queue && queue.is_least(stamp, all ? excess : 1))))
      {
        take(object, slot, user, false);
        slot->lock.unlock();
        uncount(object);
        Slot::add(evicted, 1);
        out->push_front(object);
        most--;
        put_back(&busy);
        continue;
      }
      lost|= enough;
      unlink(object);
      if (free)
        link(object, stamp);
      slot->lock.unlock();
      if (free && (!oldest || stamp < oldest_stamp))
      {
        oldest= object;
        oldest_stamp= stamp;
      }
    }
    put_back(&busy);
    return found;
  }

  /** Unlock order_mutex while this thread waits for the holder of a slot. */
  void let_others_run(uint tries)
  {
    mysql_mutex_unlock(&order_mutex);
    Table_cache_lock::pause(tries);
    mysql_mutex_lock(&order_mutex);
  }

  /** Lock order_mutex, then a slot, without waiting for the slot. */
  void lock_order_and(Slot *slot)
  {
    mysql_mutex_lock(&order_mutex);
    for (uint tries= 0; unlikely(!slot->lock.trylock()); tries++)
      let_others_run(tries);
  }

  /**
    Evict objects while the limit is exceeded. The caller holds order_mutex. This
    unlocks it while it waits for a slot.

    Each add() and each release_slowly() evicts at most one object. After a
    statement has lowered the limit, evict() calls this function repeatedly.

    So the count is within the limit whenever no object is used and no thread is
    in one of these functions. To see this, let U be the number of used objects
    that are not linked, and E the number of objects above the limit. E never
    becomes greater than U:

    1. An add() that evicts no object raises E by 1. If its search ended with
       MORE, the search has raised U by at least 1. Otherwise the search has
       left no object linked, so U is the number of all objects.
    2. Only release_slowly() and forget() lower U. If they close the object or
       evict another one, they lower E by 1, too. Otherwise the search of
       release_slowly() ends as in 1.
    3. When no object is used, U is 0. So E is 0.

    For the parameters see take_victims(). The last victim is the first in the
    list. The caller is now the user of all victims, and closes them.
  */
  template <class Limit>
  Found evict_over(const Limit &limit, User *user, uint most, bool all,
                   Free_list *out)
  {
    Found found;
    DBUG_ASSERT(out->is_empty());
    for (uint tries= 0;
         (found= take_victims(limit, user, most, all, out)) == BUSY; tries++)
      let_others_run(tries);
    return found;
  }

  /** Remove the objects of a slot, a few at a time. */
  void purge_slot(Slot *slot, Free_list *out)
  {
    for (uint left= 0; !left; )
    {
      lock_order_and(slot);
      for (left= PURGE_AT_ONCE; left && !slot->free.is_empty(); left--)
      {
        Object *object= slot->free.front();
        take(object, slot, NULL, false);
        uncount(object);
        out->push_front(object);
      }
      slot->lock.unlock();
      mysql_mutex_unlock(&order_mutex);
    }
  }

  /** Release an object that has to be linked in the order, or closed. */
  template <class Limit> ATTRIBUTE_NOINLINE
  Object *release_slowly(Object *object, Slot *slot, ulonglong stamp,
                         const Limit &limit)
  {
    User *user= A::user(object);
    Free_list to_close;
    lock_order_and(slot);
    if (unlikely(A::flushed(object)))
    {
      slot->lock.unlock();
      uncount(object);
      to_close.push_front(object);
    }
    else
    {
      unlink(object);
      link(object, stamp);
      put(object, slot, stamp);
      slot->lock.unlock();
      evict_over(limit, user, 1, false, &to_close);
    }
    mysql_mutex_unlock(&order_mutex);
    return to_close.pop_front();
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
    evicted= remote= count= 0;
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
  ulonglong evictions() const { return evicted; }
  ulonglong remote_hits() const { return remote; }

  /**
    Call f(Slot &) for each slot of a share. The slot is not locked, so f may
    only read its counters, unless f locks it.
  */
  template <class F> void each_slot(Share *share, F f) const
  {
    f(share->home);
    if (share->slots.load(std::memory_order_acquire))
      for (uint place= 1; place <= n_shards; place++)
        f(*share->slot(place));
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
    Free_list victims;
    state.free= false;
    mysql_mutex_lock(&order_mutex);
    *room= !limit.excess(count + 1);
    Slot::add(count, 1);
    Slot::add(share->objects, 1);
    state.place.store((uchar) own_place(share), std::memory_order_relaxed);
    link(object, now);
    evict_over(limit, A::user(object), 1, false, &victims);
    const bool needs_slots= share->objects > 1 && unlikely(!share->slots);
    mysql_mutex_unlock(&order_mutex);
    if (unlikely(needs_slots))
      share->make_slots(n_shards);
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
    Get a free object of a share, and make it used.

    The object is the one that was released last to the place of this thread's
    CPU, if there is one, and otherwise one of any place that has a hint.

    @param uses  1; 0: it does not count as a hit
    @pre The memory of the share cannot go away, nor its slots.
    @return NULL if all hints were clear at one moment during the call, so the
            share had no free object then
  */
  Object *acquire(Share *share, User *user, uint uses= 1)
  {
    const uint own= own_place(share);
    if (likely(share->hints.load(std::memory_order_acquire) & Share::bit(own)))
    {
      Slot *slot= share->slot(own);
      A::before_lock(user);
      if (likely(slot->lock.trylock()))
      {
        if (Object *object= take_front(share, slot, own, own, user, uses))
          return object;
      }
    }
    return acquire_anywhere(share, own, user, uses);
  }

  /**
    Is there a linked object that was released with the stamp EVICT_FIRST? If it
    is free, it is the next victim.
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
    @param limit    as for add()

    The thread that sets the mark of a flushed share calls purge() afterwards.
    purge() locks each slot after the mark was set, so either purge() finds the
    object, or this sees the mark.

    @return an object that the caller has to close, or NULL. If the share is
            flushed, that is the object given back. Otherwise it is one that
            this call has evicted, and other threads may use or close the one
            given back by now
  */
  template <class Limit>
  Object *release(Object *object, ulonglong stamp, const Limit &limit)
  {
    Slot *slot= slot_of(object);
    slot->lock.lock();
    /*
      No relinking needed: the key under which the object is queued may be older
      than its stamp, never newer.
    */
    if (likely(A::state(object).linked && !A::flushed(object)) &&
        (likely(stamp > EVICT_FIRST) || stamp == A::stamp(object)))
    {
      put(object, slot, stamp);
      slot->lock.unlock();
      return NULL;
    }
    slot->lock.unlock();
    return release_slowly(object, slot, stamp, limit);
  }

  /**
    Evict the objects that were released longest ago, while the limit is
    exceeded and an object is free.

    @param most      how many at most. The function takes fewer if it would
                     hold the mutex for too long
    @param all       the caller calls this until it returns false
    @param[out] out  the objects, the last one first. The caller is their user
                     now, and closes them
    @return has it evicted any? No, if the limit is not exceeded, or no object
            is free
  */
  template <class Limit>
  bool evict(User *user, const Limit &limit, uint most, bool all,
             Free_list *out)
  {
    Found found;
    do
    {
      mysql_mutex_lock(&order_mutex);
      found= evict_over(limit, user, most, all, out);
      mysql_mutex_unlock(&order_mutex);
    } while (found == MORE);
    return !out->is_empty();
  }

  /**
    Remove all free objects of a share.

    If the share is flushed, no free object is left: once this function has
    locked a slot, no thread puts an object into it. If the share is not
    flushed, other threads may put objects into its slots meanwhile.

    Another thread may make the slots after this function has looked for them.
    This function does not visit these slots, and need not:

    1. A thread that gives an object another place than the home has seen the
       slots. In acquire() it then locks the old slot, at first the home's. In
       add() it holds order_mutex when it sees the slots.
    2. This function held both locks before it looked for the slots and found
       none. So the other thread gets its lock later.
    3. If acquire() finds a free object then, the share is not flushed. If add()
       adds an object, its release() sees whether the share is flushed.

    @param[out] out  gets the objects. They have no user
  */
  void purge(Share *share, Free_list *out)
  {
    each_slot(share, [this, out](Slot &slot) { purge_slot(&slot, out); });
  }

  /** Verify the cache. For debugging and tests: see table_cache_core_check.h */
  const char *check(ulong *n_free);
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
