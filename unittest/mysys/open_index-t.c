/* SPDX-License-Identifier: GPL-2.0-only */

/*
  Test of the index from file name to open share (mysys/my_open_index.c),
  through its public functions and with shares of its own. The shares count
  how often their name is read: that is how many of them a search looked at.
*/

#include <my_global.h>
#include <my_sys.h>
#include <my_base.h>
#include <my_rnd.h>
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


/* Random operations, compared with what a linear search finds */

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


int main(int argc __attribute__((unused)), char *argv[])
{
  MY_INIT(argv[0]);
  plan(30);
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
  mysql_mutex_destroy(&LOCK_test);
  my_end(0);
  return exit_status();
}
