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
  /** Buffers of more bytes than this are allocated and freed each time. */
  size_t size;
  struct
  {
    void *first;
    char unused[CPU_LEVEL1_DCACHE_LINESIZE - sizeof(void*)];
  } slots[MY_SPARE_SLOTS];
} MY_SPARE_BUFFERS;

uchar *my_take_buffer(MY_SPARE_BUFFERS *spare, PSI_memory_key key, size_t size,
                      myf my_flags);
void my_give_buffer(MY_SPARE_BUFFERS *spare, uchar *buffer, size_t size);
void my_free_spare_buffers(MY_SPARE_BUFFERS *spare);

C_MODE_END

#endif /* MY_SPARE_BUFFERS_INCLUDED */
