/* SPDX-License-Identifier: GPL-2.0-only */

/*
  A slow disk: each read() and pread() of a file whose name ends like a word of
  READ_DELAY_FILES takes READ_DELAY_US microseconds longer, and each fsync()
  and fdatasync() takes SYNC_DELAY_US longer.

  LD_PRELOAD this into a server. The page cache holds the files, so without it
  no read waits. Only the thread that reads or syncs waits, as it would for a
  disk with a long queue.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t (*pread_func)(int, void *, size_t, off_t);
typedef ssize_t (*read_func)(int, void *, size_t);
typedef int (*sync_func)(int);

static useconds_t read_delay, sync_delay;
static const char *read_files= "";

static useconds_t delay_of(const char *name)
{
  const char *us= getenv(name);
  return us ? (useconds_t) strtoul(us, NULL, 10) : 0;
}

__attribute__((constructor)) static void read_delays(void)
{
  read_delay= delay_of("READ_DELAY_US");
  sync_delay= delay_of("SYNC_DELAY_US");
  if (getenv("READ_DELAY_FILES"))
    read_files= getenv("READ_DELAY_FILES");
}

static int is_slow(int fd)
{
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length= readlink(link, path, sizeof path);
  for (const char *word= read_files; length > 0 && *word; )
  {
    size_t size= strcspn(word, " ");
    if (size && (size_t) length > size &&
        !memcmp(path + length - size, word, size))
      return 1;
    word+= size + (word[size] == ' ');
  }
  return 0;
}

static void delay_read(int fd)
{
  if (read_delay && is_slow(fd))
    usleep(read_delay);
}

static ssize_t slow_pread(pread_func *next, const char *name, int fd,
                          void *buffer, size_t count, off_t offset)
{
  /* Threads that race here store the same */
  if (!*next)
    *next= (pread_func) dlsym(RTLD_NEXT, name);
  delay_read(fd);
  return (*next)(fd, buffer, count, offset);
}

static int slow_sync(sync_func *next, const char *name, int fd)
{
  if (!*next)
    *next= (sync_func) dlsym(RTLD_NEXT, name);
  if (sync_delay)
    usleep(sync_delay);
  return (*next)(fd);
}

ssize_t read(int fd, void *buffer, size_t count)
{
  static read_func next;
  if (!next)
    next= (read_func) dlsym(RTLD_NEXT, "read");
  delay_read(fd);
  return next(fd, buffer, count);
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

int fsync(int fd)
{
  static sync_func next;
  return slow_sync(&next, "fsync", fd);
}

int fdatasync(int fd)
{
  static sync_func next;
  return slow_sync(&next, "fdatasync", fd);
}
