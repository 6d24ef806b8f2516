/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  acl_users has pointers to accounts, not the accounts themselves; see
  catalog_acl_users.inl. sql_acl.cc includes this file once. In the code after that,
  dynamic_element() with the type ACL_USER* follows the pointer.
*/

template <typename Pointer>
static inline Pointer acl_element(const DYNAMIC_ARRAY *array, size_t i)
{
  return (Pointer) array->buffer + i;
}

template <>
inline ACL_USER *acl_element<ACL_USER*>(const DYNAMIC_ARRAY *array, size_t i)
{
  return ((ACL_USER**) array->buffer)[i];
}

#undef dynamic_element
#define dynamic_element(array, i, type) acl_element<type>(array, i)
