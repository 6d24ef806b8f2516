/* SPDX-License-Identifier: GPL-2.0-only */

/*
  A disk that is slow, or that forgets what was not synced.

  LD_PRELOAD this into a server.

  READ_DELAY_US, READ_DELAY_FILES
                each read() and pread() of a file whose name ends like a word of the
                latter takes so many microseconds longer. The page cache holds the
                files, so without it no read waits
  SYNC_DELAY_US each fsync() and fdatasync() takes so many microseconds longer

  Only the thread that reads or syncs waits, as it would for a disk with a long queue.

  With UNSYNCED_DIR, a journal of InnoDB's writes is kept, from which benchlib/disk.py
  takes back, after kill -9, each write that no fsync() covers: the files are then as a
  power loss may leave them. A sync covers the writes that had ended when it began. So it
  does with the size to which fallocate() has extended a file. A write to a file that was
  opened with O_DSYNC needs no sync. Creating, renaming and deleting a file last at once.
  The journal knows a file by its inode, so a file that was renamed loses its own writes,
  and not those of the file that had the name before.

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
#include <limits.h>
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
                                   has ended, 'D' it has, and needs no sync (O_DSYNC),
                                   'S' sync, 'N' the file has a new name, 'U' none */
  uint32_t size;                /* of the write. If write() has extended the file, length
                                   is less. What pwrite() extends is zero */
  uint64_t number;              /* of the write; when the sync began */
  uint64_t ended;               /* when the write ended */
  uint64_t offset;              /* of an extension: the size before */
  uint64_t inode;
  uint32_t length, path_length;
};

static const char *directory, *root;
static int journal= -1, events= -1;
/* Makes the journal's records whole, and orders them */
static pthread_mutex_t mutex= PTHREAD_MUTEX_INITIALIZER;
static uint64_t now;            /* protected by mutex */
/* How many calls until the server is killed; 0 if that is not known */
static long left;

static useconds_t read_delay, sync_delay;
static const char *slow_files= "";

