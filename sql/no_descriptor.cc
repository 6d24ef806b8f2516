/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Without a descriptor, unused tables make room.

  A thread that cannot open a file, directory or socket, because the process or
  the system has no descriptor left (EMFILE, ENFILE), asks the closer for one,
  waits until the closer has closed an unused TABLE, and tries again. The closer
  is a thread that exists only for this. It evicts the TABLEs that were released
  longest ago. It starts when a thread asks for the first time.

  Why a thread of its own
  -----------------------
  A thread may hold any locks when it opens a file: those of the DDL log, the
  binary log, an engine, a plugin. To close a TABLE, a thread needs locks of the
  table cache, of the engine, and LOCK_plugin. Which locks the first thread holds
  is not known to mysys. The closer holds none. It locks what every thread locks
  that closes a TABLE, so that it adds nothing to the order of locks.

  What remains is that the closer needs a lock that a waiting thread holds.

  1. MyISAM and Aria: a thread that opens a table holds THR_LOCK_myisam or
     THR_LOCK_maria, or it owns the name of its file (my_open_index.h). The
     closer may want the same. So no thread waits within the engine's open() of a
     table, whatever the engine: open() fails, it releases its locks, and
     handler::ha_open() calls it again (Open_of_engine). If that is a base table,
     the thread may close others itself, as it does after it has opened one, in
     tc_add_table(). So threads that open tables at the limit depend on no other
     thread. Otherwise, or if no table was unused, it waits.
  2. MyISAM and Aria: a thread that creates a table owns a name, too, and waits
     with it. It has the exclusive metadata lock, or the name is that of a
     temporary table, so no TABLE of this name is free. Without open_index_stage.h
     it holds THR_LOCK_myisam or THR_LOCK_maria: then create() of MyISAM does not
     wait, and handler::ha_create() repeats it. mi_create() deletes the files that
     it has made when it fails. With DATA DIRECTORY or INDEX DIRECTORY, which it
     cuts off in place, it waits. So does Aria, since it may be writing to its log:
     3 holds for these.
  3. Other locks. The only ones known are those of Aria's log, which a thread
     holds that begins the next log file; the closer needs them if the table was
     written and has to be flushed. While the closer does not get on, a waiting
     thread looks for a descriptor every TICK, and gives up after PATIENCE of
     them: it returns the error that it would return without all this.

  The closer never waits for a descriptor: if it needs one itself, it gets the
  error at once. So each wait ends.

  Why threads do not take turns for ever
  --------------------------------------
  The closer closes only TABLEs that have no user, and a statement uses each
  TABLE that it has opened until it ends. So two statements cannot close each
  other's tables. A thread repeats its call only if the closer has closed a file
  meanwhile: then the thread gets a descriptor, or another thread has got it and
  goes on. If the closer has found no file to close, the thread tries once more,
  as it may have asked after the closer had closed one. Then it returns the
  error.

  How many to close
  -----------------
  A request closes one TABLE in SHARE_OF_TABLES, and goes on until a file is
  closed: TABLEs of InnoDB have none (InnoDB closes its files itself,
  fil0lru.cc), a MyISAM TABLE has one or two, a partitioned one many. But it
  closes no more TABLEs than there were when it began, since other statements
  may open TABLEs without files as fast as it closes them. All threads that ask
  meanwhile share a request. They wake up after each TURN.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "mysqld.h"
#include "log.h"                                // sql_print_warning
#include "my_no_descriptor.h"
#include "sql_base.h"                           // table_cache.h
#include "table_cache_parts.h"
#include "no_descriptor.h"

extern MYSQL_THD create_background_thd();
extern void destroy_background_thd(MYSQL_THD thd);
extern void *thd_attach_thd(MYSQL_THD thd);
extern void thd_detach_thd(void *save_mysysvar);

