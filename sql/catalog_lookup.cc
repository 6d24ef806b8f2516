/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_lookup.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_show.h"
#include "sql_parse.h"                  // sql_command_flags
#include "sql_table.h"                  // tablename_to_filename
#include "catalog_tables.h"               // tables_have_frm
#include "catalog_grants.h"
#include "catalog_lookup.h"
#include <algorithm>

Schema_condition::Schema_condition(TABLE_LIST *tables, COND *cond, int column)
  : m_tables(tables), m_field(nullptr), m_parts(PSI_INSTRUMENT_MEM)
{
  if (column < 0 || !cond)
    return;
  m_field= tables->table->field[column];
  add_parts(cond);
}


/** Take the parts that depend on the name alone from those joined by AND */
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
  Does the item depend on the name alone?

  1. It must compare strings: other comparisons warn about names that are not numbers.
  2. Its constants must have values already: no subquery or stored function runs for it.
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


/** Is the item the name, maybe as BINARY or with a COLLATE clause? */
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
  {
    /*
      A CAST with a length warns about what it cuts off. In other character sets
      than utf8 the name has other bytes, and several names may become the same
      one.
    */
    CHARSET_INFO *to= func->collation.collation;
    return !((Item_char_typecast*) func)->has_explicit_length() &&
           (to == &my_charset_bin ||
            ((to->state & MY_CS_UNICODE) && to->mbminlen == 1)) &&
           is_name(func->arguments()[0]);
  }
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
  Add the names with which the item compares the column. The item may be an
  equality, an IN list, or several of these joined by OR.

  The function adds names only if the item compares bytes. With the collation of
  these columns 'A' is equal to 'a', and a file system may have both. Then only
  reading the data directory finds all names.

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
  const bool by_bytes= collation == &my_charset_bin;
  if (!collation || !(collation->state & MY_CS_BINSORT) ||
      !(by_bytes || (collation->state & MY_CS_UNICODE)))
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
    if (converted.copy(value->ptr(), value->length(),
                       by_bytes ? &my_charset_bin : value->charset(),
                       by_bytes ? &my_charset_bin : system_charset_info,
                       &errors))
    {
      *oom= true;
      return false;
    }
    /* Most binary collations ignore trailing spaces, and names have none */
    size_t length= converted.length();
    while (length && converted.ptr()[length - 1] == ' ')
      length--;
    if (!length || length > NAME_LEN)
      continue;                         // no name of a database or table
    LEX_CSTRING name= { strmake_root(root, converted.ptr(), length), length };
    if (!name.str || names->append(name))
    {
      *oom= true;
      return false;
    }
  }
  return true;
}


/**
  A statement looks for the files of the tables in WHERE, rather than read the
  directories, if there are at most FEW_LOOKS names, or at most MOST_LOOKS looks
  in all databases together. One look costs at most a fifth of reading a small
  directory.
*/
static constexpr size_t MOST_LOOKS= 1000, FEW_LOOKS= 4;


/** @return true if out of memory */
bool Named_tables::collect()
{
  bool oom= false;
  m_state= ANY_NAME;
  DBUG_EXECUTE_IF("catalog_full_walk", return false;);
  /* SHOW commands report an error if the database does not exist */
  if (m_looked_up.str || lower_case_table_names || lower_case_file_system ||
      sql_command_flags[m_thd->lex->sql_command] & CF_STATUS_COMMAND)
    return false;
  Schema_condition condition(m_tables, m_cond, m_tables->schema_table->idx_field2);
  if (!condition.only_names(&m_names, m_thd->mem_root, &oom))
    return oom;
  sort_names(&m_names);
  const size_t names= m_names.elements();
  if (names <= FEW_LOOKS || names * m_databases.elements() <= MOST_LOOKS)
    m_state= ONLY_NAMES;
  return false;
}


bool Named_tables::find(const LEX_CSTRING &db, Dynamic_array<LEX_CSTRING*> *tables,
                        int *result)
{
  char path[FN_REFLEN + 1];
  if (m_state == NOT_COLLECTED && collect())
  {
    *result= 1;
    return true;
  }
  /*
    Some directories have names that no database can have, and then the server shows no
    tables: let it check the names that are too long, or end with a space. After
    #mysql50# a name may contain anything.
  */
  if (m_state != ONLY_NAMES || &db == &INFORMATION_SCHEMA_NAME || is_perfschema_db(&db) ||
      is_prefix(db.str, MYSQL50_TABLE_NAME_PREFIX) ||
      my_isspace(system_charset_info, db.str[db.length - 1]) ||
      system_charset_info->numchars(db.str, db.str + db.length) > NAME_CHAR_LEN)
    return false;
  build_table_filename(path, sizeof(path) - 1, db.str, "", "", 0);
  const size_t before= tables->elements();
  *result= 0;
  for (size_t i= 0; i < m_names.elements() && !*result; i++)
  {
    const LEX_CSTRING &name= m_names.at(i);
    char file[FN_REFLEN + 1], back[SAFE_NAME_LEN + 1], frm[2 * FN_REFLEN + 8];
    if (name.length >= sizeof(back))
      continue;
    /* A name counts only if reading the directory would find the same name */
    if (is_prefix(name.str, MYSQL50_TABLE_NAME_PREFIX))
      strmake(file, name.str + MYSQL50_TABLE_NAME_PREFIX_LENGTH, sizeof(file) - 1);
    else
      tablename_to_filename(name.str, file, sizeof(file));
    if (!file[0] || strchr(file, FN_LIBCHAR) || is_prefix(file, tmp_file_prefix))
      continue;
    const size_t length= filename_to_tablename(file, back, sizeof(back), true);
    if (length != name.length || memcmp(back, name.str, length))
      continue;
    strxnmov(frm, sizeof(frm) - 1, path, FN_ROOTDIR, file, reg_ext, NullS);
    if (my_access(frm, F_OK))
    {
      if (tables_have_frm())
        continue;
      /* An engine may know of a table with this name, so ask it about all */
      tables->elements(before);
      return false;
    }
    LEX_CSTRING *const copy= m_thd->make_clex_string(name.str, name.length);
    *result= !copy || tables->append(copy);
  }
#ifndef DBUG_OFF
  /* Debug builds return rows without ORDER BY in another order; see find_files() */
  std::reverse(tables->front() + before, tables->front() + tables->elements());
#endif
  return true;
}
