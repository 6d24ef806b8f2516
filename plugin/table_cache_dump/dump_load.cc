/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Load: a few threads open the tables of a dump, hottest first.

  A thread opens a table as a SELECT does, with as many instances as the dump
  says. Then it releases them, and they are free in the table cache. The thread
  checks no privilege, because it reads no data. It locks only the table's name
  (MDL_SHARED_READ), until it has released the instances.

  A load disturbs the users little:

  1. A thread that loads waits for no metadata lock and for no flush
     (lock_wait_timeout is 0): it skips the table.
  2. A statement that needs an exclusive lock on the table waits until the
     thread has released it.
  3. A thread that loads evicts nothing: it ends when the caches are full, or
     nearly as large as table_cache_memory.
  4. If statements began while the thread opened a table, it pauses as long as
     that took, at most MAX_PAUSE. So slow opens take over half of its time.
  5. The thread does not repair a crashed table, which may take long. It leaves
     that to the users of the table.
  6. In the LRU order, a loaded table is older than all tables that a user has
     used, and each table that a thread loads later is older still
     (tc_opened_ahead()). So when the cache is full, the server evicts the
     coldest ones first.

  The threads are daemons, which KILL does not reach. The shutdown kills all
  threads with a THD, and waits for them: each ends when it has opened its
  current table.
*/

#include "table_cache_dump.h"
#include "table_cache_memory.h"
#include "table_cache_parts.h"
#include "sql_parse.h"
#include "transaction.h"

#ifdef WITH_WSREP
#include "wsrep_mysqld.h"
#endif

/** Longest pause, in microseconds. */
static const ulonglong MAX_PAUSE= 20000;
/** Largest number of instances that a thread opens of one table. */
static const uint MAX_INSTANCES= 1024;
/** A load leaves this part of table_cache_memory unused. */
static const uint MEMORY_PART= 32;


/* ------------------------------------------------------------- the threads */

/**
  Make a THD for a thread of this plugin.

  The caller has a THD itself, or the server is starting. So the shutdown, which
  waits until all THDs are gone, is still waiting or has not begun: no THD may
  appear after that.
*/

THD *dump_new_thd()
{
  THD *thd= new THD(next_thread_id());
  if (!thd)
    return NULL;
  THD *save= current_thd;
  set_current_thd(thd);
  thd->system_thread= SYSTEM_THREAD_GENERIC;
  thd->set_command(COM_DAEMON);
  thd->security_ctx->host_or_ip= "";
  thd->security_ctx->skip_grants();
  thd->client_capabilities= 0;
  my_net_init(&thd->net, NULL, thd, MYF(MY_THREAD_SPECIFIC));
  thd->variables.lock_wait_timeout= 0;
  /*
    With autocommit=0, an InnoDB sequence would begin a transaction when the
    thread opens it. The thread would then keep its metadata locks.
  */
  thd->variables.option_bits&= ~OPTION_NOT_AUTOCOMMIT;
  thd->variables.option_bits|= OPTION_AUTOCOMMIT;
  thd->server_status|= SERVER_STATUS_AUTOCOMMIT;
  thd->variables.tx_read_only= false;
  thd->tx_read_only= false;
#ifdef WITH_WSREP
  thd->variables.wsrep_on= FALSE;
#endif
  thd->proc_info= tc_dump_state_started;
  thd->set_time();
  server_threads.insert(thd);
  set_current_thd(save);
  return thd;
}


/** Make this the THD of the running thread. */

void dump_attach_thd(THD *thd)
{
  my_thread_init();
  thd->reset_stack();
  thd->store_globals();
}


/** Delete the THD of the running thread. */

void dump_delete_thd(THD *thd)
{
  server_threads.erase(thd);
  delete thd;
}


/* -------------------------------------------------------------- one table */

/**
  Reserve places in both caches for instances of a table.

  @return number of instances for which there is a place. The caller subtracts
          it from 'reserved' when it has opened them.
*/

uint Load::reserve(uint tables)
{
  /*
    If another thread has just opened an instance, this may count that twice,
    and a place stays free. But it misses none: an instance is in 'reserved'
    until it is in tc_records().
  */
  const ulong others= reserved.fetch_add(tables);
  const ulong used= others + tc_records();
  const size_t limit= Table_cache_memory_limit::bytes();
  const ulong room= used < tc_size && tdc_records() + wanted <= tdc_size &&
                    (!limit || tc_memory.sum() < limit - limit / MEMORY_PART) ?
                    MY_MIN(tc_size - used, tables) : 0;
  reserved-= tables - room;
  return (uint) room;
}


/**
  Do metadata locks and the table definition cache use the name in this form?

  With lower_case_table_names, the file of another server may have names in
  upper case. If a thread opened a table by such a name, the caches would have
  two definitions of one table.
*/

static bool is_normal(const char *name)
{
  char lower[4 * NAME_LEN];
  if (!lower_case_table_names)
    return true;
  const size_t length= strlen(name);
  return files_charset_info->casedn(name, length, lower, sizeof(lower)) ==
         length && !memcmp(lower, name, length);
}


/** Get what the table cache knows of a table. @return false if nothing */

static bool get_info(THD *thd, const Dump_entry *entry, TC_share_info *info)
{
  TDC_element *element= tdc_lock_share(thd, entry->db(), entry->name());
  if (!element || element == MY_ERRPTR)
    return false;
  tc_get_share_info(element, info);
  tdc_unlock_share(element);
  return true;
}


