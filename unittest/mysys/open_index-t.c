/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Test of the index from file name to open share (mysys/my_open_index.c),
  through its public functions and with shares of its own. Each share counts the
  searches that read its name, so the test knows how many shares a search has
  compared.
*/

#include <my_global.h>
#include <my_sys.h>
#include <my_base.h>
#include <my_rnd.h>
#include <my_atomic.h>
#include <fcntl.h>
#include <my_open_index.h>
#include "tap.h"

#define MANY 100000

typedef struct st_fake_share
{
  char name[64];
  uint length;
  my_bool retired;
  my_bool in_index;                             /* Used by the model */
} FAKE_SHARE;

static mysql_mutex_t LOCK_test;
static ulong names_read;
static struct my_rnd_struct rnd;

static const uchar *fake_name(const void *share, size_t *length,
                              my_bool not_used __attribute__((unused)))
{
  names_read++;
  *length= ((const FAKE_SHARE*) share)->length;
  return (const uchar*) ((const FAKE_SHARE*) share)->name;
}


static my_bool fake_is_current(const void *share)
{
  return !((const FAKE_SHARE*) share)->retired;
}


static OPEN_INDEX index_under_test=
  OPEN_INDEX_INIT(&LOCK_test, fake_name, fake_is_current);


static void set_name(FAKE_SHARE *share, const char *name)
{
  bzero(share, sizeof(*share));
  share->length= (uint) (strmake(share->name, name, sizeof(share->name) - 1) -
                         share->name);
}


static FAKE_SHARE *find(const char *name)
{
  return open_index_find(&index_under_test, name, strlen(name));
}


static my_bool insert(FAKE_SHARE *share)
{
  return open_index_insert(&index_under_test, share);
}


static void delete(FAKE_SHARE *share)
{
  open_index_delete(&index_under_test, share);
}


static uint random_below(uint n)
{
  uint res= (uint) (my_rnd(&rnd) * n);
  return res < n ? res : n - 1;
}


static void shuffle(FAKE_SHARE **shares, uint n)
{
  for (; n > 1; n--)
  {
    uint other= random_below(n);
    FAKE_SHARE *tmp= shares[other];
    shares[other]= shares[n - 1];
    shares[n - 1]= tmp;
  }
}


static void found_by_exact_name_only(void)
{
  FAKE_SHARE share, upper, absent;
  char copy[64];

  set_name(&share, "/data/db1/t1.MYI");
  set_name(&upper, "/data/db1/T1.MYI");
  set_name(&absent, "/data/db1/t2.MYI");
  ok(find(share.name) == NULL, "an empty index finds nothing");
  delete(&share);
  ok(find(share.name) == NULL, "deleting from an empty index does nothing");

  ok(!insert(&share), "insert");
  strmov(copy, share.name);
  ok(find(copy) == &share, "found by an equal name");
  ok(!find("/data/db1/t1.MY") && !find("/data/db1/t1.MYI2") &&
     !find("/data/db1/T1.MYI") && !find("/data/db1/t1.MYI ") &&
     !find("/data/db2/t1.MYI") && !find("t1.MYI"),
     "not found by a prefix, a longer name, another case, a trailing space, "
     "another directory");
  ok(!insert(&upper) && find(upper.name) == &upper && find(copy) == &share,
     "names that differ in case are two names");

  delete(&absent);
  ok(find(copy) == &share && find(upper.name) == &upper,
     "deleting what is not in the index does nothing");
  delete(&share);
  ok(!find(copy) && find(upper.name) == &upper, "deleted");
  delete(&upper);
  ok(!find(upper.name) && !my_hash_inited(&index_under_test.shares),
     "an index that became empty has no memory");
}


static void retired_share_is_not_found(void)
{
  FAKE_SHARE old_share, new_share;

  set_name(&old_share, "/data/db1/t1.MYI");
  set_name(&new_share, "/data/db1/t1.MYI");
  insert(&old_share);
  old_share.retired= 1;
  ok(!find(old_share.name), "a retired share is not found");
  insert(&new_share);
  ok(find(old_share.name) == &new_share, "its name may be opened again");
  delete(&old_share);
  ok(find(old_share.name) == &new_share, "the retired share closes first");
  delete(&new_share);
  ok(!find(old_share.name), "then the new one");

  old_share.retired= 0;
  insert(&old_share);
  old_share.retired= 1;
  insert(&new_share);
  delete(&new_share);
  ok(!find(old_share.name), "the new share closes first");
  new_share.retired= 0;
  insert(&new_share);
  ok(find(old_share.name) == &new_share, "and is opened again");
  delete(&new_share);
  delete(&old_share);
  ok(!my_hash_inited(&index_under_test.shares), "both are gone");
}


