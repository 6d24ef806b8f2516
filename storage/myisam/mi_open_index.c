/* SPDX-License-Identifier: GPL-2.0-only */

/* What the index of open shares has to know of a MYISAM_SHARE */

#include "myisamdef.h"

static const uchar *share_name(const void *share, size_t *length,
                               my_bool not_used __attribute__((unused)))
{
  *length= ((const MYISAM_SHARE*) share)->unique_name_length;
  return (const uchar*) ((const MYISAM_SHARE*) share)->unique_file_name;
}


static my_bool share_is_current(const void *share)
{
  return ((const MYISAM_SHARE*) share)->last_version != 0;
}


OPEN_INDEX myisam_open_index=
  OPEN_INDEX_INIT(&THR_LOCK_myisam, share_name, share_is_current);


/* TRUE if instances of the table need memory for searching in R-trees */

my_bool mi_share_has_rtree(const MYISAM_SHARE *share)
{
  uint i;
  for (i= 0; i < share->state.header.keys; i++)
  {
    if (share->keyinfo[i].key_alg == HA_KEY_ALG_RTREE)
      return TRUE;
  }
  return FALSE;
}
