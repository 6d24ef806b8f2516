/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_FILES_WRITTEN_INCLUDED
#define MA_FILES_WRITTEN_INCLUDED

/* Which tables a closing thread has to sync; maria_def.h includes this file */

/**
  Must a thread that closes a transactional table sync its files?

  A checkpoint does not know a closed table, so all writes to its files must be
  on disk first. The answer is always TRUE during recovery. Otherwise no thread
  has written to the files if, since they were opened,

  1. no thread has logged a change of the table: the first log record gives the
     share an id;
  2. no thread has switched logging off (for a repair or a bulk insert);
  3. no thread has marked the table as changed or written its state.

  A thread that had the table open earlier synced its own writes when it closed
  the table.

  The function remembers the answer TRUE. The closing thread asks again for the
  index file, after the data file, when the share may have lost its id.
*/

static inline my_bool _ma_files_need_sync(MARIA_SHARE *share)
{
  if (share->id != 0 || share->changed || maria_in_recovery)
    share->files_written= 1;
  return share->files_written;
}

#endif /* MA_FILES_WRITTEN_INCLUDED */
