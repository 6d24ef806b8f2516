#ifndef CATALOG_GRANTS_INCLUDED
#define CATALOG_GRANTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The names of databases that grants make visible to an account.

  A statement that lists databases or tables asks the server's own checks about each
  database: acl_get_all3(), check_grant_db(), check_access() and check_grant(). Only
  these decide. But an account with a handful of grants can only see the databases that
  these grants name. Granted_databases collects their names and patterns once for a
  statement: a superset of the databases that the checks allow. So the statement asks
  the checks about few names, and reads no directory to learn names that the account
  may not see.

  The checks read the following, so the superset contains it:

  - acl_get() takes one entry of acl_dbs that matches the user or the anonymous user
    ("") from that host, one for the role, and one for PUBLIC. The entries of a role
    contain the rights that it inherits from other roles.
  - check_grant_db() and check_grant() look at table, column and routine grants of the
    user, the role and PUBLIC.
  - check_access() takes the rights on the default database from the connection, where
    a later REVOKE does not remove them.
  - Internal access checks let everybody see some tables of performance_schema.
  - A global privilege on databases or tables makes everything visible.
*/

#include "sql_array.h"

/** Sort names byte by byte, and keep one of those that are equal. O(N log N) */
void sort_names(Dynamic_array<LEX_CSTRING> *names);

class Granted_databases
{
public:
  explicit Granted_databases(THD *thd)
    : m_thd(thd), m_names(PSI_INSTRUMENT_MEM), m_patterns(PSI_INSTRUMENT_MEM)
  { }

  /** Collect the names and patterns. @return true if out of memory */
  bool collect();

  /** May every database be visible? Then there are neither names nor patterns */
  bool everything() const { return m_everything; }

  /** May only names() be visible, and can a statement look them up as they are? */
  bool only_names() const;

  /** May the account see this database? 'No' is certain, 'yes' is not */
  bool may_see(const char *name, size_t length) const;

  /**
    Does a pattern in a grant of the account itself give it a right on this
    database? 'Yes' is certain: acl_get_all3() would return a right, too. 'No'
    may be wrong.

    acl_get() takes the first matching entry of the user or of the anonymous
    user. If each entry for the connection's host has both rights and a host,
    acl_get() returns a right, whichever entry it takes. If one of them lacks
    rights or a host, this function says 'no'.
  */
  bool has_right(const LEX_CSTRING &name) const;

  /** The names without wildcards, each once, in the order of their bytes */
  const Dynamic_array<LEX_CSTRING> &names() const { return m_names; }

  /**
    Is each visible name one of names(), byte by byte, or does it begin with the
    prefix() of a pattern?
  */
  bool has_prefixes() const;

  /**
    Number of patterns, and the bytes of each before its first wildcard. All
    names that the pattern matches begin with these bytes.
  */
  size_t patterns() const { return m_patterns.elements(); }
  const LEX_CSTRING &prefix(size_t i) const { return m_patterns.at(i).prefix; }

  /* For the code in sql_acl.cc that reads the grants */
  void add_everything() { m_everything= true; }
  bool add_name(const char *name);
  bool add_pattern(const char *pattern);
  /** From now on the caller adds grants of roles and PUBLIC, not of the account itself */
  void end_of_own(bool each_has_rights);

private:
  struct Pattern
  {
    const char *pattern;
    LEX_CSTRING prefix;
    bool any_end;               // matches each name that begins with the prefix
    bool matches(const char *name, size_t length) const;
  };

  const char *key(const char *name, size_t *length, char *buffer, size_t size) const;

  THD *const m_thd;             // the names are on its mem_root
  bool m_everything= false;
  size_t m_certain_patterns= 0; // has_right() uses so many of the first patterns
  Dynamic_array<LEX_CSTRING> m_names;
  Dynamic_array<Pattern> m_patterns;
};

/**
  True: the thread asks about more databases than acl_cache holds. So it does not use
  that cache. Otherwise it would replace the answers that others use by answers that
  no statement asks for again. An Ask_about_many sets this.
*/
extern thread_local bool acl_asks_about_many;

class Ask_about_many
{
public:
  Ask_about_many(THD *thd, size_t count);
  ~Ask_about_many() { acl_asks_about_many= m_before; }

  /** Would the check of privileges succeed for certain, so that it can be left out? */
  bool has_right(const LEX_CSTRING &name) const { return m_granted.has_right(name); }
private:
  const bool m_before;
  Granted_databases m_granted;
};

/** Add the databases that the account's grants name. @return true if out of memory */
bool acl_add_granted_databases(THD *thd, Granted_databases *granted);

#endif /* CATALOG_GRANTS_INCLUDED */
