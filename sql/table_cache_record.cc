/* SPDX-License-Identifier: GPL-2.0-only */

/** @file table_cache_record: see table_cache_record.h. */

#include "mariadb.h"
#include "sql_base.h"
#include "my_spare_buffers.h"
#include "unireg.h"
#include "table_cache_tables.h"

/** Shorter rows: the TABLE has a buffer of its own. */
static constexpr uint LEAST_LENGTH= 768;

/**
  One pool for each range of lengths, so that short rows do not take long
  buffers. Buffers longer than those of the last pool are allocated and freed
  each time.
*/
static MY_SPARE_BUFFERS spare_records[]=
{
  MY_SPARE_BUFFERS_INIT(2048), MY_SPARE_BUFFERS_INIT(4096),
  MY_SPARE_BUFFERS_INIT(8192), MY_SPARE_BUFFERS_INIT(16384)
};


static MY_SPARE_BUFFERS *buffers_of(const TABLE_SHARE *share)
{
  uint n= 0;
  while (n + 1 < array_elements(spare_records) &&
         spare_records[n].size < share->rec_buff_length)
    n++;
  return spare_records + n;
}


/** Does the TABLE lack its second buffer? */

static bool lacks_record(const TABLE *table)
{
  return table->record[1] == table->record[0];
}


/**
  Does the TABLE have a buffer that it has to give back?

  A buffer of the TABLE's own lies behind record[0], in the same block of
  memory. A buffer that it has to give back is a block of its own, so it cannot
  begin there.
*/

static bool has_spare_record(const TABLE *table)
{
  return !lacks_record(table) &&
         table->record[1] != table->record[0] + table->s->rec_buff_length;
}


/**
  Should a new TABLE get a second buffer of its own?

  @return flag for open_table_from_share(): EXTRA_RECORD if so, otherwise 0
*/

uint tc_extra_record(const TABLE_SHARE *share)
{
  const handlerton *hton= share->db_type();
  uint least= LEAST_LENGTH;
  DBUG_EXECUTE_IF("tc_spare_short_records", least= 0;);
  return share->rec_buff_length < least || share->versioned ||
         share->period.name || share->sequence ||
         (hton->db_type != DB_TYPE_INNODB && hton->db_type != DB_TYPE_MYISAM &&
          hton->db_type != DB_TYPE_ARIA) ?
         EXTRA_RECORD : 0;
}


/**
  Give a TABLE that the caller uses its second buffer, if it lacks one.

  @return true: no memory (reported)
*/

bool tc_take_record(THD *thd, TABLE *table)
{
  if (likely(!lacks_record(table)))
    return false;
  const int64 before= thd->status_var.global_memory_used;
  uchar *record= NULL;
  if (DBUG_IF("tc_record_out_of_memory"))
    my_error(ER_OUTOFMEMORY, MYF(0), table->s->rec_buff_length);
  else
    record= my_take_buffer(buffers_of(table->s), key_memory_TABLE,
                           table->s->rec_buff_length, MYF(MY_WME));
  if (unlikely(!record))
    return true;
  /* The TABLE does not own the buffer, so tc_weigh_new() must not count it */
  if (const int64 allocated= (int64) thd->status_var.global_memory_used - before)
    Cached_table::weight_of(table)->allocated_before+= allocated;
  MEM_UNDEFINED(record, table->s->rec_buff_length);
  table->record[1]= table->record[2]= record;
  return false;
}


/**
  Take the second buffer from a TABLE that the caller closes or releases. A
  caller that releases a TABLE with triggers must not call this: their Fields
  point into the buffer.
*/

void tc_give_record(TABLE *table)
{
  if (!has_spare_record(table))
    return;
  uchar *record= table->record[1];
  table->record[1]= table->record[2]= table->record[0];
  TRASH_ALLOC(record, table->s->rec_buff_length);
  my_give_buffer(buffers_of(table->s), record, table->s->rec_buff_length);
}


/** Bytes of a second buffer that the TABLE keeps when it is released. */

size_t tc_kept_record_bytes(const TABLE *table)
{
  if (likely(!table->triggers) || !has_spare_record(table))
    return 0;
  return MY_MAX(buffers_of(table->s)->size, table->s->rec_buff_length);
}


void tc_free_records()
{
  for (MY_SPARE_BUFFERS &spare : spare_records)
    my_free_spare_buffers(&spare);
}
