#ifndef TABLE_CACHE_CORE_INCLUDED
#define TABLE_CACHE_CORE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache: shards, free lists, the order of eviction and
  the count. It knows of objects and of shares that own objects, and of
  nothing else: no THD, no engine, no file. table_cache.cc makes it a cache of
  TABLEs, unittest/sql/table_cache-t.cc tests it by itself.

  Objects
  -------
  An object belongs to one share for life. It is counted from add() on and in
  exactly one of two states:

  - used: it has a user (TABLE::in_use), and it is in no list of the core;
  - free: it has no user, and it is in two lists of one shard: the list of its
    share's free objects there (a Slot) and the shard's LRU list.

  add(), acquire(), release(), evict(), purge() and forget() are all the ways
  from one state to another:

           add()      -----> used -- release() --> free
                              ^ ^                  | | |
                              | '--- acquire() ----' | |
     to be closed:            '---- evict() ---------' '-- purge() --> none
     forget() or release()

  An object that is to be closed has left the count and the lists. The caller
  closes it when it holds no lock.

  Shards
  ------
  A shard serves the CPUs that are mapped to it. A thread releases to the
  shard of the CPU on which it runs, and takes what was released there last:
  that object is the warmest one in this CPU's cache. Which CPU it is may
  change at any moment. That costs warmth, never correctness: a shard is a
  place, and every place is protected by its own mutex.

  A thread that finds the mutex of its shard taken spins, for the holder works
  on another CPU of the shard, and is about to be done. Not so where each CPU
  has a shard of its own: there the holder has most likely been preempted, and
  runs again only when those have run that the scheduler puts before it. So a
  thread goes to another shard instead. It waits for a mutex only if all shards
  are busy, or if the others have no object for it.

  A share has a word of hints, one bit per shard. The bit of a shard is set
  and cleared only under that shard's mutex, and whenever that mutex is free,

      bit clear  =>  the share has no free object in this shard.

  A set bit only means "look there": it is left set when the last object is
  taken, so that the usual pair of acquire and release reads the word and
  never writes it. Who looks and finds nothing clears the bit. acquire() gives
  up only after it has seen the whole word as zero in one load. At that moment
  no shard had a free object of this share, so a miss never happens while one
  is free somewhere.

  Order
  -----
  Every release is stamped by a clock that all CPUs share (the time stamp
  counter where there is one). A shard's LRU list is in the order of its
  stamps: release() makes them ascend. Each shard publishes a lower bound of
  them: it is the stamp of the oldest object, or was that until the object was
  acquired. Usually, acquire and release leave it alone. evict() reads all the
  bounds and locks the shard with the least one. If it is the stamp of the front
  of the shard's list, then this is the object released longest ago on the whole
  server. Else it raises the bound to that stamp, and looks again.

  An object that is released as "first to be evicted" goes to the front, with a
  stamp that is less than any time.

  The count
  ---------
  "count" is the number of objects, used and free. It is written by those who
  open and close, and only read by release(). Once everybody is at rest,

      count <= limit, or no object is free.

  An object leaves the count together with the lists, under the shard's mutex,
  so the count is never less than the number of objects. evict() takes one from
  it when it has the victim in hand and only if the limit is exceeded then: not
  one too many is evicted. Before evict() gives up although the limit is
  exceeded, it looks into every shard under its mutex. release() reads count
  and limit under the same mutex after it has added its object. So either the
  evicting thread finds the object, or the releasing one sees that the limit is
  exceeded, and evicts. That holds for a limit that changes, too, if who
  changes it calls evict() afterwards.

  Flush
  -----
  The owner of a share marks it as flushed and then calls purge(), which takes
  the mutex of every shard. release() reads the mark under its shard's mutex.
  So either purge() finds the object, or release() sees the mark and tells its
  caller to close.

  Locks
  -----
  A thread never holds the mutexes of two shards. The owner's mutex of a share
  may be held when a shard's mutex is taken, not the other way round.
*/

#include "my_global.h"
#include "my_sys.h"
#include "my_cpu.h"
#include "mysql/psi/mysql_thread.h"
#include "sql_plist.h"
#include <my_rdtsc.h>
#include <atomic>
#include <new>

