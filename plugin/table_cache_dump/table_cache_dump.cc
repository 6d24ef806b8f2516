/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A restarted server gets its working set back: it dumps the names of its open
  tables to a file, and later loads the dump, that is, opens these tables.

  1. It dumps at shutdown, every few minutes, and on demand.
  2. It loads when it has started, and on demand.

  The library has two plugins because their variables have the names that users
  know from InnoDB's buffer pool: table_cache_dump_* and table_cache_load_*. The
  plugins share a daemon thread, which runs while one of them is installed.

  Threads
  -------
  1. Only the daemon thread writes and reads the file (dump_write.cc), starts
     and joins the threads that load (dump_load.cc), and owns the data of both.
     The connections of users only leave requests for it.
  2. All these threads have a THD. So the shutdown kills them before it closes
     any table, and waits for them.
  3. When the daemon thread notices the shutdown, it writes the last dump, which
     also has the tables that a load has not reached.

  If a load at startup ends the server, the next startup does not try it again:
  the file table_cache.loading exists while the load runs.

  Locks
  -----
  1. A thread holds 'plugins_mutex' while it initializes or deinitializes one of
     the plugins, and so starts or stops the daemon thread. The server lets two
     UNINSTALLs, or an INSTALL and an UNINSTALL, run at once if an UNINSTALL has
     to wait until the plugin is unused. This mutex comes before all others.
  2. 'mutex' protects the requests and the texts of the status variables. It is
     the innermost lock: a thread that holds it locks, opens and allocates
     nothing. A thread that takes it may hold LOCK_global_system_variables.
*/

#include "table_cache_dump.h"
#include "debug_sync.h"
#include "log.h"
#include "mysqld.h"
#include "table_cache_parts.h"
#include <mutex>

/** Bits of a request. */
enum { DUMP= 1, LOAD= 2, LOAD_WHEN_STARTED= 4 };

static mysql_mutex_t mutex;
static mysql_cond_t cond;
/* Protected by mutex */
static uint requests;
static bool stop;
/*
  loading: a load is about to begin, or runs. load_runs: its threads run.
  abort_load: it must end
*/
static bool loading, load_runs, abort_load;
static char dump_text[256], load_text[256];

static std::mutex plugins_mutex;
/* Which of the plugins are installed. Written under plugins_mutex */
static std::atomic<uint> plugins;
/* Protected by plugins_mutex */
static pthread_t daemon_id;
PSI_thread_key dump_thread_key;
/*
  While this is FALSE, with --bootstrap for example, 'mutex' and the data that
  it protects do not exist. Written under plugins_mutex. It does not change
  while a user uses one of the plugins.
*/
static std::atomic<bool> daemon_runs;

/*
  The daemon thread owns these. While load_runs is set, other threads may read
  'load' under 'mutex'
*/
static Dump dump;
static Load load;

static my_bool dump_at_shutdown, dump_now, load_at_startup, load_now,
               load_abort;
static uint dump_interval, load_threads;


/* ------------------------------------------------------------------ texts */

/** Set the text of a status variable, and write it to the error log. */

static void tell(char *text, bool to_log, bool is_error, const char *format,
                 ...)
{
  char buff[sizeof(dump_text)];
  va_list args;
  va_start(args, format);
  my_vsnprintf(buff, sizeof(buff), format, args);
  va_end(args);
  mysql_mutex_lock(&mutex);
  strmake(text, buff, sizeof(buff) - 1);
  mysql_mutex_unlock(&mutex);
  if (is_error)
    sql_print_error("Table cache: %s", buff);
  else if (to_log)
    sql_print_information("Table cache: %s", buff);
}


static int show_text(SHOW_VAR *var, void *buff, const char *text)
{
  var->type= SHOW_CHAR;
  var->value= static_cast<char*>(buff);
  *static_cast<char*>(buff)= 0;
  if (!daemon_runs)
    return 0;
  mysql_mutex_lock(&mutex);
  strmake(static_cast<char*>(buff), text, sizeof(dump_text) - 1);
  mysql_mutex_unlock(&mutex);
  return 0;
}


static int show_dump_status(MYSQL_THD, SHOW_VAR *var, void *buff,
                            system_status_var *, enum enum_var_type)
{
  return show_text(var, buff, dump_text);
}


