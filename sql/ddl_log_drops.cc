/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  DROP of many tables logs several tables in the DDL log at once, and syncs once.

  Before a thread drops a table, the table's entry in the DDL log must be durable. MariaDB
  writes one entry, syncs, and drops the table. Here a statement of at least MIN_TABLES
  tables logs ahead: when it comes to a table, it also writes the entries of up to MAX_AHEAD
  tables after it, and then syncs once.

  After a crash, recovery drops all tables that have an entry, so it also drops tables that
  the statement had not come to. Each table is gone or whole, except a partitioned one: its
  .par file goes first, so MariaDB's recovery may leave partitions. The binary log has the
  tables that are gone, as always, even if recovery cannot drop the last one. A statement of
  fewer tables logs each table by itself, so after a crash it has dropped no more tables than
  in MariaDB.

  The statement disables its entries before it returns its result or an error to the client.
  So recovery never drops a table after the client got an error for the statement.

  The statement logs a table ahead only if recovery drops the table just as the
  statement would. Two conditions must hold:

  1. It is a base table of one of the engines in log_ahead(). Other engines may
     refuse to drop a table, for example for lack of a privilege (CONNECT). So
     may Galera.
  2. No FOREIGN KEY refers to it. The statement may have to refuse to drop such
     a table. Recovery would drop it: InnoDB has not loaded the key then.

  The statement stops logging ahead at the first table for which one of them
  does not hold, so the entries have the order of the statement.

  The tables of DROP DATABASE come in an order in which condition 2 holds for nearly all
  of them: see children_first().

  FOREIGN KEYs in recovery
  ========================
  When a statement logs a table, it has not checked yet whether a FOREIGN KEY refers to the
  table; nor does CREATE TABLE lock the table to which its key refers. So recovery may find
  an entry of a table that the statement would have refused to drop, or has just refused.
  MariaDB drops the table, and the FOREIGN KEY stays without its parent. Here recovery asks
  InnoDB, and leaves the table: see must_stay(). If the statement runs with
  foreign_key_checks=0, its first entry has a flag, and recovery drops the table. The event
  that recovery writes to the binary log then has foreign_key_checks=0, too: a replica
  would refuse it otherwise.

  MariaDB drops the tables of a database in the order of the directory: a parent may be
  gone and its child still exist. If the server is killed then, the child stays, and the
  binary log has a DROP TABLE of the parent only, which a replica refuses. So
  children_first() sorts them. Only if FOREIGN KEYs form a cycle, this still happens.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "ddl_log_drops.h"
#include "sql_base.h"
#include "sql_plugin.h"
#include "sql_table.h"
#include "datadict.h"
#include <unordered_map>
#ifdef WITH_WSREP
#include "wsrep_mysqld.h"
#endif

thread_local bool Ddl_log_drops::syncs_later;
thread_local handlerton *Ddl_log_drops::engine;
bool (*Ddl_log_drops::is_referenced)(const char *path, bool look_it_up);
void (*Ddl_log_drops::find_children)(const char *path,
                                     std::vector<std::string> *names);

/*
  Flags of the first entry of a statement that runs with foreign_key_checks=0, and with
  sql_log_bin=0. ddl_log.h has the flags of the actions.
*/
static constexpr uint16 NO_FOREIGN_KEY_CHECKS= 1 << 15, NO_BINARY_LOG= 1 << 14;

Ddl_log_drops::Ddl_log_drops(THD *thd, TABLE_LIST *tables, bool drop_sequence):
  thd(thd)
{
  uint count= 0;
  for (TABLE_LIST *table= tables; table && count < MIN_TABLES;
       table= table->next_local)
    count++;
  may_log_ahead= count == MIN_TABLES && !drop_sequence && !WSREP(thd) &&
    (thd->lex->sql_command == SQLCOM_DROP_TABLE ||
     thd->lex->sql_command == SQLCOM_DROP_DB);
}


/**
  Log a table that the statement has not come to, if it can be logged ahead.

  @param[out] logged  whether it was logged
  @return whether there was an error
*/

bool Ddl_log_drops::log_ahead(DDL_LOG_STATE *state, TABLE_LIST *table,
                              bool *logged)
{
  *logged= false;
  char path[FN_REFLEN + 1], engine_buf[NAME_CHAR_LEN + 1];
  LEX_CSTRING engine= { engine_buf, 0 };
  LEX_CUSTRING version= { NULL, 0 };
  if (table->open_type != OT_BASE_ONLY && is_temporary_table(table))
    return false;
  const LEX_CSTRING &alias=
    lower_case_table_names == 2 ? table->alias : table->table_name;
  const uint length= build_table_filename(path, sizeof(path) - 1, table->db.str,
                                          alias.str, reg_ext, 0);
#if MYSQL_VERSION_ID < 110800
  LEX_CSTRING partition_engine= { NULL, 0 };
  if (dd_frm_type(thd, path, &engine, &partition_engine, &version) !=
      TABLE_TYPE_NORMAL)
#else
  if (dd_frm_type(thd, path, &engine, &version) != TABLE_TYPE_NORMAL)
#endif
    return false;
  plugin_ref plugin= plugin_lock_by_name(thd, &engine,
                                         MYSQL_STORAGE_ENGINE_PLUGIN);
  handlerton *const hton= plugin ? plugin_hton(plugin) : NULL;
  const LEX_CSTRING cpath= { path, length - reg_ext_length };
  path[cpath.length]= 0;
  switch (hton ? hton->db_type : DB_TYPE_UNKNOWN) {
  case DB_TYPE_INNODB:
    if (is_referenced && !is_referenced(path, false))
      break;
    return false;
  case DB_TYPE_MYISAM:
  case DB_TYPE_ARIA:
  case DB_TYPE_MRG_MYISAM:
  case DB_TYPE_HEAP:
  case DB_TYPE_CSV_DB:
    break;
  default:
    return false;
  }
  const bool error= ddl_log_drop_table(state, hton, &cpath, &table->db,
                                       &table->table_name);
  *logged= !error;
  return error;
}