#ifdef __linux__
#include <sched.h>
#ifdef __has_include
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#ifdef RSEQ_SIG                 /* else the C library does not register it */
#define TABLE_CACHE_HAVE_RSEQ
#endif
#endif
#endif
#endif


/** CPUs and clock of this machine, for the class below. */

struct Table_cache_machine
{
  /** CPUs beyond are mapped like those before. */
  static constexpr uint MAX_CPUS= 1024;

  /** Number of the CPU that runs this thread, which may change at any time. */
  static uint cpu()
  {
#ifdef __linux__
#ifdef TABLE_CACHE_HAVE_RSEQ
    /* The kernel keeps the number up to date here: one load, and no call. */
    int cpu_id= *reinterpret_cast<volatile const int*>
      (static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset +
       offsetof(struct rseq, cpu_id));
    if (likely(cpu_id >= 0))
      return cpu_id;
#endif
    int cpu_no= sched_getcpu();
    return cpu_no < 0 ? 0 : cpu_no;
#else
    /* Not known: deal the threads out, like MariaDB deals out connections. */
    static std::atomic<uint> threads;
    static thread_local uint number= threads.fetch_add(1);
    return number;
#endif
  }

  /** A clock that all CPUs share. It has no unit. */
  static ulonglong now()
  {
#if MY_TIMER_ROUTINE_CYCLES
    return my_timer_cycles();
#else
    return my_interval_timer();
#endif
  }

  /**
    Deal out the CPUs that this process may use to shards.

    Each shard gets CPUs with consecutive numbers: on most machines these share
    more of their caches than others do.

    @param max_shards         upper bound
    @param[out] map           shard of each of MAX_CPUS CPUs
    @param[out] one_cpu_each  no two CPUs have the same shard
    @return number of shards
  */
  static uint map_cpus(uint max_shards, uchar *map, bool *one_cpu_each)
  {
    uint cpus= MY_MAX(my_getncpus(), 1), n= MY_MIN(max_shards, cpus);
#ifdef __linux__
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof(set), &set))
    {
      cpus= CPU_COUNT(&set);
      n= MY_MIN(max_shards, cpus);
      *one_cpu_each= n == cpus;
      for (uint cpu_no= 0, seen= 0; cpu_no < MAX_CPUS; cpu_no++)
      {
        /* A CPU that may be added later joins its neighbour. */
        map[cpu_no]= (uchar) (MY_MIN(seen, cpus - 1) * n / cpus);
        if (cpu_no < CPU_SETSIZE && CPU_ISSET(cpu_no, &set))
          seen++;
      }
      return n;
    }
#endif
    *one_cpu_each= n == cpus;
    for (uint cpu_no= 0; cpu_no < MAX_CPUS; cpu_no++)
      map[cpu_no]= (uchar) (cpu_no % n);
    return n;
  }
};


/**
  A share's part in the cache. Reserve share_size() bytes for it.

  Slots are made at the first release of one of the share's objects to a shard,
  and only then: most shares are never used by most CPUs. They are cut from
  blocks that belong to the shard, so CPUs of different shards do not write to
  the same cache line.
*/

template <class Object, class Links> struct Table_cache_share
{
  typedef I_P_List<Object, Links> Free_list;

  /**
    The share in one shard. Protected by the shard's mutex.

    Acquire and release write only one counter each.
  */
  struct Slot
  {
    Free_list free;                     /**< front: released last */
    ulonglong hits;                     /**< objects acquired here */
    uint32 released;                    /**< objects released here, and how */
    uint32 removed;                     /**< many left other than by acquire */
    /** When an object was released that is not at the front: 0 or clock. */
    ulonglong last_release;

    /** Number of free objects. */
    uint32 elements() const { return released - (uint32) hits - removed; }
  };

  /** Bit i: may have free objects in shard i. Written under its mutex. */
  std::atomic<ulonglong> hints;
  /**
    One per shard. NULL to begin with, set once, under the shard's mutex; then
    it stays. What it points to needs the mutex.
  */
  std::atomic<Slot*> slots[1];
};