/*
  The function that one of this library stands for.  Other libraries may call it before
  begin(); threads that race here store the same.
*/
#define NEXT(function)                                                        \
  ({                                                                          \
    static __typeof__(function) *next;                                        \
    if (!next)                                                                \
      next= (__typeof__(next)) dlsym(RTLD_NEXT, #function);                   \
    next;                                                                     \
  })

static int open_file(const char *name)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return NEXT(open64)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void die(const char *what)
{
  perror(what);
  abort();
}

static useconds_t delay_of(const char *name)
{
  const char *us= getenv(name);
  return us ? (useconds_t) strtoul(us, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
  read_delay= delay_of("READ_DELAY_US");
  sync_delay= delay_of("SYNC_DELAY_US");
  if (getenv("READ_DELAY_FILES"))
    slow_files= getenv("READ_DELAY_FILES");
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

/* The path of an open file, in 4096 bytes; its length, 0 if there is none */
static size_t path_of(int fd, char *path)
{
  char link[64];
  ssize_t length;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((length= readlink(link, path, 4095)) < 0)
    length= 0;
  path[length]= 0;
  return (size_t) length;
}

static int ends_with(const char *path, const char *end, size_t size)
{
  size_t length= strlen(path);
  return size && length > size && !memcmp(path + length - size, end, size);
}

/* Whether the file is one of those that are watched; its path, in 4096 bytes */
static int is_watched(int fd, char *path)
{
  const char *name;
  if (!directory || !path_of(fd, path))
    return 0;
  if (root)
    return !strncmp(path, root, strlen(root));
  name= base_name(path);
  return !strncmp(name, "ibdata", 6) || !strncmp(name, "ib_logfile", 10) ||
    !strncmp(name, "undo", 4) || ends_with(path, ".ibd", 4);
}

static void event(const char *what, const char *path, off_t offset)
{
  char line[512];
  int length= snprintf(line, sizeof line, "%s %s %lld %ld\n", what,
                       base_name(path), (long long) offset,
                       (long) syscall(SYS_gettid));
  if (NEXT(write)(events, line, length) != length)
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
    if ((fd= NEXT(open64)(name, O_RDONLY | O_CLOEXEC)) < 0)
      return;
    if (NEXT(read)(fd, text, sizeof text - 1) > 0)
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

static uint64_t inode_of(int fd)
{
  struct stat status;
  return fstat(fd, &status) ? 0 : status.st_ino;
}

/* Take the next number, and write the record to the journal */
static void note(struct record *record, uint64_t *number, const char *path,
                 const void *data)
{
  record->path_length= (uint32_t) strlen(path);
  struct iovec parts[3]= {{record, sizeof *record}, {(void*) path, record->path_length},
                          {(void*) data, record->length}};
  ssize_t length= (ssize_t) (sizeof *record + record->path_length +
                             record->length);
  pthread_mutex_lock(&mutex);
  *number= ++now;
  if (writev(journal, parts, 3) != length)
    die("journal");
  pthread_mutex_unlock(&mutex);
}

/* The change that the record has noted is done */
static void note_end(struct record *record, char type, const char *what,
                     const char *path)
{
  record->type= type;
  record->length= 0;
  note(record, &record->ended, path, "");
  event(what, path, (off_t) record->offset);
}

/* Write at offset, or at the file's position if that is negative */
static ssize_t write_file(int fd, const void *buffer, size_t size, off_t offset)
{
  char path[4096];
  const int append= offset < 0;
  struct record record= {'W', (uint32_t) size, 0, 0, 0, inode_of(fd), 0, 0};
  void *old;
  ssize_t result, length;

  if (!is_watched(fd, path))
    return append ? NEXT(write)(fd, buffer, size)
      : NEXT(pwrite64)(fd, buffer, size, offset);
  if (append && (offset= lseek(fd, 0, SEEK_CUR)) < 0)
    die("lseek");
  record.offset= (uint64_t) offset;
  step("step-write", path);
  hold("write", path, offset);

  /* Aligned for O_DIRECT */
  if (posix_memalign(&old, 4096, size))
    die("memory");
  length= NEXT(pread64)(fd, old, size, offset);
  if (length < 0 && errno == EBADF)
  {
    /* Open for writing only */
    int readable= NEXT(open64)(path, O_RDONLY | O_CLOEXEC);
    length= NEXT(pread64)(readable, old, size, offset);
    close(readable);
  }
  if (length < 0)
    die("read before write");
  memset((char*) old + length, 0, size - (size_t) length);
  record.length= append ? (uint32_t) length : record.size;
  note(&record, &record.number, path, old);
  free(old);

  result= append ? NEXT(write)(fd, buffer, size)
    : NEXT(pwrite64)(fd, buffer, size, offset);
  note_end(&record, fcntl(fd, F_GETFL) & O_DSYNC ? 'D' : 'E', "write", path);
  return result;
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
  return write_file(fd, buffer, size, offset);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
  return root ? write_file(fd, buffer, size, -1) : NEXT(write)(fd, buffer, size);
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off_t offset)
  __attribute__((alias("pwrite")));

int fallocate64(int fd, int mode, off_t offset, off_t length)
{
  char path[4096];
  struct record record= {'L', 0, 0, 0, 0, inode_of(fd), 0, 0};
  struct stat status;
  int result;

  if (mode || !is_watched(fd, path) || fstat(fd, &status) ||
      offset + length <= status.st_size)
    return NEXT(fallocate64)(fd, mode, offset, length);
  step("step-extend", path);
  record.offset= (uint64_t) status.st_size;
  note(&record, &record.number, path, "");
  result= NEXT(fallocate64)(fd, mode, offset, length);
  note_end(&record, 'E', "extend", path);
  return result;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
  __attribute__((alias("fallocate64")));

static int sync_file(int fd, int (*next)(int))
{
  char path[4096];
  struct record record= {'S', 0, 0, 0, 0, inode_of(fd), 0, 0};
  uint64_t unused;
  int result;

  if (sync_delay)
    usleep(sync_delay);
  if (!is_watched(fd, path))
    return next(fd);
  step("step-sync", path);
  hold("sync", path, 0);
  pthread_mutex_lock(&mutex);
  record.number= ++now;
  pthread_mutex_unlock(&mutex);
  result= next(fd);
  if (!result)
    note(&record, &unused, path, "");
  event("sync", path, 0);
  hold("synced", path, 0);
  return result;
}

int fsync(int fd)
{
  return sync_file(fd, NEXT(fsync));
}

int fdatasync(int fd)
{
  return sync_file(fd, NEXT(fdatasync));
}

/* A read begins: let it take longer, if it is of a slow file */
static void delay_read(int fd)
{
  char path[4096];
  if (!read_delay || !path_of(fd, path))
    return;
  for (const char *word= slow_files; *word; )
  {
    size_t size= strcspn(word, " ");
    if (ends_with(path, word, size))
    {
      usleep(read_delay);
      return;
    }
    word+= size + (word[size] == ' ');
  }
}

ssize_t read(int fd, void *buffer, size_t count)
{
  delay_read(fd);
  return NEXT(read)(fd, buffer, count);
}

ssize_t pread64(int fd, void *buffer, size_t count, off64_t offset)
{
  delay_read(fd);
  return NEXT(pread64)(fd, buffer, count, offset);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset)
  __attribute__((alias("pread64")));

/* The file of that inode has another name (type 'N'), or none (type 'U') */
static void note_name(char type, uint64_t inode, const char *path)
{
  struct record record= {type, 0, 0, 0, 0, inode, 0, 0};
  uint64_t unused;
  char absolute[PATH_MAX]= "";
  if (inode && (type == 'U' || realpath(path, absolute)))
    note(&record, &unused, absolute, "");
}

/* The inode of a path; 0 if there is none, or no journal */
static uint64_t inode_at(const char *path)
{
  struct stat status;
  return !directory || lstat(path, &status) ? 0 : status.st_ino;
}

int unlink(const char *path)
{
  const uint64_t inode= inode_at(path);
  int result;
  step("step-unlink", path);
  if (!(result= NEXT(unlink)(path)))
    note_name('U', inode, "");
  return result;
}

int rmdir(const char *path)
{
  step("step-rmdir", path);
  return NEXT(rmdir)(path);
}

int mkdir(const char *path, mode_t mode)
{
  step("step-mkdir", path);
  return NEXT(mkdir)(path, mode);
}

int rename(const char *from, const char *to)
{
  const uint64_t inode= inode_at(from), replaced= inode_at(to);
  int result;
  step("step-rename", to);
  if (!(result= NEXT(rename)(from, to)))
  {
    note_name('U', replaced, "");
    note_name('N', inode, to);
  }
  return result;
}

int close(int fd)
{
  static const char deleted[]= " (deleted)";     // Linux says it after the path
  const size_t size= sizeof deleted - 1;
  char path[4096];
  if (directory && path_of(fd, path) && ends_with(path, deleted, size))
  {
    path[strlen(path) - size]= 0;
    hold("close", path, 0);
  }
  return NEXT(close)(fd);
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
    step("step-create", path);
  }
  if (directory)
    hold("open", path, flags & O_ACCMODE);
  return NEXT(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));

int inflate(void *stream, int flush)
{
  if (directory)
    hold("inflate", "page", 0);
  return NEXT(inflate)(stream, flush);
}
