/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: SET GLOBAL query_cache_size, and disabling.

  A resize gives up the area, the memory of the whole cache, and allocates a new
  one. give_up_area() first resets the pointer of each statement that is writing
  a result, at most one per connection. Later the thread that removes the old
  area's last pin frees it with all its results (query_cache_pins.cc). Until
  then there are two areas.

  At most two areas exist. So a resize waits (wait_for_readers(), without locks)
  in two cases:

  1. One client still uses a given-up area and another one uses the current
     area, so that the new area would be the third. The resize waits until one
     of the clients is done.
  2. There is not enough memory for two areas. The resize waits until no thread
     uses a given-up area.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"
#include "debug_sync.h"
#include "mysqld.h"                             // LOCK_global_system_variables

/**
  Give up the area with all its results, if there is one.

  The caller holds the cache's lock, or no thread has it or can get it. This
  resets the pointers of the statements that write results. A thread that reads
  or copies a result has pinned the area.

  @return the area; the caller unpins it when it has no lock
*/

Query_cache_area *Query_cache::give_up_area()
{
  Query_cache_area *old= area;
  DBUG_ENTER("Query_cache::give_up_area");
  if (Query_cache_block *block= incomplete_blocks)
  {
    do
    {
      Query_cache_query *query= block->query();
      query->writer()->first_query_block= NULL;
      query->writer(0);
      refused++;
    } while ((block= block->next) != incomplete_blocks);
  }
  if (old)
  {
    given_up_areas++;
    given_up_memory+= old->length;
    my_hash_free(&queries);
    my_hash_free(&tables);
    memory->set_cursor(nullptr);
  }
  make_disabled();
  DBUG_RETURN(old);
}


Query_cache_resizes query_cache_resizes;


/**
  Wake up the resizes that wait, because something has happened for which they
  may wait. The caller may hold the cache's lock.

  No wake-up is lost, because all these operations have one order:

  1. The caller changes the count of pins or of areas, or 'settings'. Then it
     reads 'waiting'.
  2. The resize adds to 'waiting'. Then it reads 'events', and then the counts.

  So the caller sees that a resize waits, or the resize sees the change. If the
  resize has read the counts before the change, it finds 'events' changed, and
  does not sleep.
*/

void query_cache_wake_resizes()
{
  Query_cache_resizes *const resizes= &query_cache_resizes;
  if (likely(!resizes->waiting))
    return;
  mysql_mutex_lock(&resizes->mutex);
  resizes->events++;
  mysql_cond_broadcast(&resizes->woken);
  mysql_mutex_unlock(&resizes->mutex);
}


/**
  Wait until threads use at most a given number of areas. The caller is a resize
  and holds the cache's lock.

  The resize also holds LOCK_global_system_variables, which new connections
  need, so it releases both locks while it waits. When the server starts there
  is nothing to wait for. If another statement resizes or disables the cache
  meanwhile, or begins to, then this one gives up, because the other one came
  later.

  @param number number of the resize: the value that the caller gave 'settings'
  @param areas  number of areas that may be in use, the cache's own included
  @return whether the resize must give up: another one came later, or a user has
          killed it
*/

bool Query_cache::wait_for_readers(ulonglong number, size_t areas)
{
  THD *thd= current_thd;
  Query_cache_resizes *const resizes= &query_cache_resizes;
  bool too_many;
  resizes_waiting++;
  resizes->waiting++;
  for (;;)
  {
    const uint seen= resizes->events;
    too_many= given_up_areas + (area && area->pins > 1) > areas;
    if (!too_many || settings != number || !thd || thd->killed)
      break;
    unlock();
    mysql_mutex_unlock(&LOCK_global_system_variables);
    PSI_stage_info old_stage;
    mysql_mutex_lock(&resizes->mutex);
    thd->ENTER_COND(&resizes->woken, &resizes->mutex,
                    &stage_waiting_to_maintain_query_cache, &old_stage);
    while (resizes->events == seen && !thd->killed)
      mysql_cond_wait(&resizes->woken, &resizes->mutex);
    thd->EXIT_COND(&old_stage);                 // unlocks
    mysql_mutex_lock(&LOCK_global_system_variables);
    /* lock_slice() leaves 'settings' alone: it makes no other resize give up */
    lock_slice(thd);
    DEBUG_SYNC(thd, "query_cache_resize_looks");
  }
  resizes->waiting--;
  resizes_waiting--;
  return too_many || settings != number;
}


/**
  Release the cache's lock, unpin a given-up area, and take the lock again: it
  may take long to free gigabytes. The caller is a resize.

  Meanwhile the cache has size 0. LOCK_global_system_variables keeps others from
  resizing it.
*/

void Query_cache::unpin_without_lock(Query_cache_area **old)
{
  unlock();
  unpin_area(*old);
  *old= nullptr;
  lock_slice(current_thd);
}


/**
  The work of resize(): give up the area and get one of another size. The caller
  holds the cache's lock. Afterwards there are at most two areas, and only one
  if there is too little memory for two. set_size becomes the size of the cache,
  0 if there is none.

  @param      size the size that the administrator wants
  @param[out] old  the given-up area; the caller unpins it when it has no lock
  @return whether it has given up while it waited for threads that use an area
*/

bool Query_cache::replace_area(size_t size, Query_cache_area **old)
{
  const ulonglong number= ++settings;
  size_t new_size;
  DBUG_ENTER("Query_cache::replace_area");
  query_cache_wake_resizes();                   // they give up

  if (size && wait_for_readers(number, 1))
    DBUG_RETURN(true);
  *old= give_up_area();
  /* With another given-up area, free this one: two areas at most may exist */
  if (given_up_areas > 1)
    unpin_without_lock(old);
  no_memory= false;
  query_cache_size= size;
  new_size= init_cache();
  if (no_memory)
  {
    /* Free the old one first. Meanwhile other statements have no cache */
    unpin_without_lock(old);
    if (wait_for_readers(number, 0))
    {
      if (m_cache_status == OK && !area)
      {
        m_cache_status= DISABLED;
        set_size= 0;
      }
      DBUG_RETURN(true);
    }
    query_cache_size= size;
    new_size= init_cache();
  }
  set_size= new_size;
  DBUG_RETURN(false);
}
