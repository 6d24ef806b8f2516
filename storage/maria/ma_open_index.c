/* SPDX-License-Identifier: GPL-2.0-only */

/* The index of Aria's open shares, and the list of open instances */

#include "maria_def.h"
#include "ma_blockrec.h"
#include "trnman.h"

static const uchar *share_name(const void *share, size_t *length,
                               my_bool not_used __attribute__((unused)))
{
  *length= ((const MARIA_SHARE*) share)->unique_file_name.length;
  return (const uchar*) ((const MARIA_SHARE*) share)->unique_file_name.str;
}


static my_bool share_is_current(const void *share)
{
  return ((const MARIA_SHARE*) share)->last_version != 0;
}


OPEN_INDEX maria_open_index=
  OPEN_INDEX_INIT(&THR_LOCK_maria, share_name, share_is_current);


/*
  Own the name of a table's index file while the table is opened, closed or
  created. See my_open_index.h
*/

int _ma_begin_name(OPEN_INDEX_NAME *owner, const char *name, uint how)
{
  return open_index_begin(&maria_open_index, owner, name, strlen(name), how);
}


void _ma_end_name(OPEN_INDEX_NAME *owner, int error)
{
  open_index_end(&maria_open_index, owner, error);
}


/*
  Take the history of a table's states, which Aria kept while the table was
  closed, or NULL. THR_LOCK_maria protects maria_stored_state.
*/

static MARIA_STATE_HISTORY *take_state_history(LSN create_rename_lsn)
{
  MARIA_STATE_HISTORY_CLOSED *closed;
  MARIA_STATE_HISTORY *state_history= NULL;
  mysql_mutex_assert_owner(&THR_LOCK_maria);
  if ((closed= (MARIA_STATE_HISTORY_CLOSED*)
       my_hash_search(&maria_stored_state, (uchar*) &create_rename_lsn,
                      sizeof(create_rename_lsn))))
  {
    state_history= closed->state_history;
    closed->state_history= 0;
    (void) my_hash_delete(&maria_stored_state, (uchar*) closed);
  }
  return state_history;
}


/**
  Add a new share to the index, and give it the history of its table's states

  @param  share           the share. The caller owns its name, no other thread
                          can reach it.
  @param  internal_table  TRUE if the share is not to be indexed

  @return TRUE if there was no memory. The share may be indexed then: the caller
          calls _ma_unindex_share(), which also accepts one that is not.

  A transactional table goes on with the history that Aria kept while the table
  was closed. If there is none, all transactions that are running see its last
  state (or memory ran out when it was closed): it begins with that one.

  The index and maria_stored_state need THR_LOCK_maria, which all threads that
  open tables want, so this takes it once. The two have nothing to do with each
  other, and only the owner of the name looks for the entries that are added or
  taken here, so there is no order to be kept between them.
*/

my_bool _ma_index_share(MARIA_SHARE *share, my_bool internal_table)
{
  MARIA_STATE_HISTORY *history= NULL;
  my_bool error;
  if (internal_table && !share->now_transactional)
    return FALSE;
  mysql_mutex_lock(&THR_LOCK_maria);
  error= !internal_table && open_index_insert(&maria_open_index, share);
  if (!error && share->now_transactional)
    history= take_state_history(share->state.create_rename_lsn);
  mysql_mutex_unlock(&THR_LOCK_maria);
  if (error || !share->now_transactional)
    return error;

  if (history)
  {
    share->state_history= _ma_remove_not_visible_states(history, 0, 0);
    DBUG_PRINT("info", ("Reading state history.  trid: %lu  records: %lld",
                        (ulong) share->state_history->trid,
                        share->state_history->state.records));
    return FALSE;
  }
  if (open_index_no_memory("ma_open_no_history") ||
      !(history= (MARIA_STATE_HISTORY*)
        my_malloc(PSI_INSTRUMENT_ME, sizeof(*history), MYF(MY_WME))))
    return TRUE;
  history->next= NULL;
  history->trid= 0;                             /* All can see it */
  history->state= share->state.state;
  share->state_history= history;
  return FALSE;
}


/* Remove a share from the index. The caller owns its name */

void _ma_unindex_share(MARIA_SHARE *share)
{
  mysql_mutex_lock(&THR_LOCK_maria);
  open_index_delete(&maria_open_index, share);
  mysql_mutex_unlock(&THR_LOCK_maria);
}


