/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/myisam/mi_close.c:
   Copyright (c) 2000, 2011, Oracle and/or its affiliates. All rights reserved. */

/* The index of MyISAM's open shares, and the list of open instances */

#include "myisamdef.h"

static const uchar *share_name(const void *share, size_t *length,
                               my_bool not_used __attribute__((unused)))
{
  *length= ((const MYISAM_SHARE*) share)->unique_name_length;
  return (const uchar*) ((const MYISAM_SHARE*) share)->unique_file_name;
}


static my_bool share_is_current(const void *share)
{
  return ((const MYISAM_SHARE*) share)->last_version != 0;
}


OPEN_INDEX myisam_open_index=
  OPEN_INDEX_INIT(&THR_LOCK_myisam, share_name, share_is_current);


/*
  Become the owner of the name of a table's index file, to open, close or create
  the table. See my_open_index.h
*/

int mi_begin_name(OPEN_INDEX_NAME *owner, const char *name, uint how)
{
  return open_index_begin(&myisam_open_index, owner, name, strlen(name), how);
}


void mi_end_name(OPEN_INDEX_NAME *owner, int error)
{
  open_index_end(&myisam_open_index, owner, error);
}


/* Add a new share to the index, or remove it. The caller owns its name */

my_bool mi_index_share(MYISAM_SHARE *share)
{
  my_bool error;
  mysql_mutex_lock(&THR_LOCK_myisam);
  error= open_index_insert(&myisam_open_index, share);
  mysql_mutex_unlock(&THR_LOCK_myisam);
  return error;
}


void mi_unindex_share(MYISAM_SHARE *share)
{
  mysql_mutex_lock(&THR_LOCK_myisam);
  open_index_delete(&myisam_open_index, share);
  mysql_mutex_unlock(&THR_LOCK_myisam);
}


/**
  Add an instance of a table to the list of open instances, as the last step of
  opening it. The caller owns the name of its file.

  @param info       the instance; it and its share are complete
  @param new_share  TRUE if it is the first instance of the share

  A thread that changes the key cache of shares walks over the list. It does not
  find a share that another thread is opening, because that is not in the list
  yet. Therefore this function looks up the key cache of a new share. The share
  has not used any key cache so far.
*/

void mi_list_instance(MI_INFO *info, my_bool new_share)
{
  MYISAM_SHARE *share= info->s;
  mysql_mutex_lock(&THR_LOCK_myisam);
  if (new_share)
    share->key_cache= multi_key_cache_search((uchar*) share->unique_file_name,
                                             share->unique_name_length,
                                             dflt_key_cache);
  info->open_list.data= (void*) info;
  myisam_open_list= list_add(myisam_open_list, &info->open_list);
  mysql_mutex_unlock(&THR_LOCK_myisam);
}


/**
  Remove an instance from the list of open instances, as the first step of
  closing it. The caller owns the name.

  @param info  the instance; share->reopen does not count it any more
  @param last  TRUE if it is the last one of its share. Then the function also
               removes the share from the index, so only the caller can reach
               it.
*/

void mi_unlist_instance(MI_INFO *info, my_bool last)
{
  mysql_mutex_lock(&THR_LOCK_myisam);
  myisam_open_list= list_delete(myisam_open_list, &info->open_list);
  if (last)
    open_index_delete(&myisam_open_index, info->s);
  mysql_mutex_unlock(&THR_LOCK_myisam);
}


void mi_destroy_share_locks(MYISAM_SHARE *share)
{
  uint i;
  thr_lock_delete(&share->lock);
  mysql_mutex_destroy(&share->intern_lock);
  mysql_rwlock_destroy(&share->mmap_lock);
  for (i= 0; i < share->state.header.keys; i++)
    mysql_rwlock_destroy(&share->key_root_lock[i]);
}


/* Undo the steps of mi_open() after it has allocated the share */

void mi_undo_share(MYISAM_SHARE *share)
{
#ifdef HAVE_MMAP
  MI_INFO info;
  info.s= share;
  if (share->file_map && (share->options & HA_OPTION_COMPRESS_RECORD))
    _mi_unmap_file(&info);
  else if (share->file_map)
    mi_munmap_file(&info);
#endif
  my_free(share->decode_trees);
  my_free(share->decode_tables);
  mi_destroy_share_locks(share);
}


/* TRUE if instances of the table need memory to search in R-trees */

my_bool mi_share_has_rtree(const MYISAM_SHARE *share)
{
  uint i;
  for (i= 0; i < share->state.header.keys; i++)
  {
    if (share->keyinfo[i].key_alg == HA_KEY_ALG_RTREE)
      return TRUE;
  }
  return FALSE;
}
