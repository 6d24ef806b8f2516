#ifndef CATALOG_ROWS_INCLUDED
#define CATALOG_ROWS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The rows of SHOW DATABASES without a temporary table.

  INFORMATION_SCHEMA fills a temporary table, which the executor then reads. That table
  has the columns of SCHEMATA. A row of it takes about 6.5 KB, so 2,500 rows fill
  tmp_memory_table_size (16 MB) and the table moves to disk. For 100,000 names, writing
  and reading it takes as long as all the rest.

  SHOW DATABASES without WHERE shows each name that the account's privileges allow, in the
  order of the list. So the executor may as well read the list: its first read begins
  there, and each read puts the next name into the record. The executor still does all
  else, such as the limits of rows, KILL, and the description of the column for the
  client.
*/

class Database_rows
{
public:
  /**
    @param tables  the table of INFORMATION_SCHEMA
    @param cond    WHERE, or NULL
    @param most    the caller adds at most so many names
  */
  Database_rows(THD *thd, TABLE_LIST *tables, COND *cond, size_t most);

  /** Out of memory, which has been reported: the caller ends the statement */
  bool failed() const { return m_failed; }

  /** From now on the executor reads the added names */
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
  bool m_failed;
};

#endif /* CATALOG_ROWS_INCLUDED */
