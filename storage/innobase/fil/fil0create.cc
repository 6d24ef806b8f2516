/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file fil/fil0create.cc
Create the file of a table before the log is durable.

MariaDB's fil_ibd_create() waits until the FILE_CREATE record is durable, and then creates
the file.  Meanwhile the thread holds dict_sys.latch, and the locks of SYS_TABLES and the
other tables of the dictionary.  So no other thread can create, drop or load a table, and
concurrent CREATE TABLEs wait for each other's writes to the disk, which therefore cannot
be done together.

That order is for recovery.  If the server is killed when the file exists and FILE_CREATE
is not durable, then InnoDB knows nothing of the file, and nobody deletes it.  But in CREATE
TABLE, the DDL log knows: its entry is durable before InnoDB begins.  So here CREATE TABLE
creates the file at once, and waits for the log only when it has committed and has released
all latches and locks.  Many threads can wait for the same write.

The steps of CREATE TABLE
=========================

 1 entry    The DDL log's entry with the name of the table is durable, then the .frm file.
 2 rows     Acquire the locks and dict_sys.latch.  Insert the rows of SYS_TABLES, and the
            row of SYS_INDEXES for the clustered index.
 3 record   Write FILE_CREATE and the records of pages 0 and 1.  These pages stay latched
            until after 4, so that no other thread writes them.
 4 file     Create the file.  It must not exist.  It has 4 pages of zeros.
 5 indexes  Create the trees; extend the file, by zeros.
 6 commit   Commit in memory.  Release the latch and all locks.
 7 wait     Save the statistics.  Wait until the log is durable.  MariaDB does this, too.
 8 end      Disable the entry, which is durable before the client gets its answer.

Before 6 other threads see the table as little as in MariaDB, where they cannot acquire the
latch.  After 6 they may open it, which the metadata lock of the statement forbids, or see
its rows in INFORMATION_SCHEMA.INNODB_SYS_TABLES: as in MariaDB, before 7.

Recovery after a crash
======================

The log is durable up to some record.  There are three cases:

1. FILE_CREATE is not durable.  If the rows are, InnoDB rolls them back; to drop a tablespace
   that it does not know does nothing.  Then recovery of the DDL log drops the table in the
   engine.  ha_innobase::delete_table() finds no table, and calls fil_delete_unwritten().
   The file may exist or not, and its first page is zero, for InnoDB writes a page only
   after the page's log records, which follow FILE_CREATE.  InnoDB has no tablespace of this
   file: if it has, then FILE_CREATE is durable, and a committed DROP left the file to purge.
2. FILE_CREATE is durable, and the commit is not.  As in MariaDB: recovery creates the file
   if it does not exist, and the rollback of the row of SYS_INDEXES, which is before
   FILE_CREATE in the log, deletes it.
3. The commit is durable.  As in MariaDB: recovery creates the file if it does not exist.  A
   checkpoint can pass FILE_CREATE only after page 0 was written and synced.  If the entry
   of the DDL log is still there, its recovery drops the table.

If the thread creates the file and cannot go on, because the disk is full, it deletes the
file again, but waits for FILE_CREATE first.  A later failure rolls back, which deletes the
file after a durable FILE_DELETE.

A file with a page 0 that was written is never deleted here: it may be one that was there
before CREATE TABLE, which fails then.

Who waits as before
===================

Statements other than CREATE TABLE: their entries of the DDL log, if there are any, do not
name the file.  Partitions, and the tables of a FULLTEXT INDEX, whose names are not those
in the entry.  DATA DIRECTORY, because recovery does not know where the file is.
*******************************************************/

#define MYSQL_SERVER
#include <my_config.h>
#include "fil0create.h"
#include "fil0fil.h"
#include "buf0buf.h"
#include "dict0mem.h"
#include "os0file.h"
#include "log.h"
#include "sql_class.h"

bool fil_create_in_ddl_log(const table_name_t &name, uint32_t flags) noexcept
{
  const THD *const thd= current_thd;
  return thd && thd->lex->sql_command == SQLCOM_CREATE_TABLE &&
    !FSP_FLAGS_HAS_DATA_DIR(flags) && !name.part() && !name.is_temporary() &&
    strncmp(name.basename(), "FTS_", 4);
}

/** @return whether InnoDB knows the tablespace of a file
@param path  the file, as in the tablespace's node */
static bool is_known(const char *path) noexcept
{
  bool known= false;
  mysql_mutex_lock(&fil_system.mutex);
  for (const fil_space_t &space : fil_system.space_list)
    if (const fil_node_t *node= UT_LIST_GET_FIRST(space.chain))
      if ((known= !strcmp(node->name, path)))
        break;
  mysql_mutex_unlock(&fil_system.mutex);
  return known;
}

void fil_delete_unwritten(const char *name) noexcept
{
  char *const path= fil_make_filepath(nullptr, {name, strlen(name)}, IBD, false);
  if (!path)
    return;
  const File file= my_open(path, O_RDONLY | O_CLOEXEC, MYF(0));
  if (file >= 0)
  {
    byte page[UNIV_ZIP_SIZE_MIN];
    const size_t size= my_read(file, page, sizeof page, MYF(0));
    my_close(file, MYF(0));
    /* InnoDB knows the file of a table that a committed DROP left to purge. */
    if (size <= sizeof page && buf_is_zeroes({page, size}) &&
        !is_known(path) && !my_delete(path, MYF(0)))
      sql_print_information("InnoDB: Deleted '%s', which an interrupted"
                            " CREATE TABLE had left", path);
  }
  ut_free(path);
}
