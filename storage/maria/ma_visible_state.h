/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_VISIBLE_STATE_INCLUDED
#define MA_VISIBLE_STATE_INCLUDED

/* Close a share without the transaction manager's lock */

/**
  Free the history of a table's states when a thread closes its share, if

  1. the history has only one state, and all transactions can see that;
  2. no transaction uses the table.

  @return TRUE if the share has no history now

  In general, a thread needs the transaction manager's lock to find out which
  states a transaction can see, and all transactions compete for that lock. This
  function does not need it:

  1. A state with trid 0 is older than all running transactions.
  2. Only transactions that in_trans counts read the history. No transaction
     starts to use the table, because the caller owns the name and closes the
     last instance.
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
