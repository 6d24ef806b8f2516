/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  When a table was created: the time of its .frm file, for INFORMATION_SCHEMA
  and SHOW TABLE STATUS.

  ha_innobase::open() used to ask the file system for this time whenever it opened
  a handler, though hardly a statement wants to know: one fstatat() for each miss
  of the table cache, 4.6 % of the server's CPU time where all miss. Now these
  statements ask the file system:

  1. the first one that asks a handler for the times of its table
     (HA_STATUS_TIME);
  2. each one that reads the constant part anew (HA_STATUS_CONST), like
     ha_partition does.
*/

#ifndef HA_CREATE_TIME_INCLUDED
#define HA_CREATE_TIME_INCLUDED

/**
  Does this call of handler::info() have to find out the creation time?

  @param flag   HA_STATUS_ bits of the call
  @param stats  of the handler; create_time is 0 until the handler has found it out
*/
inline bool innobase_wants_create_time(uint flag, const ha_statistics &stats)
{
  if (flag & HA_STATUS_OPEN)
    return false;
  return (flag & HA_STATUS_CONST) ||
         ((flag & HA_STATUS_TIME) && !stats.create_time);
}

/** Set the creation time, unless the file system does not know it. */
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
