/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Debug builds check that the lists, counters and flags of the table cache and
  of the table definition cache agree.
*/

#include "mariadb.h"
#include "sql_base.h"
#include "table_cache_tables.h"
#include "table_cache_core_check.h"

#ifndef DBUG_OFF

struct Share_check
{
  ulong open, free;
  /** Bytes that TABLEs and shares have added to the sums, as they note. */
  size_t table_bytes, share_bytes;
  const char *wrong;
};


/** Check what must hold for a share while its LOCK_table_share is held. */

static my_bool check_share(void *arg, void *check_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Share_check *check= static_cast<Share_check*>(check_arg);
  uint n= 0;

  mysql_mutex_lock(&element->LOCK_table_share);
  All_share_tables_list::Iterator it(element->all_tables);
  while (TABLE *table= it++)
  {
    check->table_bytes+= Cached_table::weight(table);
    if (table->s != element->share)
      check->wrong= "a TABLE is in the list of another share";
    n++;
  }
  check->share_bytes+= element->bytes;
  if (n != element->open_tables)
    check->wrong= "a share has another number of TABLEs than it says";
  if (n > element->ref_count)
    check->wrong= "a share has more TABLEs than references";
  if (n && !element->share)
    check->wrong= "there are TABLEs without a share";
  check->open+= n;
  TABLE_cache_share *part= free_lists(element);
  uint elements= 0;
  part->lock();
  for (auto *lists : { &part->free, &part->equipped })
  {
    for (TABLE_cache_share::Free_list &list : *lists)
    {
      TABLE_cache_share::Free_list::Iterator it(list);
      while (TABLE *table= it++)
      {
        elements++;
        if ((lists == &part->equipped) != (table->triggers != NULL))
          check->wrong= "a free TABLE is in the wrong lists for its triggers";
      }
    }
  }
  if (elements != part->elements)
    check->wrong= "a share has another number of free TABLEs than it says";
  if (element->flushed && elements)
    check->wrong= "a flushed share has a free TABLE";
  part->unlock();
  check->free+= elements;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return check->wrong != NULL;
}


/**
  Walk through all structures of both caches, and verify them.

  Other threads may use the caches meanwhile. Then some facts need not hold:

  1. The number of TABLEs of all shares is the count.
  2. Their bytes, and those of the shares, are the sums.
  3. The limit is exceeded only if no TABLE is free, or if so many are used that
     a search for a victim may end before it finds a free one
     (Table_cache_core::take_victims()).

  So the function looks at these again for some seconds. It reports an error if
  one of them stays wrong while no thread opens or closes a TABLE.

  @return NULL, or the error
*/

static const char *tc_find_error(THD *thd)
{
  const char *wrong= NULL;
  for (uint tries= 0; tries < 200; tries++)
  {
    ulong in_order;
    if ((wrong= tc.check(&in_order)))
      return wrong;
    Share_check check= { 0, 0, 0, 0, NULL };
    ulong before= tc.records();
    if (tdc_iterate(thd, check_share, &check, true) && check.wrong)
      return check.wrong;
    if (before != tc.records())
      wrong= NULL;
    else if (check.open != before)
      wrong= "the count of the cache is not the number of TABLEs";
    else if (check.free != in_order)
      wrong= "a free TABLE is not in the order of eviction";
    else if (check.table_bytes != tc_memory.tables)
      wrong= "the bytes of the cache are not those of the TABLEs";
    else if (check.share_bytes + default_row_bytes() != tc_memory.definitions)
      wrong= "the bytes of the definitions are not those of the shares";
    else if (check.free && before > tc_size &&
             before - check.free < Table_cache::ENOUGH)
      wrong= "the limit is exceeded, and there are free TABLEs";
    else
      return NULL;
    my_sleep(10000);
  }
  return wrong;
}


/**
  Table_cache_debug_check: reading this status variable runs the check.

  mysql-test/include/check-testcase.test reads it before and after every test.
*/

int show_tc_check(THD *thd, SHOW_VAR *var, void *buff, system_status_var *,
                  enum enum_var_type)
{
  const char *wrong= tc_find_error(thd);
  if (wrong)
    sql_print_error("Table cache: %s", wrong);
  DBUG_ASSERT(!wrong);
  var->type= SHOW_CHAR;
  var->value= const_cast<char*>(wrong ? wrong : "OK");
  return 0;
}
#endif
