// SPDX-License-Identifier: GPL-2.0-only
/*
  Visitors of many sites ask a server for pages.  This program measures how long
  they wait.  --help says how it is used.

  A page is a connection, and a list of statements, one after the other.  One
  thread serves all connections, by the non-blocking calls of MariaDB's client
  library and epoll: a thread a connection would take more CPU time, of which
  the server gets the rest.

  Open loop (--rate): visitors know nothing of each other and of the server, so
  the gaps between them are distributed exponentially.  Who comes when, and what
  they ask for, depends on the seed only.  A page takes from the arrival, so that
  those who wait for a free connection are counted with their whole wait.
  Closed loop: each connection asks for its next page at once.
*/

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mysql.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "visitors"

static const char usage[]=
"Usage: " PROGRAM " --pages FILE --socket PATH [OPTION]...\n"
"\n"
"Ask a server for pages of many sites, each by a connection of its own, and\n"
"print as JSON how long they took.  Times are in milliseconds.\n"
"\n"
"What is asked for:\n"
"  --pages FILE       kinds of pages. A line '=NAME WEIGHT' begins one, which is\n"
"                     asked for as often as its weight says. The lines behind it\n"
"                     are its statements, where \\n is a line's end, and a\n"
"                     backslash takes the meaning from what follows it. A line\n"
"                     that begins with '#' is a comment.\n"
"                     {site} is the number of the site, and {item} a number from\n"
"                     1 to --items, which is the same in the whole page\n"
"  --items N          (default 10)\n"
"  --sites N          numbers of the sites are 1 to N (default 1)\n"
"  --zipf S           the n-th site is asked for 1/n^S times as often as the\n"
"                     first one (default 1). Which site that is, is by chance,\n"
"                     but the same for each seed. 0: all are as popular\n"
"  --hot N,SHARE      instead: every N-th site is hot; these have so large a\n"
"                     share of the pages\n"
"\n"
"When it is asked for:\n"
"  --rate R           open loop: so many pages arrive a second, by chance. A page\n"
"                     takes from its arrival to its last answer. Default: closed\n"
"                     loop, each connection asks for the next page at once\n"
"  --seconds S        pages arrive for so long (default 10); each is completed\n"
"  --connections N    at most so many pages at once (default 256)\n"
"  --seed N           of all that is by chance (default 1)\n"
"\n"
"How it connects:\n"
"  --socket PATH      the server's Unix socket\n"
"  --user NAME, --password TEXT, --database NAME\n"
"                     {site} is the number of the site, as above\n"
"  --keep-connections use a connection for one page after the other\n"
"An error of the server ends all.\n"
"\n"
"What is shown:\n"
"  --server-pid PID   show the CPU time of the server, too\n"
"  --most-cpu PART    exit with status 3 if this program took more than such a\n"
"                     part of the server's CPU time (default 0.25): it takes\n"
"                     from the server what it measures\n"
"  --visits FILE      write a line for each page: arrival in seconds,\n"
"                     milliseconds, site, kind, item\n"
"  --simulate MS      ask no server: each page takes so long on its connection\n"
"  --help\n"
"\n"
"Exit status: 0 done, 1 failed, 2 wrong usage, 3 see --most-cpu.\n";

struct text
{
  char *at;
  size_t length;
  bool plain;                           // has no placeholder
};

struct kind
{
  char *name;
  unsigned weight;
  struct text *statements;
  unsigned count;
};

struct visit
{
  double arrival;                       // in seconds since the beginning
  double took;                          // in ms
  unsigned site, kind, item;
};

enum state { FREE, CONNECTING, SELECTING_DATABASE, ASKING, WAITING, SKIPPING,
             LEAVING };

/* A connection, or the place for one */
struct client
{
  MYSQL mysql;
  MYSQL *connected;
  MYSQL_RES *result;
  struct client *next;                  // of those that are free
  char *query, *user, *password, *database; // stay while the library works
  struct visit visit;
  double end;                           // of a simulated page
  enum state state;
  int failed;
  my_bool no_result;
  bool reading;                         // the answer; it has begun to come
  unsigned statement;                   // the one that is asked
  bool open;                            // is connected
  bool watched;                         // by epoll
  bool for_writing;                     // and that, too
  bool busy;                            // with a page
};

