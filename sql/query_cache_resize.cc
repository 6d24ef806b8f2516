/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file

  Query cache: another size, and disabling.

  give_up_area() tells the writers of incomplete results, at most one a
  connection, and leaves the area with all that is in it to the last pin
  (query_cache_pins.cc). So for a moment there are two areas, the new one still
  untouched. There are never more: if one client keeps a given-up area and
  another one keeps the next, a resize waits for one of them, without any lock
  (wait_for_readers()). If there is not enough memory for two, it waits in the
  same way until there is none.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"
#include "debug_sync.h"
#include "mysqld.h"                             // LOCK_global_system_variables

/**
  Give up the area with all that is in it, if there is one.

  With the cache's lock, or when no thread has it or can get it. The statements
  that write results learn of it here. A thread that reads or copies has pinned
  the area.

  @return the area: the caller unpins it when it has no lock
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


/**
  Wait until no more than so many areas are in use. For a resize, with the cache's lock.

  The resize has LOCK_global_system_variables, which new connections need, so it
  releases both meanwhile. At start there is nothing to wait for. If another
  statement resizes or disables the cache meanwhile, or begins to, then this one
  gives up: the other one came later.

  @param number of the resize, as the caller has got it from 'settings'
  @param areas  that may be in use: given up ones, and the cache's
  @return whether the resize must give up: for that, or as it was killed
*/

bool Query_cache::wait_for_readers(ulonglong number, size_t areas)
{
  THD *thd= current_thd;
  PSI_stage_info old_stage= { 0, NULL, 0 };
  bool too_many, waited= false;
  resizes_waiting++;
  while ((too_many= given_up_areas + (area && area->pins > 1) > areas) &&
         settings == number && thd && !thd->killed)
  {
    unlock();
    mysql_mutex_unlock(&LOCK_global_system_variables);
    if (!waited)
      thd->backup_stage(&old_stage);
    waited= true;
    THD_STAGE_INFO(thd, stage_waiting_to_maintain_query_cache);
    my_sleep(10000);
    mysql_mutex_lock(&LOCK_global_system_variables);
    /* Only a look, so no other resize has to give up for it */
    lock_slice(thd);
    DEBUG_SYNC(thd, "query_cache_resize_looks");
  }
  resizes_waiting--;
  if (waited)
    THD_STAGE_INFO(thd, old_stage);
  return too_many || settings != number;
}


/**
  Unpin an area that the cache has given up, without the cache's lock: to free
  gigabytes takes long. For a resize, which has the lock.

  Meanwhile there is a cache of no size. LOCK_global_system_variables keeps
  others from resizing it.
*/

void Query_cache::unpin_without_lock(Query_cache_area **old)
{
  unlock();
  unpin_area(*old);
  *old= nullptr;
  lock_slice(current_thd);
}


/**
  The work of resize(), with the cache's lock: give up the area and get one of
  another size. There are not more than two areas with the new one, and if there
  is too little memory for two, then there is only one. set_size becomes the
  size of the cache, 0 if there is none.

  @param      size as the administrator wants it
  @param[out] old  the caller unpins it when it has no lock
  @return whether it has given up while it waited for those who use an area
*/

bool Query_cache::replace_area(size_t size, Query_cache_area **old)
{
  const ulonglong number= ++settings;
  size_t new_size;
  DBUG_ENTER("Query_cache::replace_area");

  if (size && wait_for_readers(number, 1))
    DBUG_RETURN(true);
  *old= give_up_area();
  /* Nobody uses it. The new one must be the second, not the third */
  if (given_up_areas > 1)
    unpin_without_lock(old);
  no_memory= false;
  query_cache_size= size;
  new_size= init_cache();
  if (no_memory)
  {
    /* Free the old one first. Others do without the cache meanwhile */
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
