/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file INFORMATION_SCHEMA.TABLE_CACHE shows the contents of the table cache,
  with hits and misses.

  The table has one row for each cached definition of a table or view from which
  the user may select at least one column. A query works in two steps:

  1. It walks over the definitions and collects the rows. It reads the numbers
     of a row under the lock of its definition, shard by shard.
  2. After the walk it stores the rows. It does not store them during the walk,
     because that may take long (the temporary table may go to disk), and the
     walk pins the definition that it is at, so that no thread can free it.

  So a query that reads all rows never stops the server. But its rows do not all
  show the same moment.
*/

#define MYSQL_SERVER 1
#include <my_global.h>
#include "mysql_version.h"
#include "mysql/plugin.h"
#include "sql_class.h"
#include "sql_base.h"
#include "sql_parse.h"
#include "sql_i_s.h"

namespace Show {

enum table_cache_columns
{
  SCHEMA, NAME, ENGINE, OPEN_TABLES, IN_USE, FREE, HITS, MISSES, EVICTIONS,
  IDLE_SECONDS, SCAN_OPENS, TABLES_MEMORY, DEFINITION_MEMORY
};

static ST_FIELD_INFO table_cache_fields[]=
{
  Column("TABLE_SCHEMA",  Name(),       NOT_NULL),
  Column("TABLE_NAME",    Name(),       NOT_NULL),
  Column("ENGINE",        Name(),       NULLABLE),      // NULL: a view
  Column("OPEN_TABLES",   ULong(10),    NOT_NULL),      // IN_USE + FREE
  Column("IN_USE",        ULong(10),    NOT_NULL),
  Column("FREE",          ULong(10),    NOT_NULL),
  Column("HITS",          ULonglong(20), NOT_NULL),     // found a free TABLE
  Column("MISSES",        ULonglong(20), NOT_NULL),     // opened a TABLE
  Column("EVICTIONS",     ULonglong(20), NOT_NULL),     // TABLEs evicted
  Column("IDLE_SECONDS",  ULonglong(20), NULLABLE),     // NULL: never used
  Column("SCAN_OPENS",    ULonglong(20), NOT_NULL),     // of MISSES, by scans
  // Bytes that count for table_cache_memory, without InnoDB's definition
  Column("TABLES_MEMORY", ULonglong(20), NOT_NULL),     // of all OPEN_TABLES
  Column("DEFINITION_MEMORY", ULonglong(20), NOT_NULL),
  CEnd()
};

} // namespace Show


struct Row
{
  Row *next;
  LEX_CSTRING db, name, engine;         /* engine.str == NULL: a view */
  TC_share_info info;
};


struct Fill
{
  THD *thd;
  MEM_ROOT root;                        /* holds the rows */
  Row *rows;
};


static my_bool collect_row(void *arg, void *fill_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Fill *fill= static_cast<Fill*>(fill_arg);
  MEM_ROOT *root= &fill->root;
  TC_share_info info;
  char engine[NAME_LEN + 1]= "";
  bool is_view;

  if (fill->thd->check_killed())
    return TRUE;

  const char *db= reinterpret_cast<const char*>(element->m_key);
  const char *name= db + strlen(db) + 1;

  TABLE_LIST tl;
  tl.reset();
  tl.db= { db, strlen(db) };
  tl.table_name= { name, strlen(name) };
  tl.grant.privilege= NO_ACL;
  if (check_table_access(fill->thd, SELECT_ACL, &tl, FALSE, 1, TRUE))
    return FALSE;

  mysql_mutex_lock(&element->LOCK_table_share);
  TABLE_SHARE *share= element->share;
  if (!share)
  {
    /* Another thread is opening the share, or has just freed it. */
    mysql_mutex_unlock(&element->LOCK_table_share);
    return FALSE;
  }
  if (!(is_view= share->is_view))
  {
    handlerton *hton= share->db_type();
#ifdef WITH_PARTITION_STORAGE_ENGINE
    if (share->default_part_plugin)
      hton= plugin_hton(share->default_part_plugin);
#endif
    strmake(engine, hton_name(hton)->str, sizeof(engine) - 1);
  }
  tc_get_share_info(element, &info);
  mysql_mutex_unlock(&element->LOCK_table_share);

  Row *row= static_cast<Row*>(alloc_root(root, sizeof(Row)));
  if (!row ||
      !(row->db.str= strmake_root(root, tl.db.str, tl.db.length)) ||
      !(row->name.str= strmake_root(root, tl.table_name.str,
                                    tl.table_name.length)))
    return TRUE;
  row->db.length= tl.db.length;
  row->name.length= tl.table_name.length;
  row->engine.str= NULL;
  row->engine.length= strlen(engine);
  if (!is_view &&
      !(row->engine.str= strmake_root(root, engine, row->engine.length)))
    return TRUE;
  row->info= info;
  row->next= fill->rows;
  fill->rows= row;
  return FALSE;
}