/* Options */
static const char *socket_path, *user= NULL, *password= NULL, *database= NULL;
static unsigned sites= 1, items= 10, connections= 256, hot_step= 0;
static double zipf= 1, hot_share, rate= 0, duration= 10, simulated= -1;
static double most_cpu= 0.25;
static long server_pid= 0;
static bool keep_connections= false;
static uint64_t seed= 1;

static struct kind *kinds;
static unsigned number_of_kinds, weights;
static double *popularity;              // cumulated, of the most popular on
static unsigned *order;                 // which site is the n-th most popular

static struct client *clients, *free_clients;
static unsigned busy, most_busy;
static struct visit *visits;            // those that are done
static size_t done, room;
static uint64_t statements;

static int poller= -1, timer= -1;
static double armed= INFINITY;          // when the timer rings
static double virtual_now= 0;
static struct timespec began;


__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, PROGRAM ": ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  exit(1);
}


static void *allocate(void *old, size_t size)
{
  void *found= realloc(old, size);
  if (!found && size)
    fail("out of memory");
  return found;
}


/*** Chance ***/

/* splitmix64: each state has one successor, and any seed will do */
static uint64_t chance_state;

static uint64_t chance(void)
{
  uint64_t z= chance_state+= 0x9e3779b97f4a7c15ULL;
  z= (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z= (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}


/* At least 0, less than 1 */
static double fraction(void)
{
  return (double) (chance() >> 11) * 0x1p-53;
}


static unsigned less_than(unsigned limit)
{
  return (unsigned) (fraction() * limit);
}


static void rank_sites(void)
{
  double sum= 0;
  popularity= allocate(NULL, sites * sizeof *popularity);
  order= allocate(NULL, sites * sizeof *order);
  for (unsigned n= 0; n < sites; n++)
  {
    popularity[n]= sum+= pow(n + 1, -zipf);
    order[n]= n + 1;
  }
  // The same for each --seed: a server that has warmed up knows these sites
  chance_state= sites;
  for (unsigned n= sites; n > 1; n--)
  {
    unsigned other= less_than(n), site= order[n - 1];
    order[n - 1]= order[other];
    order[other]= site;
  }
}


static unsigned choose_site(void)
{
  double at= fraction();
  if (hot_step)
  {
    // Of each hot_step numbers, the last one is hot
    unsigned groups= sites / hot_step;
    bool hot= at < hot_share;
    double within= hot ? at / hot_share : (at - hot_share) / (1 - hot_share);
    unsigned number= (unsigned) (within * groups * (hot ? 1 : hot_step - 1));
    return hot ? (number + 1) * hot_step
               : number / (hot_step - 1) * hot_step +
                 number % (hot_step - 1) + 1;
  }
  unsigned low= 0, high= sites - 1;
  at*= popularity[sites - 1];
  while (low < high)
  {
    unsigned middle= low + (high - low) / 2;
    if (popularity[middle] > at)
      high= middle;
    else
      low= middle + 1;
  }
  return order[low];
}


/*
  What the next visitor asks for.  It takes the same number of random numbers each
  time, so that the n-th visit is the same in an open and in a closed loop.
*/

static void draw(struct visit *visit)
{
  double gap= -log1p(-fraction());
  visit->arrival= rate ? visit->arrival + gap / rate : 0;
  visit->site= choose_site();
  unsigned at= less_than(weights), kind= 0;
  while (at >= kinds[kind].weight)
    at-= kinds[kind++].weight;
  visit->kind= kind;
  visit->item= less_than(items) + 1;
}


/*** Pages ***/

static bool has_placeholder(const char *text)
{
  return strstr(text, "{site}") || strstr(text, "{item}");
}


static void add_statement(struct kind *kind, const char *line, size_t length)
{
  struct text *text;
  kind->statements= allocate(kind->statements,
                             (kind->count + 1) * sizeof *kind->statements);
  text= &kind->statements[kind->count++];
  char *to= text->at= allocate(NULL, length + 1);
  for (const char *end= line + length; line < end; line++)
  {
    if (*line == '\\' && line + 1 < end)
      *to++= *++line == 'n' ? '\n' : *line;
    else
      *to++= *line;
  }
  *to= 0;
  text->length= (size_t) (to - text->at);
  text->plain= !has_placeholder(text->at);
}


static void read_pages(const char *path)
{
  FILE *file= fopen(path, "r");
  char *line= NULL;
  size_t size= 0;
  ssize_t length;
  if (!file)
    fail("%s: %s", path, strerror(errno));
  while ((length= getline(&line, &size, file)) > 0)
  {
    if (line[length - 1] == '\n')
      line[--length]= 0;
    if (!length || line[0] == '#')
      continue;
    if (line[0] == '=')
    {
      struct kind *kind;
      kinds= allocate(kinds, (number_of_kinds + 1) * sizeof *kinds);
      kind= &kinds[number_of_kinds++];
      *kind= (struct kind) { .name= allocate(NULL, (size_t) length) };
      if (sscanf(line, "=%s %u", kind->name, &kind->weight) != 2)
        fail("%s: '%s' is not '=NAME WEIGHT'", path, line);
      weights+= kind->weight;
    }
    else if (!number_of_kinds)
      fail("%s: a statement stands before the first '=NAME WEIGHT'", path);
    else
      add_statement(&kinds[number_of_kinds - 1], line, (size_t) length);
  }
  free(line);
  fclose(file);
  if (!weights)
    fail("%s: no kind of page has a weight", path);
  for (unsigned kind= 0; kind < number_of_kinds; kind++)
    if (!kinds[kind].count)
      fail("%s: page '%s' has no statement", path, kinds[kind].name);
}


/* Replace the placeholders, in memory that belongs to 'old' */
static char *fill_in(char *old, const char *text, const struct visit *visit,
                     size_t *length)
{
  // A number is not much longer than its placeholder
  char *found= allocate(old, 2 * strlen(text) + 1), *to= found;
  while (*text)
  {
    if (!strncmp(text, "{site}", 6) || !strncmp(text, "{item}", 6))
    {
      to+= sprintf(to, "%u", text[1] == 's' ? visit->site : visit->item);
      text+= 6;
    }
    else
      *to++= *text++;
  }
  *to= 0;
  if (length)
    *length= (size_t) (to - found);
  return found;
}


/*** Time ***/

static double now(void)
{
  struct timespec time;
  if (simulated >= 0)
    return virtual_now;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double) (time.tv_sec - began.tv_sec) +
         1e-9 * (double) (time.tv_nsec - began.tv_nsec);
}


static double cpu_seconds(clockid_t clock)
{
  struct timespec time;
  if (clock_gettime(clock, &time))
    fail("the CPU time of a process: %s", strerror(errno));
  return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}


/* Linux's CPUCLOCK_SCHED of a process and all of its threads */
static double server_cpu_seconds(void)
{
  return server_pid
    ? cpu_seconds((clockid_t) ((~(unsigned) server_pid << 3) | 2)) : 0;
}


/* How long this program has been ready to run, but another one ran */
static double seconds_without_cpu(void)
{
  unsigned long long ran, waited= 0;
  FILE *file= fopen("/proc/self/schedstat", "r");
  if (file)
  {
    if (fscanf(file, "%llu %llu", &ran, &waited) != 2)
      waited= 0;
    fclose(file);
  }
  return 1e-9 * (double) waited;
}


/*** Connections ***/

static void finish_visit(struct client *client, double end)
{
  struct visit *visit= &client->visit;
  visit->took= 1000 * (end - visit->arrival);
  if (done == room)
  {
    room= room ? 2 * room : 4096;
    visits= allocate(visits, room * sizeof *visits);
  }
  visits[done++]= *visit;
}


static void release(struct client *client)
{
  client->state= FREE;
  client->busy= false;
  client->next= free_clients;
  free_clients= client;
  busy--;
}


/*
  Start what the client's state says, or go on with it.

  ready: the events that it has waited for, -1 to start it
  return: the events that it waits for, 0 when it is done
*/

static int operate(struct client *client, int ready)
{
  MYSQL *mysql= &client->mysql;
  bool start= ready < 0;
  switch (client->state)
  {
  case CONNECTING:
    return start ? mysql_real_connect_start(&client->connected, mysql, NULL,
                                            client->user, client->password,
                                            NULL, 0, socket_path, 0)
                 : mysql_real_connect_cont(&client->connected, mysql, ready);
  case SELECTING_DATABASE:
    return start ? mysql_select_db_start(&client->failed, mysql,
                                         client->database)
                 : mysql_select_db_cont(&client->failed, mysql, ready);
  case ASKING:
    if (start)
    {
      const struct text *text= &kinds[client->visit.kind]
                                  .statements[client->statement];
      const char *query= text->at;
      size_t length= text->length;
      if (!text->plain)
        query= client->query= fill_in(client->query, text->at, &client->visit,
                                      &length);
      statements++;
      return mysql_send_query_start(&client->failed, mysql, query, length);
    }
    return mysql_send_query_cont(&client->failed, mysql, ready);
  case WAITING:
    // The library would ask the socket for an answer before there can be one
    if (start)
    {
      client->reading= false;
      return MYSQL_WAIT_READ;
    }
    if (!client->reading)
    {
      client->reading= true;
      return mysql_read_query_result_start(&client->no_result, mysql);
    }
    return mysql_read_query_result_cont(&client->no_result, mysql, ready);
  case SKIPPING:
    // Reads the rows without taking them apart
    return start ? mysql_free_result_start(client->result)
                 : mysql_free_result_cont(client->result, ready);
  case LEAVING:
    return start ? mysql_close_start(mysql) : mysql_close_cont(mysql, ready);
  case FREE:
    break;
  }
  return 0;
}


/*
  Go to the next state when that of a client is done.

  return: false if it waits for another visitor
*/

static bool advance(struct client *client)
{
  const struct kind *kind= &kinds[client->visit.kind];
  bool wrong= false;
  switch (client->state)
  {
  case CONNECTING:
    wrong= !client->connected;
    client->open= !wrong;
    client->state= client->database ? SELECTING_DATABASE : ASKING;
    break;
  case SELECTING_DATABASE:
    wrong= client->failed;
    client->state= ASKING;
    break;
  case ASKING:
    wrong= client->failed;
    client->state= WAITING;
    break;
  case WAITING:
    wrong= client->no_result;
    client->result= wrong ? NULL : mysql_use_result(&client->mysql);
    if (client->result)
    {
      client->state= SKIPPING;
      break;
    }
    wrong= wrong || mysql_field_count(&client->mysql);
    client->state= ASKING;
    client->statement++;
    break;
  case SKIPPING:
    // An error may come behind some of the rows
    wrong= mysql_errno(&client->mysql);
    client->state= ASKING;
    client->statement++;
    break;
  case LEAVING:
    client->open= client->watched= client->for_writing= false;
    release(client);
    return false;
  case FREE:
    return false;
  }
  if (wrong)
    fail("page '%s' of site %u: error %u: %s", kind->name, client->visit.site,
         mysql_errno(&client->mysql), mysql_error(&client->mysql));
  if (client->state == ASKING && client->statement == kind->count)
  {
    finish_visit(client, now());
    if (keep_connections)
    {
      release(client);
      return false;
    }
    client->state= LEAVING;
  }
  return true;
}


/* Let epoll wait for what the library waits for */
static void watch(struct client *client, int wait)
{
  bool write= wait & MYSQL_WAIT_WRITE;
  if (client->watched && client->for_writing == write)
    return;
  struct epoll_event event=
  {
    // Edges: nothing is to be said again for each statement
    .events= EPOLLIN | EPOLLET | (write ? EPOLLOUT : 0), .data.ptr= client
  };
  if (epoll_ctl(poller, client->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                mysql_get_socket(&client->mysql), &event))
    fail("epoll_ctl: %s", strerror(errno));
  client->watched= true;
  client->for_writing= write;
}


static void go_on(struct client *client, int ready)
{
  do
  {
    int wait= operate(client, ready);
    if (wait)
    {
      watch(client, wait);
      return;
    }
    ready= -1;
  }
  while (advance(client));
}


static void prepare_connection(struct client *client)
{
  MYSQL *mysql= &client->mysql;
  my_bool no= 0;
  if (!mysql_init(mysql))
    fail("out of memory");
  mysql_options(mysql, MYSQL_OPT_NONBLOCK, NULL);
  // A later library asks for TLS by default
  mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &no);
  mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
  if (user)
    client->user= fill_in(client->user, user, &client->visit, NULL);
  if (password)
    client->password= fill_in(client->password, password, &client->visit,
                              NULL);
  if (database)
    client->database= fill_in(client->database, database, &client->visit,
                              NULL);
}


