#ifndef TABLE_CACHE_CORE_INCLUDED
#define TABLE_CACHE_CORE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The core of the table cache: shards, free lists, the order of eviction and
  the count. The core knows objects and the shares that own them, and nothing
  else: no THD, no engine, no file. table_cache.cc makes it a cache of TABLEs,
  unittest/sql/table_cache-t.cc tests it by itself.

  In short: free objects lie in shards. A thread releases an object to the shard
  of its CPU, and acquires the next one from there. One word in the share says
  which shards may have a free object of the share. A release stamps the object
  with the time, so evict() finds the object that was released longest ago on
  the whole server. The usual hit writes no cache line that all CPUs write.

  Objects
  -------
  An object belongs to one share for life. From add() on it is counted, and it
  is in exactly one of two states:

  - used: it has a user (TABLE::in_use), and it is in no list of the core;
  - free: it has no user, and it is in two lists of one shard: the list of its
    share's free objects there (a Slot) and one of the shard's two LRU lists.

           add()      -----> used -- release() --> free
                              ^ ^                  | | |
                              | '--- acquire() ----' | |
     to be closed:            '---- evict() ---------' '-- purge() --> none
     forget() or release()

  The caller closes an object after the object has left the count and the lists.
  The caller holds no lock then.

  Shards
  ------
  A thread releases an object to the shard of the CPU on which it runs. It
  acquires the object of the share that was released there last: that object is
  the warmest one in this CPU's cache. The thread may move to another CPU at any
  moment. That costs warmth, never correctness: a shard is a place, and each
  place has its own mutex. lock_own() and lock_any() say what a thread does if
  another thread holds that mutex.

  Hints
  -----
  A share has a word with one bit for each shard; see Table_cache_hints. A
  thread changes the bit of a shard only while it holds that shard's mutex.
  Whenever that mutex is free,

      bit clear  =>  the share has no free object in this shard.

  acquire() gives up only after it has read the whole word as zero in one load.
  At that moment no shard had a free object of this share. So a miss never
  happens while an object is free somewhere, and a miss locks nothing.

  A thread that empties a slot clears the bit, with one exception: a thread that
  takes the last object from the shard of its own CPU leaves the bit set. It
  will bring the object back soon, so the usual pair of acquire and release
  reads the word and never writes it. Such a bit is stale until then. A thread
  that follows a stale bit and finds nothing clears it.

  So each of these takes two mutexes:

  1. a hit in the shard of the thread's CPU (acquire, release);
  2. a hit in another shard (acquire, release);
  3. a miss (evict, release).

  Order
  -----
  Every release stamps the object. The clock of the stamps is one that all CPUs
  share (the time stamp counter, where there is one). Each LRU list of a shard
  is in the order of its stamps.

  Each shard publishes a bound: the stamp of its oldest object, or a lower stamp
  whose object a thread has acquired since, or NONE. acquire() never writes a
  bound. release() writes it only if it is higher than the object's stamp; it is
  mostly NONE then. evict() reads all bounds and locks the shard with the lowest
  one:

  1. If that bound is the stamp of the shard's oldest object, this is the object
     released longest ago on the whole server.
  2. Otherwise evict() raises the bound to the stamp of the shard's oldest
     object, and looks again.

  The thread that releases an object says where it joins the order:

  1. NEWEST: the object was used. It goes to the back of the list "lru". Its
     stamp is the clock, with the two highest bits set.
  2. EVICT_FIRST: the object goes to the back of the list "first". Its stamp is
     the clock with both bits clear, so it is lower than all stamps in "lru". A
     shard's oldest object is the front of "first", or the front of "lru" if
     "first" is empty, so the bounds order both lists of all shards. Objects
     in "first" are evicted in the order of their release, too: a user who uses
     nothing but these has an LRU cache like everybody else.
  3. OLDEST: the object was opened ahead, for users who are still to come. It
     goes to the front of "lru". Its stamp has the highest bit set and the
     second highest clear, and counts down: it is lower than the stamp of each
     object that was released as OLDEST before, and lower than the stamp of
     each object that was used. So of the objects opened ahead the last is
     evicted first, and all of them before any object that somebody has used.

  The count
  ---------
  "count" is the number of objects, used and free. add() raises it, and
  release() only reads it. After each of them, the caller evicts one object if
  the limit is exceeded. So no statement pays for more than it did itself. A
  thread that lowers the limit evicts until the limit is kept. Once all threads
  are at rest,

      count <= limit, or no object is free,

  because of this invariant: of the number of free objects and the number of
  objects beyond the limit, the lesser is not more than the number of evictions
  that threads still have to do.

  1. add() raises the second number by one, and owes one eviction.
  2. release() raises the first by one, and owes one eviction if the second is
     not zero.
  3. An eviction lowers both by one, and pays one debt.
  4. evict() gives up if it reads that the limit is kept.
  5. evict() gives up if it has read all bounds as NONE and the count has not
     fallen meanwhile. Each shard was empty when evict() read its bound, so a
     later release() brought every object that is free now. That release()
     stores a bound before it reads the count. evict() reads the bound after the
     count was raised or the limit lowered. All of this is sequentially
     consistent. So that release() saw that the limit was exceeded, and owes an
     eviction. It may have paid already, with an object from a shard whose bound
     evict() had not read yet. Then the count has fallen, and evict() looks
     again, unless an add() has raised the count again; that add() owes an
     eviction, too.

  An object leaves the count together with the lists, under the shard's mutex,
  so the count is never less than the number of objects.

  Flush
  -----
  The owner of a share marks it as flushed and then calls purge(), which takes
  the mutex of every shard. release() reads the mark under its shard's mutex.
  So either purge() finds the object, or release() sees the mark and returns
  TO_BE_CLOSED, and its caller closes the object.

  Locks
  -----
  A thread never holds the mutexes of two shards. It may take a shard's mutex
  while it holds the owner's mutex of a share, not the other way round.
