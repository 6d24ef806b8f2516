/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The part of catalog_grants.h that reads the privileges in memory. sql_acl.cc
  includes it at its end, because it uses types and arrays that are private there.
*/

/**
  Add the entries of acl_dbs that acl_db_find() considers for a user.
  The caller has locked acl_cache->lock.
  @param[out] each_has_rights  would acl_get() return rights with each of the entries?
*/
static bool add_databases_of_user(const char *user, const char *host, const char *ip,
                                  Granted_databases *granted, bool *each_has_rights)
{
  mysql_mutex_assert_owner(&acl_cache->lock);
  /* The key of acl_get() has room for the longest name of a user and a database */
  *each_has_rights= strlen(safe_str(ip)) <= IP_ADDR_STRLEN;
  for (int anonymous= 0; anonymous < 2; anonymous++)
  {
    const char *name= anonymous ? "" : user;
    for (size_t i= acl_find_db_by_username(name); i < acl_dbs.elements(); i++)
    {
      const ACL_DB *acl_db= &acl_dbs.at(i);
      if (strcmp(acl_db->user, name))
        break;
      if (!compare_hostname(&acl_db->host, host, ip))
        continue;
      if (!(acl_db->access & ALL_KNOWN_ACL) || !acl_db->host.hostname)
        *each_has_rights= false;
      if (!acl_db->db)
        granted->add_everything();
      else if (granted->add_pattern(acl_db->db))
        return true;
    }
  }
  return false;
}


/**
  Add the databases of the table, column or routine grants of a user, a role and
  PUBLIC, from any host. The caller has locked LOCK_grant.
*/
static bool add_databases_of_hash(HASH *hash, Security_context *sctx,
                                  Granted_databases *granted)
{
  const char *last= nullptr;
  for (ulong i= 0; i < hash->records; i++)
  {
    const GRANT_NAME *grant= (const GRANT_NAME*) my_hash_element(hash, i);
    if (strcmp(grant->user, sctx->priv_user) &&
        (!sctx->priv_role[0] || strcmp(grant->user, sctx->priv_role)) &&
        strcmp(grant->user, public_name.str))
      continue;
    /* Grants on tables of one database often follow each other */
    if (last && !strcmp(last, grant->db))
      continue;
    if (granted->add_name(last= grant->db))
      return true;
  }
  return false;
}


bool acl_add_granted_databases(THD *thd, Granted_databases *granted)
{
  Security_context *sctx= thd->security_ctx;
  bool error, own_rights, others_rights;

  if (!initialized ||
      sctx->master_access & (DB_ACLS | TABLE_ACLS | PROC_ACLS | SHOW_DB_ACL))
  {
    granted->add_everything();
    return false;
  }

  mysql_mutex_lock(&acl_cache->lock);
  error= add_databases_of_user(sctx->priv_user, sctx->host, sctx->ip, granted,
                               &own_rights);
  granted->end_of_own(own_rights && !error);
  error= error ||
         (sctx->priv_role[0] &&
          add_databases_of_user(sctx->priv_role, "", "", granted, &others_rights)) ||
         (acl_public &&
          add_databases_of_user(public_name.str, "", "", granted, &others_rights));
  mysql_mutex_unlock(&acl_cache->lock);
  if (error)
    return true;

  mysql_rwlock_rdlock(&LOCK_grant);
  error= add_databases_of_hash(&column_priv_hash, sctx, granted) ||
         add_databases_of_hash(&proc_priv_hash, sctx, granted) ||
         add_databases_of_hash(&func_priv_hash, sctx, granted) ||
         add_databases_of_hash(&package_spec_priv_hash, sctx, granted) ||
         add_databases_of_hash(&package_body_priv_hash, sctx, granted);
  mysql_rwlock_unlock(&LOCK_grant);
  return error;
}
