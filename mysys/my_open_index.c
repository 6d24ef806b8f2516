/* SPDX-License-Identifier: GPL-2.0-only */

/* Index from unique file name to open share. See my_open_index.h */

#include "mysys_priv.h"
#include <m_ctype.h>
#include <my_base.h>
#include <my_open_index.h>

/*
  Number of shares (of 16 bytes each) by which the array of the hash grows. Up
  to a million open tables, the server reallocates the array 244 times; with the
  default of HASH, 2,000 times.
*/
#define OPEN_INDEX_GROWTH 4096

/* The server registers it: open_index_stage_init() */
PSI_stage_info stage_waiting_for_table_file= { 0, "Waiting for table file", 0 };

static void no_stage(const PSI_stage_info *stage __attribute__((unused)),
                     PSI_stage_info *old_stage __attribute__((unused)))
{}
void (*open_index_enter_stage)(const PSI_stage_info *stage,
                               PSI_stage_info *old_stage)= no_stage;


/*
  Hash value of a file name. The default of HASH for binary strings is too weak
  for names that differ only in some digits: with 100,000 such names a search
  compares 25 of them on average, and 109 for the worst name.
*/

static my_hash_value_type hash_name(CHARSET_INFO *cs __attribute__((unused)),
                                    const uchar *name, size_t length)
{
  return my_crc32c(0, name, length);
}


#ifndef DBUG_OFF
my_bool open_index_no_memory(const char *keyword)
{
  if (!_db_keyword_(0, keyword, 1))
    return FALSE;
  my_errno= HA_ERR_OUT_OF_MEM;
  return TRUE;
}
#endif


/**
  Find the current share of a file

  @param index   the index; index->lock is held
  @param name    unique file name (as of realpath())
  @param length  its length

  @return the share, NULL if there is none or all are retired

  The function skips retired shares of the same name. There are few of them:
  only those that the statement which retired them has not closed yet.
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
  @param share  the share; it has its name, and is not in the index. Nor is any
                other current share of that name.

  @return TRUE if there was no memory: my_errno is set, the index is unchanged
*/

my_bool open_index_insert(OPEN_INDEX *index, void *share)
{
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

  if (!open_index_no_memory("open_index_out_of_memory") &&
      !my_hash_insert(&index->shares, (const uchar*) share))
    return FALSE;

  if (!index->shares.records)
    my_hash_free(&index->shares);
  my_errno= HA_ERR_OUT_OF_MEM;
  return TRUE;
}


/**
  Remove a share

  @param index  the index; index->lock is held
  @param share  the share, with the name that it had when it was inserted. If it
                is not in the index, the function does nothing.
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


mysql_mutex_t open_index_name_locks[OPEN_INDEX_NAME_CHAINS];

void open_index_init_locks(void)
{
  uint i;
  for (i= 0; i < OPEN_INDEX_NAME_CHAINS; i++)
    mysql_mutex_init(PSI_NOT_INSTRUMENTED, &open_index_name_locks[i],
                     MY_MUTEX_INIT_FAST);
}


void open_index_destroy_locks(void)
{
  uint i;
  for (i= 0; i < OPEN_INDEX_NAME_CHAINS; i++)
    mysql_mutex_destroy(&open_index_name_locks[i]);
}


static mysql_mutex_t *lock_of_chain(const OPEN_INDEX_NAME *entry)
{
  return &open_index_name_locks[entry->hash_value % OPEN_INDEX_NAME_CHAINS];
}


/* Make the caller the owner of a name that no thread owns */

static void become_owner(OPEN_INDEX *index, OPEN_INDEX_NAME *owner)
{
  OPEN_INDEX_NAME **chain=
    &index->names[owner->hash_value % OPEN_INDEX_NAME_CHAINS];
  owner->next= *chain;
  *chain= owner;
}


/* Position in its chain of the entry that owns the name, or the chain's end */

static OPEN_INDEX_NAME **find_owner(OPEN_INDEX *index,
                                    const OPEN_INDEX_NAME *entry)
{
  OPEN_INDEX_NAME **pos=
    &index->names[entry->hash_value % OPEN_INDEX_NAME_CHAINS];
  while (*pos && ((*pos)->hash_value != entry->hash_value ||
                  (*pos)->length != entry->length ||
                  memcmp((*pos)->name, entry->name, entry->length)))
    pos= &(*pos)->next;
  return pos;
}


static void wake_up(OPEN_INDEX_NAME *entry)
{
  entry->waiting= FALSE;
  mysql_cond_signal(&entry->thread->suspend);
}