/**
  Open instances of a table, and release them to the cache.

  @return true if the table cannot be opened
*/

static bool open_table_of(THD *thd, const Dump_entry *entry, uint tables)
{
  TC_share_info before, after;
  LEX_CSTRING db= { entry->db(), strlen(entry->db()) };
  LEX_CSTRING name= { entry->name(), strlen(entry->name()) };
  TABLE_LIST *list= static_cast<TABLE_LIST*>
    (alloc_root(thd->mem_root, tables * sizeof(TABLE_LIST)));
  uint counter;
  bool error= !list || !is_normal(db.str) || !is_normal(name.str);

  if (!get_info(thd, entry, &before))
    before.open= before.hits= 0;
  if (!error && before.open < tables)
  {
    lex_start(thd);
    thd->set_query_id(next_query_id());
    for (uint i= 0; i < tables; i++)
    {
      list[i].init_one_table(&db, &name, &name, TL_READ);
      list[i].i_s_requested_object= OPEN_TABLE_ONLY;    /* no view */
      list[i].next_global= list[i].next_local=
        i + 1 < tables ? &list[i + 1] : NULL;
    }
    error= open_tables(thd, &list, &counter, MYSQL_OPEN_IGNORE_REPAIR |
                       MYSQL_OPEN_IGNORE_LOGGING_FORMAT);
    /*
      If the hits have risen, the thread got an instance that a user has opened:
      leave its place in the order of eviction.
    */
    if (!error && get_info(thd, entry, &after) && before.hits == after.hits)
    {
      for (uint i= 0; i < tables; i++)
        tc_opened_ahead(list[i].table);
    }
    trans_rollback_stmt(thd);
    close_thread_tables(thd);
    thd->release_transactional_locks();
    thd->end_statement();
    thd->cleanup_after_query();
  }
  thd->clear_error();
  thd->get_stmt_da()->reset_diagnostics_area();
  thd->get_stmt_da()->clear_warning_info(thd->query_id);
  free_root(thd->mem_root, MYF(MY_KEEP_PREALLOC));
  return error;
}


/* ---------------------------------------------------------------- the load */

struct Thread_argument
{
  Load *load;
  THD *thd;
};


static void load_entries(Load *load, THD *thd)
{
  for (;;)
  {
    thd->proc_info= tc_dump_state_loading;
#ifndef DBUG_OFF
    while (DBUG_IF("table_cache_load_hold") ||
           (load->next >= 2 && DBUG_IF("table_cache_load_hold_after_2")))
    {
      if (!dump_load_pause(load, thd, 10000))
        return;
    }
#endif
    if (load->abort || thd->killed)
      return;
    const size_t i= load->next.fetch_add(1);
    if (i >= load->dump->n)
      return;
    const Dump_entry *entry= load->dump->entries + i;
    const uint tables= load->reserve(MY_MAX(MY_MIN(entry->tables,
                                                   MAX_INSTANCES), 1));
    if (!tables)
    {
      load->full= true;
      return;
    }
    const query_id_t queries= get_query_id();
    const ulonglong begin= microsecond_interval_timer();
    const bool error= open_table_of(thd, entry, tables);
    load->reserved-= tables;
    if (!error || !thd->killed)
    {
      load->dump->reached[i]= true;
      (error ? load->skipped : load->opened)++;
    }
    /* Each table that a thread loads counts as a statement, too. */
    if (get_query_id() - queries > load->wanted)
      dump_load_pause(load, thd,
                      MY_MIN(microsecond_interval_timer() - begin, MAX_PAUSE));
  }
}


static void *load_thread(void *arg)
{
  Thread_argument argument= *static_cast<Thread_argument*>(arg);
  Load *load= argument.load;
  THD *thd= argument.thd;

  my_free(arg);
  dump_attach_thd(thd);
  load_entries(load, thd);
  /* End the whole load: without this thread it would stay incomplete */
  if (thd->killed)
    load->abort= true;
  dump_delete_thd(thd);
  load->running--;
  dump_load_thread_ends();
  my_thread_end();
  return NULL;
}


/**
  Start as many threads as possible, up to a given number.

  @param abort_arg  whether the threads must end at once
  @return true if the function could start no thread
*/

bool Load::start(const Dump *dump_arg, uint threads_arg, bool abort_arg)
{
  dump= dump_arg;
  next= opened= skipped= 0;
  reserved= 0;
  abort= abort_arg;
  full= false;
  threads= 0;
  wanted= threads_arg;
  running= 0;
  begin= microsecond_interval_timer();
  for (uint i= 0; i < threads_arg; i++)
  {
    Thread_argument *argument= static_cast<Thread_argument*>
      (my_malloc(PSI_NOT_INSTRUMENTED, sizeof(*argument), MYF(0)));
    if (!argument)
      break;
    argument->load= this;
    if ((argument->thd= dump_new_thd()))
    {
      running++;
      if (!mysql_thread_create(dump_thread_key, &ids[threads], NULL,
                               load_thread, argument))
      {
        threads++;
        continue;
      }
      running--;
      server_threads.erase(argument->thd);
      delete argument->thd;
    }
    my_free(argument);
    break;
  }
  return !threads;
}


/** Wait until all threads have ended. */

void Load::join()
{
  for (uint i= 0; i < threads; i++)
    pthread_join(ids[i], NULL);
  threads= 0;
}
