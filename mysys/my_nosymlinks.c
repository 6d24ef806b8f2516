/* SPDX-License-Identifier: GPL-2.0-only */

/* Open files without following symbolic links. See my_nosymlinks.h */

#include "mysys_priv.h"
#include "mysys_err.h"
#include <m_string.h>
#include <errno.h>
#include <fcntl.h>
#include <my_atomic.h>
#include <my_nosymlinks.h>
#include <mysql/psi/mysql_file.h>
#ifndef _WIN32
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#if defined(SYS_openat2) && defined(__has_include)
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define HAVE_OPENAT2
#endif
#endif
#endif

/*
  Defined if a name without links is unique. It is not

  1. where my_open_nosymlinks() can't refuse a link in the name of a directory;
  2. on macOS, where 'T1.MYI' and 't1.MYI' may be the same file.

  There the server resolves every name.
*/
#if defined(HAVE_OPEN_PARENT_DIR_NOSYMLINKS) && !defined(__APPLE__)
#define NAMES_ARE_UNIQUE
#endif

/*
  Real name of the data directory with a '/' at its end, and its length. The
  server sets them once, before it starts other threads. Stand-alone tools do
  not call my_table_path_init(): the name stays empty, and they resolve every
  name.
*/
static char data_dir[FN_REFLEN];
static size_t data_dir_length;

#ifdef HAVE_OPENAT2
/*
  Whether the kernel has openat2() (from 5.6 on) and no filter of system calls
  refuses it. The server tries that before it starts other threads, stand-alone
  tools when they open their first file.
*/
enum { OPENAT2_UNKNOWN, OPENAT2_WORKS, OPENAT2_MISSING };
static int32 openat2_state;

static my_bool openat2_works(void)
{
  int fd;
  struct open_how how;
  bzero(&how, sizeof(how));
  how.flags= O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve= RESOLVE_NO_SYMLINKS;
  if ((fd= (int) syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how))) < 0)
    return FALSE;
  close(fd);
  return TRUE;
}


static my_bool use_openat2(void)
{
  int32 state= my_atomic_load32_explicit(&openat2_state,
                                         MY_MEMORY_ORDER_RELAXED);
  if (unlikely(state == OPENAT2_UNKNOWN))
  {
    /* Relaxed: several threads may find out, and store the same */
    const char *wanted= getenv("MARIADB_OPENAT2");
    state= (wanted && !strcmp(wanted, "0")) || !openat2_works() ?
      OPENAT2_MISSING : OPENAT2_WORKS;
    my_atomic_store32_explicit(&openat2_state, state, MY_MEMORY_ORDER_RELAXED);
  }
  return state == OPENAT2_WORKS;
}
#endif


/**
  Remember the working directory, which is the server's data directory

  The server calls this after it has changed to its data directory, and before
  several threads open tables. It does not change the directory again.

  Without NAMES_ARE_UNIQUE the function remembers nothing, and the server
  resolves every name.

  The function also tries whether openat2() works, for two reasons. A filter of
  system calls may make it fail with any error, which the server must not
  mistake for an error of the file. And each open would cost a useless call.
  If the filter kills the process instead, an administrator can set the
  environment variable MARIADB_OPENAT2=0.
*/

void my_table_path_init(void)
{
#ifdef HAVE_OPENAT2
  openat2_state= OPENAT2_UNKNOWN;
  (void) use_openat2();
#endif
#ifdef NAMES_ARE_UNIQUE
  data_dir_length= 0;
  if (getcwd(data_dir, sizeof(data_dir) - 1) && data_dir[0] == '/')
    data_dir_length= (size_t) (strend(data_dir) - data_dir);
  if (data_dir_length && data_dir[data_dir_length - 1] != '/')
    data_dir[data_dir_length++]= '/';
#endif
}


/*
  TRUE if name has the form './database/table', and all its characters are ones
  that tablename_to_filename() can write
*/

