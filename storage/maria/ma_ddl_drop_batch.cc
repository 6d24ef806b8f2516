/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  DROP of many Aria tables syncs their directory once.

  maria_delete_table() flushes its record in Aria's log, deletes the two files of the
  table, and syncs the directory. Without that sync a deleted file may be there again
  after a power loss.

  DROP TABLE and DROP DATABASE (ddl_drop_batch.h) sync a directory when they come to another
  one, or when they end: before the statement is written to the binary log, before it
  disables its entries in the DDL log, and before it returns. The cases of a power loss
  before that:

  1. The DDL log has an entry of each table whose files were deleted, and maybe of others.
     Recovery drops these tables again: it deletes those of their files that are there,
     and syncs the directory, before it closes the entries.
  2. Other statements that drop a table, such as CREATE OR REPLACE, note in the DDL log how
     far they came, while they go on. Recovery would not drop the table again. So these
     statements sync at once.
  3. To drop a partitioned table, recovery needs the list of its partitions, and to drop
     the graph of a VECTOR INDEX (11.8), the table's .frm file. So the directory is synced
     at once after each partition or graph.
  4. If a drop fails, mysql_rm_table_no_locks() ends the batch before it notes in the DDL
     log how far it came.

  If a sync fails at the end of the statement, the statement fails, although its tables
  are dropped.
*/

#define MYSQL_SERVER 1
#include "maria_def.h"
#include "ma_ddl_sync.h"
#include "ma_ddl_drop_batch.h"
#include "ddl_drop_batch.h"
#include "sql_class.h"

/** The batch of the statement that this thread executes. */
static thread_local struct
{
  bool runs;
  /** The directory that the thread still has to sync, or "" */
  char directory[FN_REFLEN];
} batch;


static void sync_directory()
{
  if (!batch.directory[0])
    return;
  DBUG_EXECUTE_IF("ma_drop_batch_crash_before_sync", DBUG_SUICIDE(););
  my_sync_dir(batch.directory, MYF(MY_WME));
  batch.directory[0]= 0;
}


static my_bool sync_later(const char *name)
{
  char directory[FN_REFLEN];
  size_t length;
  if (!batch.runs || strstr(name, "#P#") || strstr(name, "#i#"))
    return FALSE;
  dirname_part(directory, name, &length);
  if (strcmp(batch.directory, directory))
  {
    sync_directory();
    strmake_buf(batch.directory, directory);
  }
  return TRUE;
}


static void begin_statement()
{
  const enum_sql_command command= current_thd->lex->sql_command;
  batch.runs= command == SQLCOM_DROP_TABLE || command == SQLCOM_DROP_DB;
}


static void end_statement()
{
  sync_directory();
  batch.runs= false;
}


void ma_drop_batch_init()
{
  _ma_sync_directory_later= sync_later;
  Drop_batch::add_engine(begin_statement, end_statement);
}
