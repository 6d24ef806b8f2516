/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_directory.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "sql_table.h"                  // tablename_to_filename
#include "sql_show.h"
#include "sql_parse.h"                  // sql_command_flags
#include "catalog_grants.h"
#include "catalog_lookup.h"
#include "catalog_directory.h"
#include "catalog_databases.h"
#include <my_dir.h>
#include <algorithm>
#include <dirent.h>

namespace {

class Database_list
{
public:
  Database_list(THD *thd, Dynamic_array<LEX_CSTRING*> *files,
                const LEX_CSTRING *wild, TABLE_LIST *tables, COND *cond,
                bool (*ignored)(const char*))
    : m_thd(thd), m_found(thd, files, wild), m_granted(thd),
      m_condition(tables, cond, tables->schema_table->idx_field1), m_tables(tables), m_ignored(ignored)
  { }

  list_databases_result fill();

private:
  bool look_up(const Dynamic_array<LEX_CSTRING> &names);
  bool look_up(const LEX_CSTRING &name);
  bool is_readable_directory(const char *file) const;
  struct Range
  {
    size_t begin, end;          // in the list of known databases
  };
  bool take_known();
  bool take_known(size_t begin, size_t end);
  bool add_range(Dynamic_array<Range> *ranges, const char *bytes, size_t length) const;
  list_databases_result read_data_directory();

