/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_rows.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_lex.h"
#include "sql_select.h"
#include "sql_show.h"
#include "catalog_rows.h"

/** Is the statement the whole of SHOW DATABASES, with no condition on its rows? */
static bool is_plain_show(THD *thd, const TABLE_LIST *tables, const COND *cond)
{
  DBUG_EXECUTE_IF("catalog_full_walk", return false;);
  const JOIN_TAB *const tab= tables->table->reginfo.join_tab;
  if (thd->lex->sql_command != SQLCOM_SHOW_DATABASES || cond || !tab)
    return false;
  const JOIN *const join= tab->join;
  /* A subquery in WHERE may ask for SCHEMATA, too */
  return join && join->select_lex == thd->lex->first_select_lex() &&
         join->table_count == 1 && !join->conds && !join->need_tmp &&
         tab->type == JT_ALL;
}


/* The names that are left are those from cache_pos to cache_end of the READ_RECORD */

static int read_next_name(READ_RECORD *info)
{
  if (info->cache_pos == info->cache_end)
    return -1;
  const LEX_CSTRING *const name= *reinterpret_cast<LEX_CSTRING**>(info->cache_pos);
  info->cache_pos+= sizeof(name);
  TABLE *const table= info->table;
  table->field[table->pos_in_table_list->schema_table->idx_field1]->
    store(name, system_charset_info);
  return 0;
}


static int read_first_name(JOIN_TAB *tab)
{
  return read_next_name(&tab->read_record);
}


Database_rows::Database_rows(THD *thd, TABLE_LIST *tables, COND *cond, size_t most)
  : m_thd(thd), m_table(tables->table), m_names(nullptr), m_count(0), m_failed(false)
{
  if (!is_plain_show(thd, tables, cond))
    return;
#ifndef DBUG_OFF
  DBUG_EXECUTE_IF("catalog_no_memory", DBUG_SET("+d,simulate_out_of_memory"););
#endif
  m_names= static_cast<LEX_CSTRING**>(alloc_root(thd->mem_root, most * sizeof(*m_names) + 1));
  m_failed= !m_names;
}


Database_rows::~Database_rows()
{
  if (!m_names)
    return;
  JOIN_TAB *const tab= m_table->reginfo.join_tab;
  restore_record(m_table, s->default_values);
  tab->read_record.cache_pos= reinterpret_cast<uchar*>(m_names);
  tab->read_record.cache_end= reinterpret_cast<uchar*>(m_names + m_count);
  tab->read_record.read_record_func= read_next_name;
  tab->read_first_record= read_first_name;
}
