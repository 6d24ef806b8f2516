/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The part of FLUSH PRIVILEGES that reads accounts and grants of databases; see
  catalog_acl_data.h. sql_acl.cc includes this file.
*/

static pthread_mutex_t reload_lock= PTHREAD_MUTEX_INITIALIZER;

/** Initialize the arrays and hashes of the object that acl_data() returns */
static void init_acl_data()
{
  my_init_dynamic_array(key_memory_acl_mem, &acl_hosts, sizeof(ACL_HOST), 20, 50, MYF(0));
  my_init_dynamic_array(key_memory_acl_mem, &acl_users, sizeof(ACL_USER*), 50, 100,
                        MYF(0));
  my_init_dynamic_array(key_memory_acl_mem, &acl_proxy_users, sizeof(ACL_PROXY_USER), 50,
                        100, MYF(0));
  my_hash_init2(key_memory_acl_mem, &acl_roles, 50, &my_charset_utf8mb3_bin, 0, 0, 0,
                acl_role_get_key, 0, free_acl_role, 0);
  my_hash_init2(key_memory_acl_mem, &acl_roles_mappings, 50, &my_charset_utf8mb3_bin, 0,
                0, 0, acl_role_map_get_key, 0, 0, 0);
}


/** Free what acl_free() frees, except the cache and the plugins */
static void free_acl_data()
{
  my_hash_free(&acl_roles);
  acl_public= NULL;
  delete_dynamic(&acl_hosts);
  delete_dynamic_with_callback(&acl_users, free_acl_user_ptr);
  free_root(&acl_memroot, MYF(0));
  acl_dbs.free_memory();
  delete_dynamic(&acl_wild_hosts);
  delete_dynamic(&acl_proxy_users);
  my_hash_free(&acl_check_hosts);
  my_hash_free(&acl_roles_mappings);
}


/** Exchange two objects. The caller holds acl_cache->lock. */
static void swap_acl_data(Acl_data *a, Acl_data *b)
{
  char copy[sizeof(Acl_data)];
  memcpy(copy, (void*) a, sizeof(copy));
  memcpy((void*) a, (void*) b, sizeof(copy));
  memcpy((void*) b, copy, sizeof(copy));
}


/**
  Read the tables, which the caller has opened and locked, and use the new data.

  In two cases the thread holds acl_cache->lock while it reads, so that all others wait:

  1. The server reads the privileges for the first time, after --skip-grant-tables: no
     other thread may find them initialized but empty.
  2. A user has altered grant tables to a transactional engine. Then the locks of the
     tables let other statements change rows while this thread reads them. Those
     statements acquire acl_cache->lock first, so this thread does, too.

  @return true on an error; then the data in use stays in use
*/
static bool reload_acl_data(THD *thd, const Grant_tables &tables)
{
  Acl_data *const beside= new (std::nothrow) Acl_data;
  if (!beside)
    return true;
  pthread_mutex_lock(&reload_lock);
  bool locked= !initialized;
  for (const TABLE *table= thd->open_tables; table; table= table->next)
    locked|= table->file->has_transactions();
  if (locked)
    mysql_mutex_lock(&acl_cache->lock);

  acl_beside= beside;
  init_acl_data();
  const bool error= acl_load(thd, tables);
  acl_beside= nullptr;
  DEBUG_SYNC(thd, "acl_data_read");

  if (!error)
  {
    if (!locked)
      mysql_mutex_lock(&acl_cache->lock);
    swap_acl_data(&acl_shared, beside);
    acl_cache->clear(1);
    if (!locked)
      mysql_mutex_unlock(&acl_cache->lock);
  }
  if (locked)
    mysql_mutex_unlock(&acl_cache->lock);
  pthread_mutex_unlock(&reload_lock);

  /* The old data, or incomplete new data; no other thread has pointers into it */
  acl_beside= beside;
  free_acl_data();
  acl_beside= nullptr;
  delete beside;
  return error;
}
