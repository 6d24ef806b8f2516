/* SPDX-License-Identifier: GPL-2.0-only */

/*
  A slow disk: each pread() of an .ibd file takes READ_DELAY_US microseconds
  longer.

  LD_PRELOAD this into a server. The page cache holds the files, so without it
  no read waits. Only the thread that reads waits, as it would for a disk with a
  long queue.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t (*pread_func)(int, void *, size_t, off_t);

static useconds_t delay;

__attribute__((constructor)) static void read_delay(void)
{
  const char *us= getenv("READ_DELAY_US");
  delay= us ? (useconds_t) strtoul(us, NULL, 10) : 0;
}

static int is_slow(int fd)
{
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length= readlink(link, path, sizeof path);
  return length > 4 && !memcmp(path + length - 4, ".ibd", 4);
}

static ssize_t slow_pread(pread_func *next, const char *name, int fd,
                          void *buffer, size_t count, off_t offset)
{
  /* Threads that race here store the same */
  if (!*next)
    *next= (pread_func) dlsym(RTLD_NEXT, name);
  if (delay && is_slow(fd))
    usleep(delay);
  return (*next)(fd, buffer, count, offset);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset)
{
  static pread_func next;
  return slow_pread(&next, "pread", fd, buffer, count, offset);
}

ssize_t pread64(int fd, void *buffer, size_t count, off_t offset)
{
  static pread_func next;
  return slow_pread(&next, "pread64", fd, buffer, count, offset);
}
