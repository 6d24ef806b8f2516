/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_lookup.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_show.h"
#include "catalog_lookup.h"

Schema_condition::Schema_condition(TABLE_LIST *tables, COND *cond)
  : m_tables(tables), m_field(nullptr), m_parts(PSI_INSTRUMENT_MEM)
{
  const int column= tables->schema_table->idx_field1;
  if (column < 0 || !cond)
    return;
  m_field= tables->table->field[column];
  add_parts(cond);
}


/** Take the parts that depend on the database alone from those joined by AND */
void Schema_condition::add_parts(COND *cond)
{
  if (cond->type() == Item::COND_ITEM &&
      ((Item_cond*) cond)->functype() == Item_func::COND_AND_FUNC)
  {
    List_iterator<Item> it(*((Item_cond*) cond)->argument_list());
    while (Item *item= it++)
      add_parts(item);
  }
  else if (decides(cond))
  {
    /* Without memory for it, the part is not used */
    (void) m_parts.append(cond);
  }
}


/**
  Does the item depend on the name of the database alone?

  Only comparisons of strings, because others warn about names that are not numbers.
  Only constants that are there already: no subquery or stored function runs for it.
*/
bool Schema_condition::decides(Item *item)
{
  if (item->type() == Item::COND_ITEM)
  {
    List_iterator<Item> it(*((Item_cond*) item)->argument_list());
    while (Item *part= it++)
    {
      if (!decides(part))
        return false;
    }
    return true;
  }
  if (item->type() != Item::FUNC_ITEM)
    return false;
  Item_func *func= (Item_func*) item;
  switch (func->functype()) {
  case Item_func::EQ_FUNC:
  case Item_func::EQUAL_FUNC:
  case Item_func::NE_FUNC:
  case Item_func::LT_FUNC:
  case Item_func::LE_FUNC:
  case Item_func::GT_FUNC:
  case Item_func::GE_FUNC:
  case Item_func::LIKE_FUNC:
  case Item_func::BETWEEN:
  case Item_func::IN_FUNC:
    return are_names_and_constants(func);
  default:
    return false;
  }
}


bool Schema_condition::are_names_and_constants(Item_func *func)
{
  bool has_name= false;
  for (uint i= 0; i < func->argument_count(); i++)
  {
    Item *arg= func->arguments()[i];
    if (is_name(arg))
      has_name= true;
    else if (!arg->const_item() || arg->is_expensive() || arg->with_subquery() ||
             arg->cmp_type() != STRING_RESULT)
      return false;
  }
  return has_name;
}


/** Is the item the name of the database, maybe as BINARY or with a COLLATE clause? */
bool Schema_condition::is_name(Item *item)
{
  Item *real= item->real_item();
  if (real->type() == Item::FIELD_ITEM)
    return ((Item_field*) real)->field == m_field;
  if (real->type() != Item::FUNC_ITEM)
    return false;
  Item_func *func= (Item_func*) real;
  switch (func->functype()) {
  case Item_func::COLLATE_FUNC:
    return is_name(func->arguments()[0]);
  case Item_func::CHAR_TYPECAST_FUNC:
    /* A length makes it warn about what it cuts off */
    return !((Item_char_typecast*) func)->has_explicit_length() &&
           is_name(func->arguments()[0]);
  default:
    return false;
  }
}


bool Schema_condition::may_hold(const char *name, size_t length)
{
  if (!m_parts.elements())
    return true;
  m_field->store(name, length, system_charset_info);
  m_field->set_notnull();
  for (size_t i= 0; i < m_parts.elements(); i++)
  {
    if (!m_parts.at(i)->val_bool())
      return false;
  }
  return true;
}


bool Schema_condition::only_names(Dynamic_array<LEX_CSTRING> *names,
                                  MEM_ROOT *root, bool *oom)
{
  for (size_t i= 0; i < m_parts.elements(); i++)
  {
    names->elements(0);
    if (add_names(m_parts.at(i), names, root, oom) || *oom)
      return !*oom;
  }
  return false;
}


/**
  Add the names that an equality, an IN list, or such parts joined by OR compare with.

  Only where the comparison is one of bytes. With the collation of these columns 'A' is
  equal to 'a', and a file system may have both; then only reading the data directory
  finds all.

  @return false if the item can be true for other names, too
*/
bool Schema_condition::add_names(Item *item, Dynamic_array<LEX_CSTRING> *names,
                                 MEM_ROOT *root, bool *oom)
{
  if (item->type() == Item::COND_ITEM)
  {
    if (((Item_cond*) item)->functype() != Item_func::COND_OR_FUNC)
      return false;
    List_iterator<Item> it(*((Item_cond*) item)->argument_list());
    while (Item *part= it++)
    {
      if (!add_names(part, names, root, oom))
        return false;
    }
    return true;
  }

  Item_func *func= (Item_func*) item;
  uint first= 1, end= func->argument_count();
  switch (func->functype()) {
  case Item_func::IN_FUNC:
    if (((Item_func_in*) func)->negated || !is_name(func->arguments()[0]))
      return false;
    break;
  case Item_func::EQ_FUNC:
    if (!is_name(func->arguments()[0]))
    {
      first= 0;
      end= 1;
    }
    break;
  default:
    return false;
  }
  CHARSET_INFO *collation= ((Item_bool_func*) func)->compare_collation();
  if (!collation || !(collation->state & MY_CS_BINSORT))
    return false;

  for (uint i= first; i < end; i++)
  {
    Item *arg= func->arguments()[i];
    if (is_name(arg))
      return false;
    StringBuffer<NAME_LEN> buffer(system_charset_info), converted;
    String *value= arg->val_str(&buffer);
    if (!value)
      continue;                         // NULL is equal to no name
    uint errors;
    if (converted.copy(value->ptr(), value->length(), value->charset(),
                       value->charset() == &my_charset_bin ? &my_charset_bin
                                                           : system_charset_info,
                       &errors))
    {
      *oom= true;
      return false;
    }
    /* Binary collations, too, ignore spaces at the end, which names have not */
    size_t length= converted.length();
    while (length && converted.ptr()[length - 1] == ' ')
      length--;
    if (!length || length > NAME_LEN)
      continue;                         // no name of a database
    LEX_CSTRING name= { strmake_root(root, converted.ptr(), length), length };
    if (!name.str || names->append(name))
    {
      *oom= true;
      return false;
    }
  }
  return true;
}
