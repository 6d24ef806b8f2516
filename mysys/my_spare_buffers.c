/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Spare buffers: memory that an object needs only while a thread uses it.

  For example, a handle of MyISAM or Aria needs two key blocks while a statement
  uses it. A server may have 100,000 handles open, and a few hundred in use. So a
  thread takes a buffer when the statement begins to use the handle, and gives it
  back when the statement ends.

  On Linux each CPU has a slot: a list of at most MOST_IN_SLOT buffers, last in,
  first out. So a thread mostly gets a buffer that is in the CPU's cache. On
  other systems all threads share one slot. A thread uses a slot in three steps:

  1. It takes the whole list out of the slot by one atomic exchange.
  2. It changes the list.
  3. It puts the list back by another exchange.

  If a second thread comes between steps 1 and 3, it finds the slot empty. It
  allocates a buffer, or puts in a list of its own. The thread that puts its
  list in last frees the list that it finds there. So no thread waits, and a
  list never has two owners.
*/

#include "mysys_priv.h"
#include "my_spare_buffers.h"
#include <my_atomic.h>
#ifdef __linux__
#include <sched.h>
#endif

/** Number of buffers: more than most statements have tables. */
#define MOST_IN_SLOT 16

typedef struct st_spare_buffer
{
  struct st_spare_buffer *next;
  uint count;                           /**< Buffers of the list from here on */
} SPARE_BUFFER;


static void **slot_of_cpu(MY_SPARE_BUFFERS *spare)
{
#ifdef __linux__
  int cpu= sched_getcpu();
  return &spare->slots[(uint) MY_MAX(cpu, 0) % MY_SPARE_SLOTS].first;
#else
  return &spare->slots[0].first;
#endif
}


static void free_list(SPARE_BUFFER *list)
{
  while (list)
  {
    SPARE_BUFFER *next= list->next;
    my_free(list);
    list= next;
  }
}


static SPARE_BUFFER *exchange(void **slot, SPARE_BUFFER *list)
{
  return (SPARE_BUFFER*) my_atomic_fasptr(slot, list);
}


/**
  Get a buffer from the pool, or allocate one.

  @param my_flags  MY_WME to report it if there is no memory, or 0

  @return at least 'size' bytes, with any content; NULL if out of memory
*/

uchar *my_take_buffer(MY_SPARE_BUFFERS *spare, PSI_memory_key key, size_t size,
                      myf my_flags)
{
  SPARE_BUFFER *list;
  void **slot;
  if (unlikely(size > spare->size))
    return (uchar*) my_malloc(key, size, my_flags);
  slot= slot_of_cpu(spare);
  if (unlikely(!(list= exchange(slot, NULL))))
    return (uchar*) my_malloc(key, spare->size, my_flags);
  if (list->next)
    free_list(exchange(slot, list->next));
  return (uchar*) list;
}


/** Give back what my_take_buffer() has returned for the same size. */

void my_give_buffer(MY_SPARE_BUFFERS *spare, uchar *buffer, size_t size)
{
  SPARE_BUFFER *own= (SPARE_BUFFER*) buffer, *list;
  void **slot;
  if (unlikely(size > spare->size))
  {
    my_free(buffer);
    return;
  }
  slot= slot_of_cpu(spare);
  list= exchange(slot, NULL);
  if (likely(!list || list->count < MOST_IN_SLOT))
  {
    own->next= list;
    own->count= list ? list->count + 1 : 1;
    list= own;
  }
  else
    my_free(buffer);
  free_list(exchange(slot, list));
}


/** Free all buffers of the pool, which no thread may use any more. */

void my_free_spare_buffers(MY_SPARE_BUFFERS *spare)
{
  uint n;
  for (n= 0; n < MY_SPARE_SLOTS; n++)
    free_list(exchange(&spare->slots[n].first, NULL));
}