static void start(const struct visit *visit)
{
  struct client *client= free_clients;
  free_clients= client->next;
  client->visit= *visit;
  client->statement= 0;
  client->busy= true;
  if (++busy > most_busy)
    most_busy= busy;
  if (simulated >= 0)
  {
    client->end= virtual_now + simulated / 1000;
    return;
  }
  if (client->open)
    client->state= ASKING;
  else
  {
    prepare_connection(client);
    client->state= CONNECTING;
  }
  go_on(client, -1);
}


/*** The loop ***/

/* Simulated: until a page ends or the next visitor comes, whatever is first */
static void pass_time(double next)
{
  struct client *first= NULL;
  for (struct client *one= clients; one < clients + connections; one++)
    if (one->busy && (!first || one->end < first->end))
      first= one;
  if (!first || first->end > next)
  {
    virtual_now= next;
    return;
  }
  virtual_now= first->end;
  finish_visit(first, first->end);
  release(first);
}


static void arm_timer(double when)
{
  // The timer rings at an absolute time; all noughts would disarm it
  struct itimerspec time= { .it_value= began };
  double whole;
  double rest= modf(when, &whole);
  if (when == armed)
    return;
  armed= when;
  if (isinf(when))
    time.it_value= (struct timespec) { 0, 0 };
  else
  {
    time.it_value.tv_sec+= (time_t) whole;
    time.it_value.tv_nsec+= (long) (1e9 * rest);
    if (time.it_value.tv_nsec >= 1000000000)
    {
      time.it_value.tv_nsec-= 1000000000;
      time.it_value.tv_sec++;
    }
  }
  if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &time, NULL))
    fail("timerfd_settime: %s", strerror(errno));
}


