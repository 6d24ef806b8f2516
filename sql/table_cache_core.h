#ifndef TABLE_CACHE_CORE_INCLUDED
#define TABLE_CACHE_CORE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache: free objects, the order of eviction, the count.
  It knows objects and the shares that own them, and nothing else: no THD, no
  engine, no file. table_cache.cc makes it a cache of TABLEs,
  unittest/sql/table_cache-t.cc tests it by itself.

  An object belongs to one share for life. From add() on it is counted, and it
  is in one of two states:

  - used: it has a user (TABLE::in_use);
  - free: it has no user, and it is in a slot of its share: the list of the
    share's free objects in one place (table_cache_slot.h).

           add()      -----> used -- release() --> free
                              ^ ^                  | | |
                              | '--- acquire() ----' | |
     to be closed:            '---- evict() ---------' '-- purge() --> none
     forget() or release()

  A hit is one acquire() and one release(). Each locks one slot, as a rule the
  same one, and writes to the slot and to the object, and to nothing that other
  CPUs use. Hits leave the order of eviction alone.

  The order of eviction (table_cache_order.h) has one mutex for the server. Only
  threads that open, close or evict objects take it, and release() in rare
  cases. All free objects are linked in the order, and so are those that were
  used since a thread looked for a victim. An object is linked where its last
  release was when it was linked. A thread that looks for a victim meets the
  objects in this order:

  1. An object that is used leaves the order. Its next release() links it again.
  2. An object that was released again since gets its new place in the order.
  3. An object that is not due yet falls by a level of the order.
  4. Otherwise it is the object that was released longest ago on the whole
     server.

  Step 1 happens at most once for each release, step 2 too, and step 3 a few
  times for each object that is evicted. So the steps of an eviction are
  constant on average, but after a long time with hits only, the first eviction
  would meet all objects. After ENOUGH of them it takes the one that was
  released longest ago of those that it has met. In a cache of no more than
  ENOUGH objects the order is always exact.

  Objects are evicted in this order, by what the thread that releases them says:

  1. EVICT_FIRST, by the time of their release;
  2. OLDEST, those that were opened ahead for users who are still to come: the
     one released last goes first;
  3. NEWEST, those that were used, by the time of their release.

  The caller closes an object after the object has left the count, the order and
  its slot, and holds no lock then.

  Each object has a weight, the bytes that it takes. The core adds them up, and
  knows nothing else of them. The weight is taken when the object is added, and
  taken back when it leaves the count; in between only its user may change it
  (weigh()). So a hit neither reads nor writes a weight.

  Locks: order_mutex, then the lock of one slot. The owner's mutex of a share
  comes before these.
*/

#include "my_global.h"
#include "my_sys.h"
#include "mysql/psi/mysql_thread.h"
#include "table_cache_machine.h"
#include "table_cache_order.h"
#include "table_cache_slot.h"
#include <aligned.h>
#include <initializer_list>
#include <new>

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
    A::weight(const Object*), A::set_weight(Object*, uint32)
                               belong to the object's user, or to the thread
                               that has taken a free one to close it
    A::cpu()                   see Table_cache_machine
    A::locked()                a slot has been locked; tests count these

  A limit has allows(count, weight): may so many objects of this weight together
  stay? It may change at any moment. A mark is an object that converts to bool.
  A time is a number that grows with time; its unit is the caller's.
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

  /** How a released object joins the order of eviction. */
  enum Order
  {
    NEWEST,                             /**< a user has used it */
    OLDEST,                             /**< no user has used it yet */
    EVICT_FIRST,                        /**< before all others */
    AS_BEFORE                           /**< the user did not use it */
  };

  /** What the caller of release() has to close: see release(). */
  struct Released
  {
    Object *to_close;
    bool evicted;
  };

