#ifndef CATALOG_LOOKUP_INCLUDED
#define CATALOG_LOOKUP_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Conditions of WHERE on the names of databases and tables in a query of
  INFORMATION_SCHEMA: the server evaluates them before it reads directories.

  MariaDB looks databases and tables up by name where a query has `column =
  constant`. For any other condition it lists all databases, reads the directory of
  each, and only then compares the names of the tables. Schema_condition takes the
  parts of WHERE that use only the name of the database and constants. The server
  evaluates these for a database before it reads the database's directory.

  It evaluates the query's own items. So collations, wildcards and NULL have the meaning
  that they have for the rows, and a database that it leaves out has no row that WHERE
  would keep.

  Named_tables does the same with the name of the table, where WHERE compares it with
  constants byte by byte: the server looks for the .frm files with these names instead of
  reading the directory. This does not find files that no statement can use as a table:
  those whose name MariaDB would encode in another way, such as "@0041.frm" (A), or that
  have more than 64 characters; and dangling links.
*/

#include "sql_array.h"

class Schema_condition
{
public:
  /** @param column  of the table of INFORMATION_SCHEMA, or -1: it has no such name */
  Schema_condition(TABLE_LIST *tables, COND *cond, int column);

  /** Can rows about this database satisfy WHERE? Overwrites the record's name */
  bool may_hold(const char *name, size_t length);

  /**
    Find the only names for which WHERE can hold, as bytes.
    @param[out] names  a superset of them; the caller still asks may_hold()
    @return false if WHERE does not limit the names
  */
  bool only_names(Dynamic_array<LEX_CSTRING> *names, MEM_ROOT *root, bool *oom);

private:
  friend class Named_tables;
  void add_parts(COND *cond);
  bool decides(Item *item);
  bool is_name(Item *item);
  bool are_names_and_constants(Item_func *func);
  bool add_names(Item *item, Dynamic_array<LEX_CSTRING> *names, MEM_ROOT *root,
                 bool *oom);

  TABLE_LIST *const m_tables;
  Field *m_field;               // the name in the rows, or NULL
  /* Parts of WHERE; each must be true */
  Dynamic_array<Item*> m_parts;
};


/** The only tables for which WHERE can hold, in each of the databases */
class Named_tables
{
public:
  /**
    @param looked_up  the name or pattern that the server knows already; may be NULL
    @param databases  those that the statement asks for tables
  */
  Named_tables(THD *thd, TABLE_LIST *tables, COND *cond, const LEX_CSTRING &looked_up,
               const Dynamic_array<LEX_CSTRING*> &databases)
    : m_thd(thd), m_tables(tables), m_cond(cond), m_looked_up(looked_up),
      m_databases(databases), m_names(PSI_INSTRUMENT_MEM), m_state(NOT_COLLECTED)
  { }

  /**
    Add those that a database has. The first call takes the names from WHERE.
    @param[out] result  0, or 1 if out of memory, as make_table_name_list() returns
    @return false if the server has to read the directory
  */
  bool find(const LEX_CSTRING &db, Dynamic_array<LEX_CSTRING*> *tables, int *result);

private:
  bool collect();

  THD *const m_thd;             // the names are on its mem_root
  TABLE_LIST *const m_tables;
  COND *const m_cond;
  const LEX_CSTRING &m_looked_up;
  const Dynamic_array<LEX_CSTRING*> &m_databases;
  Dynamic_array<LEX_CSTRING> m_names;
  enum { NOT_COLLECTED, ONLY_NAMES, ANY_NAME } m_state;
};

#endif /* CATALOG_LOOKUP_INCLUDED */
