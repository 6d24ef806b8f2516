/* SPDX-License-Identifier: GPL-2.0-only */

/*
  The pool of spare buffers (mysys/my_spare_buffers.c) gives the same buffers to
  one thread after the other, never one buffer to two threads, keeps at most 16
  for each CPU, and frees all of them at the end.
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


int main(int argc __attribute__((unused)), char **argv)
{
  MY_INIT(argv[0]);
  plan(9);
  pool.size= SIZE;
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