/* Until something happens, but not longer than until 'next' */
static void wait_for_events(double next)
{
  struct epoll_event events[64];
  int count;
  if (simulated >= 0)
  {
    pass_time(next);
    return;
  }
  arm_timer(next);
  count= epoll_wait(poller, events, sizeof events / sizeof *events, -1);
  if (count < 0 && errno != EINTR)
    fail("epoll_wait: %s", strerror(errno));
  for (int n= 0; n < count; n++)
  {
    struct client *client= events[n].data.ptr;
    if (!client)
    {
      // Edges, so that the timer need not be read
      armed= NAN;
      continue;
    }
    int ready= (events[n].events & (EPOLLIN | EPOLLHUP | EPOLLERR)
                ? MYSQL_WAIT_READ : 0) |
               (events[n].events & EPOLLOUT ? MYSQL_WAIT_WRITE : 0);
    if (client->state != FREE)
      go_on(client, ready);
    else if (client->open && events[n].events & (EPOLLHUP | EPOLLERR))
      fail("the server has closed a connection");
  }
}


/* Serve all visitors; return how long that took */
static double serve(void)
{
  struct visit next= { 0 };
  double time;
  draw(&next);
  for (;;)
  {
    time= now();
    for (;;)
    {
      if (!rate)
        next.arrival= time;             // as soon as there is a connection
      if (next.arrival >= duration || next.arrival > time || !free_clients)
        break;
      start(&next);
      draw(&next);
      time= now();
    }
    bool more= next.arrival < duration;
    if (!more && !busy)
      return time;
    wait_for_events(more && free_clients ? next.arrival : INFINITY);
  }
}