static my_bool is_encoded_table_name(const char *name)
{
  uint slashes= 0;
  if (name[0] != '.' || name[1] != '/')
    return FALSE;
  for (name++; *name; name++)
  {
    char c= *name;
    if (c == '/')
    {
      slashes++;
      if (name[1] == '/' || !name[1])
        return FALSE;
    }
    else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9') || c == '_' || c == '@' || c == '#' ||
               c == '$' || c == '-'))
      return FALSE;
  }
  return slashes == 2;
}


/**
  Name of a table's file, with the extension of the engine

  @param to    buffer of FN_REFLEN
  @param name  name of the table
  @param ext   extension of the file
  @param flag  for fn_format()

  @return to, as fn_format(to, name, "", ext, flag) sets it

  If the server has made the name, './database/table', then fn_format() would
  have nothing to expand or to clean up, and no extension to replace. So the
  function only appends the extension.
*/

char *my_table_file_name(char *to, const char *name, const char *ext,
                         uint flag)
{
  DBUG_ASSERT(!(flag & ~(MY_UNPACK_FILENAME | MY_APPEND_EXT |
                         MY_REPLACE_EXT)));
  if (!is_encoded_table_name(name) || strlen(name) + strlen(ext) >= FN_LEN)
    return fn_format(to, name, "", ext, flag);
  strxmov(to, name, ext, NullS);
#ifndef DBUG_OFF
  {
    char formatted[FN_REFLEN];
    DBUG_ASSERT(!strcmp(to, fn_format(formatted, name, "", ext, flag)));
  }
#endif
  return to;
}


/**
  Absolute name of a table's file in the data directory

  @param to    buffer of FN_REFLEN
  @param name  name of the file

  @return TRUE if the name has the form './database/file': 'to' is the name that
          realpath() would return if no component is a symbolic link. FALSE
          otherwise: the caller has to resolve the name.
*/

my_bool my_table_path(char *to, const char *name)
{
  const char *slash;
  if (!data_dir_length || name[0] != '.' || name[1] != '/' ||
      !(slash= strchr(name + 2, '/')) || slash == name + 2 ||
      !slash[1] || strchr(slash + 1, '/') ||
      !strncmp(name + 2, "./", 2) || !strncmp(name + 2, "../", 3) ||
      !strcmp(slash, "/.") || !strcmp(slash, "/..") ||
      data_dir_length + strlen(name) >= FN_REFLEN)
    return FALSE;
  memcpy(to, data_dir, data_dir_length);
  strmov(to + data_dir_length, name + 2);
  return TRUE;
}


/**
  Resolve the name of a directory, as my_realpath() does

  For a name of the form './database/' the function makes one system call,
  whatever the name of the data directory. The performance schema calls it for
  each file that a thread opens.
*/

int my_realpath_of_dir(char *to, const char *dir)
{
#ifdef NAMES_ARE_UNIQUE
  const char *slash;
  char name[FN_REFLEN], c;
  size_t length;
  if (data_dir_length && dir[0] == '.' && dir[1] == '/' && dir[2] != '.' &&
      (slash= strchr(dir + 2, '/')) && slash != dir + 2 && !slash[1] &&
      data_dir_length + (length= (size_t) (slash - dir)) < FN_REFLEN)
  {
    strmake(name, dir, length);
    if (readlink(name, &c, 1) < 0 && errno == EINVAL)   /* It is not a link */
    {
      memcpy(to, data_dir, data_dir_length);
      strmov(to + data_dir_length, name + 2);
      return 0;
    }
  }
#endif
  return my_realpath(to, dir, MYF(0));
}


/*
  TRUE if name has the form './database/file' and my_table_path() made
  unique_name from it. Then no component of the name was a symbolic link when
  the server opened the file, and the server must not follow a later link.
*/

my_bool my_is_table_path(const char *unique_name, const char *name)
{
  char real_name[FN_REFLEN];
  return my_table_path(real_name, name) && !strcmp(real_name, unique_name);
}