static int show_load_status(MYSQL_THD, SHOW_VAR *var, void *buff,
                            system_status_var *, enum enum_var_type)
{
  show_text(var, buff, load_text);
  if (!daemon_runs)
    return 0;
  mysql_mutex_lock(&mutex);
  if (load_runs)
    my_snprintf(static_cast<char*>(buff), sizeof(load_text),
                "Loading: %llu of %llu tables opened, %llu skipped",
                (ulonglong) load.opened, (ulonglong) load.dump->n,
                (ulonglong) load.skipped);
  mysql_mutex_unlock(&mutex);
  return 0;
}


/* ------------------------------------------------------ the daemon thread */

static void do_dump(THD *thd, const char *why, bool to_log)
{
  ulong tables;
  if (to_log)
    tell(dump_text, true, false, "dumping %s", why);
  if (const char *error= dump_write(thd, &dump, &tables))
    tell(dump_text, true, true, "not dumped: %s '%s' (error %d)", error,
         dump_file_name, my_errno);
  else
  {
    tell(dump_text, to_log, false, "dumped %lu tables to '%s'", tables,
         dump_file_name);
    /*
      The loading file may be left from a load that ended the server. This dump
      has just replaced the one that the load read.
    */
    if (!load_runs)
      dump_remove_loading_file();
  }
}


/** @param another  whether another load begins now, at a user's request */

static void no_load_any_more(bool another)
{
  mysql_mutex_lock(&mutex);
  loading= another;
  load_runs= abort_load= false;
  mysql_mutex_unlock(&mutex);
}


static bool must_end()
{
  mysql_mutex_lock(&mutex);
  const bool ends= stop;
  mysql_mutex_unlock(&mutex);
  return ends || abort_loop;
}


/**
  Read the file, and start to load.

  @return true if it could not start
*/

static bool start_load(bool at_startup)
{
  bool missing;

  if (!at_startup)
    dump_remove_loading_file();
  else if (dump_loading_file_exists())
  {
    tell(load_text, true, true,
         "not loaded: the server has ended while it loaded at its last start. "
         "SET GLOBAL table_cache_load_now=ON loads '%s' nevertheless. The next "
         "dump replaces that file, and removes '%s'", dump_file_name,
         dump_loading_name);
    return true;
  }
  dump.destroy();
  tell(load_text, false, false, "reading '%s'", dump_file_name);
  if (const char *error= dump.read(&missing))
  {
    if (missing)
      tell(load_text, true, false, "not loaded: there is no file '%s'",
           dump_file_name);
    else
      tell(load_text, true, true, "not loaded: '%s' %s", dump_file_name, error);
    return true;
  }
  DBUG_EXECUTE_IF("table_cache_load_begin_hold",
                  while (DBUG_IF("table_cache_load_begin_hold") && !must_end())
                    my_sleep(10000););
  tell(load_text, true, false, "loading %llu tables from '%s'",
       (ulonglong) dump.n, dump_file_name);
  if (at_startup && dump_create_loading_file())
    sql_print_warning("Table cache: cannot create '%s' (error %d)",
                      dump_loading_name, my_errno);
  mysql_mutex_lock(&mutex);
  const bool ends= abort_load;
  mysql_mutex_unlock(&mutex);
  /*
    Use at most half of the CPUs, or the load would disturb the users. On two
    CPUs, four threads multiplied the 99th percentile of the users' latency by
    6.6, and one thread by 3.7.
  */
  const uint at_most= MY_MAX(my_getncpus() / 2, 1);
  if (load.start(&dump, MY_MIN(MY_MIN(load_threads, at_most),
                               Load::MAX_THREADS), ends))
  {
    dump_remove_loading_file();
    tell(load_text, true, true, "not loaded: cannot start a thread");
    return true;
  }
  mysql_mutex_lock(&mutex);
  load_runs= true;
  mysql_mutex_unlock(&mutex);
  return false;
}


static void begin_load(bool at_startup)
{
  if (start_load(at_startup))
    no_load_any_more(false);
}


/**
  End a load, and wait for its threads.

  @param now      whether threads still run, and have to end early
  @param another  whether another load begins now, at a user's request
*/

