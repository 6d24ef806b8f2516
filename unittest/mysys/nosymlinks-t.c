/* SPDX-License-Identifier: GPL-2.0-only */

/*
  A filter of system calls that fails openat2() with some error does not keep
  files from being opened, and links are still refused.
*/

#include <my_global.h>
#include <my_sys.h>
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

/* From now on, openat2() fails in this process. Return 0 if that can be had */
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
  In a process of its own: what works, as bits; 128 if there can be no filter
*/
static int files_that_open(int error)
{
  int status, result= 0;
  pid_t child= fork();
  if (child)
    return waitpid(child, &status, 0) == child && WIFEXITED(status)
      ? WEXITSTATUS(status) : -1;
  if (error && refuse_openat2(error))
    _exit(128);
  my_table_path_init();
  if (my_open_nosymlinks("./dir/file", O_RDONLY, 0) >= 0)
    result|= 1;
  if (my_open_nosymlinks("./dir/link", O_RDONLY, 0) < 0 && errno == ELOOP)
    result|= 2;
  if (my_open_nosymlinks("./linkdir/file", O_RDONLY, 0) < 0 &&
      (errno == ENOTDIR || errno == ELOOP))
    result|= 4;
  if (my_open_nosymlinks("./dir/none", O_RDONLY, 0) < 0 && errno == ENOENT)
    result|= 8;
  _exit(result);
}

int main(int argc __attribute__((unused)), char **argv)
{
  static const int errors[]= { 0, EPERM, EACCES, ENOTSUP, ENOSYS };
  char dir[]= "/tmp/nosymlinks-XXXXXX";
  uint i;
  int made;

  MY_INIT(argv[0]);
  plan(array_elements(errors) + 1);
  made= mkdtemp(dir) && !chdir(dir) && !mkdir("dir", 0700) &&
    close(creat("dir/file", 0600)) == 0 && !symlink("file", "dir/link") &&
    !symlink("dir", "linkdir");
  ok(made, "files are made");
  for (i= 0; i < array_elements(errors); i++)
  {
    int opened= made ? files_that_open(errors[i]) : 0;
    if (opened == 128)
      skip(1, "no filters of system calls here");
    else
      ok(opened == 15, "openat2() fails with error %d: %d", errors[i], opened);
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
  plan(SKIP_ALL, "openat2() is Linux's");
  return 0;
}

#endif