/**
  Find the name by which to open the index file of an open table again

  @param unique_name  of the file
  @param name         by which the table was opened

  @return name, if it is relative to the data directory and names the same file:
          then the server finds the file even if a user has moved the data
          directory since the server started. unique_name otherwise. The caller
          must not follow a link when it opens the file.
*/

const char *my_reopen_name(const char *unique_name, const char *name)
{
  return my_is_table_path(unique_name, name) ? name : unique_name;
}


#ifdef HAVE_OPEN_PARENT_DIR_NOSYMLINKS
/*
  TRUE if the name is absolute, or relative to the working directory with './'
  at its start, and has no other '.', no '..' and no empty component. Only then
  does the name itself list the directories that lead to the file.
*/

static my_bool is_plain_path(const char *name)
{
  if (name[0] == '.')
    name++;
  if (name[0] != '/')
    return FALSE;
  while (*name)
  {
    size_t length= 0;
    name++;                                     /* Skip '/' */
    while (name[length] && name[length] != '/')
      length++;
    if (!length || (length == 1 && name[0] == '.') ||
        (length == 2 && name[0] == '.' && name[1] == '.'))
      return FALSE;
    name+= length;
  }
  return TRUE;
}


/* Open the directories of a plain path one by one, then the file */

static int open_along_directories(const char *name, int flags, int mode)
{
  const char *filename= NULL;
  int dfd= -1, fd, save_errno;

  if (name[0] == '.')
  {
    /* At most one level, see my_table_path() */
    const char *slash= strchr(name + 2, '/');
    char dir[FN_REFLEN];
    if (!slash)
      return open(name, flags | O_NOFOLLOW, mode);
    if ((size_t) (slash - name) >= sizeof(dir) || strchr(slash + 1, '/'))
    {
      errno= ENAMETOOLONG;
      return -1;
    }
    strmake(dir, name, (size_t) (slash - name));
    if ((dfd= open(dir, O_NOFOLLOW | O_PATH | O_CLOEXEC)) < 0)
      return -1;
    filename= slash + 1;
  }
  else if (!(filename= my_open_parent_dir_nosymlinks(name, &dfd)))
    return -1;
  fd= openat(dfd, filename, flags | O_NOFOLLOW, mode);
  save_errno= errno;
  if (dfd >= 0)
    close(dfd);
  errno= save_errno;
  return fd;
}


/*
  If O_NOFOLLOW refuses a symbolic link, some systems return an error of their
  own: EMLINK on FreeBSD, EFTYPE on NetBSD. open() returns these for nothing
  else
*/

static int link_refused(int fd)
{
#if defined(EMLINK) && !defined(__linux__)
  if (fd < 0 && errno == EMLINK)
    errno= ELOOP;
#endif
#ifdef EFTYPE
  if (fd < 0 && errno == EFTYPE)
    errno= ELOOP;
#endif
  return fd;
}


/**
  Open a file, following no symbolic link

  @param name   absolute name as returned by realpath(), or './directory/file'
  @param flags  for open(). Creates no file.
  @param mode   for open()

  @return file descriptor, or -1 and errno: ENOTDIR if a directory of the name
          is a symbolic link, ELOOP if the file is, ENOENT if the name does not
          have the right form, otherwise as from open(). For a relative name,
          errno may be ELOOP instead of ENOTDIR: the caller then resolves the
          name.
*/