static void same_name_removed_in_any_order(void)
{
  enum { SAME= 8, ROUNDS= 500 };
  FAKE_SHARE shares[SAME], *order[SAME], others[SAME];
  uint round, i, bad= 0;

  for (i= 0; i < SAME; i++)
  {
    char name[64];
    my_snprintf(name, sizeof(name), "/data/db2/t%u.MYI", i);
    set_name(&others[i], name);
    insert(&others[i]);
  }
  for (round= 0; round < ROUNDS; round++)
  {
    FAKE_SHARE *current= &shares[SAME - 1];
    for (i= 0; i < SAME; i++)
    {
      set_name(&shares[i], "/data/db1/t1.MYI");
      insert(&shares[i]);
      order[i]= &shares[i];
      if (&shares[i] != current)
        shares[i].retired= 1;
    }
    shuffle(order, SAME);
    for (i= 0; i < SAME; i++)
    {
      uint j;
      bad+= (find("/data/db1/t1.MYI") != current);
      delete(order[i]);
      if (order[i] == current)
        current= NULL;
      for (j= 0; j < SAME; j++)
        bad+= (find(others[j].name) != &others[j]);
    }
    bad+= (find("/data/db1/t1.MYI") != NULL);
  }
  ok(bad == 0, "%u shares of one name, removed in any order (%u wrong)",
     (uint) SAME, bad);
  for (i= 0; i < SAME; i++)
    delete(&others[i]);
}


static void steps_do_not_grow_with_the_number_of_shares(void)
{
  FAKE_SHARE *shares, **order;
  uint i, bad= 0;
  ulong max_read= 0, sum_read= 0;

  shares= my_malloc(PSI_NOT_INSTRUMENTED, MANY * sizeof(*shares), MYF(MY_FAE));
  order= my_malloc(PSI_NOT_INSTRUMENTED, MANY * sizeof(*order), MYF(MY_FAE));
  for (i= 0; i < MANY; i++)
  {
    char name[64];
    my_snprintf(name, sizeof(name), "/var/lib/mysql/db%u/table_%u.MAI",
                i / 1000, i % 1000);
    set_name(&shares[i], name);
    order[i]= &shares[i];
    bad+= insert(&shares[i]);
  }
  ok(bad == 0, "%u names inserted", MANY);
  for (i= 0; i < MANY; i++)
  {
    names_read= 0;
    bad+= (find(shares[i].name) != &shares[i]);
    sum_read+= names_read;
    set_if_bigger(max_read, names_read);
  }
  ok(bad == 0, "all are found");
  diag("shares looked at to find one of %u: %.2f on average, at most %lu",
       MANY, (double) sum_read / MANY, max_read);
  ok(sum_read <= 3 * MANY, "at most 3 shares looked at on average");
  ok(max_read <= 32, "at most 32 shares looked at for any name");
  ok(index_under_test.shares.array.max_element *
     index_under_test.shares.array.size_of_element <= 128UL * MANY,
     "at most 128 bytes per share (%.1f)",
     (double) index_under_test.shares.array.max_element *
     index_under_test.shares.array.size_of_element / MANY);

  for (sum_read= max_read= i= 0; i < MANY; i++)
  {
    char name[64];
    my_snprintf(name, sizeof(name), "/var/lib/mysql/db%u/absent_%u.MAI",
                i / 1000, i % 1000);
    names_read= 0;
    bad+= (find(name) != NULL);
    sum_read+= names_read;
    set_if_bigger(max_read, names_read);
  }
  ok(bad == 0 && sum_read <= 3 * MANY && max_read <= 32,
     "the same for names that are not there (%.2f, at most %lu)",
     (double) sum_read / MANY, max_read);

  shuffle(order, MANY);
  for (sum_read= i= 0; i < MANY; i++)
  {
    names_read= 0;
    delete(order[i]);
    sum_read+= names_read;
    bad+= (find(order[i]->name) != NULL);
    if (i + 1 < MANY)
      bad+= (find(order[MANY - 1]->name) != order[MANY - 1] ||
             find(order[i + 1]->name) != order[i + 1]);
  }
  ok(bad == 0, "all removed in random order (%u wrong)", bad);
  ok(sum_read <= 3 * MANY, "at most 3 names read for a removal on average");
  my_free(order);
  my_free(shares);
}


/* Random operations, compared with the results of a linear search */