*/

#include "my_global.h"
#include "my_sys.h"
#include "my_cpu.h"
#include "mysql/psi/mysql_thread.h"
#include "sql_plist.h"
#include "table_cache_machine.h"
#include <atomic>
#include <new>


/**
  In which shards a share may have free objects.

  The bit of a shard is written only by a thread that holds the shard's mutex.
  Any thread reads the word at any time.
*/

class Table_cache_hints
{
  std::atomic<ulonglong> word;
  static ulonglong bit(uint shard) { return 1ULL << shard; }

public:
  /** The most shards: the word has one bit for each. */
  static constexpr uint MAX= 64;

  void init() { word.store(0, std::memory_order_relaxed); }

  /** All bits, as they were at one moment. */
  ulonglong read() const { return word.load(std::memory_order_acquire); }

  static bool has(ulonglong hints, uint shard) { return hints & bit(shard); }
  /** Clear a bit in the caller's copy of the word: the caller was there. */
  static void forget(ulonglong *hints, uint shard) { *hints&= ~bit(shard); }

  /** The share has got a free object in this shard. */
  void set(uint shard)
  {
    if (!(word.load(std::memory_order_relaxed) & bit(shard)))
      word.fetch_or(bit(shard), std::memory_order_release);
  }

  /** The share has no free object in this shard. */
  void clear(uint shard)
  {
    if (word.load(std::memory_order_relaxed) & bit(shard))
      word.fetch_and(~bit(shard), std::memory_order_release);
  }
};


/**
  A share's part in the cache. Reserve share_size() bytes for it.

  The first release of one of the share's objects to a shard makes the slot, no
  earlier: most CPUs never use most shares. The shard cuts its slots from blocks
  of its own, so CPUs of different shards do not write to the same cache line.
*/