namespace
{

constexpr uint SHARE_OF_TABLES= 64;
/** So many TABLEs are closed before the threads that wait wake up. */
constexpr uint TURN= 4;
/** Nanoseconds. */
constexpr ulonglong TICK= 100000000;
constexpr uint PATIENCE= 100;
/** Does MyISAM's create() hold a mutex that the closer needs? Not with mi_open_index.c */
constexpr bool create_holds_mutex=
#if __has_include("open_index_stage.h")
  false;
#else
  true;
#endif

/*
  The performance schema knows none of these: the places for its classes are
  taken (see stage_waiting_to_maintain_query_cache).
*/
PSI_stage_info stage_waiting_for_descriptor=
{ 0, "Waiting for a file descriptor", 0 };

struct Closer
{
  /** Protects all members. A thread that holds it acquires no other lock. */
  mysql_mutex_t lock;
  /** Signalled to the closer: asked or stopping have changed. */
  mysql_cond_t work;
  /** Signalled by the closer: closed or done have changed. */
  mysql_cond_t progress;
  pthread_t thread;
  bool running, stopping;
  /** Number of requests; all up to 'done' have been answered. */
  ulonglong asked, done;
  /** Number of files closed. */
  ulonglong closed;

  bool start();
  void loop(THD *thd);
  void make_room(THD *thd);
  bool wait(THD *thd, uint *tries);
};

Closer closer;
bool inited;
thread_local bool is_closer;
thread_local Open_of_engine *current_open;

/** Answer the requests that have come until now. Called with the lock held. */

void Closer::make_room(THD *thd)
{
  const ulonglong request= asked, closed_before= closed;
  const uint tables= tc_records();
  for (uint n= 0, last= 1; last && n < tables && !stopping; n+= last)
  {
    if (n > tables / SHARE_OF_TABLES && closed != closed_before)
      break;
    mysql_mutex_unlock(&lock);
    const ulong files= my_files_closed;
    last= tc_evict_unused(thd, MY_MIN(1 + tables / SHARE_OF_TABLES, TURN));
    mysql_mutex_lock(&lock);
    if (my_files_closed != files)
    {
      closed+= my_files_closed - files;
      mysql_cond_broadcast(&progress);
    }
  }
  done= request;
  mysql_cond_broadcast(&progress);
}


/** Warn the administrator, once. */

void warn()
{
  static std::atomic<bool> warned;      // Relaxed: it stands for nothing else
  if (!warned.exchange(true, std::memory_order_relaxed))
    sql_print_warning("No file descriptor is left: the server closes tables "
                      "that are not in use, now and whenever this happens "
                      "again. Raise open_files_limit (%lu), or lower "
                      "table_open_cache (%lu)", open_files_limit, tc_size);
}


void Closer::loop(THD *thd)
{
  warn();
  mysql_mutex_lock(&lock);
  while (!stopping)
  {
    if (asked == done)
      mysql_cond_wait(&work, &lock);
    else
      make_room(thd);
  }
  mysql_mutex_unlock(&lock);
}


void *closer_start(void *)
{
  my_thread_init();
  is_closer= true;
  THD *thd= create_background_thd();
  void *own= thd_attach_thd(thd);
  closer.loop(thd);
  thd_detach_thd(own);
  destroy_background_thd(thd);
  my_thread_end();
  return NULL;
}


/** The caller holds the lock. */

bool Closer::start()
{
  if (!running && !stopping)
    running= !mysql_thread_create(PSI_NOT_INSTRUMENTED, &thread, NULL,
                                  closer_start, NULL);
  return running && !stopping;
}


/**
  Wait until there may be a descriptor.

  @param tries  how often the caller has tried since a file was closed last
  @return whether to try again
*/

bool Closer::wait(THD *thd, uint *tries)
{
  bool again= false;
  struct timespec until;
  set_timespec_nsec(until, TICK);
  mysql_mutex_lock(&lock);
  if (start())
  {
    const ulonglong closed_before= closed, request= ++asked;
    int error= 0;
    mysql_cond_signal(&work);
    while (closed == closed_before && done < request && !stopping && !error)
      error= mysql_cond_timedwait(&progress, &lock, &until);
    if (closed != closed_before)
    {
      *tries= 0;
      again= true;
    }
    else if (done >= request)
      again= !(*tries)++;
    else
      again= !stopping && ++*tries < PATIENCE && !(thd && thd->killed);
  }
  mysql_mutex_unlock(&lock);
  return again;
}


bool wait_for_descriptor(uint *tries)
{
  const int error= errno, my_error= my_errno;
  THD *thd= current_thd;
  PSI_stage_info old_stage;
  if (is_closer || !mysqld_server_started)
    return false;
  if (thd)
  {
    thd->backup_stage(&old_stage);
    THD_STAGE_INFO(thd, stage_waiting_for_descriptor);
  }
  const bool again= closer.wait(thd, tries);
  if (thd)
    THD_STAGE_INFO(thd, old_stage);
  my_errno= my_error;
  errno= error;
  return again;
}


/** Close unused TABLEs, and go on until a file is closed. */

bool evict_for_file(THD *thd)
{
  const int error= my_errno;
  const ulong files= my_files_closed;
  const uint tables= tc_records();
  warn();
  for (uint n= 0, last= 1; last && n < tables && my_files_closed == files;
       n+= last)
    last= tc_evict_unused(thd, 2);
  my_errno= error;
  return my_files_closed != files;
}


my_bool no_descriptor(uint *tries)
{
  if (current_open)
  {
    current_open->no_descriptor();
    return FALSE;
  }
  return wait_for_descriptor(tries);
}

} // namespace


