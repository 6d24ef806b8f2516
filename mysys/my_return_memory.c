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
  alone). glibc has no function that says how much free memory an arena has
  without such a walk. So the server calls malloc_trim() without asking:

  1. A thread that exists only for that time, the trimmer, calls malloc_trim().
     The thread that has freed memory starts the trimmer, in some 50 us, and
     does not wait for it.
  2. When an administrator's statement has closed tables (FLUSH TABLES, SET
     GLOBAL table_open_cache), the trimmer begins at once. While the statement
     still closes them, the trimmer also begins after each SLICE. So no trim
     locks an arena for all of this memory.
  3. A statement that holds nothing for which others wait calls malloc_trim()
     itself, once after each SLICE. Without this wait, it would free several
     slices during one trim, and the next trim would lock each arena for all of
     these. If another thread trims at that moment, the statement asks it to
     trim again, and does not wait.
  4. InnoDB's master task evicts definitions after such a statement. It also
     starts the trimmer after each SLICE.
  5. The trimmer pauses before it trims (see pause_before_trim()) in two cases:
     if the master task has freed less than a SLICE, and if evictions for
     table_cache_memory have freed FREED bytes. Other evictions do not start it,
     because the server uses their memory again.

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

/** A thread returns memory when an administrator's statement has freed so many
    bytes. */
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

/**
  IDLE: no thread trims. PAUSES: the trimmer waits before it does. TRIMS: one thread
  trims, or is about to: the trimmer, or a statement. TRIMS_AND_AGAIN: somebody has
  asked meanwhile, so that thread has to trim again.
*/
static int32 state;
/*
  Relaxed accesses to the next two, and to 'asked': they only say when to trim.
  'state' alone says which thread trims.
*/
/** How long the last trim took, in microseconds. */
static int64 last_took;
/** Bytes that evictions have freed since the trimmer started last. */
static int64 freed;
/**
  Bytes that administrators' statements have freed, and evictions after these, since
  the last trim began or was asked for.
*/
static int64 slice;
/** When note_administrator() ran last, in seconds. */
static int64 asked;


static void trim(void)
{
  ulonglong begin= my_interval_timer();
  my_atomic_store64(&slice, 0);
  malloc_trim(0);
  my_atomic_store64_explicit(&last_took,
                             (int64) (my_interval_timer() - begin) / 1000,
                             MY_MEMORY_ORDER_RELAXED);
}


/**
  Wait 100 times as long as the last trim, within LEAST_PAUSE and MOST_PAUSE. So
  trims over 50 ms take more than 1 % of the time. The wait ends if another
  thread trims.
*/

static void pause_before_trim(void)
{
  static const int64 NAP= 100000;
  int64 took= my_atomic_load64_explicit(&last_took, MY_MEMORY_ORDER_RELAXED);
  int64 left= MY_MIN(MY_MAX(100 * took, LEAST_PAUSE), MOST_PAUSE);
  for (; left > 0 && my_atomic_load32(&state) == PAUSES; left-= NAP)
    my_sleep((ulong) MY_MIN(left, NAP));
}


/** Change 'state' if it is 'from'. */

static my_bool change(int32 from, int32 to)
{
  return my_atomic_cas32(&state, &from, to);
}


/**
  Ask for a trim.

  @return TRUE if the caller has to trim, and 'state' is TRIMS for it; FALSE if
          another thread trims now: it will do so again
*/

static my_bool begin_trim(void)
{
  my_atomic_store64(&slice, 0);
  for (;;)
  {
    if (change(IDLE, TRIMS) || change(PAUSES, TRIMS))
      return TRUE;
    /* Another thread may change 'state' between any two of these */
    if (change(TRIMS, TRIMS_AND_AGAIN) ||
        my_atomic_load32(&state) == TRIMS_AND_AGAIN)
      return FALSE;
  }
}


/**
  The trimmer.

  @param pauses  not NULL: 'state' is PAUSES. NULL: it is TRIMS for this thread
*/

static void *run_trimmer(void *pauses)
{
  for (;;)
  {
    if (pauses)
    {
      pause_before_trim();
      if (!change(PAUSES, TRIMS))
        return NULL;                            /* Another thread trims instead */
    }
    trim();
    pauses= NULL;
    if (!change(TRIMS, IDLE))
      my_atomic_store32(&state, TRIMS);         /* It was TRIMS_AND_AGAIN */
    else if (my_atomic_load64(&slice) && change(IDLE, PAUSES))
      pauses= &state;                           /* Freed during the trim */
    else
      return NULL;
  }
}


/**
  Start the trimmer. The caller has set 'state' for it, to PAUSES or TRIMS. If that
  fails, the memory stays with the process.
*/

static void start_trimmer(my_bool pauses)
{
  pthread_t thread;
  pthread_attr_t attr;
  my_atomic_store64_explicit(&freed, 0, MY_MEMORY_ORDER_RELAXED);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attr, run_trimmer, pauses ? &state : NULL))
  {
    if (pauses)
      (void) change(PAUSES, IDLE);
    else
      my_atomic_store32(&state, IDLE);
  }
  pthread_attr_destroy(&attr);
}


static void note_administrator(void)
{
  my_atomic_store64_explicit(&asked, (int64) time(NULL),
                             MY_MEMORY_ORDER_RELAXED);
}


/** @return whether the freed bytes that 'slice' counts make a slice now */

static my_bool fills_slice(size_t bytes)
{
  return my_atomic_add64(&slice, (int64) bytes) + (int64) bytes >= SLICE;
}
#endif /* CAN_TRIM */


/** An administrator has caused tables to be closed: return free memory now. */

void my_return_memory(void)
{
#ifdef CAN_TRIM
  note_administrator();
  if (begin_trim())
    start_trimmer(FALSE);
#endif
}


/**
  Note that an administrator's statement has freed this many bytes, and goes on
  to close tables.

  @param wait  whether the caller may wait for a trim, for tens of milliseconds:
               it holds no lock and no reference for which others wait
*/

void my_return_slice(size_t bytes __attribute__((unused)),
                     my_bool wait __attribute__((unused)))
{
#ifdef CAN_TRIM
  if (!fills_slice(bytes))
    return;
  note_administrator();
  if (!begin_trim())
    return;
  if (wait)
  {
    trim();
    if (change(TRIMS, IDLE))
      return;
    my_atomic_store32(&state, TRIMS);   /* Others have asked: that is not its task */
  }
  start_trimmer(FALSE);
#endif
}


/**
  Note that a background thread has freed this many bytes, maybe because of an
  administrator's request.
*/

void my_return_more_memory(size_t bytes __attribute__((unused)))
{
#ifdef CAN_TRIM
  if ((int64) time(NULL) - my_atomic_load64_explicit(&asked,
                                                     MY_MEMORY_ORDER_RELAXED)
      >= GOES_ON)
    return;
  if (fills_slice(bytes))
  {
    if (begin_trim())
      start_trimmer(FALSE);
  }
  else if (change(IDLE, PAUSES))
    start_trimmer(TRUE);
#endif
}


/** Note that evictions for table_cache_memory have freed this many bytes. */

void my_return_freed_memory(size_t bytes __attribute__((unused)))
{
#ifdef CAN_TRIM
  if (my_atomic_add64_explicit(&freed, (int64) bytes,
                               MY_MEMORY_ORDER_RELAXED) + (int64) bytes
      >= FREED && my_atomic_load32(&state) == IDLE && change(IDLE, PAUSES))
    start_trimmer(TRUE);
#endif
}
