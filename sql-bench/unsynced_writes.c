/* SPDX-License-Identifier: GPL-2.0-only */

/*
  A disk that forgets what was not synced.

  LD_PRELOAD this into a server. It keeps a journal of InnoDB's writes, from which
  power_loss.py takes back, after kill -9, each write that no fsync() covers: the files are
  then as a power loss may leave them. A sync covers the writes that had ended when
  it began. So it does with the size to which fallocate() has extended a file.
  Creating, renaming and deleting a file last at once.

  UNSYNCED_ROOT, if it is set, names a directory of which all files are watched, not only
  InnoDB's.

  UNSYNCED_DIR names a directory with

  journal       what the writes replaced, and the syncs (struct record)
  events        a line for each call, to be read by people and programs:
                WHAT FILE OFFSET THREAD
  hold.WHAT.FILE, hold.WHAT.FILE.OFFSET
                a call waits while this file exists; WHAT is write, sync, open or close
                (of a file that was deleted), before it does anything, or synced, when
                a sync is done. OFFSET is that of a write; of open, 0 for reading only
                and 2 for writing, too
  kill          a number: when this file exists, the server is killed before the call of
                that number from then on, of those known here

  Only pwrite(), write(), fallocate(), fsync() and fdatasync() of watched files, and what
  creates, renames and deletes files and directories are known here, so the server needs
  innodb_use_native_aio=0.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Followed by the file's path, and by what a write replaced */
struct record
{
  char type;                    /* 'W' a write begins, 'L' an extension begins, 'E' it
                                   has ended, 'S' sync */
  uint64_t number;              /* of the write; when the sync began */
  uint64_t ended;               /* when the write ended */
  uint64_t offset;              /* of an extension: the size before */
  uint32_t length, path_length;
};

static const char *directory, *root;
static int journal= -1, events= -1;
/* Makes the journal's records whole, and orders them */
static pthread_mutex_t mutex= PTHREAD_MUTEX_INITIALIZER;
static uint64_t now;            /* protected by mutex */
/* How many calls until the server is killed; 0 if that is not known */
static long left;

static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_fsync)(int), (*next_fdatasync)(int);
static int (*next_open)(const char *, int, ...);
static int (*next_close)(int);
static int (*next_unlink)(const char *), (*next_rmdir)(const char *);
static int (*next_rename)(const char *, const char *);
static int (*next_mkdir)(const char *, mode_t);
static int (*next_fallocate)(int, int, off_t, off_t);
static int (*next_inflate)(void *, int);

static int open_file(const char *name)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return next_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void die(const char *what)
{
  perror(what);
  abort();
}

