/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_VISIBLE_STATE_INCLUDED
#define MA_VISIBLE_STATE_INCLUDED

/* Closing a share without the lock of all transactions */

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

static my_bool _ma_forget_visible_state(MARIA_SHARE *share)
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

#endif /* MA_VISIBLE_STATE_INCLUDED */
