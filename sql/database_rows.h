#ifndef DATABASE_ROWS_INCLUDED
#define DATABASE_ROWS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The rows of SHOW DATABASES without a temporary table.

  INFORMATION_SCHEMA fills a temporary table, which the executor then reads. It is made for
  the columns of SCHEMATA, so of 16 MB it holds 2,500 rows before it moves to disk. For
  100,000 names, writing and reading it takes as long as all the rest.

  SHOW DATABASES without WHERE shows each name that its privileges allow, in the order in
  which the names are listed. So the executor may as well read the list: its first read
  begins there, and each puts the next name into the record. All else, such as the limits
  of rows, KILL, and the description of the column for the client, stays with the executor.
*/

class Database_rows
{
public:
  /**
    @param tables  the table of INFORMATION_SCHEMA
    @param cond    what WHERE says about its rows, or NULL
    @param most    so many names may be added
  */
  Database_rows(THD *thd, TABLE_LIST *tables, COND *cond, size_t most);

  /** From here on the executor reads the names that have been added */
  ~Database_rows();

  /**
    Add a name, which stays in memory until the statement ends.
    @return false if the caller has to write a row into the temporary table
  */
  bool add(LEX_CSTRING *name)
  {
    /* Writing a row reports that the statement is killed */
    if (!m_names || unlikely(m_thd->killed))
      return false;
    m_names[m_count++]= name;
    return true;
  }

private:
  THD *const m_thd;
  TABLE *const m_table;
  LEX_CSTRING **m_names;        // NULL: the temporary table is filled
  size_t m_count;
};

#endif /* DATABASE_ROWS_INCLUDED */
