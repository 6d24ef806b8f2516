/* SPDX-License-Identifier: GPL-2.0-only */

/* The hook of my_no_descriptor.h */

#include "mysys_priv.h"
#include "my_no_descriptor.h"

/*
  The server sets this before it starts threads that open files, and resets it
  while none of them waits in the hook.
*/
my_bool (*my_no_descriptor_hook)(uint *tries);

#ifdef _MSC_VER
__declspec(thread) ulong my_files_closed;
#else
__thread ulong my_files_closed;
#endif