int my_open_nosymlinks(const char *name, int flags, int mode)
{
  if (!is_plain_path(name))
  {
    errno= ENOENT;
    return -1;
  }
  DBUG_EXECUTE_IF("open_nosymlinks_no_descriptors",
                  { errno= EMFILE; return -1; });
#ifdef HAVE_OPENAT2
  if (!(flags & O_CREAT) && !DBUG_IF("openat2_missing") && use_openat2())
  {
    int fd;
    struct open_how how;
    bzero(&how, sizeof(how));
    how.flags= (ulonglong) flags | O_NOFOLLOW;
#ifdef O_LARGEFILE
    how.flags|= O_LARGEFILE;    /* As open() does on systems with 32 bits */
#endif
    how.resolve= RESOLVE_NO_SYMLINKS;
    if ((fd= (int) syscall(SYS_openat2, AT_FDCWD, name, &how,
                           sizeof(how))) >= 0)
      return fd;
    switch (errno) {
    case ENOSYS:
      my_atomic_store32_explicit(&openat2_state, OPENAT2_MISSING,
                                 MY_MEMORY_ORDER_RELAXED);
      break;
    case ELOOP:                 /* A directory or the file is a link */
      if (name[0] == '.')
        return -1;
      break;
    case EPERM:                                 /* A filter of system calls */
    case EINVAL:
    case EAGAIN:
      break;
    default:
      return -1;
    }
  }
#endif
  return link_refused(open_along_directories(name, flags, mode));
}
#elif !defined(_WIN32)
/* Without O_PATH compare the name with its realpath(), as MariaDB does */
CREATE_NOSYMLINK_FUNCTION(
  open_real_path(const char *pathname, int flags, mode_t mode),
  openat(dfd, filename, O_NOFOLLOW | flags, mode),
  open(pathname, O_NOFOLLOW | flags, mode)
);

int my_open_nosymlinks(const char *name, int flags, int mode)
{
  return open_real_path(name, flags, (mode_t) mode);
}
#endif


/**
  Open a table's index file in the data directory, if it is not a symbolic link

  @param      key        of the file, for the performance schema
  @param      name       './database/table.ext', see my_table_path()
  @param      mode       the mode that the caller needs, O_RDWR or O_RDONLY
  @param      flags      for mysql_file_open()
  @param[out] open_mode  the mode in which the function has opened the file

  @return descriptor, or -1 and my_errno: ELOOP or ENOTDIR if there is a
          symbolic link in the name

  The function opens the file for writing if it can, even if the caller needs it
  only for reading, as MariaDB does. It ignores HA_OPEN_FORCE_MODE, which only
  stand-alone tools set: these have no data directory and do not come here.
*/

File my_open_index_in_data_dir(PSI_file_key key __attribute__((unused)),
                               const char *name, int mode, myf flags,
                               int *open_mode)
{
  File file;
  DEBUG_SYNC_C("mi_open_in_data_dir");
  file= mysql_file_open(key, name, (*open_mode= O_RDWR) | O_SHARE |
                        O_NOFOLLOW | O_CLOEXEC,
                        MYF(flags | MY_NOSYMLINKS));
  if (file < 0 && (my_errno == EROFS || my_errno == EACCES) &&
      mode == O_RDONLY)
    file= mysql_file_open(key, name, (*open_mode= O_RDONLY) | O_SHARE |
                          O_NOFOLLOW | O_CLOEXEC,
                          MYF(flags | MY_NOSYMLINKS));
  return file;
}


/**
  Open a table's data file in the data directory, if it is not a symbolic link

  @param key    of the file, for the performance schema
  @param name   './database/table.ext', in the directory of an index file that
                my_open_index_in_data_dir() has opened
  @param mode   O_RDWR or O_RDONLY
  @param flags  for mysql_file_open()

  @return descriptor, or -1 without an error message: the caller then checks
          whether the file is a link, and if not, opens it in another way
*/

File my_open_data_in_data_dir(PSI_file_key key __attribute__((unused)),
                              const char *name, int mode, myf flags)
{
  DEBUG_SYNC_C("mi_open_data_in_data_dir");
  DBUG_EXECUTE_IF("open_datafile_no_descriptors", return -1;);
  return mysql_file_open(key, name, mode | O_SHARE | O_CLOEXEC | O_NOFOLLOW,
                         MYF(flags | MY_NOSYMLINKS));
}


/* Id of this process. It never changes, so ask the kernel only once */

ulong my_process_id(void)
{
  static int32 process;
  int32 res= my_atomic_load32_explicit(&process, MY_MEMORY_ORDER_RELAXED);
  if (unlikely(!res))
  {
    res= (int32) getpid();
    my_atomic_store32_explicit(&process, res, MY_MEMORY_ORDER_RELAXED);
  }
  return (ulong) res;
}