static void prepare_clients(void)
{
  clients= calloc(connections, sizeof *clients);
  if (!clients)
    fail("out of memory");
  for (unsigned n= connections; n--; )
  {
    clients[n].next= free_clients;
    free_clients= &clients[n];
  }
  if (simulated >= 0)
    return;
  struct epoll_event event= { .events= EPOLLIN | EPOLLET, .data.ptr= NULL };
  poller= epoll_create1(EPOLL_CLOEXEC);
  timer= timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (poller < 0 || timer < 0 ||
      epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event))
    fail("epoll or timer: %s", strerror(errno));
  if (mysql_library_init(0, NULL, NULL))
    fail("the client library does not start");
}


/*** Results ***/

static int compare(const void *a, const void *b)
{
  double one= ((const struct visit *) a)->took,
         other= ((const struct visit *) b)->took;
  return (one > other) - (one < other);
}


static void write_visits(const char *path)
{
  FILE *file= fopen(path, "w");
  if (!file)
    fail("%s: %s", path, strerror(errno));
  for (const struct visit *one= visits; one < visits + done; one++)
    fprintf(file, "%.6f\t%.3f\t%u\t%s\t%u\n", one->arrival, one->took,
            one->site, kinds[one->kind].name, one->item);
  if (fclose(file))
    fail("%s: %s", path, strerror(errno));
}


