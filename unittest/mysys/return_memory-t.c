/* SPDX-License-Identifier: GPL-2.0-only */

/*
  my_return_memory() gives pages of the heap back that lie between objects that
  stay, and requests that meet a running one are not lost.
*/

#include <my_global.h>
#include <my_sys.h>
#include <my_return_memory.h>
#include <stdlib.h>
#include "tap.h"

#define OBJECTS 8192
#define SIZE 8000                       /* 15 of them span whole pages */
#define KEPT 16                         /* One of that many stays */

static char *object[OBJECTS];

/** MiB of the process in memory; 0 if the system does not say. */

static ulong resident(void)
{
  ulong size, pages= 0;
  FILE *file= fopen("/proc/self/statm", "r");
  if (!file)
    return 0;
  if (fscanf(file, "%lu %lu", &size, &pages) != 2)
    pages= 0;
  fclose(file);
  return (ulong) ((double) pages * getpagesize() / 1048576);
}


static void allocate(void)
{
  uint i;
  for (i= 0; i < OBJECTS; i++)
  {
    if (!object[i])
    {
      object[i]= malloc(SIZE);
      memset(object[i], 1, SIZE);
    }
  }
}


static void free_most(void)
{
  uint i;
  for (i= 0; i < OBJECTS; i++)
  {
    if (i % KEPT)
    {
      free(object[i]);
      object[i]= NULL;
    }
  }
}


/** Wait until half of the objects' memory is back. Never ends if it is not. */

static ulong wait_until_back(ulong before)
{
  ulong now;
  while ((now= resident()) > before - (OBJECTS / 2 * SIZE >> 20))
    my_sleep(10000);
  return now;
}


/**
  Repeat until my_return_slice() returns a slice before it ends. This loops
  forever if it never does so. (It may leave one slice to a trimmer that has not
  ended yet.)
*/

static void returns_itself(ulong before, my_bool beside_pause)
{
  for (;;)
  {
    allocate();
    free_most();
    if (beside_pause)
      my_return_more_memory(1);
    my_return_slice(32 << 20, TRUE);
    my_return_slice(32 << 20, TRUE);
    if (resident() <= before - (OBJECTS / 2 * SIZE >> 20))
      break;
    wait_until_back(before);
  }
}


int main(int argc __attribute__((unused)), char **argv)
{
  ulong full, still, back;
  uint i;
  MY_INIT(argv[0]);
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__) || defined(HAVE_valgrind)
  skip_all("the allocator is not glibc's");
#endif
  if (!resident())
    skip_all("no /proc");
  plan(8);

  allocate();
  full= resident();
  free_most();
  still= resident();
  ok(still + 2 >= full, "free() returns no memory between objects (%lu of %lu MiB stay)",
     still, full);
  my_return_memory();
  back= wait_until_back(full);
  ok(1, "my_return_memory() returns it (%lu MiB left)", back);

  allocate();
  for (i= 0; i < 100; i++)
    my_return_memory();
  free_most();
  my_return_memory();
  wait_until_back(full);
  ok(1, "a request that meets others is not lost");

  allocate();
  free_most();
  my_return_freed_memory(1 << 20);
  wait_until_back(full);
  ok(1, "evictions cause it, too");

  returns_itself(full, FALSE);
  ok(1, "a statement that goes on freeing returns each slice itself");

  allocate();
  free_most();
  my_return_slice(64 << 20, FALSE);
  wait_until_back(full);
  ok(1, "one that may not wait causes it");

  returns_itself(full, TRUE);
  ok(1, "it does not leave that to a trimmer that pauses");

  allocate();
  free_most();
  my_return_more_memory(64 << 20);
  wait_until_back(full);
  ok(1, "a background thread that frees a slice after that causes it");

  for (i= 0; i < OBJECTS; i++)
    free(object[i]);
  my_end(0);
  return exit_status();
}
