/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Keeps the number of bytes of the heap that are in use in the file HEAP_SIZE.

  LD_PRELOAD this into a server, with MALLOC_ARENA_MAX=1: mallinfo2() knows no
  other arena.
*/

#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *watch(void *path)
{
  int file= open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (;; usleep(50000))
  {
    char text[32];
    struct mallinfo2 heap= mallinfo2();
    int length= snprintf(text, sizeof text, "%20zu\n",
                         heap.uordblks + heap.hblkhd);
    if (pwrite(file, text, (size_t) length, 0) != length)
      abort();
  }
}

__attribute__((constructor)) static void begin(void)
{
  char *path= getenv("HEAP_SIZE");
  pthread_t thread;
  sigset_t all, before;
  if (!path)
    return;
  /* A signal is for the server's threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, watch, path))
    abort();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