/**
  The cache, for objects as described by A:

    A::Object, A::User         what is cached, and who uses it
    A::Share_links             I_P_List adapter: links of the list in a Slot
    A::Lru_links               I_P_List adapter: links of a shard's LRU list
    A::share(Object*)          the share's part in this cache
    A::stamp(Object*)          a place for the stamp of a free object
    A::place(Object*)          a place for the shard of a free object, for
                               check() in debug builds only
    A::user(Object*)           the user, NULL if the object is free
    A::set_user(Object*, User*)
    A::cpu()                   number of the CPU that runs this thread
    A::now()                   the clock
*/

template <class A> class Table_cache_core
{
public:
  typedef typename A::Object Object;
  typedef typename A::User User;

  /** As many as a word of hints has bits. */
  static constexpr uint MAX_SHARDS= 64;
  static constexpr uint MAX_CPUS= Table_cache_machine::MAX_CPUS;

  typedef Table_cache_share<Object, typename A::Share_links> Share;
  typedef typename Share::Slot Slot;
  typedef typename Share::Free_list Free_list;
  typedef I_P_List<Object, typename A::Lru_links, I_P_List_null_counter,
                   I_P_List_fast_push_back<Object> > Lru_list;

  /** What a release() has come to. */
  enum Released
  {
    IS_FREE,                            /**< cached; no longer the caller's */
    IS_FREE_OVER_LIMIT,                 /**< cached; the caller must evict() */
    TO_BE_CLOSED                        /**< not cached; the caller closes it */
  };

private:
  /** Stamp of an object that is first to be evicted. */
  static constexpr ulonglong FIRST= 0;
  /** What a shard without free objects publishes as the stamp of its oldest. */
  static constexpr ulonglong NONE= ~0ULL;

  struct Block
  {
    static constexpr uint SLOTS= 100;
    Block *next;
    uint used;
    Slot slots[SLOTS];
  };

  struct alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) Shard
  {
    /** Protects all of the shard, and what the @file comment says. */
    mysql_mutex_t mutex;
    /** All free objects of the shard. Front: the one to evict next. */
    Lru_list lru;
    /** Stamp of the object that was released last. */
    ulonglong last_stamp;
    /** Objects acquired by threads of other shards. */
    ulonglong remote_hits;
    /** Objects evicted. */
    ulonglong evictions;
    /** Its index in shards, and its bit in hints. Never changes. */
    uint number;
    /** Memory for slots. */
    Block *blocks;
    /** Not more than any stamp in lru; written under mutex, read by evict(). */
    std::atomic<ulonglong> oldest;

    void lock() { mysql_mutex_lock(&mutex); }
    /** @return true if locked */
    bool trylock() { return !mysql_mutex_trylock(&mutex); }
    void unlock() { mysql_mutex_unlock(&mutex); }

    /** @return stamp of the oldest object */
    ulonglong publish_oldest()
    {
      Object *front= lru.front();
      ulonglong stamp= front ? A::stamp(front) : NONE;
      oldest.store(stamp, std::memory_order_release);
      return stamp;
    }

    /** The object, which is not acquired, has left the slot: note its time. */
    static void removed(Slot *slot, Object *object)
    {
      slot->removed++;
      set_if_bigger(slot->last_release, A::stamp(object));
    }

    /** The object joins both lists, as the last or the first to be evicted. */
    void link(Object *object, Slot *slot, ulonglong now, bool evict_first)
    {
      /*
        The clocks of two CPUs may differ a little, and the mutex may have
        come here from another one. Within a shard that must not turn the
        order round.
      */
      if (now <= last_stamp)
        now= last_stamp + 1;
      last_stamp= now;
      slot->released++;
      if (unlikely(evict_first))
      {
        A::stamp(object)= FIRST;
        lru.push_front(object);
        slot->free.push_front(object);
        slot->last_release= now;
        oldest.store(FIRST, std::memory_order_release);
        return;
      }
      A::stamp(object)= now;
      lru.push_back(object);
      slot->free.push_front(object);
      if (unlikely(oldest.load(std::memory_order_relaxed) == NONE))
        oldest.store(now, std::memory_order_release);
    }

    Slot *new_slot()
    {
      if (!blocks || blocks->used == Block::SLOTS)
      {
        Block *block= static_cast<Block*>(my_malloc(PSI_NOT_INSTRUMENTED,
                                                    sizeof(Block), MYF(0)));
        if (!block)
          return NULL;
        block->next= blocks;
        block->used= 0;
        blocks= block;
      }
      Slot *slot= &blocks->slots[blocks->used++];
      slot->free.empty();
      slot->hits= slot->last_release= 0;
      slot->released= slot->removed= 0;
      return slot;
    }
  };

  /** Read by everybody, written by init(). */
  Shard *shards;
  uint n_shards;
  bool one_cpu_each;
  void *memory;
  Shard *shard_of_cpu[MAX_CPUS];

  /** Number of objects. On a line of its own: opening and closing write it. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) std::atomic<ulong> count;
  char pad[2 * CPU_LEVEL1_DCACHE_LINESIZE - sizeof(std::atomic<ulong>)];


  /** The shard of this CPU. */
  Shard &current() const { return *shard_of_cpu[A::cpu() % MAX_CPUS]; }

  /** Lock the shard of this CPU or, if its mutex is taken, maybe another. */
  Shard &lock_any() const
  {
    Shard &own= current();
    return likely(own.trylock()) ? own : lock_busy(own);
  }

  ATTRIBUTE_NOINLINE Shard &lock_busy(Shard &own) const
  {
    if (one_cpu_each)
    {
      for (uint i= next(own.number); i != own.number; i= next(i))
      {
        if (shards[i].trylock())
          return shards[i];
      }
    }
    own.lock();
    return own;
  }

  uint next(uint i) const { return i + 1 == n_shards ? 0 : i + 1; }


  /**
    Take an object of this share from a shard that may have one, and unlock the
    shard.
  */
  Object *take(Share *share, Shard &shard, User *user, bool remote)
  {
    const uint i= shard.number;
    const ulonglong bit= 1ULL << i;
    Slot *slot= share->slots[i].load(std::memory_order_relaxed);
    Object *object= slot ? slot->free.pop_front() : NULL;
    if (likely(object != NULL))
    {
      shard.lru.remove(object);
      DBUG_ASSERT(A::place(object) == i);
      DBUG_ASSERT(!A::user(object));
      A::set_user(object, user);
      slot->hits++;
      if (unlikely(remote))
        shard.remote_hits++;
    }
    else if (share->hints.load(std::memory_order_relaxed) & bit)
      share->hints.fetch_and(~bit, std::memory_order_release);
    shard.unlock();
    return object;
  }


  /** Count one object less, unless the limit is not exceeded. */
  template <class Limit> bool uncount_one_over(const Limit &limit)
  {
    ulong n= count.load(std::memory_order_relaxed);
    do
    {
      if (n <= limit)
        return false;
    } while (!count.compare_exchange_weak(n, n - 1,
                                          std::memory_order_relaxed));
    return true;
  }


  /**
    Take the oldest free object of all shards, if the limit is exceeded.

    @return NULL if it is not, or no shard says that it has a free object
  */
  template <class Limit> Object *take_oldest(User *user, const Limit &limit)
  {
    /*
      A bound may be too low, and between the look at it and the lock, somebody
      may have acquired the oldest. Then look again, but not for ever: the
      bounds are raised once at most, and after that, each time round, others
      have got what they wanted.
    */
    for (uint tries= 3 * n_shards; ; )
    {
      ulonglong least= NONE, second= NONE;
      uint where= 0;
      for (uint i= 0; i < n_shards; i++)
      {
        ulonglong stamp= shards[i].oldest.load(std::memory_order_acquire);
        if (stamp < least)
        {
          second= least;
          least= stamp;
          where= i;
        }
        else if (stamp < second)
          second= stamp;
      }
      if (least == NONE)
        return NULL;

      Shard &shard= shards[where];
      shard.lock();
      Object *object= shard.lru.front();
      if (shard.publish_oldest() <= second || (object && !tries))
      {
        if (!object || !uncount_one_over(limit))
        {
          shard.unlock();
          return NULL;
        }
        Slot *slot= A::share(object)->slots[where].
          load(std::memory_order_relaxed);
        DBUG_ASSERT(A::place(object) == where);
        DBUG_ASSERT(!A::user(object));
        shard.lru.remove(object);
        slot->free.remove(object);
        shard.removed(slot, object);
        shard.publish_oldest();
        A::set_user(object, user);
        shard.evictions++;
        shard.unlock();
        return object;
      }
      shard.unlock();
      if (tries)
        tries--;
    }
  }


  bool any_free()
  {
    for (uint i= 0; i < n_shards; i++)
    {
      shards[i].lock();
      bool any= !shards[i].lru.is_empty();
      shards[i].unlock();
      if (any)
        return true;
    }
    return false;
  }


  template <class F> ulonglong sum(F part)
  {
    ulonglong total= 0;
    for (uint i= 0; i < n_shards; i++)
    {
      shards[i].lock();
      total+= part(shards[i]);
      shards[i].unlock();
    }
    return total;
  }