uint16 Ddl_log_drops::flags(const THD *thd)
{
  const ulonglong bits= thd->variables.option_bits;
  return (bits & OPTION_NO_FOREIGN_KEY_CHECKS ? NO_FOREIGN_KEY_CHECKS : 0) |
         (bits & OPTION_BIN_LOG ? 0 : NO_BINARY_LOG);
}


void Ddl_log_drops::recover_flags(THD *thd, const DDL_LOG_ENTRY *entry)
{
  ulonglong &bits= thd->variables.option_bits;
  bits&= ~OPTION_NO_FOREIGN_KEY_CHECKS;
  if (entry->flags & NO_FOREIGN_KEY_CHECKS)
    bits|= OPTION_NO_FOREIGN_KEY_CHECKS;
  if (entry->flags & NO_BINARY_LOG)
    bits&= ~OPTION_BIN_LOG;
}


bool Ddl_log_drops::must_stay(THD *thd, const DDL_LOG_ENTRY *entry)
{
  if (thd->variables.option_bits & OPTION_NO_FOREIGN_KEY_CHECKS || !is_referenced)
    return false;
  /*
    If the .frm file is gone, the statement came to the table and dropped it. InnoDB must
    not load the keys then: it would refuse to drop the table.
  */
  char frm[FN_REFLEN + 1];
  strxnmov(frm, sizeof(frm) - 1, entry->tmp_name.str, reg_ext, NullS);
  if (access(frm, F_OK))
    return false;
  /* Let is_referenced() look whether the statement has dropped the table in InnoDB */
  return is_referenced(entry->tmp_name.str, true);
}


namespace
{

struct Drop_node
{
  TABLE_LIST *table;
  std::vector<std::string> children;
  bool reached;
};

/** The path of a table of DROP DATABASE, without extension */
void drop_path(const TABLE_LIST *table, char *path, size_t size)
{
  const LEX_CSTRING &alias=
    lower_case_table_names == 2 ? table->alias : table->table_name;
  build_table_filename(path, size, table->db.str, alias.str, "", 0);
}

} // namespace


TABLE_LIST *Ddl_log_drops::children_first(TABLE_LIST *tables)
{
  char path[FN_REFLEN + 1];
  if (!find_children)
    return tables;

  std::vector<Drop_node> nodes;
  bool parents= false;
  for (TABLE_LIST *table= tables; table; table= table->next_local)
  {
    nodes.push_back({table, {}, false});
    drop_path(table, path, sizeof(path) - 1);
    find_children(path, &nodes.back().children);
    parents|= !nodes.back().children.empty();
  }
  if (!parents)
    return tables;

  std::unordered_map<std::string, Drop_node*> names;
  for (Drop_node &node : nodes)
  {
    drop_path(node.table, path, sizeof(path) - 1);
    const char *name= path + strlen(path);
    for (uint slashes= 0; name > path; name--)
      if (name[-1] == FN_LIBCHAR && ++slashes == 2)
        break;
    names[name]= &node;
  }

  TABLE_LIST *first= NULL, **last= &first;
  std::vector<Drop_node*> stack;
  for (Drop_node &root : nodes)
  {
    if (root.reached)
      continue;
    root.reached= true;
    stack.push_back(&root);
    while (!stack.empty())
    {
      Drop_node *const node= stack.back();
      if (node->children.empty())
      {
        stack.pop_back();
        *last= node->table;
        last= &node->table->next_local;
        continue;
      }
      const auto child= names.find(node->children.back());
      node->children.pop_back();
      if (child == names.end() || child->second->reached)
        continue;
      child->second->reached= true;
      stack.push_back(child->second);
    }
  }
  *last= NULL;
  return first;
}


bool Ddl_log_drops::log(DDL_LOG_STATE *state, TABLE_LIST *table,
                        handlerton *hton, const LEX_CSTRING *path)
{
  engine= hton;
  while (next < n)
  {
    const auto &logged= ahead[next++];
    if (logged.table == table)
    {
      state->main_entry= logged.entry;          // The caller may note a phase
      return false;
    }
  }
  if (!may_log_ahead)
    return ddl_log_drop_table(state, hton, path, &table->db,
                              &table->table_name);

  n= 0;
  syncs_later= true;
  bool error= ddl_log_drop_table(state, hton, path, &table->db,
                                 &table->table_name);
  if (!error)
  {
    DDL_LOG_MEMORY_ENTRY *const entry= state->main_entry;
    bool logged;
    while (n < MAX_AHEAD && (table= table->next_local) &&
           !(error= log_ahead(state, table, &logged)) && logged)
    {
      ahead[n].table= table;
      ahead[n++].entry= state->main_entry;
    }
    state->main_entry= entry;
    ddl_log_sync_drops();
  }
  syncs_later= false;
  next= 0;
  return error;
}
