/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_VISIBLE_STATE_INCLUDED
#define MA_VISIBLE_STATE_INCLUDED

/* Close a share without the transaction manager's lock */

/**
  When a thread closes a share, free the history of its table's states if it has
  only one state, which all transactions can see, and no transaction uses the
  table

  @return TRUE if there is no history (any more)

  In general, a thread needs the transaction manager's lock to find out which
  states a transaction can see, and all transactions compete for that lock. This
  function does not need it:

  1. A state with trid 0 is older than all running transactions.
  2. A transaction that in_trans does not count does not read the history, and
     no new one starts to use it: the caller owns the name and closes the last
     instance.
  3. A checkpoint waits for close_lock, which the caller holds.

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
