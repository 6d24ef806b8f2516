/* SPDX-License-Identifier: GPL-2.0-only */

/** @file row/row0template.cc
Allocate the templates of handles, which say where each column of a row is.

A handle needs the template of a search only until the statement ends.  A small one
stays with the handle.  A large one comes from a pool of spare buffers that all handles
share (my_spare_buffers.c): a handle takes a buffer when it builds the template, and
row_prebuilt_end_statement() gives it back.

malloc() would do this, too.  But malloc() locks the arena for a block of that size,
for each SELECT from a table with a dozen columns, and then waits while malloc_trim()
returns an arena's memory (my_return_memory.c).

The word before a template is the number of its pool, or 0 if it is of none. */

#include "row0size.h"
#include "mem0stock.h"
#include "my_spare_buffers.h"

namespace
{

/** Pools for templates of up to 28 and 56 columns, so that a statement that reads many
partitions does not take much more memory than their templates need.  A longer template
is allocated and freed each time. */
MY_SPARE_BUFFERS spare[]=
  {MY_SPARE_BUFFERS_INIT(4096), MY_SPARE_BUFFERS_INIT(8192)};

size_t *block_of(mysql_row_templ_t *templ) noexcept
{
  return reinterpret_cast<size_t*>(templ) - 1;
}

} // namespace

mysql_row_templ_t *row_template_create(ulint n_fields, bool stays) noexcept
{
  const size_t size= sizeof(size_t) + n_fields * sizeof(mysql_row_templ_t);
  size_t *block= nullptr, number= 0;
  if (!stays && !DBUG_IF("row_template_no_memory"))
    for (MY_SPARE_BUFFERS &pool : spare)
    {
      ++number;
      if (size > pool.size)
        continue;
      block= reinterpret_cast<size_t*>(my_take_buffer(&pool, PSI_NOT_INSTRUMENTED,
                                                      size, MYF(0)));
      break;
    }
  if (!block)
  {
    number= 0;
    block= static_cast<size_t*>(mem_allocate(size, mem_owner("ha_innodb")));
  }
  *block= number;
  return reinterpret_cast<mysql_row_templ_t*>(block + 1);
}

bool row_template_is_spare(mysql_row_templ_t *templ) noexcept
{
  return *block_of(templ) != 0;
}

void row_template_free(mysql_row_templ_t *templ) noexcept
{
  if (!templ)
    return;
  size_t *block= block_of(templ);
  if (size_t number= *block)
  {
    MY_SPARE_BUFFERS &pool= spare[number - 1];
    my_give_buffer(&pool, reinterpret_cast<uchar*>(block), pool.size);
  }
  else
    ut_free(block);
}

void row_template_close() noexcept
{
  for (MY_SPARE_BUFFERS &pool : spare)
    my_free_spare_buffers(&pool);
}
