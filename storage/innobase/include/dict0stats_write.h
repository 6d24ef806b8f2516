/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef dict0stats_write_h
#define dict0stats_write_h

/* Write persistent statistics without SQL: see dict/dict0stats_write.cc */

#include "dict0types.h"
#include "db0err.h"
#include "trx0types.h"

/** Save the statistics of a table, or of one index, and end the transaction.
@param table     table, which the caller keeps open
@param index_id  the index; 0 for all
@param trx       started transaction that has locked both statistics tables
                 with LOCK_X
@param now       value of last_update
@param err       DB_SUCCESS if the rows were committed, or why the transaction was
                 rolled back
@return whether err is the result.  If not, nothing was done, and the caller has to
write the rows by SQL, as MariaDB does: a statistics table lacks a required column,
or has other keys than MariaDB creates */
bool dict_stats_write(dict_table_t *table, index_id_t index_id, trx_t *trx,
                      time_t now, dberr_t *err) noexcept;

/** Delete the rows of a table from a statistics table.  The caller holds
dict_sys.latch exclusively.
@param stats  TABLE_STATS_NAME or INDEX_STATS_NAME
@param db     database_name
@param table  table_name
@param index  index_name, or nullptr for all rows of the table
@param trx    transaction; the caller ends it
@param err    the result of deleting
@return whether err is the result.  If not, nothing was done, and the caller has to
delete the rows by SQL: as for dict_stats_write(), or trx does not hold LOCK_X */
bool dict_stats_delete_rows(const char *stats, const char *db,
                            const char *table, const char *index,
                            trx_t *trx, dberr_t *err) noexcept;

#endif
