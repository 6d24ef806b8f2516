/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef dict0stats_read_h
#define dict0stats_read_h

/* Persistent statistics without SQL: see dict/dict0stats_read.cc */

#include "dict0types.h"
#include "db0err.h"

/** Read the stored statistics of a table, without SQL and without the exclusive
dict_sys.latch.
@param table  table, which the caller keeps open
@param err    DB_SUCCESS; DB_STATS_DO_NOT_EXIST if no row is usable; or the reason
              why reading ended before the last row
@return whether err is the result.  If not, the table has empty statistics, and the
caller has to read the rows by SQL, as MariaDB does: the statistics tables cannot be
loaded, lack a required column, or have another primary key than MariaDB creates */
bool dict_stats_fetch(dict_table_t *table, dberr_t *err) noexcept;

/** Look up the statistics tables.  The caller holds dict_sys.latch in shared mode.
@param table_stats  mysql.innodb_table_stats
@param index_stats  mysql.innodb_index_stats
@return whether both are in the data dictionary cache, with the required columns */
bool dict_stats_find_tables(dict_table_t **table_stats,
                            dict_table_t **index_stats) noexcept;

#endif