static void agrees_with_linear_search(void)
{
  enum { NAMES= 50, SHARES= 200, OPERATIONS= 200000 };
  static FAKE_SHARE shares[SHARES];
  uint operation, i, bad= 0;

  for (i= 0; i < SHARES; i++)
  {
    char name[64];
    my_snprintf(name, sizeof(name), "./test/t%u.MYI", i % NAMES);
    set_name(&shares[i], name);
  }
  for (operation= 0; operation < OPERATIONS; operation++)
  {
    FAKE_SHARE *share= &shares[random_below(SHARES)], *expected= NULL;

    for (i= 0; i < SHARES; i++)
    {
      if (shares[i].in_index && !shares[i].retired &&
          !strcmp(shares[i].name, share->name))
        expected= &shares[i];
    }
    bad+= (find(share->name) != expected);
    if (!share->in_index)
    {
      if (!expected)
      {
        share->retired= 0;
        bad+= insert(share);
        share->in_index= 1;
      }
    }
    else if (!share->retired && random_below(2))
      share->retired= 1;
    else
    {
      delete(share);
      share->in_index= 0;
    }
  }
  for (i= 0; i < SHARES; i++)
    delete(&shares[i]);
  ok(bad == 0 && !my_hash_inited(&index_under_test.shares),
     "%u random operations agree with a linear search (%u wrong)",
     (uint) OPERATIONS, bad);
}


static void failed_insert_changes_nothing(void)
{
#ifdef DBUG_OFF
  skip(4, "needs a debug build");
#else
  FAKE_SHARE first, second;

  set_name(&first, "/data/db1/t1.MYI");
  set_name(&second, "/data/db1/t2.MYI");
  DBUG_SET("+d,open_index_out_of_memory");
  my_errno= 0;
  ok(insert(&first) && my_errno == HA_ERR_OUT_OF_MEM,
     "no memory for the first share");
  ok(!find(first.name) && !my_hash_inited(&index_under_test.shares),
     "nothing is left of it");
  DBUG_SET("-d,open_index_out_of_memory");
  insert(&first);
  DBUG_SET("+d,open_index_out_of_memory");
  ok(insert(&second) && find(first.name) == &first && !find(second.name),
     "no memory for the second share: the first stays");
  DBUG_SET("-d,open_index_out_of_memory");
  ok(!insert(&second) && find(second.name) == &second,
     "it is inserted when there is memory");
  delete(&first);
  delete(&second);
#endif
}


/*
  Name locks. Threads own names of the index, and check that no other thread
  owns the same name at the same time.
*/

enum { THREADS= 8, NAMES= 3 };

static const char *const names[NAMES]=
{ "/data/db1/t1.MYI", "/data/db1/t2.MYI", "/data/db2/t1.MYI" };

static struct st_owned
{
  int32 owners;                                 /* Must never exceed 1 */
  uint plain;                /* Counted without atomics: the lock must do it */
} owned[NAMES];

static uint turns_of_thread;
static int32 overlaps;

static void *own_names(void *arg)
{
  struct my_rnd_struct my_rnd_state;
  uint i;
  my_thread_init();
  my_rnd_init(&my_rnd_state, *(uint*) arg, 4711);
  for (i= 0; i < turns_of_thread; i++)
  {
    uint n= (uint) (my_rnd(&my_rnd_state) * NAMES) % NAMES;
    OPEN_INDEX_NAME owner;
    char name[64];
    /* As a caller does it: the name is on its stack */
    strmov(name, names[n]);
    if (open_index_begin(&index_under_test, &owner, name, strlen(name),
                         OPEN_INDEX_CREATE))
      my_atomic_add32(&overlaps, 1);
    if (my_atomic_add32(&owned[n].owners, 1) != 0)
      my_atomic_add32(&overlaps, 1);
    owned[n].plain++;
    if (i % 16 == 0)
      sched_yield();
    my_atomic_add32(&owned[n].owners, -1);
    open_index_end(&index_under_test, &owner, 0);
  }
  my_thread_end();
  return NULL;
}


