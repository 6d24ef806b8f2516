/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The two key blocks of a handle (MI_INFO::buff).

  If the server has opened the handle, a thread takes the key blocks from a pool
  when it locks the handle, and gives them back when it unlocks the handle. So a
  table in the table cache has none.

  In two cases ha_partition uses the handle of a partition without a lock. Then
  _mi_readinfo() takes the key blocks, and the handle keeps them until the next
  unlock or mi_close():

  1. INSERT ... PARTITION looks for the highest AUTO_INCREMENT value in the
     partitions that it leaves out.
  2. REPAIR moves misplaced rows when it has unlocked the partitions.

  A handle of a read-only table is marked as locked from mi_open() to mi_close(),
  for example one of a partition that was compressed by myisampack. So
  fast_mi_readinfo() does not trust that mark, but looks for the key blocks.

  All other handles have their key blocks from mi_open() to mi_close():

  1. those of tools and of MyISAM itself, which use them without a lock;
  2. internal and temporary tables, which stay locked until they are closed;
  3. tables that are opened for a repair, which are checked without a lock.

  An unlock discards the key block, so the next search for the next or the
  previous key begins at the root again. That happens only to HANDLER, which
  locks and unlocks the table for each row.
*/

#include "myisamdef.h"
#include "my_spare_buffers.h"

/** The pool. It keeps no larger buffers (wide keys, a large myisam_block_size). */
static MY_SPARE_BUFFERS spare=
  MY_SPARE_BUFFERS_INIT(2 * 4096 + HA_MAX_KEY_BUFF);


size_t mi_key_buffers_size(const MYISAM_SHARE *share)
{
  return share->base.max_key_block_length * 2 + share->base.max_key_length;
}


/** Do the key buffers of a handle that is opened with these flags follow its lock? */

my_bool mi_key_buffers_follow_lock(const MYISAM_SHARE *share, uint open_flags)
{
  return (open_flags & (HA_OPEN_FROM_SQL_LAYER | HA_OPEN_INTERNAL_TABLE |
                        HA_OPEN_TMP_TABLE | HA_OPEN_FOR_REPAIR)) ==
         HA_OPEN_FROM_SQL_LAYER && !(share->options & HA_OPTION_TMP_TABLE);
}


/**
  A thread is about to lock the handle, or uses it without a lock: give the
  handle its key blocks.

  The thread writes whole blocks to disk, of which it may have set only a part.
  So the blocks are cleared for writing: no byte of another table's keys must get
  into the file.

  @param lock_type  F_RDLCK, F_WRLCK, or F_EXTRA_LCK, which ALTER TABLE has for
                    the table that it writes

  @return TRUE if out of memory
*/

my_bool mi_take_key_buffers(MI_INFO *info, int lock_type)
{
  if (!info->buff)
  {
    if ((DBUG_IF("mi_lock_no_buffers") && (my_errno= HA_ERR_OUT_OF_MEM)) ||
        !(info->buff= my_take_buffer(&spare, mi_key_memory_MI_INFO,
                                     mi_key_buffers_size(info->s),
                                     MYF(MY_WME))))
      return TRUE;
  }
  else if (!mi_key_buffers_follow_lock(info->s, info->open_flag))
    return FALSE;
  if (lock_type != F_RDLCK && info->lock_type != lock_type)
  {
    bzero(info->buff, info->s->base.max_key_block_length * 2);
    info->page_changed= info->buff_used= 1;
  }
  return FALSE;
}


/**
  A thread unlocks the handle, or closes it: give its key blocks back to the
  pool. A handle of a read-only table stays marked as locked; so this does not
  look at the lock.
*/

void mi_give_key_buffers(MI_INFO *info)
{
  if (!info->buff || !mi_key_buffers_follow_lock(info->s, info->open_flag))
    return;
  info->page_changed= info->buff_used= 1;
  my_give_buffer(&spare, info->buff, mi_key_buffers_size(info->s));
  info->buff= NULL;
}


/** mi_panic() has closed all handles: free the pool. */

void mi_free_key_buffers(void)
{
  my_free_spare_buffers(&spare);
}