private:
  typedef Table_cache_order<Object, typename A::Order_links> Objects_by_time;

  /** A stamp is the time of the release; its two highest bits are the order. */
  static constexpr ulonglong EVICT_FIRST_KIND= 0, OLDEST_KIND= 1ULL << 62,
                             NEWEST_KIND= 3ULL << 62, KIND= NEWEST_KIND;
  /** Values of Table_cache_state::linked. LINKED_FIRST: in "first". */
  static constexpr uchar LINKED= 1, LINKED_FIRST= 2;
  /** How many objects a thread meets before it lets others take order_mutex. */
  static constexpr uint SLICE= 128;
  /** How many objects a thread meets before it takes the oldest of these. */
  static constexpr uint ENOUGH= 2048;

  /** The slots of a share's places are in a cache line each. */
  struct alignas(CPU_LEVEL1_DCACHE_LINESIZE) Lone_slot: public Slot {};

  /** Read by everybody, written by init(). */
  uint n_shards;
  uchar shard_of_cpu[MAX_CPUS];

  /** Protects what follows, and the links of the order in the objects. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) mysql_mutex_t order_mutex;
  Objects_by_time first, used;
  /** Those released as OLDEST. Front: released last, the next to be evicted. */
  I_P_List<Object, typename A::Order_links> ahead;
  /** Number of objects, used and free. Any thread reads these four. */
  std::atomic<ulong> count;
  /** Sum of their weights. Threads change it without order_mutex, too. */
  std::atomic<size_t> total_weight;
  /** Number of objects in "first". */
  std::atomic<ulong> n_first;
  /** Number of objects evicted. */
  std::atomic<ulonglong> evicted;

  /** Objects that threads took from the places of other CPUs than their own. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) std::atomic<ulonglong> remote;


  /** The place to which this thread releases an object of a share. */
  uint own_place(Share *share) const
  {
    if (share->objects.load(std::memory_order_relaxed) <= 1)
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
    Table_cache_state &state= A::state(object);
    for (;;)
    {
      const uint place= state.place.load(std::memory_order_relaxed);
      Slot *slot= A::share(object)->slot(place);
      lock(slot);
      /* The place may have come back to this one, under another lock. */
      if (likely(place == state.place.load(std::memory_order_acquire)))
        return slot;
      slot->lock.unlock();
    }
  }

  /** Take an object out of its slot, which is locked, for this user. */
  static void take(Object *object, Slot *slot, User *user)
  {
    Table_cache_state &state= A::state(object);
    slot->lock.assert_locked();
    DBUG_ASSERT(state.free && state.linked && !A::user(object));
    slot->free.remove(object);
    Slot::count(slot->elements, -1);
    state.free= false;
    A::set_user(object, user);
  }

  /** Put an object into its slot, which is locked. */
  static void put(Object *object, Slot *slot, ulonglong stamp)
  {
    Table_cache_state &state= A::state(object);
    slot->lock.assert_locked();
    DBUG_ASSERT(!state.free && state.linked && A::user(object));
    A::set_user(object, NULL);
    A::set_stamp(object, stamp);
    state.free= true;
    slot->free.push_front(object);
    Slot::count(slot->elements, 1);
    A::share(object)->set_hint(state.place.load(std::memory_order_relaxed));
  }

  /** Make the slot of a place that has none. @return NULL if out of memory */
  static Slot *make_slot(Share *share, uint place)
  {
    Slot *slot= NULL;
    if (void *memory= aligned_malloc(sizeof(Lone_slot),
                                     CPU_LEVEL1_DCACHE_LINESIZE))
    {
      Slot *mine= new (memory) Lone_slot;
      if (share->slots[place - 1].compare_exchange_strong(slot, mine))
        slot= mine;
      else
        aligned_free(memory);
    }
    return slot;
  }

  /** Get an object from one place. A thread at home there leaves its hint. */
  Object *acquire_from(Share *share, uint place, bool own, User *user,
                       uint uses, Slot *slot)
  {
    Object *object= slot->free.front();
    if (likely(object != NULL))
    {
      take(object, slot, user);
      Slot::count(slot->hits, uses);
    }
    if (!own || unlikely(!object))
    {
      if (slot->free.is_empty())
        share->clear_hint(place);
    }
    slot->lock.unlock();
    return object;
  }

  /**
    Get an object from any place that has a hint.

    Goes round twice for each reading of the hints. The first time it passes by
    the slots that are locked, the second time it waits for them.
  */
  ATTRIBUTE_NOINLINE Object *acquire_anywhere(Share *share, User *user,
                                              uint uses, uint own)
  {
    const uint places= n_shards + 1;
    while (ulonglong hints= share->hints.load(std::memory_order_acquire))
    {
      for (bool wait : { false, true })
      {
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
          A::locked();
          if (Object *object= acquire_from(share, place, place == own, user,
                                           uses, slot))
          {
            if (own && place && place != own)
              remote.fetch_add(uses, std::memory_order_relaxed);
            return object;
          }
          hints&= ~Share::bit(place);
        } while ((place= place + 1 == places ? 0 : place + 1) != own);
      }
    }
    return NULL;
  }

  /** Link an object in the order. Needs order_mutex, and a user or its slot. */
  void link(Object *object, ulonglong stamp)
  {
    mysql_mutex_assert_owner(&order_mutex);
    A::state(object).linked= stamp & KIND ? LINKED : LINKED_FIRST;
    if (likely(stamp >= NEWEST_KIND))
      used.insert(object, stamp);
    else if (stamp & KIND)
      ahead.push_front(object);
    else
    {
      first.insert(object, stamp);
      n_first++;
    }
  }

  /** Undo link(), under the same locks. */
  void unlink(Object *object)
  {
    mysql_mutex_assert_owner(&order_mutex);
    if (A::state(object).linked)
      Objects_by_time::remove(object);
    if (unlikely(A::state(object).linked == LINKED_FIRST))
      n_first--;
    A::state(object).linked= 0;
  }

  /** An object leaves the cache; its user, or purge(), will close it. */
  void uncount(Object *object)
  {
    unlink(object);
    DBUG_ASSERT(count && A::share(object)->objects);
    count.store(count.load(std::memory_order_relaxed) - 1,
                std::memory_order_relaxed);
    A::share(object)->objects.fetch_sub(1, std::memory_order_relaxed);
    total_weight.fetch_sub(A::weight(object), std::memory_order_relaxed);
  }

  /** Does the limit allow what there is, and this in addition? */
  template <class Limit>
  bool fits(const Limit &limit, ulong more= 0, size_t more_weight= 0) const
  {
    return limit.allows(count.load(std::memory_order_relaxed) + more,
                        total_weight.load(std::memory_order_relaxed) +
                        more_weight);
  }

  /** May an object with this stamp go, which is the next one of its kind? */
  bool is_due(ulonglong stamp, ulonglong kind) const
  {
    return (stamp & KIND) == kind &&
           (kind == OLDEST_KIND ||
            (kind == NEWEST_KIND ? used : first).is_least(stamp));
  }

  /**
    Meet objects until one is the object to evict; see the @file comment.

    @param[in,out] met  how many objects have been met. At each multiple of
                        SLICE this stops
    @return the object, taken; NULL if no object is free, or this has stopped
  */
  Object *next_victim(User *user, uint *met)
  {
    do
    {
      ulonglong kind;
      Object *object;
      bool enough= false;
      if (unlikely((object= first.next()) != NULL))
        kind= EVICT_FIRST_KIND;
      else if (unlikely((object= ahead.front()) != NULL))
        kind= OLDEST_KIND;
      else if (unlikely(*met >= ENOUGH) &&
               (object= used.least_of_returned()) != NULL)
      {
        kind= NEWEST_KIND;
        enough= true;
      }
      else if ((object= used.next()))
        kind= NEWEST_KIND;
      else
      {
        *met= SLICE - 1;
        return NULL;
      }
      Slot *slot= lock_slot_of(object);
      const bool is_free= A::state(object).free;
      const ulonglong stamp= is_free ? A::stamp(object) : 0;
      const bool victim= is_free && (enough || is_due(stamp, kind));
      if (victim)
      {
        take(object, slot, user);
        if (slot->free.is_empty())
          A::share(object)->clear_hint(A::state(object).place);
      }
      unlink(object);
      if (is_free && !victim)
        link(object, stamp);
      slot->lock.unlock();
      if (victim)
        return object;
    } while (++*met % SLICE);
    return NULL;
  }

  /**
    Evict one object if the limit is exceeded. May unlock order_mutex and lock
    it again.

    @param[in,out] met  see next_victim(); 0 at first

    After the last thread that exceeded the limit has called this,

        the limit allows what there is, or no object is free,

    because if it finds none, then all objects have left the order, and
    release_slowly(), which brings them back, calls this.
  */
  template <class Limit>
  Object *evict_over(const Limit &limit, User *user, uint *met)
  {
    while (unlikely(!fits(limit)))
    {
      if (Object *object= next_victim(user, met))
      {
        uncount(object);
        evicted.store(evicted.load(std::memory_order_relaxed) + 1,
                      std::memory_order_relaxed);
        return object;
      }
      if (*met % SLICE)
        return NULL;
      mysql_mutex_unlock(&order_mutex);
      mysql_mutex_lock(&order_mutex);
    }
    return NULL;
  }

  /** Release an object that has to be linked in the order, or closed. */
  template <class Mark, class Limit> ATTRIBUTE_NOINLINE
  Released release_slowly(Object *object, ulonglong stamp, Order order,
                          const Mark &flushed, const Limit &limit)
  {
    User *user= A::user(object);
    uint met= 0;
    mysql_mutex_lock(&order_mutex);
    Slot *slot= lock_slot_of(object);
    const bool to_be_closed= flushed;
    if (to_be_closed)
      uncount(object);
    else
    {
      unlink(object);
      link(object, stamp);
      put(object, slot, stamp);
      if (order == NEWEST)
        slot->last_release.store(stamp & ~KIND, std::memory_order_relaxed);
    }
    slot->lock.unlock();
    Object *victim= to_be_closed ? NULL : evict_over(limit, user, &met);
    mysql_mutex_unlock(&order_mutex);
    return to_be_closed ? Released{ object, false } :
                          Released{ victim, victim != NULL };
  }

  /** Give a used object another place, where it has a slot. */
  ATTRIBUTE_NOINLINE Slot *move(Object *object, Share *share, uint place)
  {
    Slot *slot= share->slot(place);
    if (unlikely(!slot) && !(slot= make_slot(share, place)))
    {
      slot= &share->home;
      place= 0;
    }
    Slot *old= lock_slot_of(object);
    DBUG_ASSERT(!A::state(object).free);
    /* What this thread wrote with the old lock is visible with the new one. */
    A::state(object).place.store((uchar) place, std::memory_order_release);
    old->lock.unlock();
    return slot;
  }