  THD *const m_thd;
  Discovered_table_list m_found;
  Granted_databases m_granted;
  Schema_condition m_condition;
  Known_databases_ref m_known;
  bool m_has_known= false;
  TABLE_LIST *const m_tables;
  bool (*const m_ignored)(const char*);
};


int compare_bytes(const void *a_, const void *b_)
{
  auto a= static_cast<const LEX_CSTRING *>(a_);
  auto b= static_cast<const LEX_CSTRING *>(b_);
  return my_charset_bin.strnncoll(a->str, a->length, b->str, b->length);
}


list_databases_result Database_list::fill()
{
  if (m_granted.collect())
    return LIST_DATABASES_OOM;
  if (m_granted.only_names())
    return look_up(m_granted.names()) ? LIST_DATABASES_OOM : LIST_DATABASES_OK;

  /*
    Take the names from WHERE only if the server then reads the databases' directories:
    SCHEMATA also shows directories with strange names, see catalog_directory.h
  */
  if (!lower_case_table_names && !lower_case_file_system &&
      m_tables->schema_table->fill_table == get_all_tables)
  {
    Dynamic_array<LEX_CSTRING> names(PSI_INSTRUMENT_MEM);
    bool oom= false;
    if (m_condition.only_names(&names, m_thd->mem_root, &oom))
    {
      names.sort(compare_bytes);
      return look_up(names) ? LIST_DATABASES_OOM : LIST_DATABASES_OK;
    }
    if (oom)
      return LIST_DATABASES_OOM;
  }
  if ((m_has_known= m_known.acquire(m_ignored)))
    return take_known() ? LIST_DATABASES_OOM : LIST_DATABASES_OK;
  return read_data_directory();
}


/** Is there a directory, maybe behind a link, that its owner may read? */
bool Database_list::is_readable_directory(const char *file) const
{
  char path[2 * FN_REFLEN + 2];
  MY_STAT stat;
  strxnmov(path, sizeof(path) - 1, mysql_data_home, FN_ROOTDIR, file, NullS);
  return my_stat(path, &stat, MYF(0)) && MY_S_ISDIR(stat.st_mode) &&
         stat.st_mode & MY_S_IREAD;
}


/** @param names  sorted. @return true if out of memory */
bool Database_list::look_up(const Dynamic_array<LEX_CSTRING> &names)
{
  m_has_known= m_known.acquire_unchanged();
  for (size_t i= 0; i < names.elements(); i++)
  {
    if ((!i || compare_bytes(&names.at(i - 1), &names.at(i))) &&
        look_up(names.at(i)))
      return true;
  }
  return false;
}


/**
  Add a database if its directory is there.

  A name counts only if reading the data directory would find the same name.
  So the old name `#mysql50#a` is not another one for the database a.

  @return true if out of memory
*/
bool Database_list::look_up(const LEX_CSTRING &name)
{
  char file[FN_REFLEN + 1], back[SAFE_NAME_LEN + 1];

  if (!name.length || name.length >= sizeof(back))
    return false;
  if (is_prefix(name.str, MYSQL50_TABLE_NAME_PREFIX))
    strmake(file, name.str + MYSQL50_TABLE_NAME_PREFIX_LENGTH, sizeof(file) - 1);
  else
    tablename_to_filename(name.str, file, sizeof(file));
  if (!file[0] || strchr(file, FN_LIBCHAR) || !strcmp(file, ".") ||
      !strcmp(file, ".."))
    return false;
  const size_t length= filename_to_tablename(file, back, sizeof(back), true);
  if (length != name.length || memcmp(back, name.str, length))
    return false;

  if (!m_granted.may_see(name.str, name.length) ||
      !m_condition.may_hold(name.str, name.length))
    return false;
  if (m_has_known)
  {
    const size_t i= m_known->find(file, name.str);
    if (i == m_known->count())
      return false;
    if (!m_known->at(i).is_link())
      return m_found.add_file(file);
  }
  if (m_ignored(file) || !is_readable_directory(file))
    return false;
  return m_found.add_file(file);
}


/**
  Take the names from the list: all, or those that begin as the grants say.
  @return true if out of memory
*/
bool Database_list::take_known()
{
  if (!m_granted.has_prefixes())
    return take_known(0, m_known->count());

  Dynamic_array<Range> ranges(PSI_INSTRUMENT_MEM);
  bool error= false;
  for (size_t i= 0; i < m_granted.names().elements() && !error; i++)
  {
    const LEX_CSTRING &name= m_granted.names().at(i);
    error= add_range(&ranges, name.str, name.length + 1);
  }
  for (size_t i= 0; i < m_granted.patterns() && !error; i++)
  {
    const LEX_CSTRING &prefix= m_granted.prefix(i);
    error= add_range(&ranges, prefix.str, prefix.length);
  }
  ranges.sort([](const void *a, const void *b) -> int
              { return CMP_NUM(static_cast<const Range*>(a)->begin,
                               static_cast<const Range*>(b)->begin); });
  size_t done= 0;
  for (size_t i= 0; i < ranges.elements() && !error; i++)
  {
    const Range &range= ranges.at(i);
    if (range.end > done)
      error= take_known(MY_MAX(range.begin, done), range.end);
    done= MY_MAX(done, range.end);
  }
  return error;
}


bool Database_list::add_range(Dynamic_array<Range> *ranges, const char *bytes,
                              size_t length) const
{
  const size_t begin= m_known->first(bytes, length, false, 0);
  const Range range= { begin, m_known->first(bytes, length, true, begin) };
  return range.begin < range.end && ranges->append(range);
}


bool Database_list::take_known(size_t begin, size_t end)
{
  for (size_t i= begin; i < end; i++)
  {
    const Known_databases::Entry entry= m_known->at(i);
    const char *const name= entry.name();
    const size_t length= strlen(name);
    if (m_granted.may_see(name, length) && m_condition.may_hold(name, length) &&
        (!entry.is_link() || is_readable_directory(entry.file())) &&
        m_found.add_table(name, length))
      return true;
  }
  return false;
}


list_databases_result Database_list::read_data_directory()
{
  char name[SAFE_NAME_LEN + 1];
  list_databases_result result= LIST_DATABASES_OK;
  DIR *dir= opendir(mysql_data_home);
  if (!dir)
  {
    my_error(ER_CANT_READ_DIR, MYF(0), mysql_data_home, errno);
    return LIST_DATABASES_DIR;
  }

  while (const struct dirent *entry= readdir(dir))
  {
    const char *file= entry->d_name;
    if (entry->d_type != DT_DIR)
    {
      if ((entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) ||
          !is_readable_directory(file))
        continue;
    }
    if (file[0] == '.' && (!file[1] || (file[1] == '.' && !file[2])))
      continue;
    if (is_prefix(file, tmp_file_prefix) || m_ignored(file))
      continue;
    const size_t length= name_of_directory(file, name, sizeof(name));
    if (m_granted.may_see(name, length) && m_condition.may_hold(name, length) &&
        m_found.add_table(name, length))
    {
      result= LIST_DATABASES_OOM;
      break;
    }
  }
  closedir(dir);
  return result;
}


/* Eight bytes of a name as a number, so that comparing them needs no memory access */
struct Sort_key
{
  ulonglong bytes;
  LEX_CSTRING *name;
};


void sort_from(Sort_key *begin, Sort_key *end, size_t position)
{
  for (Sort_key *key= begin; key < end; key++)
  {
    uchar bytes[8]= { 0, 0, 0, 0, 0, 0, 0, 0 };
    const size_t length= key->name->length;
    if (length > position)
      memcpy(bytes, key->name->str + position, MY_MIN(length - position, 8));
    key->bytes= mi_uint8korr(bytes);
  }
  std::sort(begin, end, [](const Sort_key &a, const Sort_key &b)
                        { return a.bytes < b.bytes; });

  for (Sort_key *run= begin; run < end; )
  {
    bool all_longer= true;
    Sort_key *key= run;
    for (; key < end && key->bytes == run->bytes; key++)
      all_longer&= key->name->length > position + 8;
    if (key - run > 1)
    {
      if (all_longer)
        sort_from(run, key, position + 8);
      else
        std::sort(run, key, [](const Sort_key &a, const Sort_key &b)
                            { return compare_bytes(a.name, b.name) < 0; });
    }
    run= key;
  }
}

} // namespace