/* The time that a part of all pages does not exceed */
static double percentile(double part)
{
  size_t at= (size_t) (part * (double) done);
  return visits[at < done ? at : done - 1].took;
}


static void print_results(double seconds, double own, double waited,
                          double servers)
{
  printf("{\n \"pages\": %zu,\n \"seconds\": %.6f,\n", done, seconds);
  printf(" \"pages_a_second\": %.3f,\n", (double) done / seconds);
  if (done)
  {
    qsort(visits, done, sizeof *visits, compare);
    printf(" \"p50\": %.3f,\n \"p99\": %.3f,\n \"max\": %.3f,\n",
           percentile(0.5), percentile(0.99), visits[done - 1].took);
  }
  printf(" \"statements\": %llu,\n \"most_at_once\": %u,\n",
         (unsigned long long) statements, most_busy);
  printf(" \"own_cpu_seconds\": %.6f,\n \"seconds_without_cpu\": %.6f",
         own, waited);
  if (server_pid)
    printf(",\n \"server_cpu_seconds\": %.6f", servers);
  printf("\n}\n");
  if (fflush(stdout) || ferror(stdout))
    fail("cannot write the results");
}


/*** Options ***/

__attribute__((noreturn))
static void wrong_usage(const char *option, const char *value)
{
  fprintf(stderr, PROGRAM ": --%s: '%s' is not possible; see --help\n", option,
          value);
  exit(2);
}


static double number(const char *option, const char *value, double least,
                     double most)
{
  char *end;
  double found= strtod(value, &end);
  if (end == value || *end || !(found >= least && found <= most))
    wrong_usage(option, value);
  return found;
}


static unsigned count(const char *option, const char *value)
{
  double found= number(option, value, 1, 1e9);
  if (found != floor(found))
    wrong_usage(option, value);
  return (unsigned) found;
}


static void read_hot(const char *value)
{
  char rest;
  if (sscanf(value, "%u,%lf%c", &hot_step, &hot_share, &rest) != 2 ||
      hot_step < 2 || !(hot_share > 0 && hot_share < 1))
    wrong_usage("hot", value);
}


enum { PAGES= 256, ITEMS, SITES, ZIPF, HOT, RATE, SECONDS, CONNECTIONS, SEED,
       SOCKET, USER, PASSWORD, DATABASE, KEEP_CONNECTIONS, SERVER_PID,
       MOST_CPU, VISITS, SIMULATE, HELP };