template <class Object, class Links> struct Table_cache_share
{
  typedef I_P_List<Object, Links> Free_list;

  /** The share in one shard. Threads that hold the shard's mutex write it. */
  struct Slot
  {
    /** Needs the shard's mutex. Front: released last. */
    Free_list free;
    /**
      Objects acquired here in this life of the share, and the clock of the
      last release, 0 if there was none. reset_share() writes them, too: the
      share has no object then, so no other thread writes them. Any thread reads
      them.
    */
    std::atomic<ulonglong> hits, last_release;
    /** Objects that joined and left the list, ever. Any thread reads them. */
    std::atomic<uint32> joined, left;

    /**
      Number of free objects. It is exact if the caller holds the shard's mutex.
      Otherwise changes by other threads may make it wrong, but it is not
      negative.
    */
    uint32 elements() const
    {
      uint32 n= joined.load(std::memory_order_relaxed) -
                left.load(std::memory_order_relaxed);
      return (int32) n < 0 ? 0 : n;
    }

    /** Add one, with the shard's mutex: no atomic addition is needed. */
    template <class T> static void count(std::atomic<T> &counter)
    {
      counter.store(counter.load(std::memory_order_relaxed) + 1,
                    std::memory_order_relaxed);
    }
  };

  Table_cache_hints hints;
  /**
    One for each shard, NULL at first. A thread sets it once, under the shard's
    mutex; then it stays.
  */
  std::atomic<Slot*> slots[1];
};


/**
  The cache, for objects as described by A:

    A::Object, A::User         the cached objects, and their users
    A::Share_links             I_P_List adapter: links of the list in a Slot
    A::Lru_links               I_P_List adapter: links of a shard's LRU list
    A::share(Object*)          the share's part in this cache
    A::stamp(const Object*), A::set_stamp(Object*, ulonglong)
                               the stamp of a free object
    A::place(Object*)          a place for the shard of a free object, for
                               check() in debug builds only
    A::user(Object*)           the user, NULL if the object is free
    A::set_user(Object*, User*)
    A::cpu(), A::now(), A::locked(), A::has_read_bound()
                               see Table_cache_machine

  A limit is an object that converts to ulong. Each conversion is a load with
  sequentially consistent order; see "The count".
*/

