#ifndef TABLE_CACHE_RECORD_INCLUDED
#define TABLE_CACHE_RECORD_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A TABLE has its second record buffer only while a statement uses it.

  Each TABLE has two buffers of the length of the table's longest row, record[0]
  and record[1]. Columns (Field) point into the first one. A statement that
  changes a row keeps the old row in the second one, and a few kinds of SELECT
  use it, too. No statement needs what an earlier one has left there. In
  WordPress's tables a buffer has 2 KiB on average. A server may have 100,000
  TABLEs open, of which a few hundred are in use.

  So a thread takes a buffer when it gets a TABLE (tc_take_record()), and gives
  it back when it releases the TABLE (tc_give_record()). While the TABLE has no
  such buffer, record[1] is record[0], as in any TABLE for which the caller of
  open_table_from_share() has asked for one record only.

  These TABLEs have a second buffer of their own, as in MariaDB:

  1. those with short rows, where this saves little, and costs as much;
  2. those with system versioning or periods, which have three buffers;
  3. sequences;
  4. those of engines other than InnoDB, MyISAM and Aria, partitioned tables
     included. Only these three know that record[1] need not lie behind
     record[0] (record_distance.h). An engine that was built without this patch
     set does not.

  A TABLE with triggers keeps the buffer that it has taken until it is closed,
  because the triggers have Fields that point into record[1].

  Temporary tables are not in the table cache.
*/

#include "my_global.h"

class THD;
struct TABLE;
struct TABLE_SHARE;

uint tc_extra_record(const TABLE_SHARE *share);
bool tc_take_record(THD *thd, TABLE *table);
void tc_give_record(TABLE *table);
size_t tc_kept_record_bytes(const TABLE *table);
void tc_free_records();

#endif /* TABLE_CACHE_RECORD_INCLUDED */