/*
  Add an instance of a table to the list of open ones, as the last step of
  opening it. The thread that gets the name of its file next finds the instance
  complete and listed.
*/

void _ma_list_instance(MARIA_HA *info)
{
  MARIA_SHARE *share= info->s;
  mysql_mutex_lock(&THR_LOCK_maria);
  info->open_list.data= info->share_list.data= (void*) info;
  maria_open_list=  list_add(maria_open_list,  &info->open_list);
  share->open_list= list_add(share->open_list, &info->share_list);
  mysql_mutex_unlock(&THR_LOCK_maria);
}


/**
  Remove an instance from the list of open ones, as the first step of closing
  it. The caller owns the name and has close_lock.

  The last instance of a share stays in the list until its files are synced:
  the list tells a checkpoint which tables have changes that are not in their
  files yet. If it missed such a table, recovery would start too late in the
  log. A checkpoint that finds the share pins it, then waits for close_lock.

  share->reopen does not change while the caller owns the name. Nor does
  share->open_list: only a thread that owns the name looks at it. So the last
  instance leaves it without THR_LOCK_maria, as the list of all stays the same.
*/

void _ma_unlist_instance(MARIA_HA *info)
{
  MARIA_SHARE *share= info->s;
  mysql_mutex_assert_owner(&share->close_lock);
  share->open_list= list_delete(share->open_list, &info->share_list);
  if (share->reopen > 1)
  {
    mysql_mutex_lock(&THR_LOCK_maria);
    maria_open_list= list_delete(maria_open_list, &info->open_list);
    mysql_mutex_unlock(&THR_LOCK_maria);
  }
}


/*
  Remove the last instance of a share from the list of open ones, and the
  share from the index, when the files are synced and closed. After this only
  a checkpoint that pinned the share before can reach it, and transactions that
  did so before.
*/

void _ma_unlist_share(MARIA_HA *info)
{
  mysql_mutex_assert_owner(&info->s->close_lock);
  mysql_mutex_lock(&THR_LOCK_maria);
  maria_open_list= list_delete(maria_open_list, &info->open_list);
  open_index_delete(&maria_open_index, info->s);
  mysql_mutex_unlock(&THR_LOCK_maria);
}


/* Undo the initialization of locks in maria_open() */

void _ma_destroy_share_locks(MARIA_SHARE *share)
{
  uint i;
  thr_lock_delete(&share->lock);
  mysql_mutex_destroy(&share->intern_lock);
  mysql_mutex_destroy(&share->key_del_lock);
  mysql_cond_destroy(&share->key_del_cond);
  mysql_mutex_destroy(&share->close_lock);
  mysql_rwlock_destroy(&share->mmap_lock);
  for (i= 0; i < share->state.header.keys; i++)
    mysql_rwlock_destroy(&share->keyinfo[i].root_lock);
}


/**
  Must a thread that closes a transactional table sync its files?

  A checkpoint does not know a closed table, so all writes to its files have to
  be on disk by then. Nothing was written if, since the files were opened,
  1. nothing was logged for the table: the first log record gives it an id;
  2. logging was not switched off (for a repair or a bulk insert);
  3. the table was not marked as changed, and its state not written.
  An earlier opener synced its own writes when it closed the table.

  The answer stays 'yes' after the share has lost its id, because the index file
  is closed after the data file.
*/

my_bool _ma_files_need_sync(MARIA_SHARE *share)
{
  if (share->id != 0 || share->changed || maria_in_recovery)
    share->files_written= 1;
  return share->files_written;
}


/*
  Undo what maria_open() did with a share after its once_init(): the share may
  be mapped, and may have taken the history of its table's states
*/

void _ma_undo_share(MARIA_SHARE *share)
{
  MARIA_HA info;
  info.s= share;
  info.opt_flag= 0;
  unmap_file(&info);
  if (share->state_history)
    _ma_store_state_history(share->state.create_rename_lsn,
                            share->state_history);
}


/*
  Keep the history of a table's states while the table is closed. If there is no
  memory, the history is lost, and a transaction that goes on with the table
  will see a wrong number of rows. A history that all transactions can see is
  not worth keeping.
*/

