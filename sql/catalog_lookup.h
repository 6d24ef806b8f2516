#ifndef CATALOG_LOOKUP_INCLUDED
#define CATALOG_LOOKUP_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  What WHERE says about the name of the database in a query of INFORMATION_SCHEMA.

  MariaDB looks databases and tables up by name where a query has `column =
  constant`. For any other condition it lists all databases, reads the directory of
  each, and compares the names of the tables then. Schema_condition takes the parts
  of WHERE that use nothing but the name of the database and constants, and so can
  be decided for a database before the server reads its directory.

  It decides by evaluating the items of the query itself. So collations, wildcards and
  NULL have the meaning that they have for the rows, and a database that it leaves out
  has no row that WHERE would keep.
*/

#include "sql_array.h"

class Schema_condition
{
public:
  Schema_condition(TABLE_LIST *tables, COND *cond);

  /** Can rows about this database satisfy WHERE? Overwrites the record's name */
  bool may_hold(const char *name, size_t length);

  /**
    The only names for which WHERE can hold, as bytes.
    @param[out] names  at least these; the caller still asks may_hold()
    @return false if WHERE does not tell them
  */
  bool only_names(Dynamic_array<LEX_CSTRING> *names, MEM_ROOT *root, bool *oom);

private:
  void add_parts(COND *cond);
  bool decides(Item *item);
  bool is_name(Item *item);
  bool are_names_and_constants(Item_func *func);
  bool add_names(Item *item, Dynamic_array<LEX_CSTRING> *names, MEM_ROOT *root,
                 bool *oom);

  TABLE_LIST *const m_tables;
  Field *m_field;               // the name of the database in the rows, or NULL
  /* Parts of WHERE, of which each must be true */
  Dynamic_array<Item*> m_parts;
};

#endif /* CATALOG_LOOKUP_INCLUDED */