template <class A> class Table_cache_core
{
public:
  typedef typename A::Object Object;
  typedef typename A::User User;

  static constexpr uint MAX_SHARDS= Table_cache_hints::MAX;
  static constexpr uint MAX_CPUS= Table_cache_machine::MAX_CPUS;

  typedef Table_cache_share<Object, typename A::Share_links> Share;
  typedef typename Share::Slot Slot;
  typedef typename Share::Free_list Free_list;
  typedef I_P_List<Object, typename A::Lru_links, I_P_List_null_counter,
                   I_P_List_fast_push_back<Object> > Lru_list;

  /** Where a released object joins the order of eviction. */
  enum Order
  {
    NEWEST,                             /**< a user has used it */
    OLDEST,                             /**< no user has used it yet */
    EVICT_FIRST                         /**< before all others */
  };

  /** The result of release(). */
  enum Released
  {
    IS_FREE,                            /**< cached; no longer the caller's */
    IS_FREE_OVER_LIMIT,                 /**< cached; the caller must evict() */
    TO_BE_CLOSED                        /**< not cached; the caller closes it */
  };

private:
  /** Set in the stamp of each object but those released as EVICT_FIRST. */
  static constexpr ulonglong ORDINARY= 1ULL << 63;
  /** Set in the stamp of each of these but those released as OLDEST. */
  static constexpr ulonglong WAS_USED= 1ULL << 62;
  /** The bound of a shard without free objects. */
  static constexpr ulonglong NONE= ~0ULL;

  struct Block
  {
    static constexpr uint SLOTS= 100;
    Block *next;
    uint used;
    Slot slots[SLOTS];
  };

  /** All methods but lock() and trylock() need the mutex. */
  struct alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) Shard
  {
    /** Protects the whole shard, and what the @file comment says. */
    mysql_mutex_t mutex;
    /**
      All free objects of the shard: those released as EVICT_FIRST, and the
      others, which are evicted if "first" is empty. Front: the next to be
      evicted.
    */
    Lru_list first, lru;
    /** Clock of the last release: its stamp without the two highest bits. */
    ulonglong last_stamp;
    /** Objects acquired by threads of other shards. */
    ulonglong remote_hits;
    /** Objects evicted. */
    ulonglong evictions;
    /** Its index in shards, and its bit in hints. Never changes. */
    uint number;
    /** Memory for slots. */
    Block *blocks;
    /**
      The shard's bound, an element of Table_cache_core::bounds. A thread holds
      the mutex to write it. Threads that evict read it without the mutex.
    */
    std::atomic<ulonglong> *bound;

    void lock() { mysql_mutex_lock(&mutex); A::locked(); }
    /** @return true if locked */
    bool trylock()
    {
      if (mysql_mutex_trylock(&mutex))
        return false;
      A::locked();
      return true;
    }
    void unlock() { mysql_mutex_unlock(&mutex); }

    Slot *slot(Share *share) const
    { return share->slots[number].load(std::memory_order_relaxed); }

    /** Take an object of this share, for a thread of this shard's CPU. */
    Object *take(Share *share, User *user)
    {
      Slot *s= slot(share);
      if (Object *object= s ? s->free.pop_front() : NULL)
      {
        taken(s, object, user);
        return object;
      }
      share->hints.clear(number);
      return NULL;
    }

    /** Take an object of this share, for a thread of another shard's CPU. */
    Object *take_remote(Share *share, User *user)
    {
      Slot *s= slot(share);
      Object *object= s ? s->free.pop_front() : NULL;
      if (object)
      {
        taken(s, object, user);
        remote_hits++;
      }
      if (!s || s->free.is_empty())
        share->hints.clear(number);
      return object;
    }

    /** Evict the oldest object: it leaves both lists. */
    Object *take_oldest(User *user)
    {
      Object *object= oldest();
      Share *share= A::share(object);
      Slot *s= slot(share);
      assert_free(object);
      lru_of(object).remove(object);
      s->free.remove(object);
      Slot::count(s->left);
      if (s->free.is_empty())
        share->hints.clear(number);
      raise_bound();
      A::set_user(object, user);
      evictions++;
      return object;
    }

    /** Take all objects of this share out of both lists, and of the cache. */
    uint take_all(Share *share, Free_list *out)
    {
      uint n= 0;
      if (Slot *s= slot(share))
      {
        while (Object *object= s->free.pop_front())
        {
          lru_of(object).remove(object);
          Slot::count(s->left);
          out->push_front(object);
          n++;
        }
      }
      share->hints.clear(number);
      return n;
    }

    /**
      Put an object into both lists. Only a release as NEWEST counts as a use of
      the share.

      @param below  the next stamp of an object released as OLDEST; counts down
    */
    void put(Object *object, Share *share, Slot *s, ulonglong now, Order order,
             std::atomic<ulonglong> *below)
    {
      /*
        The clocks of two CPUs may differ a little, and another CPU may have
        released to this shard before. That must not turn the order round
        within the shard.
      */
      if (now <= last_stamp)
        now= last_stamp + 1;
      last_stamp= now;
      DBUG_ASSERT(!(now & (ORDINARY | WAS_USED)));
      Slot::count(s->joined);
      A::set_user(object, NULL);
      IF_DBUG(A::place(object)= number,);
      s->free.push_front(object);
      if (likely(order == NEWEST))
      {
        s->last_release.store(now, std::memory_order_relaxed);
        now|= ORDINARY | WAS_USED;
      }
      else if (order == OLDEST)
        now= below->fetch_sub(1, std::memory_order_relaxed);
      A::set_stamp(object, now);
      if (unlikely(order == OLDEST))
        lru.push_front(object);
      else
        lru_of(object).push_back(object);
      /* This object is the oldest, or the only one: else the bound is lower. */
      if (unlikely(bound->load(std::memory_order_relaxed) > now))
        bound->store(now);
      share->hints.set(number);
    }

    /**
      Set the bound to the stamp of the oldest object again.

      @return that stamp, NONE if there is none
    */
    ulonglong raise_bound()
    {
      const Object *object= oldest();
      ulonglong stamp= object ? A::stamp(object) : NONE;
      if (bound->load(std::memory_order_relaxed) != stamp)
        bound->store(stamp, std::memory_order_release);
      return stamp;
    }

    /** Make the slot of a share that has none. @return NULL if out of memory */
    Slot *make_slot(Share *share)
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
      Slot *s= new (&blocks->slots[blocks->used++]) Slot;
      s->free.empty();
      s->hits.store(0, std::memory_order_relaxed);
      s->last_release.store(0, std::memory_order_relaxed);
      s->joined.store(0, std::memory_order_relaxed);
      s->left.store(0, std::memory_order_relaxed);
      share->slots[number].store(s, std::memory_order_release);
      return s;
    }

  private:
    /** The object to evict next, NULL if none is free. */
    Object *oldest()
    { return unlikely(!first.is_empty()) ? first.front() : lru.front(); }

    /** The LRU list of a free object. */
    Lru_list &lru_of(const Object *object)
    { return likely(A::stamp(object) & ORDINARY) ? lru : first; }

    void assert_free(Object *object __attribute__((unused))) const
    {
      DBUG_ASSERT(A::place(object) == number);
      DBUG_ASSERT(!A::user(object));
    }

    /** Give an object that has left its slot to its user. */
    void taken(Slot *s, Object *object, User *user)
    {
      assert_free(object);
      lru_of(object).remove(object);
      A::set_user(object, user);
      Slot::count(s->hits);
      Slot::count(s->left);
    }
  };

  /** Unlocks a shard, which the caller has locked, at the end of a block. */
  class Guard
  {
    Shard &shard;
  public:
    explicit Guard(Shard &s): shard(s) {}
    ~Guard() { shard.unlock(); }
    Guard(const Guard &)= delete;
    void operator=(const Guard &)= delete;
  };

  /** Read by everybody, written by init(). */
  Shard *shards;
  /**
    A bound for each shard. They are apart from the shards, whose cache lines
    every release writes, and close together, because evict() reads them all.
  */
  std::atomic<ulonglong> *bounds;
  uint n_shards;
  bool one_cpu_each;
  void *memory;
  Shard *shard_of_cpu[MAX_CPUS];
  /** The stamp of the next object that is released as OLDEST. */
  std::atomic<ulonglong> below;

  /** Number of objects. Opening and closing write it: it has its own line. */
  alignas(2 * CPU_LEVEL1_DCACHE_LINESIZE) std::atomic<ulong> count;
  char pad[2 * CPU_LEVEL1_DCACHE_LINESIZE - sizeof(std::atomic<ulong>)];


  /** The shard of this CPU. */
  Shard &current() const { return *shard_of_cpu[A::cpu() % MAX_CPUS]; }

  uint next(uint i) const { return i + 1 == n_shards ? 0 : i + 1; }

  /*
    What a thread does if another thread holds the mutex of its shard
    -----------------------------------------------------------------
    1. A shard serves several CPUs. The holder runs on one of the others and is
       about to be done. So the thread waits for it, and the mutex spins first.
    2. Each CPU has a shard of its own. The holder of this CPU's shard has most
       likely been preempted, and runs again only after the threads that the
       scheduler puts before it. So the thread uses any other shard that is not
       busy, and waits only if all are busy. The holder of another CPU's shard
       is running, as in case 1: its mutex is worth spinning for.
  */

  /** Lock the shard of this CPU. @return false if another one should be tried */
  bool lock_own(Shard &own) const
  {
    if (likely(own.trylock()))
      return true;
    if (one_cpu_each && n_shards > 1)
      return false;
    own.lock();
    return true;
  }

  /** Lock the shard of this CPU, or another one if that is busy. */
  Shard &lock_any() const
  {
    Shard &own= current();
    return likely(lock_own(own)) ? own : lock_any_other(own);
  }

  ATTRIBUTE_NOINLINE Shard &lock_any_other(Shard &own) const
  {
    for (uint i= next(own.number); i != own.number; i= next(i))
    {
      if (shards[i].trylock())
        return shards[i];
    }
    own.lock();
    return own;
  }


  /** Count one object less, unless the limit is not exceeded. */
  template <class Limit> bool uncount_one_over(const Limit &limit)
  {
    ulong n= count.load();
    do
    {
      if (n <= limit)
        return false;
    } while (!count.compare_exchange_weak(n, n - 1));
    return true;
  }


  template <class F> ulonglong sum(F part)
  {
    ulonglong total= 0;
    for (uint i= 0; i < n_shards; i++)
    {
      shards[i].lock();
      Guard guard(shards[i]);
      total+= part(shards[i]);
    }
    return total;
  }

