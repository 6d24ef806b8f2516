/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Deleting a transactional table syncs its directory once, not after each file.
*/

#include "maria_def.h"
#include "ma_ddl_sync.h"

my_bool (*_ma_sync_directory_later)(const char *name);


static my_bool is_symlink(const char *name, const char *extension)
{
  char file_name[FN_REFLEN];
  fn_format(file_name, name, "", extension, MY_UNPACK_FILENAME | MY_APPEND_EXT);
  return my_is_symlink(file_name);
}


/**
  Does one sync of the directory make the deletion of both files durable?

  @param name   of the table
  @param flags  of the deletion of its files
  @return FALSE if they lack MY_SYNC_DIR, or one of the files is a symbolic link
*/

my_bool _ma_syncs_once(const char *name, myf flags)
{
  return (flags & MY_SYNC_DIR) && !is_symlink(name, MARIA_NAME_IEXT) &&
    !is_symlink(name, MARIA_NAME_DEXT);
}


/**
  The files of a table were deleted. Make that durable, now or when the statement
  ends.

  @return 0, or my_errno
*/

int _ma_sync_after_delete(const char *name)
{
  if (_ma_sync_directory_later && _ma_sync_directory_later(name))
    return 0;
  return my_sync_dir_by_file(name, MYF(MY_WME)) ? my_errno : 0;
}