public:
  /**
    Make an empty cache.

    @param shards_arg        number of shards, 1 to MAX_SHARDS
    @param map               shard of each of MAX_CPUS CPUs
    @param one_cpu_each_arg  no two CPUs that are there have the same shard
    @param key               instrumentation of the shards' mutexes
    @return true if out of memory
  */
  bool init(uint shards_arg, const uchar *map, bool one_cpu_each_arg,
            PSI_mutex_key key)
  {
    DBUG_ASSERT(shards_arg && shards_arg <= MAX_SHARDS);
    n_shards= shards_arg;
    one_cpu_each= one_cpu_each_arg;
    count= 0;
    if (!(memory= my_malloc(PSI_NOT_INSTRUMENTED,
                            n_shards * sizeof(Shard) + alignof(Shard),
                            MYF(MY_WME))))
      return true;
    shards= reinterpret_cast<Shard*>
      (MY_ALIGN(reinterpret_cast<size_t>(memory), alignof(Shard)));
    for (uint i= 0; i < n_shards; i++)
    {
      Shard *shard= new (&shards[i]) Shard;
      /* "Fast" means to spin; see the @file comment. */
      mysql_mutex_init(key, &shard->mutex,
                       one_cpu_each ? MY_MUTEX_INIT_SLOW : MY_MUTEX_INIT_FAST);
      shard->last_stamp= shard->remote_hits= shard->evictions= 0;
      shard->blocks= NULL;
      shard->oldest= NONE;
      shard->number= i;
    }
    for (uint i= 0; i < MAX_CPUS; i++)
      shard_of_cpu[i]= &shards[map[i]];
    return false;
  }


  /** Free an empty cache. Shares must not be used any more. */
  void destroy()
  {
    DBUG_ASSERT(count == 0);
    for (uint i= 0; i < n_shards; i++)
    {
      DBUG_ASSERT(shards[i].lru.is_empty());
      while (Block *block= shards[i].blocks)
      {
        shards[i].blocks= block->next;
        my_free(block);
      }
      mysql_mutex_destroy(&shards[i].mutex);
      shards[i].~Shard();
    }
    my_free(memory);
    shards= NULL;
  }


  uint active_shards() const { return n_shards; }
  /** Number of objects, used and free. */
  ulong records() const { return count.load(std::memory_order_relaxed); }
  /** Objects that threads took from other shards than their own. */
  ulonglong remote_hits()
  { return sum([](Shard &s) { return s.remote_hits; }); }
  ulonglong evictions()
  { return sum([](Shard &s) { return s.evictions; }); }


  static size_t share_size(uint n)
  { return sizeof(Share) + (n - 1) * sizeof(std::atomic<Slot*>); }

  /** Memory for a share has been allocated. */
  void init_share(Share *share) const
  {
    share->hints.store(0, std::memory_order_relaxed);
    for (uint i= 0; i < n_shards; i++)
      share->slots[i].store(NULL, std::memory_order_relaxed);
  }

  /** The share, which has no object, starts a new life. Its slots remain. */
  void reset_share(Share *share)
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (Slot *slot= share->slots[i].load(std::memory_order_acquire))
      {
        shards[i].lock();
        DBUG_ASSERT(slot->free.is_empty());
        slot->hits= slot->last_release= 0;
        slot->released= slot->removed= 0;
        shards[i].unlock();
      }
    }
  }

  /** When a slot's share was last released there: 0 or clock. */
  static ulonglong last_release(const Slot &slot)
  {
    const Object *front= slot.free.front();
    return front ? MY_MAX(A::stamp(const_cast<Object*>(front)),
                          slot.last_release) : slot.last_release;
  }

  /**
    Look at all slots of a share, one after the other.

    While locked (one shard at a time): f(const Slot &)
  */
  template <class F> void each_slot(Share *share, F f)
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (Slot *slot= share->slots[i].load(std::memory_order_acquire))
      {
        shards[i].lock();
        f(*slot);
        shards[i].unlock();
      }
    }
  }


  /**
    Count a new object, which has a user.

    @return number of objects before
  */
  ulong add() { return count.fetch_add(1, std::memory_order_relaxed); }


  /** An object in use will be closed: count it no more. */
  void forget()
  {
    ulong before __attribute__((unused))=
      count.fetch_sub(1, std::memory_order_relaxed);
    DBUG_ASSERT(before);
  }


  /**
    Get a free object of a share, and make it used.

    @pre The memory of the share cannot go away.

    @return NULL if at one moment during the call the share had none
  */
  Object *acquire(Share *share, User *user)
  {
    /* Mostly it is here: then hints need not even be read. */
    Shard &own= current();
    if (likely(own.trylock()))
    {
      if (Object *object= take(share, own, user, false))
        return object;
    }
    else if (one_cpu_each)
    {
      if (Object *object= acquire_not_busy(share, user, own))
        return object;
    }
    return acquire_anywhere(share, user, own);
  }