public:
  /**
    Make an empty cache.

    @param shards_arg        number of shards, 1 to MAX_SHARDS
    @param map               shard of each of MAX_CPUS CPUs
    @param one_cpu_each_arg  no two CPUs that exist have the same shard
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
    below= ORDINARY | (WAS_USED - 1);
    /* The bounds fill whole cache lines of their own behind the shards. */
    const size_t bounds_size= MY_ALIGN(n_shards * sizeof(*bounds),
                                       alignof(Shard));
    if (!(memory= my_malloc(PSI_NOT_INSTRUMENTED, n_shards * sizeof(Shard) +
                            bounds_size + alignof(Shard), MYF(MY_WME))))
      return true;
    shards= reinterpret_cast<Shard*>
      (MY_ALIGN(reinterpret_cast<size_t>(memory), alignof(Shard)));
    bounds= reinterpret_cast<std::atomic<ulonglong>*>(shards + n_shards);
    for (uint i= 0; i < n_shards; i++)
    {
      Shard *shard= new (&shards[i]) Shard;
      mysql_mutex_init(key, &shard->mutex, MY_MUTEX_INIT_FAST);
      shard->last_stamp= shard->remote_hits= shard->evictions= 0;
      shard->blocks= NULL;
      shard->number= i;
      shard->bound= new (&bounds[i]) std::atomic<ulonglong>(NONE);
    }
    for (uint i= 0; i < MAX_CPUS; i++)
      shard_of_cpu[i]= &shards[map[i]];
    return false;
  }


  /** Free an empty cache. No thread may use shares any more. */
  void destroy()
  {
    DBUG_ASSERT(count == 0);
    for (uint i= 0; i < n_shards; i++)
    {
      DBUG_ASSERT(shards[i].first.is_empty());
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

  /** Initialize a share, whose memory has been allocated. */
  void init_share(Share *share) const
  {
    share->hints.init();
    for (uint i= 0; i < n_shards; i++)
      share->slots[i].store(NULL, std::memory_order_relaxed);
  }

  /**
    Begin a new life of a share, which has no object. Its slots remain.

    Locks nothing: while there is no object, only readers of the counters use
    the slots.
  */
  void reset_share(Share *share)
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (Slot *slot= share->slots[i].load(std::memory_order_acquire))
      {
        slot->hits.store(0, std::memory_order_relaxed);
        slot->last_release.store(0, std::memory_order_relaxed);
      }
    }
  }

  /**
    Call f(const Slot &) for each slot of a share. The caller need not hold the
    shard's mutex: f may read the counters only.
  */
  template <class F> void read_slots(Share *share, F f) const
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (Slot *slot= share->slots[i].load(std::memory_order_acquire))
        f(*slot);
    }
  }

  /** The same, with the mutex of the slot's shard held. For debugging. */
  template <class F> void each_slot(Share *share, F f)
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (Slot *slot= share->slots[i].load(std::memory_order_acquire))
      {
        shards[i].lock();
        Guard guard(shards[i]);
        f(*slot);
      }
    }
  }


  /**
    Count a new object, which has a user.

    If the limit is exceeded then, the caller must evict() once.

    @return number of objects before
  */
  ulong add() { return count.fetch_add(1); }


  /** Count an object no more: it is in use, and the caller will close it. */
  void forget()
  {
    ulong before __attribute__((unused))= count.fetch_sub(1);
    DBUG_ASSERT(before);
  }


  /**
    Get a free object of a share, and make it used.

    @pre The memory of the share cannot go away.

    @return NULL if at one moment during the call the share had none
  */
  Object *acquire(Share *share, User *user)
  {
    Shard &own= current();
    const ulonglong hints= share->hints.read();
    if (likely(Table_cache_hints::has(hints, own.number)) && lock_own(own))
    {
      Guard guard(own);
      if (Object *object= own.take(share, user))
        return object;
    }
    else if (!hints)
      return NULL;
    return acquire_anywhere(share, user, own);
  }

