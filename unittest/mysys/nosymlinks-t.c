/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Proves: if a filter of system calls makes openat2() fail with any error, the
  server and a stand-alone tool (which opens files by absolute names) still open
  files, and still refuse links.
*/

#include <my_global.h>
#include <my_sys.h>
#include <m_string.h>
#include <my_nosymlinks.h>
#include <tap.h>
#include <errno.h>
#include <fcntl.h>

#ifdef __linux__
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

#if defined(__linux__) && defined(SYS_openat2)

/* Make openat2() fail in this process from now on. Return 0 if that works */
static int refuse_openat2(int error)
{
  struct sock_filter program[]=
  {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned) error),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  };
  struct sock_fprog filter= { array_elements(program), program };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/*
  Try the functions in a child process. Return what works, as bits; 128 if the
  process can have no filter

  error   of openat2(), or 0
  prefix  "./" for the server, or the directory's absolute name and '/'
*/
static int files_that_open(int error, const char *prefix)
{
  char name[FN_REFLEN];
  int status, result= 0;
  pid_t child= fork();
  if (child)
    return waitpid(child, &status, 0) == child && WIFEXITED(status)
      ? WEXITSTATUS(status) : -1;
  if (error && refuse_openat2(error))
    _exit(128);
  if (*prefix == '.')
    my_table_path_init();
  strxmov(name, prefix, "dir/file", NullS);
  if (my_open_nosymlinks(name, O_RDONLY, 0) >= 0)
    result|= 1;
  strxmov(name, prefix, "dir/link", NullS);
  if (my_open_nosymlinks(name, O_RDONLY, 0) < 0 && errno == ELOOP)
    result|= 2;
  strxmov(name, prefix, "linkdir/file", NullS);
  if (my_open_nosymlinks(name, O_RDONLY, 0) < 0 &&
      (errno == ENOTDIR || (errno == ELOOP && *prefix == '.')))
    result|= 4;
  strxmov(name, prefix, "dir/none", NullS);
  if (my_open_nosymlinks(name, O_RDONLY, 0) < 0 && errno == ENOENT)
    result|= 8;
  _exit(result);
}

int main(int argc __attribute__((unused)), char **argv)
{
  static const int errors[]= { 0, EPERM, EACCES, ENOTSUP, ENOSYS };
  char dir[]= "/tmp/nosymlinks-XXXXXX";
  char prefix[FN_REFLEN + 1]= "";
  uint i;
  int made;

  MY_INIT(argv[0]);
  plan(2 * array_elements(errors) + 1);
  made= mkdtemp(dir) && !chdir(dir) && !mkdir("dir", 0700) &&
    close(creat("dir/file", 0600)) == 0 && !symlink("file", "dir/link") &&
    !symlink("dir", "linkdir") && getcwd(prefix, FN_REFLEN);
  strmov(strend(prefix), "/");
  ok(made, "files are made");
  for (i= 0; i < 2 * array_elements(errors); i++)
  {
    int error= errors[i / 2], opened;
    opened= made ? files_that_open(error, i % 2 ? prefix : "./") : 0;
    if (opened == 128)
      skip(1, "no filters of system calls here");
    else
      ok(opened == 15, "openat2() fails with error %d, in %s: %d", error,
         i % 2 ? "a tool" : "the server", opened);
  }
  if (made)
  {
    unlink("dir/file");
    unlink("dir/link");
    unlink("linkdir");
    rmdir("dir");
    if (!chdir("/"))
      rmdir(dir);
  }
  my_end(0);
  return exit_status();
}

#else

int main(void)
{
  skip_all("openat2() is Linux's");
  return 0;
}

#endif
