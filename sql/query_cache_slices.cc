/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/sql_cache.cc:
   Copyright (c) 2000, 2013, Oracle and/or its affiliates.
   Copyright (c) 2010, 2017, MariaDB Corporation */

/**
  @file

  Query cache: slices of long work, and the reclaiming thread.

  A thread cuts work that may take long into slices. In each slice it holds the
  cache's lock for about SLICE (the reclaiming thread: RECLAIM_SLICE). Then it
  pauses, so that other threads get the lock. Without the pause this thread
  would take the lock again before a woken waiter runs.

  The reclaiming thread (reclaim_loop()) frees dead results. A thread that
  releases the lock and leaves dead results wakes it (want_reclaim()). Without
  this thread, Qcache_free_memory would not rise again after an invalidation, as
  administrators expect, and each statement that stores a result would pay for
  the invalidations of others.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "query_cache_parts.h"
#include "debug_sync.h"
#include "log.h"                                // sql_print_warning

/*
  Time for which the reclaiming thread holds the lock in one slice. Like the
  other times here, it is in nanoseconds. It is shorter than SLICE because
  statements that have invalidated nothing wait for it: measured with one client,
  the longest of these waits was 0.54 ms with slices of 0.5 ms and 0.37 ms with
  these.
*/
static constexpr ulonglong RECLAIM_SLICE= 100000;
/* A pause is as long as the slice was, plus this time */
static constexpr ulonglong PAUSE= 200000;
static constexpr ulonglong LONGEST_PAUSE= 50000000;

/*
  One stage for all waits here. SHOW PROCESSLIST shows it. The performance
  schema does not know it: performance_schema_max_stage_classes is 160 by
  default, MariaDB has 158 stages, mysys has a new one, and the last place is
  for a plugin, such as MyRocks.
*/
PSI_stage_info stage_waiting_to_maintain_query_cache=
{ 0, "Waiting to maintain the query cache", 0 };


/**
  Take the cache's lock for maintenance. The thread may have no THD, and the
  cache need not be enabled.
*/

void Query_cache::lock_slice(THD *thd)
{
  if (thd)
  {
    lock(thd);
    return;
  }
  mysql_mutex_lock(&structure_guard_mutex);
  m_requests_in_progress++;
  while (m_cache_lock_status != UNLOCKED)
    mysql_cond_wait(&COND_cache_status_changed, &structure_guard_mutex);
  m_cache_lock_status= LOCKED;
  mysql_mutex_unlock(&structure_guard_mutex);
}


/**
  Release the cache's lock, let other threads have it, and take it again.

  @return whether the cache still exists
*/

bool Query_cache::next_slice(THD *thd)
{
  unlock();
#ifdef ENABLED_DEBUG_SYNC
  if (thd)
    DEBUG_SYNC(thd, "query_cache_slice_ends");
#endif
  my_sleep((SLICE + PAUSE) / 1000);
  lock_slice(thd);
  return query_cache_size > 0;
}


/** Whether a slice ends after step number 'step'; the first one is 1. */

bool query_cache_slice_is_over(uint step, ulonglong deadline)
{
  return step % 8 == 0 &&
         (my_interval_timer() >= deadline ||
          DBUG_IF("query_cache_short_slices"));
}


Query_cache_right query_cache_may_pack, query_cache_may_walk;


/**
  Wait until no other thread has the right, and take it. The caller holds no
  lock.

  A thread sets a stage only if it has to wait: in MariaDB a flush has only one
  stage, that of the cache's lock, and perfschema.stage_mdl_global counts them.

  @return whether a user has killed the thread, and it has given up
*/

bool Query_cache_right::begin(THD *thd, mysql_mutex_t *mutex)
{
  mysql_mutex_lock(mutex);
  if (likely(!taken))
  {
    taken= true;
    mysql_mutex_unlock(mutex);
    return false;
  }
  PSI_stage_info old_stage;
  thd->ENTER_COND(&given_back, mutex, &stage_waiting_to_maintain_query_cache,
                  &old_stage);
  while (taken && !thd->killed)
    mysql_cond_wait(&given_back, mutex);
  const bool given_up= taken;
  taken= true;
  thd->EXIT_COND(&old_stage);                   // unlocks
  return given_up;
}


/** Give the right back. The thread that this wakes takes it even if killed. */

void Query_cache_right::end(mysql_mutex_t *mutex)
{
  mysql_mutex_lock(mutex);
  DBUG_ASSERT(taken);
  taken= false;
  mysql_cond_signal(&given_back);
  mysql_mutex_unlock(mutex);
}


#ifdef HAVE_PSI_INTERFACE
static PSI_mutex_key key_LOCK_pack, key_LOCK_database, key_LOCK_resize;
static PSI_cond_key key_COND_pack, key_COND_database, key_COND_resize,
                    key_COND_reclaim;
