/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MY_NOSYMLINKS_INCLUDED
#define MY_NOSYMLINKS_INCLUDED

/*
  The server opens a table's file with few system calls, and follows no symbolic
  link that it has not checked.

  The file is named './database/table.ext', relative to the data directory. The
  server needs a unique name for it, and must open it without following a link.
  For that MariaDB resolves the name from the root on: it calls getcwd(), then
  readlink() for each component, lstat(), and then openat() and close() for each
  directory of the absolute name.

  Here the server resolves the data directory only once: it is the working
  directory, and its real name does not change.

  1. my_table_path() puts that real name in front of the file's name. The result
     is the unique name if neither 'database' nor 'table.ext' is a symbolic
     link.
  2. my_open_nosymlinks() opens the file. It fails (ELOOP or ENOTDIR) if any
     component of './database/table.ext' is a link, even one that a user made a
     moment before. If it fails, the caller resolves and checks the whole name.

  my_open_nosymlinks() takes absolute names, too, as realpath() returns them. If
  the kernel has openat2(), it makes one system call; otherwise it opens the
  directories one by one. my_open_index_in_data_dir() and
  my_open_data_in_data_dir() open a table's files with it.
*/

#include <my_sys.h>
#include <mysql/psi/psi.h>

C_MODE_START

void my_table_path_init(void);
char *my_table_file_name(char *to, const char *name, const char *ext,
                         uint flag);
my_bool my_table_path(char *to, const char *name);
int my_realpath_of_dir(char *to, const char *dir);
my_bool my_is_table_path(const char *unique_name, const char *name);
const char *my_reopen_name(const char *unique_name, const char *name);
int my_open_nosymlinks(const char *name, int flags, int mode);
File my_open_index_in_data_dir(PSI_file_key key, const char *name, int mode,
                               myf flags, int *open_mode);
File my_open_data_in_data_dir(PSI_file_key key, const char *name, int mode,
                              myf flags);
ulong my_process_id(void);

C_MODE_END

#endif /* MY_NOSYMLINKS_INCLUDED */