static const struct option options[]=
{
  {"pages", required_argument, NULL, PAGES},
  {"items", required_argument, NULL, ITEMS},
  {"sites", required_argument, NULL, SITES},
  {"zipf", required_argument, NULL, ZIPF},
  {"hot", required_argument, NULL, HOT},
  {"rate", required_argument, NULL, RATE},
  {"seconds", required_argument, NULL, SECONDS},
  {"connections", required_argument, NULL, CONNECTIONS},
  {"seed", required_argument, NULL, SEED},
  {"socket", required_argument, NULL, SOCKET},
  {"user", required_argument, NULL, USER},
  {"password", required_argument, NULL, PASSWORD},
  {"database", required_argument, NULL, DATABASE},
  {"keep-connections", no_argument, NULL, KEEP_CONNECTIONS},
  {"server-pid", required_argument, NULL, SERVER_PID},
  {"most-cpu", required_argument, NULL, MOST_CPU},
  {"visits", required_argument, NULL, VISITS},
  {"simulate", required_argument, NULL, SIMULATE},
  {"help", no_argument, NULL, HELP},
  {NULL, 0, NULL, 0}
};


int main(int argc, char **argv)
{
  const char *pages= NULL, *visits_path= NULL;
  int option, which= 0;
  while ((option= getopt_long(argc, argv, "", options, &which)) != -1)
  {
    const char *name= option == '?' ? "" : options[which].name;
    switch (option)
    {
    case PAGES: pages= optarg; break;
    case ITEMS: items= count(name, optarg); break;
    case SITES: sites= count(name, optarg); break;
    case ZIPF: zipf= number(name, optarg, 0, 10); break;
    case HOT: read_hot(optarg); break;
    case RATE: rate= number(name, optarg, 1e-6, 1e9); break;
    case SECONDS: duration= number(name, optarg, 0, 1e6); break;
    case CONNECTIONS: connections= count(name, optarg); break;
    case SEED: seed= count(name, optarg); break;
    case SOCKET: socket_path= optarg; break;
    case USER: user= optarg; break;
    case PASSWORD: password= optarg; break;
    case DATABASE: database= optarg; break;
    case KEEP_CONNECTIONS: keep_connections= true; break;
    case SERVER_PID: server_pid= count(name, optarg); break;
    case MOST_CPU: most_cpu= number(name, optarg, 0, 1e6); break;
    case VISITS: visits_path= optarg; break;
    case SIMULATE: simulated= number(name, optarg, 1e-3, 1e6); break;
    case HELP: fputs(usage, stdout); return 0;
    default: fputs(usage, stderr); return 2;
    }
  }
  if (optind < argc || !pages || !(socket_path || simulated >= 0))
  {
    fputs(usage, stderr);
    return 2;
  }
  if (hot_step && sites % hot_step)
    wrong_usage("hot", "--sites must be a multiple of it, other than that");
  if (keep_connections && ((user && has_placeholder(user)) ||
                           (password && has_placeholder(password)) ||
                           (database && has_placeholder(database))))
    wrong_usage("keep-connections", "an account that depends on the page");

  read_pages(pages);
  rank_sites();
  prepare_clients();
  chance_state= seed;
  double own= cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  double waited= seconds_without_cpu();
  double servers= server_cpu_seconds();
  clock_gettime(CLOCK_MONOTONIC, &began);
  double seconds= serve();
  servers= server_cpu_seconds() - servers;
  own= cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - own;
  waited= seconds_without_cpu() - waited;
  if (visits_path)
    write_visits(visits_path);
  print_results(seconds, own, waited, servers);
  for (struct client *one= clients; one < clients + connections; one++)
    if (one->open)
      mysql_close(&one->mysql);
  if (server_pid && own > most_cpu * servers)
  {
    fprintf(stderr, PROGRAM ": this program took %.0f %% of the server's CPU "
            "time, more than %.0f %%\n", 100 * own / servers, 100 * most_cpu);
    return 3;
  }
  return 0;
}
