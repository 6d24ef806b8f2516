/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The two pages of a handle (MARIA_HA::buff and keyread_buff) and its list of
  pinned pages, and the bitmap page of a share.

  The pages and the list of a handle come from a pool. maria_open() takes them.
  If the server has opened the handle, ha_maria::open() gives them back. From
  then on a thread takes them when it locks the handle, and gives them back when
  it unlocks the handle. So a table in the table cache has none.

  ha_partition also uses handles without a lock: see
  storage/myisam/mi_key_buffers.c. Then _ma_readinfo() takes the pages, or
  ha_maria::rnd_init() does, because a thread reads long blobs through one of
  them. The handle keeps them until the next unlock or maria_close().

  All other handles keep their pages until they are closed:

  1. those of tools, of the recovery and of Aria itself, which use them without
     a lock;
  2. temporary tables, which stay locked until they are closed; their memory
     counts for the session, so it does not come from the pool;
  3. tables that are opened for a repair, which are checked without a lock.

  An unlock discards the key block, so the next search for the next or the
  previous key begins at the root again. That happens only to HANDLER, which
  locks and unlocks the table for each row.

  A share gets its bitmap page when a thread writes the first row.
*/

#include "maria_def.h"
#include "ma_blockrec.h"
#include "my_spare_buffers.h"

/** As many pages as a thread may have to pin for one row or key. */
#define PINNED_PAGES(share) \
  MY_MAX((share)->base.blobs * 2 + 4, MARIA_MAX_TREE_LEVELS * 3)

/** The pool. It keeps no larger buffers (larger pages, or more than 46 blobs). */
static MY_SPARE_BUFFERS spare=
  MY_SPARE_BUFFERS_INIT(2 * 8192 + ALIGN_SIZE(HA_MAX_KEY_BUFF) +
                        MARIA_MAX_TREE_LEVELS * 3 * sizeof(MARIA_PINNED_PAGE));


static size_t pages_size(const MARIA_SHARE *share)
{
  return ALIGN_SIZE(share->base.max_key_block_length * 2 +
                    share->base.max_key_length);
}


static size_t buffers_size(const MARIA_SHARE *share)
{
  return pages_size(share) + PINNED_PAGES(share) * sizeof(MARIA_PINNED_PAGE);
}


/**
  Clear the pages. The thread writes whole pages to disk, of which it may have
  set only a part. No byte of another table's rows or keys must get into the
  file.
*/

static void clear_pages(MARIA_HA *info)
{
  bzero(info->buff, info->s->base.max_key_block_length * 2);
  info->page_changed= info->keyread_buff_used= 1;
}


static my_bool take_key_buffers(MARIA_HA *info)
{
  MARIA_SHARE *share= info->s;
  if (DBUG_IF("ma_lock_no_buffers") && (my_errno= HA_ERR_OUT_OF_MEM))
    return TRUE;
  info->buff= share->malloc_flag ?
    (uchar*) my_malloc(PSI_INSTRUMENT_ME, buffers_size(share),
                       MYF(MY_WME | share->malloc_flag)) :
    my_take_buffer(&spare, PSI_INSTRUMENT_ME, buffers_size(share),
                   MYF(MY_WME));
  if (!info->buff)
    return TRUE;
  info->keyread_buff= info->buff + share->base.max_key_block_length;
  my_init_dynamic_array2(PSI_INSTRUMENT_ME, &info->pinned_pages,
                         sizeof(MARIA_PINNED_PAGE),
                         info->buff + pages_size(share), PINNED_PAGES(share),
                         16, MYF(MY_WME | share->malloc_flag));
  return FALSE;
}


/**
  Give the handle its pages, unless it has them. A thread calls this before it
  locks the handle or uses it without a lock, and maria_open() before it returns
  a handle.

  @param lock_type  the lock that the thread will get; F_WRLCK from maria_open();
                    F_EXTRA_LCK for the table that ALTER TABLE writes

  @return TRUE if out of memory
*/

my_bool _ma_take_key_buffers(MARIA_HA *info, int lock_type)
{
  const my_bool kept= info->buff && !info->key_buffers_follow_lock;
  if (!info->buff && take_key_buffers(info))
    return TRUE;
  if (lock_type != F_RDLCK && info->lock_type != lock_type && !kept)
    clear_pages(info);
  return FALSE;
}


void _ma_free_key_buffers(MARIA_HA *info)
{
  if (!info->buff)
    return;
  DBUG_ASSERT(info->pinned_pages.elements == 0);
  delete_dynamic(&info->pinned_pages);          /* if it has grown */
  if (info->s->malloc_flag)
    my_free(info->buff);
  else
    my_give_buffer(&spare, info->buff, buffers_size(info->s));
  info->buff= info->keyread_buff= NULL;
  info->page_changed= info->keyread_buff_used= 1;
}


/** A thread unlocks the handle: give its pages back to the pool. */

void _ma_give_key_buffers(MARIA_HA *info)
{
  if (info->key_buffers_follow_lock)
    _ma_free_key_buffers(info);
}


/**
  From now on the handle has its pages only while a thread uses it, see above.
  This changes nothing if the handle is locked, for a temporary table, or for a
  repair.

  @param open_flags  the flags with which the caller has opened the handle
*/

void _ma_let_key_buffers_follow_lock(MARIA_HA *info, uint open_flags)
{
  if (info->lock_type == F_UNLCK &&
      !(open_flags & (HA_OPEN_TMP_TABLE | HA_OPEN_FOR_REPAIR)))
  {
    info->key_buffers_follow_lock= 1;
    _ma_free_key_buffers(info);
  }
}


void _ma_free_spare_key_buffers(void)
{
  my_free_spare_buffers(&spare);
}


/** Allocate the bitmap page of a share. @return TRUE if out of memory */

my_bool _ma_bitmap_allocate(MARIA_FILE_BITMAP *bitmap, uint size)
{
  myf flag= MYF(MY_WME | bitmap->share->malloc_flag);
  void *pinned_page;
  if ((DBUG_IF("ma_bitmap_no_memory") && (my_errno= HA_ERR_OUT_OF_MEM)) ||
      !my_multi_malloc(PSI_INSTRUMENT_ME, flag, &bitmap->map, size,
                       &pinned_page, sizeof(MARIA_PINNED_PAGE), NullS))
    return TRUE;
  return my_init_dynamic_array2(PSI_INSTRUMENT_ME, &bitmap->pinned_pages,
                                sizeof(MARIA_PINNED_PAGE), pinned_page, 1, 1,
                                flag);
}
