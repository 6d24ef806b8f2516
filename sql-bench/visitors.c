// SPDX-License-Identifier: GPL-2.0-only
/*
  Visitors of many sites ask a server for pages.  This program measures how long
  they wait, for benchlib/visitors.py.

  A page is a connection, and a list of statements, one after the other.  One
  thread serves all connections, by the non-blocking calls of MariaDB's client
  library and epoll: a thread a connection would take more CPU time, of which
  the server gets the rest.

  Open loop (--rate): visitors know nothing of each other and of the server, so
  the gaps between them are distributed exponentially.  Who comes when, and what
  they ask for, depends on the seed only.  A page takes from the arrival, so that
  those who wait for a free connection are counted with their whole wait.
  Closed loop: each connection asks for its next page at once.

  Options, each as --NAME=VALUE:

  pages             file with kinds of pages.  A line '=NAME WEIGHT' begins one, which is
                    asked for as often as its weight says.  The lines behind it are its
                    statements, where \n is a line's end, and a backslash takes the
                    meaning from what follows it.  {site} is the number of the site, and
                    {item} a number that is the same in the whole page
  items             numbers of the items are 1 to this one (10)
  sites             numbers of the sites are 1 to this one (1).  The n-th site is asked for
                    1/n times as often as the first one.  Which site that is, is by chance,
                    but the same for each seed
  hot-every, hot-share
                    instead: every so-many-th site is hot; these have so large a share of
                    the pages
  rate              open loop: so many pages arrive a second, by chance.  Without it there
                    is a closed loop
  seconds           pages arrive for so long (10); each is completed
  connections       at most so many pages at once (256)
  seed              of all that is by chance (1)
  socket            the server's Unix socket
  user, password, database
                    {site} is the number of the site, as above
  keep-connections  1: use a connection for one page after the other
  server-pid        show the CPU time of the server, too
  visits            file for a line a page: arrival in seconds, milliseconds, site, kind,
                    item
  simulate          ask no server: each page takes so many milliseconds on its connection

  An error of the server ends all.  The results are JSON; times are in milliseconds.
  Exit status: 0 done, 1 failed, 2 wrong usage.
*/

#define _GNU_SOURCE
#include <errno.h>
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

struct kind
{
  char *name;
  unsigned weight;
  char **statements;
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
static const char *pages_path, *visits_path, *socket_path, *user, *password, *database;
static unsigned sites= 1, items= 10, connections= 256, seed= 1, hot_step, server_pid,
                keep_connections;
static double hot_share= 0.5, rate= 0, duration= 10, simulated= -1;

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
    popularity[n]= sum+= 1.0 / (n + 1);
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

static void add_statement(struct kind *kind, const char *line)
{
  kind->statements= allocate(kind->statements,
                             (kind->count + 1) * sizeof *kind->statements);
  char *to= kind->statements[kind->count++]= allocate(NULL, strlen(line) + 1);
  for (; *line; line++)
  {
    if (*line == '\\' && line[1])
      *to++= *++line == 'n' ? '\n' : *line;
    else
      *to++= *line;
  }
  *to= 0;
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
      add_statement(&kinds[number_of_kinds - 1], line);
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
static char *fill_in(char *old, const char *text, const struct visit *visit)
{
  // A number is not much longer than its placeholder
  char *found= allocate(old, 2 * strlen(text) + 1), *to= found;
  for (;;)
  {
    const char *brace= strchrnul(text, '{');
    to= mempcpy(to, text, (size_t) (brace - text));
    text= brace;
    if (!*text)
      break;
    if (!strncmp(text, "{site}", 6) || !strncmp(text, "{item}", 6))
    {
      to+= sprintf(to, "%u", text[1] == 's' ? visit->site : visit->item);
      text+= 6;
    }
    else
      *to++= *text++;
  }
  *to= 0;
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
    ? cpu_seconds((clockid_t) ((~server_pid << 3) | 2)) : 0;
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
      const char *text= kinds[client->visit.kind].statements[client->statement];
      client->query= fill_in(client->query, text, &client->visit);
      statements++;
      return mysql_send_query_start(&client->failed, mysql, client->query,
                                    strlen(client->query));
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
    client->user= fill_in(client->user, user, &client->visit);
  if (password)
    client->password= fill_in(client->password, password, &client->visit);
  if (database)
    client->database= fill_in(client->database, database, &client->visit);
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

enum type { TEXT, COUNT, NUMBER };

static const struct option
{
  const char *name;
  enum type type;
  void *to;
  double least, most;                   // of a number
} options[]=
{
  {"pages", TEXT, &pages_path, 0, 0},
  {"items", COUNT, &items, 1, 1e9},
  {"sites", COUNT, &sites, 1, 1e9},
  {"hot-every", COUNT, &hot_step, 2, 1e9},
  {"hot-share", NUMBER, &hot_share, 1e-6, 1 - 1e-6},
  {"rate", NUMBER, &rate, 1e-6, 1e9},
  {"seconds", NUMBER, &duration, 0, 1e6},
  {"connections", COUNT, &connections, 1, 1e9},
  {"seed", COUNT, &seed, 1, 1e9},
  {"socket", TEXT, &socket_path, 0, 0},
  {"user", TEXT, &user, 0, 0},
  {"password", TEXT, &password, 0, 0},
  {"database", TEXT, &database, 0, 0},
  {"keep-connections", COUNT, &keep_connections, 0, 1},
  {"server-pid", COUNT, &server_pid, 1, 1e9},
  {"visits", TEXT, &visits_path, 0, 0},
  {"simulate", NUMBER, &simulated, 1e-3, 1e6}
};


/* Whether a word of the command line is an option with a possible value */
static bool read_option(const char *word)
{
  char *value= strchr(word, '='), *end;
  if (!value++ || strncmp(word, "--", 2))
    return false;
  for (unsigned n= 0; n < sizeof options / sizeof *options; n++)
  {
    const struct option *option= &options[n];
    size_t length= strlen(option->name);
    if (word + 2 + length + 1 != value || strncmp(word + 2, option->name, length))
      continue;
    if (option->type == TEXT)
    {
      *(const char **) option->to= value;
      return true;
    }
    double found= strtod(value, &end);
    if (end == value || *end || !(found >= option->least && found <= option->most) ||
        (option->type == COUNT && found != floor(found)))
      return false;
    if (option->type == COUNT)
      *(unsigned *) option->to= (unsigned) found;
    else
      *(double *) option->to= found;
    return true;
  }
  return false;
}


__attribute__((noreturn))
static void wrong_usage(const char *what)
{
  fprintf(stderr, PROGRAM ": wrong usage: %s\n", what);
  exit(2);
}


int main(int argc, char **argv)
{
  for (int n= 1; n < argc; n++)
    if (!read_option(argv[n]))
      wrong_usage(argv[n]);
  if (!pages_path || !(socket_path || simulated >= 0))
    wrong_usage("--pages, and --socket or --simulate, are needed");
  if (hot_step && sites % hot_step)
    wrong_usage("--sites must be a multiple of --hot-every");

  read_pages(pages_path);
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
  return 0;
}
