/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The accounts and grants that acl_load() reads into memory, as one object, Acl_data.
  sql_acl.cc includes this file once.

  FLUSH PRIVILEGES reads the tables into an object of its own, and then swaps it
  with the one in use. It locks only for the swap, so a connection that logs in
  waits only for that; reload_acl_data() has two exceptions. While the thread
  reads, its acl_beside points to its own object: in this thread acl_users and
  the other names below mean the members of that object.

  acl_cache->lock protects acl_shared, the object that all other threads use. The thread
  holds the locks of the tables until after the swap, so no statement changes an account
  after the thread has read it and before the swap. reload_lock lets one thread at a time
  reload. The order of locks: the tables, reload_lock, acl_cache->lock.
*/

struct Acl_data
{
  DYNAMIC_ARRAY hosts, users, proxy_users, wild_hosts;
  Dynamic_array<ACL_DB> dbs;
  HASH roles, roles_mappings, check_hosts;
  MEM_ROOT memroot;
  ACL_ROLE *public_role;
  bool allow_all;

  Acl_data() : dbs(PSI_INSTRUMENT_MEM, 0, 50), public_role(nullptr), allow_all(true)
  {
    bzero(&hosts, sizeof(hosts));
    bzero(&users, sizeof(users));
    bzero(&proxy_users, sizeof(proxy_users));
    bzero(&wild_hosts, sizeof(wild_hosts));
    bzero(&roles, sizeof(roles));
    bzero(&roles_mappings, sizeof(roles_mappings));
    bzero(&check_hosts, sizeof(check_hosts));
    bzero(&memroot, sizeof(memroot));
  }
};

static Acl_data acl_shared;
static thread_local Acl_data *acl_beside= nullptr;

static inline Acl_data &acl_data()
{
  return acl_beside ? *acl_beside : acl_shared;
}

#define acl_hosts acl_data().hosts
#define acl_users acl_data().users
#define acl_proxy_users acl_data().proxy_users
#define acl_wild_hosts acl_data().wild_hosts
#define acl_dbs acl_data().dbs
#define acl_roles acl_data().roles
#define acl_roles_mappings acl_data().roles_mappings
#define acl_check_hosts acl_data().check_hosts
#define acl_memroot acl_data().memroot
#define acl_public acl_data().public_role
#define allow_all_hosts acl_data().allow_all

/* The object in acl_beside is private to the thread: no lock is needed */
#ifdef SAFE_MUTEX
#undef mysql_mutex_assert_owner
#define mysql_mutex_assert_owner(M) \
  do { if (!acl_beside) safe_mutex_assert_owner(&(M)->m_mutex); } while (0)
#endif