void _ma_store_state_history(LSN create_rename_lsn,
                             MARIA_STATE_HISTORY *state_history)
{
  MARIA_STATE_HISTORY_CLOSED *closed= NULL;
  my_bool stored= 0;
  if (state_history->trid &&
      (closed= (MARIA_STATE_HISTORY_CLOSED*)
       my_malloc(PSI_INSTRUMENT_ME, sizeof(*closed), MYF(MY_WME))))
  {
    closed->create_rename_lsn= create_rename_lsn;
    closed->state_history= state_history;
    mysql_mutex_lock(&THR_LOCK_maria);
    stored= !my_hash_insert(&maria_stored_state, (uchar*) closed);
    mysql_mutex_unlock(&THR_LOCK_maria);
  }
  if (!stored)
  {
    MARIA_STATE_HISTORY *next;
    for (; state_history; state_history= next)
    {
      next= state_history->next;
      my_free(state_history);
    }
    my_free(closed);
  }
}


/**
  When a share is closed: free the history of its table's states, if there is
  only one state, which all can see, and no transaction uses the table

  @return TRUE if there is no history (any more)

  To find out which states a transaction can see, a thread needs the lock of the
  transaction manager, which all transactions want. This function does without
  it:
  1. A state with trid 0 was there before all transactions that are running.
  2. A transaction that is not counted in in_trans does not look at the history,
     and no other one comes: the caller owns the name and closes the last
     instance.
  3. A checkpoint waits for close_lock, which the caller has.
  maria_close() would free the same history later anyway.
*/

my_bool _ma_forget_visible_state(MARIA_SHARE *share)
{
  MARIA_STATE_HISTORY *history;
  my_bool forgotten= 0;
  mysql_mutex_lock(&share->intern_lock);
  history= share->state_history;
  if (!history || (!share->in_trans && !history->next && !history->trid))
  {
    my_free(history);
    share->state_history= NULL;
    forgotten= 1;
  }
  mysql_mutex_unlock(&share->intern_lock);
  return forgotten;
}


/**
  Begin to scan a table for rows

  @param info  the table

  @return 0 or an error, as maria_scan_init()

  A file of no more than its first bitmap page has no rows. As the end of a scan
  is where the file ended when the scan began, _ma_scan_block_record() will find
  the end at once. So the scan needs no buffers for pages (16 KiB), and this
  function sets it up to have none. A check or a repair must not use it: it may
  know better than the state how long the file is.
*/

int _ma_scan_init_if_rows(MARIA_HA *info)
{
  MARIA_SHARE *share= info->s;
  if (share->data_file_type != BLOCK_RECORD || info->scan.bitmap_buff ||
      share->state.state.data_file_length > share->block_size ||
      info->opt_flag & WRITE_CACHE_USED)
    return maria_scan_init(info);

  info->cur_row.nextpos= 0;
  info->lastinx= -1;                            /* As maria_scan_init() does */
  info->scan.page_buff= info->scan.bitmap_end= info->scan.bitmap_pos= NULL;
  info->scan.number_of_rows= 0;
  info->scan.bitmap_page= (pgcache_page_no_t) 0 - share->bitmap.pages_covered;
  info->scan.max_page= share->state.state.data_file_length / share->block_size;
  return 0;
}


/**
  Open a data file: for a new share or for one more instance, if maria_open()
  has not got it already; after a repair, and after aria_chk has sorted rows

  @param info   dfile is set
  @param share  bitmap.file is set

  @return 0 or 1. Then my_errno is set, and both files are -1.

  If the links in the file's name were resolved, or there were none when the
  share was opened, then no component of the name may be a symbolic link. The
  last component may never be one.
*/

int _ma_open_datafile(MARIA_HA *info, MARIA_SHARE *share)
{
  myf no_symlinks= (share->data_mode & O_NOFOLLOW) ||
                   my_is_table_path(share->unique_file_name.str,
                                    share->index_file_name.str) ?
                   MY_NOSYMLINKS : 0;
  File file;
  DEBUG_SYNC_C("mi_open_datafile");
  file= mysql_file_open(key_file_dfile, share->data_file_name.str,
                        share->data_mode | O_SHARE | O_CLOEXEC | O_NOFOLLOW,
                        MYF(MY_WME | no_symlinks | share->malloc_flag));
  DBUG_EXECUTE_IF("open_datafile_no_descriptors",
                  {
                    if (file >= 0)
                      mysql_file_close(file, MYF(0));
                    file= -1;
                    my_errno= EMFILE;
                  });
  info->dfile.file= share->bitmap.file.file= file;
  return file < 0;
}
