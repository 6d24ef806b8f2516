#ifndef CATALOG_TABLES_INCLUDED
#define CATALOG_TABLES_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The names of the tables of small databases, kept from one statement to the next.

  When a statement lists the tables of 100,000 databases, the kernel spends four fifths of
  the time on opening, reading and closing as many directories. Where a directory has not
  changed, one stat() and the names from memory give the same answer.

  A directory has not changed if it still has the inode and the time of the last
  change (ctime, which no program can set back) that it had before a thread read
  it. The server trusts a ctime if both of these hold:

  1. The file system has times finer than a second, and all its changes go
     through this kernel (is_local_file_system()).
  2. The ctime was more than two seconds old when the thread began to read the
     directory. So a later change gives the directory another ctime.

  Directories with the same names of tables, such as those of many sites of one program,
  share one list. The lists take at most TABLES_ROOM bytes for each database, plus a
  constant. A statement reads the directories that do not fit, as in unpatched MariaDB.

  The files must decide which tables there are:

  1. If an engine is loaded that knows of tables without files, such as S3, the server
     keeps no names. It never keeps those of performance_schema.
  2. The files of an engine like ARCHIVE are tables only while the engine is loaded. So
     the server keeps names only if it has asked all engines about the files, and forgets
     them when an engine is loaded or unloaded.
*/

#include "sql_array.h"

/** The state of a directory before a statement read it */
class Known_tables_key
{
public:
  Known_tables_key() : m_device(0), m_inode(0), m_changed(0), m_engines(0), m_asked(0), m_now(0) { }
  bool is_usable() const { return m_changed; }

  /* For catalog_tables.cc */
  ulonglong m_device;
  ulonglong m_inode;
  ulonglong m_changed;          // ctime in ns. 0: not to be used
  ulonglong m_engines;          // how often the set of engines had changed
  ulonglong m_asked;            // how often this thread had asked an engine
  longlong m_now;               // the time, in seconds
};

/**
  Add the names of a database's tables.
  @param path      its directory, as build_table_filename() has it
  @param[out] key  for known_tables_add(), if the names are not known
  @return true if they are known. Without memory for all of them, some are missing, and an
          error is reported.
*/
bool known_tables_find(THD *thd, const LEX_CSTRING &db, const char *path,
                      const LEX_CSTRING &wild, Dynamic_array<LEX_CSTRING*> *tables,
                      Known_tables_key *key);

/**
  Keep all names that a directory has, in the order in which it was read. A directory that
  has changed since the key was made, or that is another one now, is left out.
*/
void known_tables_add(const Known_tables_key &key, const char *path,
                      const Dynamic_array<LEX_CSTRING*> &tables);

/**
  The server has initialized an engine (+1), or is about to unload it (-1).
  @param by_files  it finds its tables by the names of files only, or not at all
  @param by_frm    it finds them by the names of .frm files only, or not at all
*/
void known_tables_engine(int change, bool by_files, bool by_frm);

/** Do all tables, but performance_schema's, have a .frm file? */
bool tables_have_frm();

/** The thread asks an engine about the files of a database */
void known_tables_engine_asked();

/** Forget all; also at the server's end */
void known_tables_free();

#endif /* CATALOG_TABLES_INCLUDED */