static void one_owner_per_name(void)
{
  pthread_t threads[THREADS];
  uint numbers[THREADS], i, sum= 0, chains= 0;

  turns_of_thread= 20000;
  for (i= 0; i < THREADS; i++)
  {
    numbers[i]= i + 1;
    pthread_create(&threads[i], NULL, own_names, &numbers[i]);
  }
  for (i= 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (i= 0; i < NAMES; i++)
    sum+= owned[i].plain;
  ok(overlaps == 0, "a name has one owner at a time (%d overlaps)", overlaps);
  ok(sum == THREADS * turns_of_thread, "and every thread gets its turns");
  for (i= 0; i < OPEN_INDEX_NAME_CHAINS; i++)
    chains+= index_under_test.names[i] != NULL;
  ok(chains == 0, "no name is owned afterwards");
}


static struct st_opener
{
  pthread_t thread;
  uint how;
  int error;                                    /* Result of begin */
  int turn;                          /* When the thread owned it, from 1 on */
} openers[THREADS];

static int32 turns_taken;

static void *open_once(void *arg)
{
  struct st_opener *opener= (struct st_opener*) arg;
  OPEN_INDEX_NAME owner;
  my_thread_init();
  opener->error= open_index_begin(&index_under_test, &owner, names[0],
                                  strlen(names[0]), opener->how);
  if (!opener->error)
  {
    opener->turn= my_atomic_add32(&turns_taken, 1) + 1;
    open_index_end(&index_under_test, &owner, 0);
  }
  my_thread_end();
  return NULL;
}


static uint count_waiting(const OPEN_INDEX_NAME *owner)
{
  const OPEN_INDEX_NAME *waiting;
  uint count= 0;
  mysql_mutex_t *lock=
    &open_index_name_locks[owner->hash_value % OPEN_INDEX_NAME_CHAINS];
  mysql_mutex_lock(lock);
  for (waiting= owner->first_waiting; waiting; waiting= waiting->next)
    count++;
  mysql_mutex_unlock(lock);
  return count;
}


/* Let threads wait for names[0], in the order of their numbers */

static void let_wait(const OPEN_INDEX_NAME *owner, uint count)
{
  uint i;
  turns_taken= 0;
  for (i= 0; i < count; i++)
  {
    openers[i].turn= 0;
    pthread_create(&openers[i].thread, NULL, open_once, &openers[i]);
    while (count_waiting(owner) != i + 1)
      sched_yield();
  }
}


static void waiting_threads_share_an_error(void)
{
  OPEN_INDEX_NAME owner, other;
  const uint how= OPEN_INDEX_HOW(O_RDWR, 0);
  const uint other_how= OPEN_INDEX_HOW(O_RDONLY, 0);
  uint i, bad= 0;

  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]), how);
  ok(!open_index_begin(&index_under_test, &other, names[1], strlen(names[1]),
                       how), "other names are not waited for");
  open_index_end(&index_under_test, &other, HA_ERR_CRASHED);
  for (i= 0; i < THREADS; i++)
    openers[i].how= how;
  let_wait(&owner, THREADS);
  open_index_end(&index_under_test, &owner, 0);
  for (i= 0; i < THREADS; i++)
  {
    pthread_join(openers[i].thread, NULL);
    bad+= (openers[i].error != 0 || openers[i].turn != (int) i + 1);
  }
  ok(bad == 0, "those who wait own the name in order of arrival");

  /*
    A third of the threads open the file in the same way as the owner, a third
    in another way, and the others close or create it.
  */
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]), how);
  for (i= 0; i < THREADS; i++)
    openers[i].how= i % 3 == 0 ? how : i % 3 == 1 ? other_how :
                    i % 2 ? OPEN_INDEX_CLOSE : OPEN_INDEX_CREATE;
  let_wait(&owner, THREADS);
  open_index_end(&index_under_test, &owner, HA_ERR_CRASHED);
  for (i= bad= 0; i < THREADS; i++)
  {
    pthread_join(openers[i].thread, NULL);
    if (openers[i].how == how)
      bad+= (openers[i].error != HA_ERR_CRASHED);
    else
      bad+= (openers[i].error != 0 ||
             openers[i].turn != (int) (i - i / 3));
  }
  ok(bad == 0, "an error is shared by those who want to open in the same way, "
     "the others go on in their order (%u wrong)", bad);

  /* The owner lacks something that other threads may get */
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]), how);
  for (i= 0; i < THREADS; i++)
    openers[i].how= how;
  let_wait(&owner, THREADS);
  open_index_end(&index_under_test, &owner, EMFILE);
  for (i= bad= 0; i < THREADS; i++)
  {
    pthread_join(openers[i].thread, NULL);
    bad+= (openers[i].error != 0 || openers[i].turn != (int) i + 1);
  }
  ok(bad == 0, "no descriptor: the others try for themselves");

  /* An owner that does not open the file has no error to share */
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]),
                   OPEN_INDEX_CREATE);
  for (i= 0; i < THREADS; i++)
    openers[i].how= OPEN_INDEX_CREATE;
  let_wait(&owner, THREADS);
  open_index_end(&index_under_test, &owner, HA_ERR_CRASHED);
  for (i= bad= 0; i < THREADS; i++)
  {
    pthread_join(openers[i].thread, NULL);
    bad+= openers[i].error != 0;
  }
  ok(bad == 0, "an error of one who did not open is not shared");
}


