/* SPDX-License-Identifier: GPL-2.0-only */

/* What the index of open shares has to know of a MARIA_SHARE */

#include "maria_def.h"

static const uchar *share_name(const void *share, size_t *length,
                               my_bool not_used __attribute__((unused)))
{
  *length= ((const MARIA_SHARE*) share)->unique_file_name.length;
  return (const uchar*) ((const MARIA_SHARE*) share)->unique_file_name.str;
}


static my_bool share_is_current(const void *share)
{
  return ((const MARIA_SHARE*) share)->last_version != 0;
}


OPEN_INDEX maria_open_index=
  OPEN_INDEX_INIT(&THR_LOCK_maria, share_name, share_is_current);
