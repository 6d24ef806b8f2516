#ifndef TABLE_CACHE_SLOT_INCLUDED
#define TABLE_CACHE_SLOT_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The free objects of a share, in one list (slot) for each place. Place 0 is the
  home. Each other place is 1 + the number of a shard. A shard is a group of
  CPUs.

  1. A share that has one object keeps it at home. CPUs that use it in turn
     share three cache lines: those of the home, of the object and of its user.
  2. A share that has several objects keeps each in the place of the CPU that
     acquired it last, so each CPU writes to cache lines of its own.
  3. A share that has never had two objects has memory for its home only.
*/

#include "my_global.h"
#include "my_sys.h"
#include "my_cpu.h"
#include "sql_plist.h"
#include <aligned.h>
#include <atomic>
#include <new>
#include <thread>

/** A test defines this to count the locks that it takes. */
#ifndef TABLE_CACHE_LOCKED
#define TABLE_CACHE_LOCKED() do {} while (0)
#endif

/**
  A spin lock, held for about ten instructions. A mysql_mutex_t does not fit in
  the cache line of the data it protects.

  The holder may lose its CPU. So a waiting thread spins, then yields, and then
  sleeps: even one with real-time priority lets the holder run in the end. A
  thread that waits holds no mutex of the core.
*/

class Table_cache_lock
{
  std::atomic<uint32> locked;

  ATTRIBUTE_NOINLINE void wait()
  {
    for (uint tries= 0; !trylock(); tries++)
      pause(tries);
  }

  /** Is this lock not destroyed? */
  void assert_alive() const
  { DBUG_ASSERT(locked.load(std::memory_order_relaxed) <= 1); }

public:
  Table_cache_lock(): locked(0) {}
#ifndef DBUG_OFF
  ~Table_cache_lock() { locked= ~0U; }
#endif

  /** Wait after an attempt. @param tries  number of earlier attempts */
  static void pause(uint tries)
  {
    if (tries < 64)
      MY_RELAX_CPU();
    else if (tries < 128)
      std::this_thread::yield();
    else
      my_sleep(100);                            /* microseconds */
  }

  bool trylock()
  {
    assert_alive();
    if (locked.load(std::memory_order_relaxed) ||
        locked.exchange(1, std::memory_order_acquire))
      return false;
    TABLE_CACHE_LOCKED();
    return true;
  }
  void lock()
  {
    assert_alive();
    if (unlikely(locked.exchange(1, std::memory_order_acquire)))
      wait();
    else
      TABLE_CACHE_LOCKED();
  }
  void unlock() { locked.store(0, std::memory_order_release); }
  void assert_locked() const
  { DBUG_ASSERT(locked.load(std::memory_order_relaxed)); }
};


/**
  The cache's notes about an object. TABLE::instance has room for them.

  "place" names the object's slot: the slot that a free object is in, or the
  slot to which the user of a used object will release it. After add(), only the
  thread that acquires the object changes the place, while it holds the lock of
  the old slot. So a thread that reads the place, locks its slot and finds the
  place unchanged may rely on "free".
*/

struct Table_cache_state
{
  std::atomic<uchar> place;
  /** Is the object in the list of its slot? Needs the slot's lock. */
  bool free;
  /**
    0: in no list of the order of eviction; Table_cache_core::LINKED: in "ahead"
    or the queue; LINKED_FIRST: in "first". A thread that writes this holds the
    mutex of the order, and in addition either holds the slot's lock or is the
    object's user. To read it, a thread needs one of these three.
  */
  uchar linked;
  /** Belongs to the object's user, not to the core. Needs no lock. */
  uchar flags;
};


/** The free objects of a share in one place. */