static int store_row(THD *thd, TABLE *table, const Row *row)
{
  const TC_share_info &info= row->info;
  Field **field= table->field;

  restore_record(table, s->default_values);
  field[Show::SCHEMA]->store(row->db.str, row->db.length,
                             system_charset_info);
  field[Show::NAME]->store(row->name.str, row->name.length,
                           system_charset_info);
  if (!row->engine.str)
    field[Show::ENGINE]->set_null();
  else
  {
    field[Show::ENGINE]->set_notnull();
    field[Show::ENGINE]->store(row->engine.str, row->engine.length,
                               system_charset_info);
  }
  field[Show::OPEN_TABLES]->store(info.open, TRUE);
  field[Show::IN_USE]->store(info.in_use, TRUE);
  field[Show::FREE]->store(info.free, TRUE);
  field[Show::HITS]->store(info.hits, TRUE);
  field[Show::MISSES]->store(info.misses, TRUE);
  field[Show::EVICTIONS]->store(info.evictions, TRUE);
  if (info.ever_used || info.in_use)
  {
    field[Show::IDLE_SECONDS]->set_notnull();
    field[Show::IDLE_SECONDS]->store(info.idle_seconds, TRUE);
  }
  else
    field[Show::IDLE_SECONDS]->set_null();
  field[Show::SCAN_OPENS]->store(info.scan_opens, TRUE);
  field[Show::TABLES_MEMORY]->store(info.table_bytes, TRUE);
  field[Show::DEFINITION_MEMORY]->store(info.definition_bytes, TRUE);
  return schema_table_store_record(thd, table);
}


static int fill_rows(THD *thd, TABLE *table, Fill *fill)
{
  if (tdc_iterate(thd, collect_row, fill, true))
  {
    /* Killed or out of memory. Not all allocations report the latter. */
    if (!thd->is_error())
      my_error(ER_OUTOFMEMORY, MYF(0), (int) sizeof(Row));
    return 1;
  }
  for (const Row *row= fill->rows; row; row= row->next)
  {
    if (store_row(thd, table, row))
      return 1;
  }
  return 0;
}


static int fill_table(THD *thd, TABLE_LIST *tables, COND *)
{
  Fill fill;
  fill.thd= thd;
  fill.rows= NULL;
  /*
    Use a root of its own, not the statement's: a subquery may call this
    function for each outer row.
  */
  init_alloc_root(PSI_INSTRUMENT_ME, &fill.root, 16384, 0,
                  MYF(MY_THREAD_SPECIFIC));
  int res= fill_rows(thd, tables->table, &fill);
  free_root(&fill.root, MYF(0));
  return res;
}


static int table_cache_info_init(void *p)
{
  ST_SCHEMA_TABLE *schema= static_cast<ST_SCHEMA_TABLE*>(p);
  schema->fields_info= Show::table_cache_fields;
  schema->fill_table= fill_table;
  return 0;
}


static int table_cache_info_deinit(void *)
{
  return 0;
}


static struct st_mysql_information_schema table_cache_info_plugin=
{ MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION };

maria_declare_plugin(table_cache_info)
{
  MYSQL_INFORMATION_SCHEMA_PLUGIN,
  &table_cache_info_plugin,
  "TABLE_CACHE",
  "Table cache patch set",
  "Open and cached tables, with hits, misses and evictions",
  PLUGIN_LICENSE_GPL,
  table_cache_info_init,
  table_cache_info_deinit,
  0x0100,
  NULL,
  NULL,
  "1.0",
  MariaDB_PLUGIN_MATURITY_STABLE
}
maria_declare_plugin_end;