__attribute__((constructor)) static void begin(void)
{
  next_pwrite= (ssize_t (*)(int, const void *, size_t, off_t))
    dlsym(RTLD_NEXT, "pwrite64");
  next_write= (ssize_t (*)(int, const void *, size_t)) dlsym(RTLD_NEXT, "write");
  next_open= (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, "open64");
  next_unlink= (int (*)(const char *)) dlsym(RTLD_NEXT, "unlink");
  next_rmdir= (int (*)(const char *)) dlsym(RTLD_NEXT, "rmdir");
  next_rename= (int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename");
  next_mkdir= (int (*)(const char *, mode_t)) dlsym(RTLD_NEXT, "mkdir");
  next_fallocate= (int (*)(int, int, off_t, off_t))
    dlsym(RTLD_NEXT, "fallocate64");
  next_fsync= (int (*)(int)) dlsym(RTLD_NEXT, "fsync");
  next_fdatasync= (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
  directory= getenv("UNSYNCED_DIR");
  root= getenv("UNSYNCED_ROOT");
  if (!directory)
    return;
  if ((journal= open_file("journal")) < 0 || (events= open_file("events")) < 0)
    die(directory);
}

static const char *base_name(const char *path)
{
  const char *slash= strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Whether the file is one of InnoDB's; its path */
static int is_watched(int fd, char *path, size_t size)
{
  char link[64];
  ssize_t length;
  const char *name;
  if (!directory)
    return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((length= readlink(link, path, size - 1)) <= 0)
    return 0;
  path[length]= 0;
  if (root)
    return !strncmp(path, root, strlen(root));
  name= base_name(path);
  return !strncmp(name, "ibdata", 6) || !strncmp(name, "ib_logfile", 10) ||
    !strncmp(name, "undo", 4) ||
    (length > 4 && !strcmp(path + length - 4, ".ibd"));
}

/* The path of a file that was deleted, without what Linux says after it */
static int is_deleted(int fd, char *path, size_t size)
{
  static const char mark[]= " (deleted)";
  char link[64], *end;
  ssize_t length;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((length= readlink(link, path, size - 1)) < (ssize_t) sizeof mark)
    return 0;
  path[length]= 0;
  end= path + length - (sizeof mark - 1);
  if (strcmp(end, mark))
    return 0;
  *end= 0;
  return 1;
}

static void event(const char *what, const char *path, off_t offset)
{
  char line[512];
  int length= snprintf(line, sizeof line, "%s %s %lld %ld\n", what,
                       base_name(path), (long long) offset,
                       (long) syscall(SYS_gettid));
  if (next_write(events, line, length) != length)
    die("events");
}

/* A call begins: end here, if it is the one */
static void step(const char *what, const char *path)
{
  long before= __atomic_load_n(&left, __ATOMIC_RELAXED);
  if (!directory)
    return;
  if (!before)
  {
    char name[4096], text[32]= "";
    int fd;
    snprintf(name, sizeof name, "%s/kill", directory);
    if ((fd= next_open(name, O_RDONLY | O_CLOEXEC)) < 0)
      return;
    if (read(fd, text, sizeof text - 1) > 0)
      __atomic_compare_exchange_n(&left, &before, atol(text), 0,
                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    close(fd);
    if (!__atomic_load_n(&left, __ATOMIC_RELAXED))
      return;
  }
  event(what, path, 0);
  if (!__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED))
  {
    kill(getpid(), SIGKILL);
    pause();
  }
}

static void hold(const char *what, const char *path, off_t offset)
{
  char all[4096], one[4200];
  int is_held= 0;
  snprintf(all, sizeof all, "%s/hold.%s.%s", directory, what, base_name(path));
  snprintf(one, sizeof one, "%s.%lld", all, (long long) offset);
  while (!access(all, F_OK) || !access(one, F_OK))
  {
    if (!is_held++)
    {
      char held[64];
      snprintf(held, sizeof held, "held-%s", what);
      event(held, path, offset);
    }
    usleep(1000);
  }
}

static void note(const struct record *record, const char *path, const void *data)
{
  struct iovec parts[3]= {{(void*) record, sizeof *record},
                          {(void*) path, record->path_length},
                          {(void*) data, record->length}};
  ssize_t length= (ssize_t) (sizeof *record + record->path_length +
                             record->length);
  if (writev(journal, parts, 3) != length)
    die("journal");
}

static uint64_t count(void)
{
  uint64_t number;
  pthread_mutex_lock(&mutex);
  number= ++now;
  pthread_mutex_unlock(&mutex);
  return number;
}

/* Write at offset, or at the file's position if that is negative */
static ssize_t write_file(int fd, const void *buffer, size_t size, off_t offset)
{
  char path[4096];
  const int append= offset < 0;
  struct record record= {'W', 0, 0, 0, (uint32_t) size, 0};
  void *old;
  ssize_t result, length;

  if (!is_watched(fd, path, sizeof path))
    return append ? next_write(fd, buffer, size)
      : next_pwrite(fd, buffer, size, offset);
  if (append && (offset= lseek(fd, 0, SEEK_CUR)) < 0)
    die("lseek");
  record.offset= (uint64_t) offset;
  step("step-write", path);
  hold("write", path, offset);

  /* Aligned for O_DIRECT. What the file does not have yet will be zero. */
  if (posix_memalign(&old, 4096, size))
    die("memory");
  length= pread(fd, old, size, offset);
  if (length < 0 && errno == EBADF)
  {
    /* Open for writing only */
    int readable= next_open(path, O_RDONLY | O_CLOEXEC);
    length= pread(readable, old, size, offset);
    close(readable);
  }
  if (length < 0)
    die("read before write");
  memset((char*) old + length, 0, size - (size_t) length);

  record.path_length= (uint32_t) strlen(path);
  pthread_mutex_lock(&mutex);
  record.number= ++now;
  note(&record, path, old);
  pthread_mutex_unlock(&mutex);
  free(old);

  result= append ? next_write(fd, buffer, size)
    : next_pwrite(fd, buffer, size, offset);

  record.type= 'E';
  record.length= 0;
  pthread_mutex_lock(&mutex);
  record.ended= ++now;
  note(&record, path, "");
  pthread_mutex_unlock(&mutex);
  event("write", path, offset);
  return result;
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
  return write_file(fd, buffer, size, offset);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
  return root ? write_file(fd, buffer, size, -1) : next_write(fd, buffer, size);
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off_t offset)
  __attribute__((alias("pwrite")));

int fallocate64(int fd, int mode, off_t offset, off_t length)
{
  char path[4096];
  struct record record= {'L', 0, 0, 0, 0, 0};
  struct stat status;
  int result;

  if (mode || !is_watched(fd, path, sizeof path) || fstat(fd, &status) ||
      offset + length <= status.st_size)
    return next_fallocate(fd, mode, offset, length);
  step("step-extend", path);
  record.offset= (uint64_t) status.st_size;
  record.path_length= (uint32_t) strlen(path);
  pthread_mutex_lock(&mutex);
  record.number= ++now;
  note(&record, path, "");
  pthread_mutex_unlock(&mutex);

  result= next_fallocate(fd, mode, offset, length);

  record.type= 'E';
  pthread_mutex_lock(&mutex);
  record.ended= ++now;
  note(&record, path, "");
  pthread_mutex_unlock(&mutex);
  event("extend", path, status.st_size);
  return result;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
  __attribute__((alias("fallocate64")));

static int sync_file(int fd, int (*next)(int))
{
  char path[4096];
  struct record record= {'S', 0, 0, 0, 0, 0};
  int result;

  if (!is_watched(fd, path, sizeof path))
    return next(fd);
  step("step-sync", path);
  hold("sync", path, 0);
  record.path_length= (uint32_t) strlen(path);
  record.number= count();
  result= next(fd);
  if (!result)
  {
    pthread_mutex_lock(&mutex);
    note(&record, path, "");
    pthread_mutex_unlock(&mutex);
  }
  event("sync", path, 0);
  hold("synced", path, 0);
  return result;
}

int fsync(int fd)
{
  return sync_file(fd, next_fsync);
}

int fdatasync(int fd)
{
  return sync_file(fd, next_fdatasync);
}

int unlink(const char *path)
{
  step("step-unlink", path);
  return next_unlink(path);
}

int rmdir(const char *path)
{
  step("step-rmdir", path);
  return next_rmdir(path);
}

int mkdir(const char *path, mode_t mode)
{
  step("step-mkdir", path);
  return next_mkdir(path, mode);
}

int rename(const char *from, const char *to)
{
  step("step-rename", to);
  return next_rename(from, to);
}

int close(int fd)
{
  char path[4096];
  if (!next_close)
    next_close= (int (*)(int)) dlsym(RTLD_NEXT, "close");
  if (directory && is_deleted(fd, path, sizeof path))
    hold("close", path, 0);
  return next_close(fd);
}

int open64(const char *path, int flags, ...)
{
  mode_t mode= 0;
  if (flags & O_CREAT)
  {
    va_list arguments;
    va_start(arguments, flags);
    mode= va_arg(arguments, mode_t);
    va_end(arguments);
    if (next_open)
      step("step-create", path);
  }
  if (!next_open)
    next_open= (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, "open64");
  if (directory)
    hold("open", path, flags & O_ACCMODE);
  return next_open(path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));

int inflate(void *stream, int flush)
{
  if (!next_inflate)
    next_inflate= (int (*)(void *, int)) dlsym(RTLD_NEXT, "inflate");
  if (directory)
    hold("inflate", "page", 0);
  return next_inflate(stream, flush);
}
