/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  INFORMATION_SCHEMA.TABLE_CACHE: what the table cache holds, and how well.

  One row per cached definition of a table or view that the user may select
  from. Numbers of a row are read under the lock of its definition, shard by
  shard, and the row is stored without any lock. So reading all of it never
  stops the server. Rows are not of the same moment.
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
  IDLE_SECONDS
};

static ST_FIELD_INFO table_cache_fields[]=
{
  Column("TABLE_SCHEMA",  Name(),       NOT_NULL),
  Column("TABLE_NAME",    Name(),       NOT_NULL),
  Column("ENGINE",        Name(),       NULLABLE),      // NULL: a view
  Column("OPEN_TABLES",   ULong(10),    NOT_NULL),      // IN_USE + FREE
  Column("IN_USE",        ULong(10),    NOT_NULL),
  Column("FREE",          ULong(10),    NOT_NULL),
  Column("HITS",          ULonglong(20), NOT_NULL),     // found open and free
  Column("MISSES",        ULonglong(20), NOT_NULL),     // had to be opened
  Column("EVICTIONS",     ULonglong(20), NOT_NULL),     // made room for others
  Column("IDLE_SECONDS",  ULonglong(20), NULLABLE),     // NULL: never used
  CEnd()
};

} // namespace Show


struct Fill
{
  THD *thd;
  TABLE *table;
};


static my_bool fill_row(void *arg, void *fill_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Fill *fill= static_cast<Fill*>(fill_arg);
  TABLE *table= fill->table;
  TC_share_info info;
  char engine[NAME_LEN + 1]= "";
  bool is_view;

  const char *db= reinterpret_cast<const char*>(element->m_key);
  const char *name= db + strlen(db) + 1;

  TABLE_LIST tl;
  tl.reset();
  tl.db= Lex_cstring_strlen(db);
  tl.table_name= Lex_cstring_strlen(name);
  tl.grant.privilege= NO_ACL;
  if (check_table_access(fill->thd, SELECT_ACL, &tl, TRUE, 1, TRUE))
    return fill->thd->is_killed();

  mysql_mutex_lock(&element->LOCK_table_share);
  TABLE_SHARE *share= element->share;
  if (!share)
  {
    /* It is being opened or has just gone. */
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

  restore_record(table, s->default_values);
  Field **field= table->field;
  field[Show::SCHEMA]->store(db, tl.db.length, system_charset_info);
  field[Show::NAME]->store(name, tl.table_name.length, system_charset_info);
  if (is_view)
    field[Show::ENGINE]->set_null();
  else
  {
    field[Show::ENGINE]->set_notnull();
    field[Show::ENGINE]->store(engine, strlen(engine), system_charset_info);
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
  return schema_table_store_record(fill->thd, table);
}


static int fill_table(THD *thd, TABLE_LIST *tables, COND *)
{
  Fill fill= { thd, tables->table };
  return tdc_iterate(thd, fill_row, &fill, true);
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