size_t name_of_directory(const char *file, char *name, size_t size, bool quiet)
{
  size_t length;
  for (length= 0; length < size - 1; length++)
  {
    const uchar c= file[length];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
          (c >= 'A' && c <= 'Z')))
    {
      if (c)
        break;
      name[length]= 0;
      return length;
    }
    name[length]= c;
  }
  return filename_to_tablename(file, name, size, quiet);
}


void sort_names(LEX_CSTRING **names, size_t count)
{
  /* In many cases only the first name, information_schema, is out of order */
  auto less= [](const LEX_CSTRING *a, const LEX_CSTRING *b)
             { return compare_bytes(a, b) < 0; };
  if (count && std::is_sorted(names + 1, names + count, less))
  {
    std::rotate(names, names + 1, std::upper_bound(names + 1, names + count, *names, less));
    return;
  }
  Sort_key *keys= (Sort_key*) my_malloc(PSI_INSTRUMENT_ME,
                                        count * sizeof(Sort_key) + 1,
                                        MYF(MY_THREAD_SPECIFIC));
  if (!keys)
  {
    std::sort(names, names + count, less);
    return;
  }
  for (size_t i= 0; i < count; i++)
    keys[i].name= names[i];
  sort_from(keys, keys + count, 0);
  for (size_t i= 0; i < count; i++)
    names[i]= keys[i].name;
  my_free(keys);
}


list_databases_result
list_databases(THD *thd, Dynamic_array<LEX_CSTRING*> *files,
               const LEX_CSTRING *wild, TABLE_LIST *tables, COND *cond,
               bool (*ignored)(const char *directory))
{
  Database_list list(thd, files, wild, tables, cond, ignored);
  const list_databases_result result= list.fill();
  const size_t count= files->elements();
  if (result != LIST_DATABASES_OK || !count)
    return result;

  /* Sort them together with information_schema, which the caller has added */
  if (sql_command_flags[thd->lex->sql_command] & CF_STATUS_COMMAND)
    sort_names(files->front(), count);
#ifndef DBUG_OFF
  else
  {
    /* Debug builds return rows without ORDER BY in another order; see find_files() */
    sort_names(files->front(), count);
    std::reverse(files->front(), files->front() + count);
  }
#endif
  return result;
}