template <class Object, class Links> struct Table_cache_slot
{
  typedef I_P_List<Object, Links> Free_list;

  Table_cache_lock lock;
  /** Length of "free". Written with the lock; any thread reads it. */
  std::atomic<uint32> elements;
  /** Needs the lock. Front: released last. */
  Free_list free;
  /**
    Number of hits in this place since the share was opened, and the time of the
    last release to it, 0 if there was none. Written with the lock; any thread
    reads them.
  */
  std::atomic<ulonglong> hits, last_release;

  Table_cache_slot(): elements(0), hits(0), last_release(0) {}

  /** Add to a counter that has a lock: no atomic addition is needed. */
  template <class T> static void add(std::atomic<T> &counter, int n)
  {
    counter.store(counter.load(std::memory_order_relaxed) + n,
                  std::memory_order_relaxed);
  }
};


/**
  A share's part in the cache: 64 bytes in one cache line. A line of 128 or 256
  bytes holds neighbours, too, but threads that want lines of their own use the
  lone slots.
*/

template <class Object, class Links>
struct alignas(64) Table_cache_share
{
  typedef Table_cache_slot<Object, Links> Slot;
  /** A slot of another place than the home has a cache line of its own. */
  struct alignas(CPU_LEVEL1_DCACHE_LINESIZE) Lone_slot: public Slot {};

  /**
    The places where the share may have free objects, one bit for each. The bit
    of a place changes only while a thread holds the lock of its slot. Whenever
    that lock is free,

        bit clear  =>  the share has no free object in this place.
  */
  std::atomic<ulonglong> hints;
  /**
    The slots of places 1 and up; NULL until the share has two objects. Needs no
    lock: the first thread that sets it wins. The slots stay until no thread can
    look for an object of the share: free_slots().
  */
  std::atomic<Lone_slot*> slots;
  /** Number of objects, used and free. Written with the mutex of the order. */
  std::atomic<uint32> objects;
  /** Place 0. */
  Slot home;

  Table_cache_share(): hints(0), slots(NULL), objects(0) {}
  ~Table_cache_share() { aligned_free(slots); }

  static ulonglong bit(uint place) { return 1ULL << place; }

  /** The share has got a free object in this place. */
  void set_hint(uint place)
  {
    if (!(hints.load(std::memory_order_relaxed) & bit(place)))
      hints.fetch_or(bit(place), std::memory_order_release);
  }

  /** The share has no free object in this place. */
  void clear_hint(uint place)
  {
    if (hints.load(std::memory_order_relaxed) & bit(place))
      hints.fetch_and(~bit(place), std::memory_order_release);
  }

  /**
    Make the slots of n places. If out of memory, the share keeps using only its
    home; the next thread that adds an object tries again.
  */
  ATTRIBUTE_NOINLINE void make_slots(uint n)
  {
    DBUG_EXECUTE_IF("tc_slots_out_of_memory", return;);
    Lone_slot *none= NULL, *array= static_cast<Lone_slot*>
      (aligned_malloc(n * sizeof(Lone_slot), CPU_LEVEL1_DCACHE_LINESIZE));
    for (uint i= 0; array && i < n; i++)
      new (array + i) Lone_slot;
    if (array && !slots.compare_exchange_strong(none, array))
      aligned_free(array);
  }

  /**
    Free the slots of n places.

    @pre The share has no object, and no other thread uses the share. A thread
    in acquire() uses the share, too: it may lock a slot that has no object.
  */
  void free_slots(uint n)
  {
    Lone_slot *array= slots.exchange(NULL, std::memory_order_relaxed);
    DBUG_ASSERT(!objects && home.free.is_empty());
    /* A hint may be set though there is no free object. */
    hints.store(0, std::memory_order_relaxed);
    for (uint i= 0; array && i < n; i++)
      array[i].~Lone_slot();
    aligned_free(array);
  }

  /** @pre The share has the slots, unless this is its home. */
  Slot *slot(uint place)
  {
    return likely(!place) ? &home :
           slots.load(std::memory_order_acquire) + place - 1;
  }
};

#endif /* TABLE_CACHE_SLOT_INCLUDED */