private:
  /** Look into those other shards with a hint that are not busy. */
  ATTRIBUTE_NOINLINE Object *acquire_not_busy(Share *share, User *user,
                                              Shard &own)
  {
    const ulonglong hints= share->hints.load(std::memory_order_acquire);
    for (uint i= next(own.number); i != own.number; i= next(i))
    {
      if ((hints & (1ULL << i)) && shards[i].trylock())
      {
        if (Object *object= take(share, shards[i], user, true))
          return object;
      }
    }
    return NULL;
  }

  /** Look into all shards with a hint, beginning with this CPU's. */
  Object *acquire_anywhere(Share *share, User *user, Shard &own)
  {
    while (ulonglong hints= share->hints.load(std::memory_order_acquire))
    {
      uint i= own.number;
      do
      {
        if (hints & (1ULL << i))
        {
          shards[i].lock();
          if (Object *object= take(share, shards[i], user, i != own.number))
            return object;
        }
        i= next(i);
      } while (i != own.number);
    }
    return NULL;
  }

public:
  /** Was the object, which the caller has acquired, the first to be evicted? */
  static bool was_evict_first(Object *object)
  { return A::stamp(object) == FIRST; }


  /**
    Give back an object.

    @param object       is used, by the caller
    @param evict_first  be the first to be evicted
    @param flushed      mark of the share, see "Flush"
    @param limit        how many objects may be cached; may change meanwhile

    Unless the result is TO_BE_CLOSED, others may have acquired or evicted the
    object when this returns.
  */
  template <class Mark, class Limit>
  Released release(Object *object, bool evict_first, const Mark &flushed,
                   const Limit &limit)
  {
    Share *share= A::share(object);
    Shard &shard= lock_any();
    ulonglong now= A::now();
    const uint i= shard.number;
    const ulonglong bit= 1ULL << i;
    Slot *slot= share->slots[i].load(std::memory_order_relaxed);
    if (unlikely(!slot) && (slot= shard.new_slot()))
      share->slots[i].store(slot, std::memory_order_release);
    if (unlikely(flushed || !slot))
    {
      shard.unlock();
      forget();
      return TO_BE_CLOSED;
    }
    A::set_user(object, NULL);
    IF_DBUG(A::place(object)= i,);
    shard.link(object, slot, now, evict_first);
    if (!(share->hints.load(std::memory_order_relaxed) & bit))
      share->hints.fetch_or(bit, std::memory_order_release);
    bool over= count.load(std::memory_order_relaxed) > limit;
    shard.unlock();
    return over ? IS_FREE_OVER_LIMIT : IS_FREE;
  }


  /**
    Take the object that was released longest ago, if the limit is exceeded.

    Call it until it returns NULL, and close what it returns. The object is
    used, by the caller, and not counted.
  */
  template <class Limit> Object *evict(User *user, const Limit &limit)
  {
    while (count.load(std::memory_order_relaxed) > limit)
    {
      if (Object *object= take_oldest(user, limit))
        return object;
      if (!any_free())
        break;
    }
    return NULL;
  }


  /**
    Remove all free objects of a share.

    @param flushed   what release() reads as the share's mark has been set:
                     go to every shard. Otherwise look only where hints are.
    @param[out] out  where to put them. They have no user and are not counted.
  */
  void purge(Share *share, bool flushed, Free_list *out)
  {
    ulonglong hints= share->hints.load(std::memory_order_acquire);
    for (uint i= 0; i < n_shards; i++)
    {
      if (!flushed && !(hints & (1ULL << i)))
        continue;
      Shard &shard= shards[i];
      uint n= 0;
      shard.lock();
      if (Slot *slot= share->slots[i].load(std::memory_order_relaxed))
      {
        while (Object *object= slot->free.pop_front())
        {
          shard.lru.remove(object);
          shard.removed(slot, object);
          out->push_front(object);
          n++;
        }
      }
      if (n)
        count.fetch_sub(n, std::memory_order_relaxed);
      shard.unlock();
    }
  }


  /**
    Verify what must hold whenever a shard's mutex is free.

    Every free object is in the LRU list of one shard and in the slot of its
    share there, has no user, and knows its place; slots and LRU list hold the
    same number of objects; the hint of a share with free objects is set; the
    stamps ascend, and not more than the least one is published.

    While locked (one shard at a time): walk all lists of the shard. For
    debugging and tests.

    @return NULL, or what is wrong
  */
  const char *check()
  {
    for (uint i= 0; i < n_shards; i++)
    {
      shards[i].lock();
      const char *wrong= check(i);
      shards[i].unlock();
      if (wrong)
        return wrong;
    }
    return NULL;
  }

