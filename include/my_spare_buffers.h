#ifndef MY_SPARE_BUFFERS_INCLUDED
#define MY_SPARE_BUFFERS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Buffers that a thread needs only while it uses an object, and that all objects
  of a kind share. my_spare_buffers.c has the functions.
*/

#include <my_global.h>
#include <my_sys.h>

C_MODE_START

/** CPUs with higher numbers share the slots of those with lower ones. */
#define MY_SPARE_SLOTS 64

typedef struct st_my_spare_buffers
{
  /**
    Buffers of more bytes than this are allocated and freed each time. Constant.
    Every CPU reads this, so no CPU may write to its cache line.
  */
  size_t size;
  char unused[CPU_LEVEL1_DCACHE_LINESIZE - sizeof(size_t)];
  /** The list of each CPU. Changed by atomic exchanges only. */
  struct
  {
    void *first;
    char unused[CPU_LEVEL1_DCACHE_LINESIZE - sizeof(void*)];
  } slots[MY_SPARE_SLOTS];
} MY_SPARE_BUFFERS;

/** Initializer of a static pool that has no buffers yet. */
#define MY_SPARE_BUFFERS_INIT(size) { (size), "", {{ NULL, "" }} }

uchar *my_take_buffer(MY_SPARE_BUFFERS *spare, PSI_memory_key key, size_t size,
                      myf my_flags);
void my_give_buffer(MY_SPARE_BUFFERS *spare, uchar *buffer, size_t size);
void my_free_spare_buffers(MY_SPARE_BUFFERS *spare);

C_MODE_END

#endif /* MY_SPARE_BUFFERS_INCLUDED */
