/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Give the heap's free memory back to the system, in the background.

  glibc's free() returns only the free memory at the end of an arena. Between
  the memory of closed tables there are objects that the server keeps, so free()
  returns nothing of it.

  malloc_trim() returns each free page of each arena. It locks one arena after
  the other, and walks along the free blocks of that arena. A thread that
  allocates from this arena meanwhile waits. Pages that have not been returned
  yet cost 0.2 s a GiB, all others a tenth of that (2 GiB in one arena, measured
  alone). No function of glibc's says how much free memory an arena has without
  such a walk, so the server does not ask before it calls malloc_trim():

  1. A thread that exists only for that time, the trimmer, calls malloc_trim().
     A thread that has freed memory starts the trimmer, which takes some 50 us,
     and does not wait for it.
  2. For an administrator (FLUSH TABLES, SET GLOBAL table_open_cache) the trimmer
     begins at once, and again after each SLICE that the statement frees while it
     closes tables. So an arena is not locked for all of this memory at one time.
  3. For evictions that keep table_cache_memory the trimmer begins when these
     have freed FREED bytes, after a pause that is many times as long as the last
     trim: see pause_before_trim(). Other evictions do not start it, because the
     server uses their memory again.

  Other allocators than glibc's have their own ways. If one is preloaded,
  glibc's arenas are nearly empty, and malloc_trim() does nothing.
*/

#include "mysys_priv.h"
#include "my_return_memory.h"
#include <my_atomic.h>
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#include <malloc.h>
#define CAN_TRIM
#endif

/** The trimmer starts when evictions have freed so many bytes. */
#define FREED (1 << 20)

/** It starts when an administrator's statement has freed so many bytes. */
#define SLICE (64 << 20)

/** Least and longest pause before a trim for evictions, in microseconds. */
#define LEAST_PAUSE 1000000
#define MOST_PAUSE 5000000

/**
  For so many seconds after an administrator's request, memory that background
  threads free may be due to that request.
*/
#define GOES_ON 60

#ifdef CAN_TRIM

enum { IDLE, PAUSES, TRIMS, TRIMS_AND_AGAIN };

/** The state of the trimmer. IDLE: there is none. */
static int32 state;
/** How long the last trim took, in microseconds. Only the trimmer uses it. */
static ulonglong last_took;
/** Bytes that evictions have freed since the trimmer started last. */
static int64 freed;
/** Bytes that administrators' statements have freed since they last asked. */
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


/**
  Start the trimmer. The caller has set 'state' for it. If that fails, 'state' is
  IDLE again, and the memory stays with the process.
*/

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
    /* The trimmer may change 'state' between any two of these */
    if (change(PAUSES, TRIMS) || change(TRIMS, TRIMS_AND_AGAIN) ||
        my_atomic_load32(&state) == TRIMS_AND_AGAIN)
      break;
  }
#endif
}


/**
  Note that an administrator's statement has freed this many bytes, and goes on
  to close tables.
*/

void my_return_slice(size_t bytes __attribute__((unused)))
{
#ifdef CAN_TRIM
  if (my_atomic_add64_explicit(&slice, (int64) bytes, MY_MEMORY_ORDER_RELAXED) +
      (int64) bytes >= SLICE)
    my_return_memory();
#endif
}


/**
  Note that a background thread has freed memory, maybe because of an
  administrator's request.
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