static void end_load(bool now, bool another)
{
  if (now)
    load.abort= true;
  mysql_mutex_lock(&mutex);
  if (now)
    mysql_cond_broadcast(&cond);
  mysql_mutex_unlock(&mutex);
  load.join();
  no_load_any_more(another);
  dump_remove_loading_file();
  if (load.full)
    dump.forget_rest();
  const ulonglong ms= (microsecond_interval_timer() - load.begin) / 1000;
  tell(load_text, true, false,
       "%s: %llu of %llu tables opened in %llu.%03llu s; "
       "%llu that are gone, locked or cannot be opened were skipped%s",
       load.complete() ? "loaded" : "load aborted", (ulonglong) load.opened,
       (ulonglong) dump.n, ms / 1000, ms % 1000, (ulonglong) load.skipped,
       load.full ? "; table_open_cache, table_definition_cache or "
                   "table_cache_memory is full" : "");
}


/**
  Wait for a request, for the end of a load, or for a timeout.

  @param seconds  timeout
  @return the requests. A load among them counts as begun from now on: a user
          who aborts a load aborts this one.
*/

static uint wait_for_request(THD *thd, double seconds)
{
  static PSI_stage_info stage= { 0, tc_dump_state_waiting, 0 };
  struct timespec until;
  PSI_stage_info old_stage;
  uint requested;

  set_timespec_nsec(until, (ulonglong) (seconds * 1e9));
  mysql_mutex_lock(&mutex);
  thd->ENTER_COND(&cond, &mutex, &stage, &old_stage);
  while (!requests && !stop && !abort_load && !thd->killed &&
         !(load_runs && !load.running))
  {
    if (mysql_cond_timedwait(&cond, &mutex, &until))
      break;
  }
  requested= requests;
  requests= 0;
  if (requested & (LOAD | LOAD_WHEN_STARTED))
    loading= true;
  thd->EXIT_COND(&old_stage);
  return requested;
}


static void run_daemon(THD *thd)
{
  bool load_waits= false;
  ulonglong last_dump= microsecond_interval_timer();

  while (!must_end())
  {
    const uint requested= wait_for_request(thd, load_waits ? 0.02 : 1);
    if (requested & LOAD_WHEN_STARTED)
      load_waits= true;
    if (must_end())
    {
      load_waits|= (requested & LOAD) && !load_runs;
      break;
    }

    mysql_mutex_lock(&mutex);
    const bool now= abort_load;
    mysql_mutex_unlock(&mutex);
    if (load_runs && (now || !load.running))
      end_load(now, requested & LOAD);
    else if (load_waits && now)
    {
      load_waits= false;
      no_load_any_more(requested & LOAD);
      tell(load_text, true, false, "load aborted: before it began");
    }

    if (requested & DUMP)
      do_dump(thd, "as requested", true);
    if (load_waits && mysqld_server_started)
    {
      load_waits= false;
      begin_load(true);
    }
    else if ((requested & LOAD) && !load_runs && !load_waits)
      begin_load(false);

    const ulonglong now_us= microsecond_interval_timer();
    /* An uninstalled plugin leaves its interval behind */
    if (load_waits || load_runs || !dump_interval || !(plugins & DUMP))
      last_dump= now_us;
    else if (now_us - last_dump >= dump_interval * 1000000ULL)
    {
      do_dump(thd, "", false);
      last_dump= microsecond_interval_timer();
    }
  }

  if (load_runs)
    end_load(true, false);
  mysql_mutex_lock(&mutex);
  load_waits|= (requests & (LOAD | LOAD_WHEN_STARTED)) != 0;
  mysql_mutex_unlock(&mutex);
  if (abort_loop && (plugins & DUMP) && dump_at_shutdown)
  {
    if (load_waits)
      tell(dump_text, true, false,
           "not dumped, as '%s' has not been loaded yet", dump_file_name);
    else
    {
      /* The shutdown has killed this thread to wake it up. */
      thd->reset_killed();
      do_dump(thd, "at shutdown", true);
    }
  }
}


static void *daemon_thread(void *arg)
{
  THD *thd= static_cast<THD*>(arg);
  dump_attach_thd(thd);
  run_daemon(thd);
  dump.destroy();
  dump_delete_thd(thd);
  my_thread_end();
  return NULL;
}


/*
  A thread that loads calls this when it ends, with Load::running decremented.
*/

void dump_load_thread_ends()
{
  mysql_mutex_lock(&mutex);
  mysql_cond_broadcast(&cond);
  mysql_mutex_unlock(&mutex);
}


/** Let a thread that loads pause. @return false if the load must end */