Open_of_engine::Open_of_engine(THD *thd, const TABLE *table, uint open_flags)
  : m_thd(thd),
    m_may_evict(thd && table->s->tmp_table == NO_TMP_TABLE &&
                !(open_flags & HA_OPEN_INTERNAL_TABLE)),
    m_outer(current_open), m_may_repeat(true), m_no_descriptor(false),
    m_error(0), m_tries(0)
{
  current_open= this;
  if (m_thd)
    m_thd->push_internal_handler(this);
}


Open_of_engine::Open_of_engine(THD *thd, const handler *creates,
                               const HA_CREATE_INFO *info)
  : m_thd(thd), m_may_evict(false), m_outer(current_open),
    m_may_repeat(create_holds_mutex && creates->ht->db_type == DB_TYPE_MYISAM &&
                 !info->data_file_name && !info->index_file_name),
    m_no_descriptor(false), m_error(0), m_tries(0)
{
  if (m_may_repeat)
    current_open= this;
  if (m_thd)
    m_thd->push_internal_handler(this);
}


Open_of_engine::~Open_of_engine()
{
  current_open= m_outer;
  if (m_thd)
    m_thd->pop_internal_handler();
  if (unlikely(m_error))
    my_message(m_error, m_message, MYF(0));
}


/** Keep the first error that follows a lack of descriptors; others are due to it. */

bool Open_of_engine::handle_condition(THD *, uint sql_errno, const char *,
                                      Sql_condition::enum_warning_level *level,
                                      const char *message, Sql_condition **)
{
  if (!m_no_descriptor || *level != Sql_condition::WARN_LEVEL_ERROR)
    return false;
  if (!m_error)
  {
    m_error= sql_errno;
    strmake_buf(m_message, message);
  }
  return true;
}


/** The engine has failed. @return whether to call it again */

bool Open_of_engine::again()
{
  if (likely(!m_no_descriptor))
    return false;
  /* An outer open() has called ha_open(), and holds no lock. */
  if (!(m_may_evict && evict_for_file(m_thd)) &&
      !wait_for_descriptor(&m_tries))
    return false;
  m_no_descriptor= false;
  m_error= 0;
  return true;
}


void tc_init_descriptors()
{
  mysql_mutex_init(PSI_NOT_INSTRUMENTED, &closer.lock, MY_MUTEX_INIT_FAST);
  mysql_cond_init(PSI_NOT_INSTRUMENTED, &closer.work, NULL);
  mysql_cond_init(PSI_NOT_INSTRUMENTED, &closer.progress, NULL);
  inited= true;
  my_no_descriptor_hook= no_descriptor;
}


/** The table cache is about to close all its TABLEs. */

void tc_end_descriptors()
{
  if (!inited)
    return;
  mysql_mutex_lock(&closer.lock);
  const bool running= closer.running;
  closer.stopping= true;
  mysql_cond_signal(&closer.work);
  mysql_cond_broadcast(&closer.progress);
  mysql_mutex_unlock(&closer.lock);
  if (running)
    pthread_join(closer.thread, NULL);
}


/** No other thread opens files any more. */

void tc_deinit_descriptors()
{
  if (!inited)
    return;
  inited= false;
  my_no_descriptor_hook= NULL;
  mysql_cond_destroy(&closer.progress);
  mysql_cond_destroy(&closer.work);
  mysql_mutex_destroy(&closer.lock);
  closer= Closer();
}
