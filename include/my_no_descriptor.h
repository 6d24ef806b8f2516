/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MY_NO_DESCRIPTOR_INCLUDED
#define MY_NO_DESCRIPTOR_INCLUDED

/*
  What a thread does when the process, or the system, has no file descriptor left

  A server has descriptors open for tables that no statement uses. It sets
  my_no_descriptor_hook, which closes such tables. A thread that could not get a
  descriptor calls my_no_descriptor(), and tries again if that returns TRUE:

    uint tries= 0;
    do
      fd= open(...);
    while (fd < 0 && my_no_descriptor(&tries));

  The thread may hold locks: sql/no_descriptor.cc says why it may. Other
  programs have no hook: they get their error at once.
*/

#include <errno.h>

C_MODE_START

extern my_bool (*my_no_descriptor_hook)(uint *tries);

/* Number of my_close() by this thread */
#ifdef _MSC_VER
extern __declspec(thread) ulong my_files_closed;
#else
extern __thread ulong my_files_closed;
#endif

/**
  A call that needs a descriptor has failed, and set errno.

  @param tries  the caller's, 0 before its first call. For the hook

  @return TRUE: there may be a descriptor now. FALSE: errno is as before
*/

static inline my_bool my_no_descriptor(uint *tries)
{
  return (errno == EMFILE || errno == ENFILE) && my_no_descriptor_hook &&
         my_no_descriptor_hook(tries);
}

C_MODE_END

#endif /* MY_NO_DESCRIPTOR_INCLUDED */
