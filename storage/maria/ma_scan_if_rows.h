/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_SCAN_IF_ROWS_INCLUDED
#define MA_SCAN_IF_ROWS_INCLUDED

/*
  Scan an empty table without buffers. Include ma_blockrec.h before this file
*/

/**
  Begin to scan a table for rows

  @param info  the table

  @return 0 or an error, as maria_scan_init()

  If the data file is not longer than its first bitmap page, it has no rows. A
  scan ends where the file ended when the scan began, so _ma_scan_block_record()
  is at the end at once and needs no buffers for pages (16 KiB). This function
  then sets up a scan without buffers. A check or a repair must not use it: the
  file may be longer than the state says.
*/

static int _ma_scan_init_if_rows(MARIA_HA *info)
{
  MARIA_SHARE *share= info->s;
  if (share->data_file_type != BLOCK_RECORD || info->scan.bitmap_buff ||
      share->state.state.data_file_length > share->block_size ||
      info->opt_flag & WRITE_CACHE_USED)
    return maria_scan_init(info);

  info->cur_row.nextpos= 0;
  info->lastinx= -1;                            /* As maria_scan_init() does */
  info->scan.page_buff= info->scan.bitmap_end= info->scan.bitmap_pos= NULL;
  info->scan.number_of_rows= 0;
  info->scan.bitmap_page= (pgcache_page_no_t) 0 - share->bitmap.pages_covered;
  info->scan.max_page= share->state.state.data_file_length / share->block_size;
  return 0;
}

#endif /* MA_SCAN_IF_ROWS_INCLUDED */