/**
  Become the owner of a name, and look up its current share

  @param index   the index; index->lock is not held
  @param owner   entry to fill in. It belongs to the index until
                 open_index_end(). owner->share becomes the current share, or
                 NULL if there is none or how is OPEN_INDEX_CLOSE.
  @param name    unique file name. Must stay until open_index_end()
  @param length  its length
  @param how     OPEN_INDEX_HOW(), OPEN_INDEX_CREATE or OPEN_INDEX_CLOSE

  Only the owner of a name inserts and removes its shares, so the share stays
  the current one until the caller changes that. Therefore the function need not
  hold the mutex of the chain while it holds that of the index.

  @return 0 if the caller owns the name now. Otherwise the error with which
          another thread, for which the caller waited, failed to open the file
          in the same way: the caller owns nothing and fails with that error
          too.

  A user can't interrupt the wait, as a user of MariaDB can't interrupt the wait
  for the engine's mutex. For each thread before the caller, it takes as long as
  that thread opens or closes one file.
*/

int open_index_begin(OPEN_INDEX *index, OPEN_INDEX_NAME *owner,
                     const char *name, size_t length, uint how)
{
  OPEN_INDEX_NAME *current;
  mysql_mutex_t *lock;
  PSI_stage_info old_stage= { 0, NULL, 0 };
  my_bool waited= FALSE;

  owner->share= NULL;
  owner->name= name;
  owner->length= length;
  owner->how= how;
  owner->hash_value= hash_name(NULL, (const uchar*) name, length);
  owner->next= owner->first_waiting= owner->last_waiting= NULL;
  owner->waiting= FALSE;
  owner->error= 0;

  lock= lock_of_chain(owner);
  mysql_mutex_lock(lock);
  if ((current= *find_owner(index, owner)))
  {
    waited= TRUE;
    owner->thread= my_thread_var;
    owner->waiting= TRUE;
    if (current->last_waiting)
      current->last_waiting->next= owner;
    else
      current->first_waiting= owner;
    current->last_waiting= owner;
    open_index_enter_stage(&stage_waiting_for_table_file, &old_stage);
    do
    {
      mysql_cond_wait(&owner->thread->suspend, lock);
    } while (owner->waiting);
  }
  else
    become_owner(index, owner);
  mysql_mutex_unlock(lock);
  if (waited)
    open_index_enter_stage(&old_stage, NULL);
  if (owner->error)
    return owner->error;

  if (how != OPEN_INDEX_CLOSE)
  {
    mysql_mutex_lock(index->lock);
    owner->share= open_index_find(index, name, length);
    mysql_mutex_unlock(index->lock);
  }
  return 0;
}


/*
  Is an error a fact about the file, so that another thread that tries at once
  gets it, too? There are two other kinds of errors:

  1. The next thread may succeed: there was no memory or no descriptor, a read
     from the disk failed, or the file of a character set could not be read.
  2. The error depends on how the caller spells the name.

  (If MyISAM or Aria cannot read a header, it reports a damaged file, whatever
  the reason.)
*/

static my_bool is_about_file(int error)
{
  switch (error) {
  case ENOENT:
  case ELOOP:
  case HA_ERR_CRASHED:
  case HA_ERR_CRASHED_ON_USAGE:
  case HA_ERR_CRASHED_ON_REPAIR:
  case HA_ERR_NOT_A_TABLE:
  case HA_ERR_OLD_FILE:
  case HA_ERR_NEW_FILE:
  case HA_ERR_UNSUPPORTED:
    return TRUE;
  default:
    return FALSE;
  }
}


/**
  Give back a name

  @param index  the index; index->lock is not held
  @param owner  the entry that open_index_begin() has filled in
  @param error  0, or the error with which the owner failed to open the file.
                If it is a fact about the file, the threads that wait to open
                it in the same way get it, too.
*/

void open_index_end(OPEN_INDEX *index, OPEN_INDEX_NAME *owner, int error)
{
  OPEN_INDEX_NAME **pos, *next;
  mysql_mutex_t *lock= lock_of_chain(owner);

  mysql_mutex_lock(lock);
  if ((owner->how & OPEN_INDEX_HOW(0, 0)) && is_about_file(error))
  {
    OPEN_INDEX_NAME *waiting= owner->first_waiting;
    owner->first_waiting= owner->last_waiting= NULL;
    for (; waiting; waiting= next)
    {
      next= waiting->next;
      waiting->next= NULL;
      if (waiting->how == owner->how)
      {
        waiting->error= error;
        wake_up(waiting);
        continue;
      }
      if (owner->last_waiting)
        owner->last_waiting->next= waiting;
      else
        owner->first_waiting= waiting;
      owner->last_waiting= waiting;
    }
  }

  pos= find_owner(index, owner);
  DBUG_ASSERT(*pos == owner);
  *pos= owner->next;
  if ((next= owner->first_waiting))
  {
    next->first_waiting= next->next;
    next->last_waiting= next->next ? owner->last_waiting : NULL;
    become_owner(index, next);
    wake_up(next);
  }
  mysql_mutex_unlock(lock);
}
