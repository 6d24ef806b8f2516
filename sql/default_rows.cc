/* SPDX-License-Identifier: GPL-2.0-only */

/** @file default_rows: see default_rows.h. */

#include "mariadb.h"
#include "sql_base.h"
#include "table_cache.h"
#include "table_cache_memory.h"
#include "default_rows.h"

/** Bytes: a shorter row is not worth the entry in the hash. */
static constexpr uint LEAST_LENGTH= 128;
static constexpr uint FIRST_BUCKETS= 64;

/**
  Protects the variables below, and 'next' and 'references' of each row. A thread
  that holds this takes no other lock.
*/
static mysql_mutex_t LOCK_default_rows;
static Default_row **buckets;           /* NULL: no memory, nothing is shared */
static size_t n_buckets, n_rows;        /* n_buckets is a power of two */
/** Bytes that the rows have added to Table_cache_memory::definitions. */
static size_t n_bytes;


static Default_row **new_buckets(size_t n)
{
  return static_cast<Default_row**>
    (my_malloc(PSI_NOT_INSTRUMENTED, n * sizeof(Default_row*), MYF(MY_ZEROFILL)));
}


void default_rows_init()
{
  mysql_mutex_init(PSI_NOT_INSTRUMENTED, &LOCK_default_rows,
                   MY_MUTEX_INIT_FAST);
  n_buckets= FIRST_BUCKETS;
  buckets= new_buckets(n_buckets);
}


void default_rows_deinit()
{
  DBUG_ASSERT(!n_rows);
  my_free(buckets);
  buckets= NULL;
  mysql_mutex_destroy(&LOCK_default_rows);
}


static size_t size_of(const Default_row *row)
{
  return sizeof(Default_row) + row->length;
}


/** Double the number of buckets, if there is memory for them. */

static void grow()
{
  const size_t n= n_buckets * 2;
  Default_row **more= new_buckets(n);
  if (!more)
    return;
  for (size_t i= 0; i < n_buckets; i++)
  {
    for (Default_row *row= buckets[i], *next; row; row= next)
    {
      next= row->next;
      row->next= more[row->hash & (n - 1)];
      more[row->hash & (n - 1)]= row;
    }
  }
  my_free(buckets);
  buckets= more;
  n_buckets= n;
}


/**
  May this share use one copy of its default row together with others?

  It has a copy of its own in four cases:

  1. It is not in the table definition cache.
  2. The row is shorter than LEAST_LENGTH.
  3. The .frm is older than MySQL 4.0: then the server sets null bits in the row
     after it has read the row.
  4. The table has expressions. If a column's default is a constant expression,
     the function DEFAULT() stores its value in the row. That value may depend on
     variables of the session, such as @@div_precision_increment.
*/

bool shares_default_row(const TABLE_SHARE *share, const uchar *frm,
                        const uchar *forminfo)
{
  const uint expressions= uint2korr(forminfo + 286);    /* Their length */
  return share->tdc && frm[27] > 1 && !expressions &&
         uint2korr(frm + 16) >= LEAST_LENGTH;
}


/**
  Get the one copy of a default row.

  @param share  a share that the caller reads into the table definition cache; no
                other thread knows it yet
  @param frm, forminfo  the header of the .frm, and that of its columns
  @param row    the row in the .frm, share->reclength bytes

  @return NULL if the share should have its own copy, or there is no memory
*/

uchar *share_default_row(TABLE_SHARE *share, const uchar *frm,
                         const uchar *forminfo, const uchar *row)
{
  if (!shares_default_row(share, frm, forminfo))
    return NULL;
  const uint length= (uint) share->reclength;
  const uint32 hash= my_checksum(0, row, length);
  Default_row *found= NULL;

  /* A share that was discovered after its .frm had been read is read again */
  release_default_row(share->tdc->default_row);
  share->tdc->default_row= NULL;

  mysql_mutex_lock(&LOCK_default_rows);
  if (buckets)
  {
    for (found= buckets[hash & (n_buckets - 1)]; found; found= found->next)
    {
      if (found->hash == hash && found->length == length &&
          !memcmp(found->bytes, row, length))
        break;
    }
    if (found)
      found->references++;
    else if (DBUG_IF("default_rows_out_of_memory"))
      ;
    else if ((found= static_cast<Default_row*>
              (my_malloc(key_memory_table_share, sizeof(Default_row) + length,
                         MYF(0)))))
    {
      if (n_rows >= n_buckets)
        grow();
      Default_row **bucket= &buckets[hash & (n_buckets - 1)];
      found->next= *bucket;
      found->hash= hash;
      found->length= length;
      found->references= 1;
      memcpy(found->bytes, row, length);
      *bucket= found;
      n_rows++;
      n_bytes+= size_of(found);
      tc_memory.definitions.fetch_add(size_of(found),
                                      std::memory_order_relaxed);
    }
  }
  mysql_mutex_unlock(&LOCK_default_rows);

  share->tdc->default_row= found;
  return found ? found->bytes : NULL;
}


/**
  Give back a share's reference to a default row, which may be NULL. The last
  reference frees the row.
*/

void release_default_row(Default_row *row)
{
  if (!row)
    return;
  /* Nobody has written to it */
  DBUG_ASSERT(row->hash == my_checksum(0, row->bytes, row->length));

  mysql_mutex_lock(&LOCK_default_rows);
  DBUG_ASSERT(row->references);
  if (--row->references)
    row= NULL;
  else
  {
    Default_row **link= &buckets[row->hash & (n_buckets - 1)];
    while (*link != row)
      link= &(*link)->next;
    *link= row->next;
    n_rows--;
    n_bytes-= size_of(row);
    tc_memory.definitions.fetch_sub(size_of(row), std::memory_order_relaxed);
  }
  mysql_mutex_unlock(&LOCK_default_rows);
  my_free(row);
}


/** Bytes of all shared default rows. */

size_t default_row_bytes()
{
  mysql_mutex_lock(&LOCK_default_rows);
  const size_t bytes= n_bytes;
  mysql_mutex_unlock(&LOCK_default_rows);
  return bytes;
}
