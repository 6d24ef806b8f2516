/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/fil0create.h
Create the file of a table before the log is durable.
fil/fil0create.cc describes why that is safe.
*/

#ifndef fil0create_h
#define fil0create_h

#include "dict0types.h"

/** @return whether recovery of the DDL log deletes a file that this thread creates, so that
the thread need not wait for the FILE_CREATE record
@param name   the table
@param flags  the tablespace's flags */
bool fil_create_in_ddl_log(const table_name_t &name, uint32_t flags) noexcept;

/** Recovery of the DDL log drops a table that InnoDB does not know: delete the file that
CREATE TABLE may have left.
@param name  the table, as in SYS_TABLES */
void fil_delete_unwritten(const char *name) noexcept;

#endif
