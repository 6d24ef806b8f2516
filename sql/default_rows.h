#ifndef DEFAULT_ROWS_INCLUDED
#define DEFAULT_ROWS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Tables whose default rows have the same bytes share one copy.

  TABLE_SHARE::default_values is as long as the longest row of fixed columns and
  VARCHARs: 2 KiB on average for WordPress's tables. No thread writes to it
  after the share has been read, unless the table has expressions. Without this
  file, a server with thousands of sites would have the same few rows thousands
  of times.

  Only shares in the table definition cache do this, see shares_default_row().
  TDC_element::default_row is the share's pointer to the copy.
*/

#include "my_global.h"

struct TABLE_SHARE;

struct Default_row
{
  Default_row *next;                    /* In the same bucket of the hash */
  uint32 hash;
  uint length;
  uint references;
  uchar bytes[1];
};

void default_rows_init();
void default_rows_deinit();
bool shares_default_row(const TABLE_SHARE *share, const uchar *frm,
                        const uchar *forminfo);
uchar *share_default_row(TABLE_SHARE *share, const uchar *frm,
                         const uchar *forminfo, const uchar *row);
void release_default_row(Default_row *row);
size_t default_row_bytes();

#endif /* DEFAULT_ROWS_INCLUDED */