bool dump_load_pause(Load *load, THD *thd, ulonglong microseconds)
{
  struct timespec until;
  bool goes_on;
  set_timespec_nsec(until, microseconds * 1000);
  mysql_mutex_lock(&mutex);
  while ((goes_on= !load->abort && !thd->killed && !stop && !abort_load))
  {
    if (mysql_cond_timedwait(&cond, &mutex, &until))
      break;
  }
  mysql_mutex_unlock(&mutex);
  return goes_on;
}


/* ------------------------------------------------------------- the plugins */

static void request(uint what)
{
  if (!daemon_runs)
    return;
  mysql_mutex_lock(&mutex);
  requests|= what;
  /* So a user does not mistake the text of an earlier dump or load for this. */
  if (what & DUMP)
    strmov(dump_text, "requested");
  if ((what & LOAD) && !loading)
    strmov(load_text, "requested");
  mysql_cond_broadcast(&cond);
  mysql_mutex_unlock(&mutex);
}


static void set_dump_now(MYSQL_THD, st_mysql_sys_var *, void *,
                         const void *value)
{
  if (*static_cast<const my_bool*>(value))
    request(DUMP);
}


static void set_load_now(MYSQL_THD, st_mysql_sys_var *, void *,
                         const void *value)
{
  if (*static_cast<const my_bool*>(value))
    request(LOAD);
}


static void set_load_abort(MYSQL_THD, st_mysql_sys_var *, void *,
                           const void *value)
{
  if (!*static_cast<const my_bool*>(value) || !daemon_runs)
    return;
  mysql_mutex_lock(&mutex);
  if (requests & (LOAD | LOAD_WHEN_STARTED))
  {
    /* The daemon thread has not taken the request yet. */
    requests&= ~(LOAD | LOAD_WHEN_STARTED);
    strmov(load_text, "load aborted: before it began");
  }
  if (loading)
  {
    abort_load= true;
    mysql_cond_broadcast(&cond);
  }
  mysql_mutex_unlock(&mutex);
}


static int stop_daemon()
{
  if (!daemon_runs)
    return 0;
  mysql_mutex_lock(&mutex);
  stop= true;
  mysql_cond_broadcast(&cond);
  mysql_mutex_unlock(&mutex);
  pthread_join(daemon_id, NULL);
  daemon_runs= false;
  mysql_mutex_destroy(&mutex);
  mysql_cond_destroy(&cond);
  return 0;
}


#ifdef ENABLED_DEBUG_SYNC
/* There is no THD at startup and at shutdown. */
#define PLUGIN_SYNC(point) \
  do { if (THD *thd= current_thd) DEBUG_SYNC(thd, point); } while (0)
#else
#define PLUGIN_SYNC(point) do {} while (0)
#endif


/** Initialize a plugin. The first of the two starts the daemon thread. */

static int init_plugin(uint which)
{
  PLUGIN_SYNC("table_cache_dump_init");
  std::lock_guard<std::mutex> guard(plugins_mutex);
  if (!daemon_runs)
  {
#ifdef HAVE_PSI_INTERFACE
    static PSI_thread_info threads[]= { { &dump_thread_key, "dump", 0 } };
    mysql_thread_register("table_cache", threads, array_elements(threads));
#endif
    mysql_mutex_init(0, &mutex, MY_MUTEX_INIT_FAST);
    mysql_cond_init(0, &cond, NULL);
    requests= 0;
    stop= abort_load= loading= load_runs= false;
    strmov(dump_text, "not dumped yet");
    strmov(load_text, "not loaded yet");
    THD *thd= dump_new_thd();
    if (thd && !mysql_thread_create(dump_thread_key, &daemon_id, NULL,
                                    daemon_thread, thd))
      daemon_runs= true;
    else
    {
      if (thd)
        dump_delete_thd(thd);
      mysql_mutex_destroy(&mutex);
      mysql_cond_destroy(&cond);
      return 1;
    }
  }
  plugins|= which;
  return 0;
}


/** Deinitialize a plugin. The last of the two stops the daemon thread. */

static int deinit_plugin(uint which)
{
  std::lock_guard<std::mutex> guard(plugins_mutex);
  plugins&= ~which;
  PLUGIN_SYNC("table_cache_dump_deinit");
  if (!plugins)
    return stop_daemon();
  if (which == LOAD)
  {
    /* A load ends soon. Its code stays: the other plugin is installed. */
    mysql_mutex_lock(&mutex);
    requests&= ~(LOAD | LOAD_WHEN_STARTED);
    abort_load= loading;
    mysql_cond_broadcast(&cond);
    mysql_mutex_unlock(&mutex);
  }
  return 0;
}


