/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MY_NOSYMLINKS_INCLUDED
#define MY_NOSYMLINKS_INCLUDED

/*
  Opening a table's file by few system calls, without following any symbolic
  link that the server did not check.

  A table's file is named './database/table.ext', relative to the data
  directory. The server must know it by a unique name, and open it without
  following a link. To do so, it used to resolve the name from the root on: by
  getcwd(), a readlink() for each component of it, an lstat(), and then an
  openat() and a close() for each directory of the absolute name.

  Now the server does not ask for the data directory again: it is the working
  directory of the server, and its real name does not change.

  1. my_table_path() puts that name in front. The result is the unique name if
     neither 'database' nor 'table.ext' is a symbolic link.
  2. my_open_nosymlinks() opens the file. It fails (ELOOP or ENOTDIR) if any
     component of './database/table.ext' is a link, even one that was put there
     the moment before. On failure the caller resolves and checks the name in
     full.

  my_open_nosymlinks() takes absolute names too, as realpath() returns them.
  Where the kernel has openat2() it is one system call, elsewhere it walks along
  the directories. my_open_index_in_data_dir() and my_open_data_in_data_dir()
  open a table's files with it.
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
