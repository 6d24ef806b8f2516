/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Give the heap's free memory back to the system, in the background.

  glibc returns only the free memory at the end of an arena. Objects that stay
  lie between what closed tables had, so nothing goes back.

  malloc_trim() gives back each free page of each arena. It walks along the free
  blocks of one arena after the other, with the arena locked; a thread that
  allocates from this arena meanwhile waits. Pages that are not back yet cost
  0.2 s a GiB, all others a tenth of that (2 GiB in one arena, measured alone). No
  function of glibc's says how much an arena has free without such a walk. So
  nothing asks before; instead

  - a thread of its own does it. It exists only for that time. A thread that has
    freed memory starts it, which takes some 50 us, and does not wait for it;
  - for an administrator (FLUSH TABLES, SET GLOBAL table_open_cache) it begins at
    once, and again for each SLICE that the statement frees while it closes
    tables. So an arena is not locked for all of this memory at one time;
  - for evictions that keep table_cache_memory it begins when these have
    freed FREED bytes, and so late that it takes 1 % of the time: see pause_before_trim().
    Other evictions do not start it: their memory is used again.

  Other allocators than glibc's have their own ways. If one is preloaded,
  glibc's arenas are next to empty, and this does nothing.
*/

#include "mysys_priv.h"
#include "my_return_memory.h"
#include <my_atomic.h>
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#include <malloc.h>
#define CAN_TRIM
#endif

/** After how many bytes that evictions have freed the thread starts. */
#define FREED (1 << 20)

/** After how many bytes that an administrator's statement has freed it starts. */
#define SLICE (64 << 20)

/** Microseconds before a trim for evictions. */
#define LEAST_PAUSE 1000000
#define MOST_PAUSE 5000000

/** Seconds for which what an administrator has asked for may go on. */
#define GOES_ON 60

#ifdef CAN_TRIM

enum { IDLE, PAUSES, TRIMS, TRIMS_AND_AGAIN };

/** The state of the thread. IDLE: there is no thread. */
static int32 state;
/** How long the last trim took, in microseconds. Only the thread uses it. */
static ulonglong last_took;
/** Bytes that evictions have freed since the thread started last. */
static int64 freed;
/** Bytes of an administrator's statements that no trim is for yet. */
static int64 slice;
/** When my_return_memory() was called last, in seconds. */
static int64 asked;


static void trim(void)
{
  ulonglong begin= my_interval_timer();
  malloc_trim(0);
  last_took= (my_interval_timer() - begin) / 1000;
}


/**
  Wait before a trim for evictions, so that trims take 1 % of the time, or 5 % if
  one takes long. An administrator's request ends the wait.
*/

static void pause_before_trim(void)
{
  static const ulong NAP= 100000;
  ulonglong left= MY_MIN(MY_MAX(100 * last_took, LEAST_PAUSE), MOST_PAUSE);
  for (; left && my_atomic_load32(&state) == PAUSES;
       left-= MY_MIN(left, NAP))
    my_sleep(NAP);
}


/** Change 'state' if it is 'from'. */

static my_bool change(int32 from, int32 to)
{
  return my_atomic_cas32(&state, &from, to);
}


static void *return_memory(void *arg __attribute__((unused)))
{
  pause_before_trim();
  (void) change(PAUSES, TRIMS);
  for (;;)
  {
    trim();
    if (change(TRIMS, IDLE))
      return NULL;
    my_atomic_store32(&state, TRIMS);
  }
}


/** Start the thread, which is in 'state' already. Nothing happens if it fails. */

static void start_thread(void)
{
  pthread_t thread;
  pthread_attr_t attr;
  my_atomic_store64_explicit(&freed, 0, MY_MEMORY_ORDER_RELAXED);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attr, return_memory, NULL))
    my_atomic_store32(&state, IDLE);
  pthread_attr_destroy(&attr);
}
#endif /* CAN_TRIM */


/** An administrator has caused tables to be closed: return free memory now. */

void my_return_memory(void)
{
#ifdef CAN_TRIM
  my_atomic_store64_explicit(&asked, (int64) time(NULL),
                             MY_MEMORY_ORDER_RELAXED);
  my_atomic_store64_explicit(&slice, 0, MY_MEMORY_ORDER_RELAXED);
  for (;;)
  {
    if (change(IDLE, TRIMS))
    {
      start_thread();
      break;
    }
    /* The thread may change 'state' between any two of these */
    if (change(PAUSES, TRIMS) || change(TRIMS, TRIMS_AND_AGAIN) ||
        my_atomic_load32(&state) == TRIMS_AND_AGAIN)
      break;
  }
#endif
}


/** Note that such a statement has freed this many bytes, and continues. */

void my_return_slice(size_t bytes __attribute__((unused)))
{
#ifdef CAN_TRIM
  if (my_atomic_add64_explicit(&slice, (int64) bytes, MY_MEMORY_ORDER_RELAXED) +
      (int64) bytes >= SLICE)
    my_return_memory();
#endif
}


/**
  Work that may be due to such a request continues in a background thread, and has
  freed memory.
*/

void my_return_more_memory(void)
{
#ifdef CAN_TRIM
  if ((int64) time(NULL) - my_atomic_load64_explicit(&asked,
                                                     MY_MEMORY_ORDER_RELAXED)
      < GOES_ON && change(IDLE, PAUSES))
    start_thread();
#endif
}


/** Note that evictions for table_cache_memory have freed this many bytes. */

void my_return_freed_memory(size_t bytes __attribute__((unused)))
{
#ifdef CAN_TRIM
  if (my_atomic_add64_explicit(&freed, (int64) bytes,
                               MY_MEMORY_ORDER_RELAXED) + (int64) bytes
      >= FREED && my_atomic_load32(&state) == IDLE && change(IDLE, PAUSES))
    start_thread();
#endif
}
