/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_DDL_SYNC_INCLUDED
#define MA_DDL_SYNC_INCLUDED

/** @file Sync the directory of a table that was deleted: see ma_ddl_sync.c */

C_MODE_START

/**
  The server sets this when it starts (ma_ddl_drop_batch.cc); NULL in the tools.

  @param name  of a table whose files were deleted
  @return whether this thread will sync its directory; FALSE: the caller has to
*/
extern my_bool (*_ma_sync_directory_later)(const char *name);

my_bool _ma_syncs_once(const char *name, myf flags);
int _ma_sync_after_delete(const char *name);

C_MODE_END

#endif
