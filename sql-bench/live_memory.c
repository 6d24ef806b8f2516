/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Lists the memory that a server allocates between two moments and has not freed
  at the second, by caller.

  LD_PRELOAD this into a server whose functions keep the frame pointer, as
  MariaDB's do. SIGRTMIN+6 begins, SIGRTMIN+5 ends and writes $LIVE_MEMORY, one
  line for each block: the bytes that it takes in the heap, and the return
  addresses of its callers. Nothing depends on timing, so two runs of the same
  statements give the same numbers.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CALLERS= 12, BLOCKS= 1 << 23, HEADER= 8 };

struct block
{
  void *memory;                 /* NULL: never used; GONE: freed */
  size_t size;
  void *caller[CALLERS];
};
#define GONE ((void*) 1)

static struct block *blocks;    /* A hash with open addressing */
static pthread_mutex_t mutex= PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t recording;
static __thread int inside;     /* This thread is in here already */
static __thread char *stack, *stack_end;

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);

/* dlsym() allocates */
static char early[16384];
static size_t early_used;

static void *early_malloc(size_t size)
{
  void *memory= early + early_used;
  early_used+= (size + 15) & ~(size_t) 15;
  if (early_used > sizeof early)
    abort();
  return memory;
}

static int is_early(void *memory)
{
  return (char*) memory >= early && (char*) memory < early + sizeof early;
}


static size_t place(void *memory)
{
  size_t n= ((uintptr_t) memory >> 4) * 0x9E3779B97F4A7C15ULL >> 32;
  for (n%= BLOCKS; blocks[n].memory && blocks[n].memory != memory;
       n= (n + 1) % BLOCKS) {}
  return n;
}


static void note(void *memory, void **frame)
{
  if (!recording || inside || !memory)
    return;
  inside= 1;
  if (!stack)
  {
    pthread_attr_t attr;
    void *low;
    size_t size;
    if (!pthread_getattr_np(pthread_self(), &attr))
    {
      pthread_attr_getstack(&attr, &low, &size);
      stack= low;
      stack_end= stack + size;
      pthread_attr_destroy(&attr);
    }
  }
  struct block block= { memory, malloc_usable_size(memory) + HEADER, { 0 } };
  for (int n= 0; n < CALLERS && (char*) frame > stack &&
       (char*) (frame + 2) <= stack_end && !((uintptr_t) frame & 7); n++)
  {
    block.caller[n]= frame[1];
    void **up= frame[0];
    if (up <= frame)
      break;
    frame= up;
  }
  pthread_mutex_lock(&mutex);
  blocks[place(memory)]= block;
  pthread_mutex_unlock(&mutex);
  inside= 0;
}


static void forget(void *memory)
{
  if (!recording || inside || !memory)
    return;
  pthread_mutex_lock(&mutex);
  struct block *block= blocks + place(memory);
  if (block->memory)
    block->memory= GONE;
  pthread_mutex_unlock(&mutex);
}


static void begin(int signal)
{
  (void) signal;
  recording= 1;
}


static void end(int signal)
{
  (void) signal;
  const char *name= getenv("LIVE_MEMORY");
  inside= 1;
  FILE *file= name ? fopen(name, "w") : NULL;
  if (file)
  {
    for (size_t n= 0; n < BLOCKS; n++)
      if (blocks[n].memory && blocks[n].memory != GONE)
      {
        fprintf(file, "%zu", blocks[n].size);
        for (int c= 0; c < CALLERS && blocks[n].caller[c]; c++)
          fprintf(file, " %p", blocks[n].caller[c]);
        fputc('\n', file);
      }
    fputs("end\n", file);
    fclose(file);
  }
  recording= 0;
  inside= 0;
}


__attribute__((constructor)) static void init(void)
{
  if (next_malloc)
    return;
  inside= 1;
  next_calloc= dlsym(RTLD_NEXT, "calloc");
  next_realloc= dlsym(RTLD_NEXT, "realloc");
  next_free= dlsym(RTLD_NEXT, "free");
  next_posix_memalign= dlsym(RTLD_NEXT, "posix_memalign");
  blocks= mmap(NULL, sizeof *blocks * BLOCKS, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (blocks == MAP_FAILED)
    abort();
  signal(SIGRTMIN + 6, begin);
  signal(SIGRTMIN + 5, end);
  next_malloc= dlsym(RTLD_NEXT, "malloc");
  inside= 0;
}


void *malloc(size_t size)
{
  if (!next_malloc)
  {
    if (inside)
      return early_malloc(size);
    init();
  }
  void *memory= next_malloc(size);
  note(memory, __builtin_frame_address(0));
  return memory;
}


void *calloc(size_t number, size_t size)
{
  if (!next_calloc)
    return early_malloc(number * size);
  void *memory= next_calloc(number, size);
  note(memory, __builtin_frame_address(0));
  return memory;
}


void *realloc(void *old, size_t size)
{
  if (!next_realloc)
    init();
  forget(old);
  void *memory= next_realloc(old, size);
  note(memory, __builtin_frame_address(0));
  return memory;
}


int posix_memalign(void **memory, size_t align, size_t size)
{
  if (!next_posix_memalign)
    init();
  int error= next_posix_memalign(memory, align, size);
  if (!error)
    note(*memory, __builtin_frame_address(0));
  return error;
}


void free(void *memory)
{
  if (is_early(memory))
    return;
  if (!next_free)
    init();
  forget(memory);
  next_free(memory);
}
