/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  See catalog_grants.h
*/

#include "mariadb.h"
#include "sql_class.h"
#include "catalog_grants.h"

thread_local bool acl_asks_about_many= false;

static int compare_names(const void *a_, const void *b_)
{
  auto a= static_cast<const LEX_CSTRING *>(a_);
  auto b= static_cast<const LEX_CSTRING *>(b_);
  return my_charset_bin.strnncoll(a->str, a->length, b->str, b->length);
}


void sort_names(Dynamic_array<LEX_CSTRING> *names)
{
  size_t kept= 0;
  names->sort(compare_names);
  for (size_t i= 0; i < names->elements(); i++)
  {
    if (!kept || compare_names(&names->at(kept - 1), &names->at(i)))
      names->at(kept++)= names->at(i);
  }
  names->elements(kept);
}


bool Granted_databases::add_name(const char *name)
{
  char lower[4 * SAFE_NAME_LEN];
  LEX_CSTRING copy= { name, strlen(name) };
  if (copy.length > SAFE_NAME_LEN)
    return false;                               // No database
  /* The checks compare names in lower case then; see acl_get() */
  if (lower_case_table_names)
  {
    copy.length= files_charset_info->casedn(name, copy.length, lower, sizeof(lower));
    copy.str= lower;
  }
  copy.str= m_thd->strmake(copy.str, copy.length);
  return !copy.str || m_names.append(copy);
}


/**
  Add the database of a grant at the level of databases.

  Most grants escape the wildcards: `site\_1` is the name site_1. The function
  recognizes an escape as wild_compare() does.
*/
bool Granted_databases::add_pattern(const char *pattern)
{
  char *const copy= m_thd->strdup(pattern), *to= copy;
  if (!copy)
    return true;
  for (const char *from= pattern; *from; )
  {
    if (*from == wild_many || *from == wild_one)
    {
      const size_t length= to - copy;
      const Pattern found= { m_thd->strdup(pattern), { copy, length },
                             *from == wild_many && !from[1] };
      return !found.pattern || m_patterns.append(found);
    }
    if (*from == wild_prefix && from[1])
      from++;
    *to++= *from++;
  }
  *to= 0;
  return add_name(copy);
}


bool Granted_databases::collect()
{
  if (acl_add_granted_databases(m_thd, this))
    return true;
  if (m_everything)
    return false;
  if (add_name(INFORMATION_SCHEMA_NAME.str) ||
      add_name(PERFORMANCE_SCHEMA_DB_NAME.str) ||
      (m_thd->db.str && add_name(m_thd->db.str)))
    return true;
  sort_names(&m_names);
  return false;
}


/**
  With lower_case_table_names a directory whose name has a capital matches a grant
  that is in lower case, so only reading the data directory finds all of them.
*/
bool Granted_databases::only_names() const
{
  return !m_everything && !m_patterns.elements() && !lower_case_table_names &&
         !lower_case_file_system;
}


/**
  The checks compare patterns with names byte by byte. But with
  lower_case_table_names they turn the names to lower case first.
*/
bool Granted_databases::has_prefixes() const
{
  return !m_everything && !lower_case_table_names;
}


void Granted_databases::end_of_own(bool each_has_rights)
{
  m_certain_patterns= each_has_rights ? m_patterns.elements() : 0;
}


bool Granted_databases::Pattern::matches(const char *name, size_t length) const
{
  return length >= prefix.length && !memcmp(name, prefix.str, prefix.length) &&
         (any_end || !wild_compare(name, pattern, false));
}


/** A name as the checks compare it: in lower case where lower_case_table_names says so */
const char *Granted_databases::key(const char *name, size_t *length, char *buffer,
                                   size_t size) const
{
  if (!lower_case_table_names)
    return name;
  *length= files_charset_info->casedn(name, *length, buffer, size - 1);
  buffer[*length]= 0;
  return buffer;
}


bool Granted_databases::may_see(const char *name, size_t length) const
{
  char buffer[4 * SAFE_NAME_LEN + 1];
  if (m_everything)
    return true;
  name= key(name, &length, buffer, sizeof(buffer));
  for (size_t i= 0; i < m_patterns.elements(); i++)
  {
    if (m_patterns.at(i).matches(name, length))
      return true;
  }

  const LEX_CSTRING searched= { name, length };
  size_t low= 0, high= m_names.elements();
  while (low < high)
  {
    const size_t middle= (low + high) / 2;
    const int order= compare_names(&m_names.at(middle), &searched);
    if (!order)
      return true;
    if (order < 0)
      low= middle + 1;
    else
      high= middle;
  }
  return false;
}


bool Granted_databases::has_right(const LEX_CSTRING &db) const
{
  char buffer[4 * SAFE_NAME_LEN + 1];
  /* acl_get() refuses names that are too long */
  if (!m_certain_patterns || db.length > NAME_LEN)
    return false;
  size_t length= db.length;
  const char *const name= key(db.str, &length, buffer, sizeof(buffer));
  for (size_t i= 0; i < m_certain_patterns; i++)
  {
    if (m_patterns.at(i).matches(name, length))
      return true;
  }
  return false;
}


Ask_about_many::Ask_about_many(THD *thd, size_t count)
  : m_before(acl_asks_about_many), m_granted(thd)
{
  acl_asks_about_many= count > ACL_CACHE_SIZE;
  bool collects= acl_asks_about_many;
  DBUG_EXECUTE_IF("catalog_full_walk", return;);
#ifndef DBUG_OFF
  /* Collect in any case, because tests have few databases */
  collects= true;
#endif
  /* Without memory, the statement asks the checks, which report the error */
  if (collects)
    (void) m_granted.collect();
}


#ifdef NO_EMBEDDED_ACCESS_CHECKS
bool acl_add_granted_databases(THD *thd, Granted_databases *granted)
{
  granted->add_everything();
  return false;
}
#endif
