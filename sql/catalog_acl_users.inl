/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The accounts in memory. The cost of changing one does not grow with the number of
  accounts. sql_acl.cc includes this file.

  acl_users has pointers to the accounts, in the order of acl_user_compare(): by name,
  and the most specific host first. An account itself stays where it is on acl_memroot
  until FLUSH PRIVILEGES or shutdown. So roles may point to it (ACL_ROLE::parent_grantee)
  while other accounts come and go, and binary search finds the place of a new account.

  acl_cache->lock protects all of this.
*/

static ACL_USER *acl_user_at(size_t i)
{
  return dynamic_element(&acl_users, i, ACL_USER*);
}


static int acl_user_ptr_compare(const void *a, const void *b)
{
  return acl_user_compare(*static_cast<const ACL_USER *const *>(a),
                          *static_cast<const ACL_USER *const *>(b));
}


static void free_acl_user_ptr(void *user)
{
  free_acl_user(*static_cast<ACL_USER **>(user));
}


/**
  The first position in [0, count) behind all elements that are not greater.
  @param compare  the element at a position with the new one, like strcmp()
*/
template <typename Compare>
static size_t position_behind(size_t count, Compare compare)
{
  size_t low= 0, high= count;
  while (low < high)
  {
    const size_t middle= (low + high) / 2;
    if (compare(middle) <= 0)
      low= middle + 1;
    else
      high= middle;
  }
  return low;
}


/** The last element of an array moves to a position, and those after it up by one */
template <typename T>
static void move_last_to(T *array, size_t count, size_t position)
{
  char last[sizeof(T)];
  memcpy(last, (void*) (array + count - 1), sizeof(T));
  memmove((void*) (array + position + 1), (void*) (array + position),
          (count - 1 - position) * sizeof(T));
  memcpy((void*) (array + position), last, sizeof(T));
}


/**
  Append a copy of an account to acl_users; out of memory, the function adds nothing.
  If the account is for any host, the server has to let clients from all hosts try.
*/
static void push_new_user(const ACL_USER &user)
{
  ACL_USER *copy= new (&acl_memroot) ACL_USER(user);
  if (!copy || push_dynamic(&acl_users, &copy))
    return;
  if (!user.host.hostname ||
      (user.host.hostname[0] == wild_many && !user.host.hostname[1]))
    allow_all_hosts=1;
}


/**
  Is there an account for this host? A host that is written with other capitals counts
  as another one, which only costs time.
*/
static bool has_account_for_host(const char *hostname)
{
  for (size_t i= 0; i < acl_users.elements; i++)
  {
    if (!strcmp(acl_user_at(i)->host.hostname, hostname))
      return true;
  }
  return false;
}


/**
  Add an account that CREATE USER or GRANT has made.

  The hosts from which anybody may log in (acl_check_hosts, acl_wild_hosts) are found
  again only if the account is the first for its host. No role is granted to it yet.
*/
static void insert_new_user(const ACL_USER &user)
{
  mysql_mutex_assert_owner(&acl_cache->lock);
  const bool known_host= has_account_for_host(user.host.hostname);
  const size_t count= acl_users.elements;
  push_new_user(user);
  if (acl_users.elements == count)
    return;                                     // Out of memory
  ACL_USER *inserted= acl_user_at(count);
  move_last_to((ACL_USER**) acl_users.buffer, count + 1,
               position_behind(count, [inserted](size_t i)
                 { return acl_user_compare(acl_user_at(i), inserted); }));
  if (!allow_all_hosts && !known_host)
    rebuild_check_host();
}


/** Remove an account, and the grants of roles to it */
static void drop_acl_user(size_t i)
{
  mysql_mutex_assert_owner(&acl_cache->lock);
  ACL_USER *user= acl_user_at(i);
  for (size_t j= 0; j < user->role_grants.elements; j++)
  {
    ACL_ROLE *role= *dynamic_element(&user->role_grants, j, ACL_ROLE**);
    remove_ptr_from_dynarray(&role->parent_grantee, user);
  }
  free_acl_user(user);
  delete_dynamic_element(&acl_users, i);
  /* acl_check_hosts may go on to use the name of the host: it stays in memory */
  if (!allow_all_hosts && !has_account_for_host(user->host.hostname))
    rebuild_check_host();
}