private:
  /**
    Get a free object of a share from one of the shards that have a hint.

    Goes round twice for each reading of the hints. The first time it passes by
    the shards that are busy, the second time it waits for them.
  */
  ATTRIBUTE_NOINLINE Object *acquire_anywhere(Share *share, User *user,
                                              Shard &own)
  {
    while (ulonglong hints= share->hints.read())
    {
      for (bool wait : { false, true })
      {
        uint i= own.number;
        do
        {
          Shard &shard= shards[i];
          if (!Table_cache_hints::has(hints, i))
            continue;
          if (wait)
            shard.lock();
          else if (!shard.trylock())
            continue;
          Guard guard(shard);
          Object *object= &shard == &own ? shard.take(share, user) :
                                           shard.take_remote(share, user);
          if (object)
            return object;
          Table_cache_hints::forget(&hints, i);
        } while ((i= next(i)) != own.number);
      }
    }
    return NULL;
  }

public:
  /** Had the object been EVICT_FIRST, before the caller acquired it? */
  static bool was_evict_first(Object *object)
  { return !(A::stamp(object) & ORDINARY); }

  /**
    Is there a free object that was released as EVICT_FIRST? Then evict() takes
    that one.

    Locks nothing, and reads one number for each shard. The answer is a guess: a
    thread may have acquired the object of a bound since.
  */
  bool has_evict_first() const
  {
    for (uint i= 0; i < n_shards; i++)
    {
      if (bounds[i].load(std::memory_order_relaxed) < ORDINARY)
        return true;
    }
    return false;
  }


  /**
    Give back an object.

    @param object   the caller uses it
    @param order    when it is to be evicted
    @param flushed  mark of the share, see "Flush"
    @param limit    how many objects may be cached; may change meanwhile

    Unless the result is TO_BE_CLOSED, another thread may have acquired or
    evicted the object when this returns. If the result is IS_FREE_OVER_LIMIT,
    the caller must evict() once.
  */
  template <class Mark, class Limit>
  Released release(Object *object, Order order, const Mark &flushed,
                   const Limit &limit)
  {
    Share *share= A::share(object);
    {
      Shard &shard= lock_any();
      Guard guard(shard);
      Slot *slot= shard.slot(share);
      if (likely(!flushed) &&
          (likely(slot != NULL) || (slot= shard.make_slot(share))))
      {
        shard.put(object, share, slot, A::now(), order, &below);
        share= NULL;
      }
    }
    if (unlikely(share != NULL))
    {
      forget();
      return TO_BE_CLOSED;
    }
    /*
      put() stores a bound before this reads the count. That order settles
      whether another thread that evicts has seen our object, so no mutex is
      needed; see "The count".
    */
    return count.load() > limit ? IS_FREE_OVER_LIMIT : IS_FREE;
  }


  /**
    Take the object that was released longest ago, if the limit is exceeded.

    The object has the caller as its user, and is not counted any more. The
    caller closes it. Reads the bounds of all shards. Locks one shard, and one
    more for each bound that is too low.

    @return NULL if the limit is not exceeded, or no object is free
  */
  template <class Limit> Object *evict(User *user, const Limit &limit)
  {
    /*
      A bound may be too low, and another thread may acquire the oldest object
      after we have read its bound and before we have locked its shard. Then
      look again. In each of these rounds other threads got what they wanted.
      After some of them, the oldest object of a shard will do.
    */
    for (uint tries= 3 * n_shards; ; )
    {
      const ulong before= count.load();
      if (before <= limit)
        return NULL;
      ulonglong least= NONE, second= NONE;
      uint where= 0;
      for (uint i= 0; i < n_shards; i++)
      {
        ulonglong stamp= bounds[i].load();
        A::has_read_bound(i);
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
      {
        /* A thread that evicted since may have left us one; see "The count" */
        if (count.load() < before)
          continue;
        return NULL;
      }

      Shard &shard= shards[where];
      shard.lock();
      Guard guard(shard);
      least= shard.raise_bound();
      if (least != NONE && (least <= second || !tries))
        return uncount_one_over(limit) ? shard.take_oldest(user) : NULL;
      if (tries)
        tries--;
    }
  }


  /**
    Remove all free objects of a share.

    @param flushed   true: the mark that release() reads has been set, so go to
                     every shard. false: go only to shards that have a hint.
    @param[out] out  where to put them. They have no user and are not counted.
  */
  void purge(Share *share, bool flushed, Free_list *out)
  {
    const ulonglong hints= share->hints.read();
    for (uint i= 0; i < n_shards; i++)
    {
      if (!flushed && !Table_cache_hints::has(hints, i))
        continue;
      shards[i].lock();
      Guard guard(shards[i]);
      if (uint n= shards[i].take_all(share, out))
        count.fetch_sub(n);
    }
  }


  /**
    Verify what must hold whenever a shard's mutex is free.

    1. Every free object is in the LRU list of one shard that its stamp says,
       and in the slot of its share there. It has no user, and it knows its
       place.
    2. Slots and LRU lists hold the same number of objects.
    3. The hint of a share with free objects is set.
    4. The stamps ascend, and the bound is not more than the least one.

    The function locks one shard at a time, and walks all its lists. For
    debugging and tests.

    @return NULL, or what is wrong
  */
  const char *check()
  {
    for (uint i= 0; i < n_shards; i++)
    {
      shards[i].lock();
      Guard guard(shards[i]);
      if (const char *wrong= check(shards[i]))
        return wrong;
    }
    return NULL;
  }

private:
  const char *check(Shard &shard)
  {
    ulonglong least= NONE;
    size_t in_lru= 0, in_slots= 0;

    for (Lru_list *list : { &shard.lru, &shard.first })
    {
      ulonglong stamp= 0;
      typename Lru_list::Iterator it(*list);
      while (Object *object= it++)
      {
        if (A::user(object))
          return "an object in an LRU list has a user";
        if (IF_DBUG(A::place(object) != shard.number, false))
          return "an object in an LRU list belongs to another shard";
        if (!(A::stamp(object) & ORDINARY) != (list == &shard.first))
          return "an object is in the other LRU list of its shard";
        if (A::stamp(object) < stamp)
          return "an LRU list is not sorted";
        stamp= A::stamp(object);
        set_if_smaller(least, stamp);
        if (!Table_cache_hints::has(A::share(object)->hints.read(),
                                    shard.number))
          return "a hint is clear though there is a free object";
        in_lru++;
      }
      if (stamp > (list == &shard.lru ? ORDINARY | WAS_USED : 0) +
                  shard.last_stamp)
        return "a stamp is later than the last release";
    }
    if (*shard.bound > least)
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
          if (IF_DBUG(A::place(object) != shard.number, false))
            return "an object in a share's free list is of another shard";
          if (shard.slot(A::share(object)) != slot)
            return "an object is in the free list of another share";
          in_slot++;
        }
        if (in_slot != slot->elements())
          return "a free list has another length than it says";
        in_slots+= in_slot;
      }
    }
    /*
      The share of each object in the LRU lists has a slot here. If the numbers
      agree, each object in a slot is in an LRU list: an object has one pair of
      links for its slot, and one for its LRU list.
    */
    return in_slots == in_lru ? NULL :
           "an object is in only one of the two lists of a shard";
  }
};

#endif /* TABLE_CACHE_CORE_INCLUDED */
