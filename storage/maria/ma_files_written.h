/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_FILES_WRITTEN_INCLUDED
#define MA_FILES_WRITTEN_INCLUDED

/* Which tables are synced when they are closed; maria_def.h includes it */

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

static inline my_bool _ma_files_need_sync(MARIA_SHARE *share)
{
  if (share->id != 0 || share->changed || maria_in_recovery)
    share->files_written= 1;
  return share->files_written;
}

#endif /* MA_FILES_WRITTEN_INCLUDED */