static int init_dump(void *) { return opt_bootstrap ? 0 : init_plugin(DUMP); }
static int deinit_dump(void *)
{ return opt_bootstrap ? 0 : deinit_plugin(DUMP); }

static int init_load(void *)
{
  if (opt_bootstrap)
    return 0;
  if (init_plugin(LOAD))
    return 1;
  if (load_at_startup && !mysqld_server_started)
    request(LOAD_WHEN_STARTED);
  return 0;
}

static int deinit_load(void *)
{ return opt_bootstrap ? 0 : deinit_plugin(LOAD); }


static MYSQL_SYSVAR_BOOL(at_shutdown, dump_at_shutdown, PLUGIN_VAR_RQCMDARG,
  "Write which tables are open to the file table_cache.dump at shutdown",
  NULL, NULL, TRUE);
static MYSQL_SYSVAR_BOOL(now, dump_now, PLUGIN_VAR_RQCMDARG,
  "Write which tables are open to the file table_cache.dump now",
  NULL, set_dump_now, FALSE);
static MYSQL_SYSVAR_UINT(interval, dump_interval, PLUGIN_VAR_RQCMDARG,
  "Write which tables are open every so many seconds, so that a crash does not "
  "lose it; 0: do not", NULL, NULL, 600, 0, 365 * 86400, 0);

static struct st_mysql_sys_var *dump_variables[]=
{ MYSQL_SYSVAR(at_shutdown), MYSQL_SYSVAR(now), MYSQL_SYSVAR(interval), NULL };

static MYSQL_SYSVAR_BOOL(at_startup, load_at_startup,
  PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
  "Open the tables of the file table_cache.dump when the server has started",
  NULL, NULL, TRUE);
namespace load_plugin                   /* It has a variable "now", too */
{
static MYSQL_SYSVAR_BOOL(now, load_now, PLUGIN_VAR_RQCMDARG,
  "Open the tables of the file table_cache.dump now",
  NULL, set_load_now, FALSE);
static MYSQL_SYSVAR_BOOL(abort, load_abort, PLUGIN_VAR_RQCMDARG,
  "Stop opening the tables of the file table_cache.dump",
  NULL, set_load_abort, FALSE);
static MYSQL_SYSVAR_UINT(threads, load_threads, PLUGIN_VAR_RQCMDARG,
  "How many threads open the tables of the file table_cache.dump; at most half "
  "as many as there are CPUs, but at least one",
  NULL, NULL, 4, 1, Load::MAX_THREADS, 0);

static struct st_mysql_sys_var *variables[]=
{
  MYSQL_SYSVAR(at_startup), MYSQL_SYSVAR(now), MYSQL_SYSVAR(abort),
  MYSQL_SYSVAR(threads), NULL
};
}

static SHOW_VAR dump_status[]=
{
  { "Table_cache_dump_status", (char*) show_dump_status, SHOW_SIMPLE_FUNC },
  { NULL, NULL, SHOW_LONG }
};

static SHOW_VAR load_status[]=
{
  { "Table_cache_load_status", (char*) show_load_status, SHOW_SIMPLE_FUNC },
  { NULL, NULL, SHOW_LONG }
};

static struct st_mysql_daemon daemon_info= { MYSQL_DAEMON_INTERFACE_VERSION };

maria_declare_plugin(table_cache_dump)
{
  MYSQL_DAEMON_PLUGIN,
  &daemon_info,
  "TABLE_CACHE_DUMP",
  "Table cache patch set",
  "Writes which tables are open to a file",
  PLUGIN_LICENSE_GPL,
  init_dump,
  deinit_dump,
  0x0100,
  dump_status,
  dump_variables,
  "1.0",
  MariaDB_PLUGIN_MATURITY_STABLE
},
{
  MYSQL_DAEMON_PLUGIN,
  &daemon_info,
  "TABLE_CACHE_LOAD",
  "Table cache patch set",
  "Opens the tables that were open before the server was restarted",
  PLUGIN_LICENSE_GPL,
  init_load,
  deinit_load,
  0x0100,
  load_status,
  load_plugin::variables,
  "1.0",
  MariaDB_PLUGIN_MATURITY_STABLE
}
maria_declare_plugin_end;