static void owner_gets_the_current_share(void)
{
  OPEN_INDEX_NAME owner;
  FAKE_SHARE share;
  my_bool ok_before, ok_current, ok_retired;
  set_name(&share, names[0]);
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]),
                   OPEN_INDEX_CREATE);
  ok_before= owner.share == NULL;
  mysql_mutex_lock(&LOCK_test);
  insert(&share);
  mysql_mutex_unlock(&LOCK_test);
  open_index_end(&index_under_test, &owner, 0);
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]),
                   OPEN_INDEX_CREATE);
  ok_current= owner.share == &share;
  share.retired= 1;
  open_index_end(&index_under_test, &owner, 0);
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]),
                   OPEN_INDEX_CREATE);
  ok_retired= owner.share == NULL;
  mysql_mutex_lock(&LOCK_test);
  delete(&share);
  mysql_mutex_unlock(&LOCK_test);
  open_index_end(&index_under_test, &owner, 0);
  ok(ok_before && ok_current && ok_retired,
     "the owner of a name gets its current share");
}


/* A thread that closes a file needs neither the index nor its mutex */

static void closing_does_not_look_up(void)
{
  OPEN_INDEX_NAME owner;
  FAKE_SHARE share;
  set_name(&share, names[0]);
  mysql_mutex_lock(&LOCK_test);
  open_index_insert(&index_under_test, &share);
  open_index_begin(&index_under_test, &owner, names[0], strlen(names[0]),
                   OPEN_INDEX_CLOSE);
  ok(owner.share == NULL, "closing takes no lock of the index, and no share");
  open_index_end(&index_under_test, &owner, 0);
  delete(&share);
  mysql_mutex_unlock(&LOCK_test);
}


/*
  Several owners in one chain, which end in any order, and the same name in two
  indexes, whose chains share their mutexes
*/

static void names_of_one_chain_are_independent(void)
{
  static OPEN_INDEX other_index=
    OPEN_INDEX_INIT(&LOCK_test, fake_name, fake_is_current);
  static const uint orders[][3]=
  { {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0} };
  char found[3][16];
  OPEN_INDEX_NAME owners[3], other;
  uint n= 0, i, j, chain= 0, bad= 0;

  for (i= 0; n < 3; i++)
  {
    sprintf(found[n], "chain%u", i);
    open_index_begin(&index_under_test, &owners[0], found[n], strlen(found[n]),
                     OPEN_INDEX_CLOSE);
    if (n == 0)
      chain= owners[0].hash_value % OPEN_INDEX_NAME_CHAINS;
    n+= owners[0].hash_value % OPEN_INDEX_NAME_CHAINS == chain;
    open_index_end(&index_under_test, &owners[0], 0);
  }
  for (j= 0; j < array_elements(orders); j++)
  {
    for (i= 0; i < 3; i++)
      bad+= open_index_begin(&index_under_test, &owners[i], found[i],
                             strlen(found[i]), OPEN_INDEX_CLOSE) != 0;
    bad+= open_index_begin(&other_index, &other, found[0], strlen(found[0]),
                           OPEN_INDEX_CLOSE) != 0;
    for (i= 0; i < 3; i++)
      open_index_end(&index_under_test, &owners[orders[j][i]], 0);
    bad+= index_under_test.names[chain] != NULL;
    bad+= other_index.names[chain] != &other;
    open_index_end(&other_index, &other, 0);
    bad+= other_index.names[chain] != NULL;
  }
  ok(bad == 0, "names of one chain are owned at the same time, and given back "
     "in any order; other indexes have names of their own");
}


int main(int argc __attribute__((unused)), char *argv[])
{
  MY_INIT(argv[0]);
  plan(41);
  my_rnd_init(&rnd, 20090101, 49177);
  mysql_mutex_init(0, &LOCK_test, MY_MUTEX_INIT_FAST);
  mysql_mutex_lock(&LOCK_test);

  found_by_exact_name_only();
  retired_share_is_not_found();
  same_name_removed_in_any_order();
  steps_do_not_grow_with_the_number_of_shares();
  agrees_with_linear_search();
  failed_insert_changes_nothing();

  mysql_mutex_unlock(&LOCK_test);

  owner_gets_the_current_share();
  one_owner_per_name();
  waiting_threads_share_an_error();
  closing_does_not_look_up();
  names_of_one_chain_are_independent();

  mysql_mutex_destroy(&LOCK_test);
  my_end(0);
  return exit_status();
}
