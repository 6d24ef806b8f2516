/* SPDX-License-Identifier: GPL-2.0-only */

/* Index from unique file name to open share. See my_open_index.h */

#include "mysys_priv.h"
#include <m_ctype.h>
#include <my_base.h>
#include <my_open_index.h>

/*
  The array of the hash grows by so many shares (of 16 bytes) at a time. With
  a million open tables the array is reallocated 244 times, with the default
  of HASH it would be 2,000 times.
*/
#define OPEN_INDEX_GROWTH 4096


/*
  Hash value of a file name. The default of HASH for binary strings is too
  weak for names that differ only in some digits: of 100,000 such names a
  search looks at 25 on average, and at 109 for the worst one.
*/

static my_hash_value_type hash_name(CHARSET_INFO *cs __attribute__((unused)),
                                    const uchar *name, size_t length)
{
  return my_crc32c(0, name, length);
}


/**
  Find the current share of a file

  @param index   the index; index->lock is held
  @param name    unique file name (as of realpath())
  @param length  its length

  @return the share, NULL if there is none or all are retired

  Retired shares of the same name are stepped over. There are only as many of
  them as the statement that retired them has not closed yet.
*/

void *open_index_find(const OPEN_INDEX *index, const char *name,
                      size_t length)
{
  HASH_SEARCH_STATE state;
  uchar *share;
  mysql_mutex_assert_owner(index->lock);

  if (!my_hash_inited(&index->shares))
    return NULL;
  for (share= my_hash_first(&index->shares, (const uchar*) name, length,
                            &state);
       share;
       share= my_hash_next(&index->shares, (const uchar*) name, length,
                           &state))
  {
    if (index->is_current(share))
      return share;
  }
  return NULL;
}


/**
  Add a share

  @param index  the index; index->lock is held
  @param share  has its name set, and is not in the index. No current share
                of that name is in the index.

  @return TRUE if there was no memory: my_errno is set, nothing was changed
*/

my_bool open_index_insert(OPEN_INDEX *index, void *share)
{
  my_bool error= FALSE;
  mysql_mutex_assert_owner(index->lock);
#ifndef DBUG_OFF
  {
    size_t length;
    const uchar *name= index->get_name(share, &length, 1);
    DBUG_ASSERT(!open_index_find(index, (const char*) name, length));
  }
#endif

  if (!my_hash_inited(&index->shares))
    my_hash_init2(PSI_INSTRUMENT_ME, &index->shares, OPEN_INDEX_GROWTH,
                  &my_charset_bin, 0, 0, 0, index->get_name, hash_name,
                  NULL, 0);

  DBUG_EXECUTE_IF("open_index_out_of_memory", error= TRUE;);
  if (!error && !my_hash_insert(&index->shares, (const uchar*) share))
    return FALSE;

  if (!index->shares.records)
    my_hash_free(&index->shares);
  my_errno= HA_ERR_OUT_OF_MEM;
  return TRUE;
}


/**
  Remove a share

  @param index  the index; index->lock is held
  @param share  has the name that it was inserted with. Nothing happens if it
                is not in the index.
*/

void open_index_delete(OPEN_INDEX *index, void *share)
{
  mysql_mutex_assert_owner(index->lock);

  if (!my_hash_inited(&index->shares))
    return;
  my_hash_delete(&index->shares, (uchar*) share);
  if (!index->shares.records)
    my_hash_free(&index->shares);
}
