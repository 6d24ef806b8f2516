/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/maria/ma_close.c and ma_open.c:
   Copyright (C) 2006 MySQL AB & MySQL Finland AB & TCX DataKonsult AB
   Copyright (c) 2009, 2022, MariaDB Corporation Ab */

/* The index of Aria's open shares, and the list of open instances */

#include "maria_def.h"
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


/*
  A thread that replaces a table's files (TRUNCATE, REPAIR ... USE_FRM) holds this
  from before it logs REDO_CREATE_TABLE until it has synced the files. A checkpoint
  acquires it between noting its horizon and looking at the open tables. Otherwise
  recovery could begin after that record, while after a power loss the files are
  neither the old ones nor the new ones.
  A thread that holds it owns a name, and acquires only locks of the log.
*/
mysql_mutex_t LOCK_maria_replace;

OPEN_INDEX maria_open_index=
  OPEN_INDEX_INIT(&THR_LOCK_maria, share_name, share_is_current);


/*
  Become the owner of the name of a table's index file, to open, close or create
  the table. See my_open_index.h
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
  Take the history of a table's states that Aria has kept while the table was
  closed. Returns NULL if there is none. THR_LOCK_maria protects
  maria_stored_state.
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

  @param  share           the share. The caller owns its name, and no other
                          thread can reach it.
  @param  internal_table  TRUE if the share does not belong into the index

  @return TRUE if there was no memory. The share may be in the index then: the
          caller calls _ma_unindex_share(), which also accepts one that is not.

  A transactional table continues with the history that Aria has kept while the
  table was closed. If there is none, all running transactions see the table's
  last state (or memory ran out when a thread closed the table), and the history
  begins with that state.

  The index and maria_stored_state both need THR_LOCK_maria, for which all
  threads that open tables compete, so the function takes it once for both.
  Their order does not matter: they have nothing to do with each other, and only
  the owner of the name looks for the entries that the function adds or takes.
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
  Add an instance of a table to the list of open instances, as the last step of
  opening it. The next owner of the file's name finds the instance complete and
  in the list.
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
  Remove an instance from the list of open instances, as the first step of
  closing it. The caller owns the name and holds close_lock.

  The last instance of a share stays in the list until the thread has synced the
  files: from the list, a checkpoint learns which tables have changes that are
  not in their files yet. If it missed such a table, recovery would start too
  late in the log. A checkpoint that finds the share pins it, then waits for
  close_lock.

  While the caller owns the name, share->reopen does not change, and no other
  thread reads share->open_list. So the function removes any instance from
  share->open_list without THR_LOCK_maria. It takes that mutex only to remove an
  instance that is not the last from maria_open_list.
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
  Remove the last instance of a share from the list of open instances, and the
  share from the index. The caller has synced and closed the files. After this,
  only checkpoints that have pinned the share and transactions that have reached
  it before can use it.
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


/*
  Undo the steps of maria_open() after the share's once_init(): it may have
  mapped the data file, and taken the history of the table's states
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
  Keep the history of a table's states while the table is closed. If all
  transactions can see the newest state, free the history instead. Without
  memory the history is lost, and a transaction that continues to use the table
  sees a wrong number of rows.
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