/**
  Find the account that find_by_username_or_anon() would find: the most specific one of
  those with this name and of the anonymous ones. The caller holds acl_cache->lock.
*/
static ACL_USER *find_user_or_anon(const char *host, const char *user, const char *ip)
{
  ACL_USER *found= nullptr;
  size_t i= acl_find_user_by_name(user);
  for (; i < acl_users.elements && !strcmp(acl_user_at(i)->user.str, user); i++)
  {
    if (compare_hostname(&acl_user_at(i)->host, host, ip))
    {
      found= acl_user_at(i);
      break;
    }
  }
  for (i= 0; i < acl_users.elements && !*acl_user_at(i)->user.str; i++)
  {
    ACL_USER *anonymous= acl_user_at(i);
    if (found && acl_compare(anonymous, found) >= 0)
      break;
    if (compare_hostname(&anonymous->host, host, ip))
      return anonymous;
  }
  return found;
}


/** Insert a grant into acl_dbs in order; out of memory, the function adds nothing */
static void insert_acl_db(ACL_DB &acl_db)
{
  const size_t count= acl_dbs.elements();
  if (acl_dbs.push(acl_db))
    return;
  move_last_to(acl_dbs.front(), count + 1,
               position_behind(count, [&acl_db](size_t i)
                 { return acl_db_compare(&acl_dbs.at(i), &acl_db); }));
}


/**
  Find the entries of a user in acl_users or acl_dbs, which are next to each other.

  @param by_users  acl_users, or else acl_dbs
  @param[in,out] end  the number of elements; becomes the position behind the last one
  @return the position of the first one

  RENAME USER looks for names after it has changed others, so there they may be anywhere.
*/
static int first_of_user(bool by_users, const char *user, int *end)
{
  if (current_thd->lex->sql_command == SQLCOM_RENAME_USER)
    return 0;
  const size_t first= by_users ? acl_find_user_by_name(user)
                               : acl_find_db_by_username(user);
  if (first == SIZE_T_MAX)
    return *end;
  int last= (int) first;
  while (last < *end && !strcmp(by_users ? acl_user_at(last)->user.str
                                         : acl_dbs.at(last).user, user))
    last++;
  *end= last;
  return (int) first;
}


/**
  The rows of a table of grants that may be about a user: by the index on User that
  mysql.db has, or else all rows. RENAME USER changes what is in the index, so it reads
  all rows, too.
*/
class Grant_rows
{
public:
  Grant_rows(TABLE *table, Field *user_field, const LEX_USER *user, bool rename)
    : m_table(table), m_user_field(user_field), m_user(user), m_index(MAX_KEY),
      m_first(true), m_failed(false)
  {
    for (uint i= 0; i < table->s->keys && !rename; i++)
    {
      if (table->key_info[i].key_part->fieldnr == user_field->field_index + 1u &&
          !(table->key_info[i].key_part->key_part_flag & HA_PART_KEY_SEG) &&
          table->s->keys_in_use.is_set(i))
        m_index= i;
    }
  }

  int begin()
  {
    if (m_index == MAX_KEY)
      return m_table->file->ha_rnd_init_with_error(1);
    const int error= m_table->file->ha_index_init(m_index, false);
    if (error)
      m_table->file->print_error(error, MYF(0));
    return error;
  }

  /** Read a row into record[0]. @return HA_ERR_END_OF_FILE behind the last one */
  int next()
  {
    uchar *const record= m_table->record[0];
    if (m_index == MAX_KEY)
      return m_table->file->ha_rnd_next(record);
    int error;
    KEY *const key= m_table->key_info + m_index;
    const uint length= key->key_part->store_length;
    if (m_first)
    {
      m_first= false;
      m_user_field->store(m_user->user.str, m_user->user.length,
                          system_charset_info);
      key_copy(m_key, record, key, length);
      error= m_table->file->ha_index_read_map(record, m_key, 1, HA_READ_KEY_EXACT);
    }
    else
      error= m_table->file->ha_index_next_same(record, m_key, length);
    if (!error)
      return 0;
    if (error != HA_ERR_KEY_NOT_FOUND && error != HA_ERR_END_OF_FILE)
    {
      m_table->file->print_error(error, MYF(0));
      m_failed= true;
    }
    return HA_ERR_END_OF_FILE;
  }

  /** @return true if not all rows could be read (reported) */
  bool end()
  {
    if (m_index == MAX_KEY)
      (void) m_table->file->ha_rnd_end();
    else
      (void) m_table->file->ha_index_end();
    return m_failed;
  }

private:
  TABLE *const m_table;
  Field *const m_user_field;
  const LEX_USER *const m_user;
  uint m_index;                 // MAX_KEY: all rows
  bool m_first, m_failed;
  uchar m_key[MAX_KEY_LENGTH];
};
