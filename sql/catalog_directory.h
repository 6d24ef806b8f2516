#ifndef CATALOG_DIRECTORY_INCLUDED
#define CATALOG_DIRECTORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The databases: the directories in the data directory.

  A statement that lists databases gets their names in one of two ways.

  1. It looks them up one by one, with a stat() for each, if the account's grants
     (catalog_grants.h) or WHERE (catalog_lookup.h) name all databases that may be in
     the answer.
  2. Otherwise it takes them from a list of all (catalog_databases.h), or reads the data
     directory. The file system says of most entries whether they are directories,
     without a stat(). The statement drops a name that the grants or WHERE exclude before
     it allocates memory for the name.

  Both ways find a superset of the names that the statement shows. The statement still
  checks privileges, and evaluates WHERE, for each.

  The names are those of find_files() in sql_show.cc, with three exceptions, all about
  directories that no statement can use as a database:

  - find_files() leaves out a directory that its owner may not read. Here the
    statement leaves it out only if it calls stat() for it.
  - Looking a name up does not find a directory with a name that MariaDB would encode in
    another way, such as "aux" (aux@@@), or "@0041" (A).
  - MariaDB lets each account see the tables in a directory INFORMATION_SCHEMA, in capitals.
    Here the account needs a right on a database of that name.
*/

#include "sql_array.h"

/** The same as find_files_result in sql_show.cc */
enum list_databases_result { LIST_DATABASES_OK, LIST_DATABASES_OOM, LIST_DATABASES_DIR };

/**
  List the databases that may be in the answer, sorted for SHOW commands.

  @param files    the names are added here
  @param wild     pattern of SHOW DATABASES LIKE, or an empty string
  @param tables   the table of INFORMATION_SCHEMA
  @param cond     WHERE, or NULL
  @param ignored  function: is a directory in @@ignore_db_dirs?
*/
list_databases_result
list_databases(THD *thd, Dynamic_array<LEX_CSTRING*> *files,
               const LEX_CSTRING *wild, TABLE_LIST *tables, COND *cond,
               bool (*ignored)(const char *directory));

/**
  The name of the database of a directory: what filename_to_tablename() returns,
  without its conversion of characters for the names that do not need it.
  @param quiet  do not log that the name is one of MySQL 5.0
*/
size_t name_of_directory(const char *file, char *name, size_t size, bool quiet= false);

/** Sort names by their bytes, as Discovered_table_list::sort() does */
void sort_names(LEX_CSTRING **names, size_t count);

#endif /* CATALOG_DIRECTORY_INCLUDED */