static PSI_thread_key key_thread_reclaim;
static PSI_mutex_info reclaim_mutexes[]=
{
  { &key_LOCK_pack, "Query_cache::LOCK_pack", 0 },
  { &key_LOCK_database, "Query_cache::LOCK_database", 0 },
  { &key_LOCK_resize, "Query_cache::LOCK_resize", 0 }
};
static PSI_cond_info reclaim_conds[]=
{
  { &key_COND_pack, "Query_cache::COND_pack", 0 },
  { &key_COND_database, "Query_cache::COND_database", 0 },
  { &key_COND_resize, "Query_cache::COND_resize", 0 },
  { &key_COND_reclaim, "Query_cache::COND_reclaim", 0 }
};
static PSI_thread_info reclaim_threads[]=
{{ &key_thread_reclaim, "query_cache_reclaim", PSI_FLAG_GLOBAL }};
#endif


void Query_cache::init_reclaim()
{
#ifdef HAVE_PSI_INTERFACE
  mysql_mutex_register("sql", reclaim_mutexes,
                       array_elements(reclaim_mutexes));
  mysql_cond_register("sql", reclaim_conds, array_elements(reclaim_conds));
  mysql_thread_register("sql", reclaim_threads,
                        array_elements(reclaim_threads));
#endif
  mysql_mutex_init(key_LOCK_pack, &LOCK_pack, MY_MUTEX_INIT_SLOW);
  mysql_mutex_init(key_LOCK_database, &LOCK_database, MY_MUTEX_INIT_SLOW);
  mysql_mutex_init(key_LOCK_resize, &query_cache_resizes.mutex,
                   MY_MUTEX_INIT_SLOW);
  mysql_cond_init(key_COND_pack, &query_cache_may_pack.given_back, NULL);
  mysql_cond_init(key_COND_database, &query_cache_may_walk.given_back, NULL);
  mysql_cond_init(key_COND_resize, &query_cache_resizes.woken, NULL);
  mysql_cond_init(key_COND_reclaim, &COND_reclaim, NULL);
  epoch= 1;
  changes= 1;
}


/**
  Called by a thread that releases the lock, with structure_guard_mutex.
*/

void Query_cache::want_reclaim()
{
  /*
    One signal is enough: the thread reads the flag before it waits for a signal
  */
  if (dead_tables && !reclaim_wanted)
  {
    reclaim_wanted= true;
    mysql_cond_signal(&COND_reclaim);
  }
}


/**
  The reclaiming thread: free dead results, slice by slice.

  structure_guard_mutex protects reclaim_wanted and reclaim_stop.
*/

void Query_cache::reclaim_loop()
{
  mysql_mutex_lock(&structure_guard_mutex);
  while (!reclaim_stop)
  {
    if (!reclaim_wanted)
    {
      mysql_cond_wait(&COND_reclaim, &structure_guard_mutex);
      continue;
    }
    reclaim_wanted= false;
    mysql_mutex_unlock(&structure_guard_mutex);

    ulonglong pause= LONGEST_PAUSE;
    if (!DBUG_IF("query_cache_thread_rests"))
    {
      lock_slice(NULL);
      const ulonglong begin= my_interval_timer();
      const uint freed= reclaim(UINT_MAX, begin + RECLAIM_SLICE);
      unlock();
      /* A slice may seem very long if the process was stopped during it */
      if (freed)
        pause= MY_MIN(my_interval_timer() - begin, LONGEST_PAUSE) + PAUSE;
    }
    /* Sleep: a timed wait on a condition would go by the wall clock */
    my_sleep((ulong) (pause / 1000));
    mysql_mutex_lock(&structure_guard_mutex);
  }
  mysql_mutex_unlock(&structure_guard_mutex);
}


void *Query_cache::reclaim_thread_start(void *)
{
  my_thread_init();
  query_cache.reclaim_loop();
  my_thread_end();
  return NULL;
}


/**
  Start the reclaiming thread when the cache is first enabled.

  If it cannot start, the cache works without it, but dead results stay until a
  statement needs their memory.
*/

void Query_cache::start_reclaim_thread()
{
  mysql_mutex_lock(&structure_guard_mutex);
  if (m_cache_status == OK && !reclaim_thread_running)
  {
    reclaim_stop= false;
    if (int error= mysql_thread_create(key_thread_reclaim, &reclaim_thread,
                                       NULL, reclaim_thread_start, NULL))
      sql_print_warning("Can't create query cache reclaim thread (errno: %d)",
                        error);
    else
      reclaim_thread_running= true;
  }
  mysql_mutex_unlock(&structure_guard_mutex);
}


void Query_cache::end_reclaim()
{
  mysql_mutex_lock(&structure_guard_mutex);
  const bool running= reclaim_thread_running;
  reclaim_stop= true;
  reclaim_thread_running= false;
  mysql_cond_signal(&COND_reclaim);
  mysql_mutex_unlock(&structure_guard_mutex);
  if (running)
    pthread_join(reclaim_thread, NULL);
  mysql_cond_destroy(&COND_reclaim);
  mysql_cond_destroy(&query_cache_resizes.woken);
  mysql_cond_destroy(&query_cache_may_walk.given_back);
  mysql_cond_destroy(&query_cache_may_pack.given_back);
  mysql_mutex_destroy(&query_cache_resizes.mutex);
  mysql_mutex_destroy(&LOCK_database);
  mysql_mutex_destroy(&LOCK_pack);
}
