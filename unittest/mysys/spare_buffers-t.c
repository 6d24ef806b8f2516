/* SPDX-License-Identifier: GPL-2.0-only */

/*
  The pool of spare buffers (mysys/my_spare_buffers.c) gives the same buffers to
  one thread after the other, never one buffer to two threads, keeps at most 16
  for each CPU, and frees all of them at the end.

    spare_buffers-t --pairs

  tests nothing. It prints how many pairs of take and give two threads make in a
  second of CPU time, each bound to a CPU of its own.
*/

#include <my_global.h>
#include <my_sys.h>
#include <my_atomic.h>
#include <my_spare_buffers.h>
#ifdef __linux__
#include <sched.h>
#endif
#include "tap.h"

#define SIZE 1024                       /* Bytes of a buffer of the pool */
#define KEPT 16                         /* Buffers that the pool keeps for a CPU */
#define MORE (KEPT + 4)
#define THREADS 8
#define IN_USE 4                        /* Buffers that a thread has at a time */
#define ROUNDS 200000

static MY_SPARE_BUFFERS pool;
static int32 allocated;                 /* Blocks that my_malloc() has given */
static int32 started, overwritten;


static void count_blocks(long long size,
                         my_bool is_thread_specific __attribute__((unused)))
{
  my_atomic_add32(&allocated, size > 0 ? 1 : -1);
}


/** Keep the thread on one CPU, so that all its buffers come from one slot. */

static my_bool stay_on_cpu(void)
{
#ifdef __linux__
  cpu_set_t cpus;
  int cpu= sched_getcpu();
  if (cpu < 0)
    return FALSE;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  return !sched_setaffinity(0, sizeof cpus, &cpus);
#else
  return TRUE;
#endif
}


static void one_thread(void)
{
  uchar *buffer[MORE], *large;
  int32 before= allocated;
  uint i, again;

  for (i= 0; i < MORE; i++)
    buffer[i]= my_take_buffer(&pool, PSI_NOT_INSTRUMENTED, SIZE, MYF(0));
  ok(allocated == before + MORE, "an empty pool allocates");
  for (i= 0; i < MORE; i++)
    my_give_buffer(&pool, buffer[i], SIZE);
  ok(allocated == before + KEPT, "the pool keeps %d buffers", KEPT);

  for (again= 0, i= KEPT; i--; )
    again+= my_take_buffer(&pool, PSI_NOT_INSTRUMENTED, SIZE / 2, MYF(0)) == buffer[i];
  ok(again == KEPT, "the buffer that was given back last is taken first");
  ok(allocated == before + KEPT, "a pool with buffers allocates none");
  for (i= 0; i < KEPT; i++)
    my_give_buffer(&pool, buffer[i], SIZE / 2);

  large= my_take_buffer(&pool, PSI_NOT_INSTRUMENTED, SIZE + 1, MYF(0));
  ok(allocated == before + KEPT + 1, "a larger buffer is allocated");
  my_give_buffer(&pool, large, SIZE + 1);
  ok(allocated == before + KEPT, "and freed when it is given back");

  my_free_spare_buffers(&pool);
  ok(allocated == before, "the pool frees its buffers at the end");
}


/** Take and give back buffers, and write the thread's mark into each. */

static void *use_buffers(void *arg)
{
  const uchar mark= (uchar) (size_t) arg;
  uchar *buffer[IN_USE];
  uint i, round;

  my_thread_init();
  my_atomic_add32(&started, 1);
  while (my_atomic_load32(&started) < THREADS) {}

  for (round= 0; round < ROUNDS; round++)
  {
    for (i= 0; i < IN_USE; i++)
    {
      buffer[i]= my_take_buffer(&pool, PSI_NOT_INSTRUMENTED, SIZE, MYF(0));
      buffer[i][0]= buffer[i][SIZE - 1]= mark;
    }
    for (i= 0; i < IN_USE; i++)
    {
      if (buffer[i][0] != mark || buffer[i][SIZE - 1] != mark)
        my_atomic_add32(&overwritten, 1);
      my_give_buffer(&pool, buffer[i], SIZE);
    }
  }
  my_thread_end();
  return NULL;
}


static void many_threads(void)
{
  pthread_t thread[THREADS];
  int32 before= allocated;
  size_t i;

  for (i= 0; i < THREADS; i++)
    if (pthread_create(&thread[i], NULL, use_buffers, (void*) (i + 1)))
      BAIL_OUT("cannot create a thread");
  for (i= 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  ok(!overwritten, "no two of %d threads have the same buffer", THREADS);
  my_free_spare_buffers(&pool);
  ok(allocated == before, "no buffer is lost");
}


/** A CPU that takes and gives back buffers writes to no line that others read. */

static void layout(void)
{
  uint i, shared= 0;
  for (i= 0; i < MY_SPARE_SLOTS; i++)
  {
    const char *slot= (const char*) &pool.slots[i].first;
    shared+= slot < (const char*) (&pool.size + 1) +
                    CPU_LEVEL1_DCACHE_LINESIZE - sizeof(pool.size) ||
             slot + CPU_LEVEL1_DCACHE_LINESIZE >
             (const char*) (i + 1 < MY_SPARE_SLOTS ?
                            (void*) &pool.slots[i + 1].first :
                            (void*) (&pool + 1));
  }
  ok(!shared, "no slot is in the cache line of another one, or of the size");
}


#ifdef __linux__
static int32 stop;
static double pairs[2];                  /* in a second of CPU time */

static double cpu_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}


static void *make_pairs(void *arg)
{
  const uint number= (uint) (size_t) arg;
  ulonglong n= 0;
  double begin;
  cpu_set_t cpus;
  my_thread_init();
  CPU_ZERO(&cpus);
  CPU_SET(number, &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus))
    fprintf(stderr, "cannot bind a thread to CPU %u\n", number);
  my_atomic_add32(&started, 1);
  while (my_atomic_load32(&started) < 2)
    sched_yield();
  begin= cpu_seconds();
  for (; !my_atomic_load32_explicit(&stop, MY_MEMORY_ORDER_RELAXED); n++)
    my_give_buffer(&pool, my_take_buffer(&pool, PSI_NOT_INSTRUMENTED, SIZE,
                                         MYF(0)), SIZE);
  pairs[number]= (double) n / (cpu_seconds() - begin);
  my_thread_end();
  return NULL;
}


static void measure_pairs(void)
{
  uint run;
  for (run= 0; run < 5; run++)
  {
    pthread_t thread[2];
    size_t i;
    started= stop= 0;
    for (i= 0; i < 2; i++)
      if (pthread_create(&thread[i], NULL, make_pairs, (void*) i))
        exit(1);
    my_sleep(1000000);
    my_atomic_store32(&stop, 1);
    for (i= 0; i < 2; i++)
      pthread_join(thread[i], NULL);
    printf("%.1f million pairs a second\n", (pairs[0] + pairs[1]) / 1e6);
    my_free_spare_buffers(&pool);
  }
}
#endif


int main(int argc, char **argv)
{
  MY_INIT(argv[0]);
  pool.size= SIZE;
#ifdef __linux__
  if (argc > 1 && !strcmp(argv[1], "--pairs"))
  {
    measure_pairs();
    my_end(0);
    return 0;
  }
#endif
  plan(10);
  layout();
  set_malloc_size_cb(count_blocks);
  many_threads();
  if (stay_on_cpu())
    one_thread();
  else
    skip(7, "the thread cannot choose its CPU");
  set_malloc_size_cb(NULL);
  my_end(MY_CHECK_ERROR);
  return exit_status();
}