private:
  const char *check(uint i)
  {
    Shard &shard= shards[i];
    ulonglong stamp= 0;
    size_t in_lru= 0, in_slots= 0;

    typename Lru_list::Iterator it(shard.lru);
    while (Object *object= it++)
    {
      if (A::user(object))
        return "an object in an LRU list has a user";
      if (IF_DBUG(A::place(object) != i, false))
        return "an object in an LRU list belongs to another shard";
      if (A::stamp(object) < stamp)
        return "an LRU list is not sorted";
      stamp= A::stamp(object);
      if (!(A::share(object)->hints & (1ULL << i)))
        return "a hint is clear though there is a free object";
      in_lru++;
    }
    if (stamp > shard.last_stamp)
      return "a stamp is later than the last release";
    if (in_lru && shard.oldest > A::stamp(shard.lru.front()))
      return "a shard publishes more than the stamp of its oldest object";

    for (Block *block= shard.blocks; block; block= block->next)
    {
      for (uint j= 0; j < block->used; j++)
      {
        Slot *slot= &block->slots[j];
        uint in_slot= 0;
        typename Free_list::Iterator slot_it(slot->free);
        while (Object *object= slot_it++)
        {
          if (A::user(object))
            return "an object in a share's free list has a user";
          if (IF_DBUG(A::place(object) != i, false))
            return "an object in a share's free list is of another shard";
          if (A::share(object)->slots[i].load() != slot)
            return "an object is in the free list of another share";
          in_slot++;
        }
        if (in_slot != slot->elements())
          return "a free list has another length than it says";
        in_slots+= in_slot;
      }
    }
    /*
      All objects in the LRU list have a share with a slot here, those in
      slots are in the LRU list if the numbers agree: an object has one pair
      of links for each list.
    */
    return in_slots == in_lru ? NULL :
           "an object is in only one of the two lists of a shard";
  }
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
