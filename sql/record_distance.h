#ifndef RECORD_DISTANCE_INCLUDED
#define RECORD_DISTANCE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Compare and copy columns of TABLE::record[1], wherever that buffer is.

  MariaDB's functions for this take the distance from record[0] as an unsigned
  int, and their callers take it for granted that record[1] lies behind
  record[0]. Buffers from different blocks of the heap may be farther apart, in
  either direction.
*/

#include "table.h"

/** How far a byte of record[1] is from the same byte of record[0]. */
static inline my_ptrdiff_t record1_distance(const TABLE *table)
{
  return table->record[1] - table->record[0];
}


/** Field::cmp_binary_offset() for any distance. */
static inline int field_cmp_binary_at(Field *field, my_ptrdiff_t distance)
{
  /* The bits that a BIT column keeps among the null bits count as well */
  return field->type() == MYSQL_TYPE_BIT ?
    field->cmp_offset(distance) :
    field->cmp_binary(field->ptr, field->ptr + distance);
}


/** Field::val_int_offset() for any distance. */
static inline longlong field_val_int_at(Field *field, my_ptrdiff_t distance)
{
  return field->val_int(field->ptr + distance);
}


/** Field::copy_from_tmp() for any distance. */
static inline void field_copy_from(Field *field, my_ptrdiff_t distance)
{
  memcpy(field->ptr, field->ptr + distance, field->pack_length());
  if (uchar *null= field->null_ptr)
    *null= (uchar) ((*null & ~field->null_bit) |
                    (null[distance] & field->null_bit));
}

#endif /* RECORD_DISTANCE_INCLUDED */