public:
  /**
    Make an empty cache.

    @param shards_arg  number of shards, 1 to MAX_SHARDS
    @param map         shard of each of MAX_CPUS CPUs
    @param key         instrumentation of order_mutex
  */
  void init(uint shards_arg, const uchar *map, PSI_mutex_key key)
  {
    DBUG_ASSERT(shards_arg && shards_arg <= MAX_SHARDS);
    n_shards= shards_arg;
    memcpy(shard_of_cpu, map, sizeof(shard_of_cpu));
    mysql_mutex_init(key, &order_mutex, MY_MUTEX_INIT_FAST);
    count= n_first= 0;
    total_weight= 0;
    evicted= remote= 0;
  }

  /** Free an empty cache. No thread may use shares any more. */
  void destroy()
  {
    DBUG_ASSERT(count == 0);
    DBUG_ASSERT(total_weight == 0);
    mysql_mutex_destroy(&order_mutex);
  }

  uint active_shards() const { return n_shards; }
  /** Number of objects, used and free. */
  ulong records() const { return count.load(std::memory_order_relaxed); }
  /** Sum of their weights. */
  size_t weight() const
  { return total_weight.load(std::memory_order_relaxed); }
  ulonglong evictions() const
  { return evicted.load(std::memory_order_relaxed); }
  ulonglong remote_hits() const
  { return remote.load(std::memory_order_relaxed); }

  /** The size of a share's part; it has to be aligned like Share. */
  static size_t share_size(uint n)
  {
    return MY_ALIGN(offsetof(Share, slots) + n * sizeof(std::atomic<Slot*>),
                    alignof(Share));
  }

  /** Initialize a share, whose memory has been allocated. */
  void init_share(Share *share) const
  {
    share->hints= 0;
    share->objects= 0;
    new (&share->home) Slot;
    for (uint i= 0; i < n_shards; i++)
      share->slots[i].store(NULL, std::memory_order_relaxed);
  }

  /** Free what belongs to a share, which has no object. */
  void deinit_share(Share *share) const
  {
    for (uint i= 0; i < n_shards; i++)
      aligned_free(share->slots[i].load(std::memory_order_relaxed));
  }

  /**
    Call f(Slot &) for each slot of a share. The caller does not hold its lock:
    f may read the counters only.
  */
  template <class F> void read_slots(Share *share, F f) const
  {
    for (uint place= 0; place <= n_shards; place++)
    {
      if (Slot *slot= share->slot(place))
        f(*slot);
    }
  }

  /** The same, with the lock of each slot held. For debugging. */
  template <class F> void each_slot(Share *share, F f) const
  {
    read_slots(share, [&f](Slot &slot) {
      lock(&slot);
      f(slot);
      slot.lock.unlock();
    });
  }

  /** Begin a new life of a share, which has no object. Its slots remain. */
  void reset_share(Share *share) const
  {
    DBUG_ASSERT(!share->objects);
    each_slot(share, [](Slot &slot) {
      slot.hits.store(0, std::memory_order_relaxed);
      slot.last_release.store(0, std::memory_order_relaxed);
    });
  }


  /**
    Add a new object, which has a user and a weight.

    @param now         time
    @param limit       what may be cached; may change meanwhile
    @param[out] room   was there room for the object?
    @return another object, which the caller has to close, or NULL
  */
  template <class Limit>
  Object *add(Object *object, ulonglong now, const Limit &limit, bool *room)
  {
    Table_cache_state &state= A::state(object);
    state.place.store(0, std::memory_order_relaxed);
    state.free= false;
    state.linked= 0;
    mysql_mutex_lock(&order_mutex);
    *room= fits(limit, 1, A::weight(object));
    count.store(count.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
    A::share(object)->objects.fetch_add(1, std::memory_order_relaxed);
    total_weight.fetch_add(A::weight(object), std::memory_order_relaxed);
    link(object, NEWEST_KIND | now);
    uint met= 0;
    Object *victim= evict_over(limit, A::user(object), &met);
    mysql_mutex_unlock(&order_mutex);
    return victim;
  }

  /** The caller uses this object, and knows its weight anew. Evicts nothing. */
  void weigh(Object *object, uint32 weight)
  {
    DBUG_ASSERT(!A::state(object).free);
    /* Unsigned: a lesser weight makes the sum wrap round to what it should be */
    total_weight.fetch_add((size_t) weight - A::weight(object),
                           std::memory_order_relaxed);
    A::set_weight(object, weight);
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
    CPU, if there is one.

    @param uses  1; 0: it does not count as a hit
    @pre The memory of the share cannot go away.
    @return NULL if at one moment during the call the share had none
  */
  Object *acquire(Share *share, User *user, uint uses= 1)
  {
    const uint own= own_place(share);
    const ulonglong hints= share->hints.load(std::memory_order_acquire);
    if (likely(hints & Share::bit(own)))
    {
      Slot *slot= share->slot(own);
      if (likely(slot->lock.trylock()))
      {
        A::locked();
        if (Object *object= acquire_from(share, own, true, user, uses,
                                           slot))
          return object;
      }
    }
    else if (!hints)
      return NULL;
    return acquire_anywhere(share, user, uses, own);
  }

  /** Had the object been EVICT_FIRST, before the caller acquired it? */
  static bool was_evict_first(Object *object)
  { return !(A::stamp(object) & KIND); }

  /**
    Is there a free object that was released as EVICT_FIRST? Then that one goes
    next. The answer is a guess.
  */
  bool has_evict_first() const { return n_first != 0; }

  /**
    Give back an object, which the caller uses.

    @param order    when it is to be evicted. AS_BEFORE needs the stamp that the
                    object had when the caller acquired it
    @param now      time
    @param flushed  mark of the share. Whoever sets it calls purge() then.
                    Either purge() finds the object, or release() sees the mark
    @param limit    as for add()

    @return an object that the caller has to close, or NULL. It is not evicted,
            and the one given back, if the share is flushed. Otherwise another
            thread may have acquired or evicted the one given back
  */
  template <class Mark, class Limit>
  Released release(Object *object, Order order, ulonglong now,
                   const Mark &flushed, const Limit &limit)
  {
    Share *share= A::share(object);
    Table_cache_state &state= A::state(object);
    DBUG_ASSERT(!(now & KIND));
    const uint place= state.place.load(std::memory_order_relaxed);
    const uint own= unlikely(order == AS_BEFORE) ? place : own_place(share);
    Slot *slot= likely(own == place) ? share->slot(own) :
                                       move(object, share, own);
    const ulonglong stamp= likely(order == NEWEST) ? now | NEWEST_KIND :
                           order == OLDEST ? now | OLDEST_KIND :
                           order == AS_BEFORE ? A::stamp(object) : now;
    if (likely(order == NEWEST || order == AS_BEFORE))
    {
      /* Where the object is linked, if it is, is not after its stamp. */
      lock(slot);
      if (likely(state.linked && !flushed))
      {
        put(object, slot, stamp);
        if (likely(order == NEWEST))
          slot->last_release.store(now, std::memory_order_relaxed);
        slot->lock.unlock();
        return Released{ NULL, false };
      }
      slot->lock.unlock();
    }
    return release_slowly(object, stamp, order, flushed, limit);
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
    uint n= 0, met= 0;
    mysql_mutex_lock(&order_mutex);
    for (Object *object;
         n < most && (object= evict_over(limit, user, &met)); n++)
      out->push_front(object);
    mysql_mutex_unlock(&order_mutex);
    return n;
  }

  /**
    Remove all free objects of a share.

    @param flushed   true: the mark that release() reads has been set, so go to
                     every slot. false: go only to those that have a hint
    @param[out] out  where to put them. They have no user
  */
  void purge(Share *share, bool flushed, Free_list *out)
  {
    const ulonglong hints= flushed ? ~0ULL : share->hints.fetch_or(0);
    for (uint place= 0; place <= n_shards; place++)
    {
      if (!(hints & Share::bit(place)))
        continue;
      /*
        With this exchange, make_slot() either comes before, and its slot is
        found, or after it, and whoever releases to the slot sees the mark.
      */
      Slot *slot= NULL;
      if (!place ||
          !share->slots[place - 1].compare_exchange_strong(slot, NULL))
        slot= share->slot(place);
      if (!slot)
        continue;
      lock(slot);
      while (Object *object= slot->free.front())
      {
        take(object, slot, NULL);
        out->push_front(object);
      }
      share->clear_hint(place);
      slot->lock.unlock();
    }
    if (out->is_empty())
      return;
    mysql_mutex_lock(&order_mutex);
    typename Free_list::Iterator it(*out);
    while (Object *object= it++)
      uncount(object);
    mysql_mutex_unlock(&order_mutex);
  }

  /**
    Verify what must hold while order_mutex and the locks of all slots are free.

    1. Each object in the order is linked.
    2. If it is free, it is in the list of its slot, which is as long as it
       says; it has no user, and its share has a hint.

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
      if (!state.linked)
        wrong= "an object in the order is not linked";
      if (state.free)
      {
        uint elements= 0;
        ++*n_free;
        if (A::user(object))
          wrong= "a free object has a user";
        if (!(A::share(object)->hints & Share::bit(state.place)))
          wrong= "a hint is clear though there is a free object";
        if (**A::Share_links::prev_ptr(object) != object)
          wrong= "a free object is in no list";
        if (object == slot->free.front())
        {
          typename Free_list::Iterator it(slot->free);
          while (it++)
            elements++;
          if (elements != slot->elements)
            wrong= "a slot has another length than it says";
        }
      }
      slot->lock.unlock();
    };
    mysql_mutex_lock(&order_mutex);
    first.each(check_object);
    used.each(check_object);
    typename I_P_List<Object, typename A::Order_links>::Iterator it(ahead);
    while (Object *object= it++)
      check_object(object);
    if (n > count)
      wrong= "more objects are in the order than are counted";
    mysql_mutex_unlock(&order_mutex);
    return wrong;
  }
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
