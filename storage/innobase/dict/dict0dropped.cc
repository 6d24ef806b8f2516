/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file dict/dict0dropped.cc
Files that a DROP has left. See dict0dropped.h
*******************************************************/

#include "dict0dropped.h"
#include "dict0dict.h"
#include "fil0fil.h"
#include "fsp0file.h"
#include "os0file.h"
#include "srv0srv.h"
#include "log.h"
#include <map>
#include <set>
#include <string>

namespace
{
struct dropped
{
  uint32_t space_id;
  /** dict_table_t::flags */
  uint32_t flags;
};

/** The tables by name. One stays when purge has deleted the file; InnoDB gives no
tablespace the identifier of an earlier one. */
std::map<std::string, dropped> names;
/** the tablespaces in names, until open_files() */
std::set<uint32_t> tablespaces;
} // namespace

void dict_dropped_t::note(const span<const char> name, uint32_t space_id, uint32_t flags)
  noexcept
{
  ut_ad(dict_sys.locked());
  names[std::string(name.data(), name.size())]= {space_id, flags};
  tablespaces.insert(space_id);
}

bool dict_dropped_t::is_empty() noexcept { return names.empty(); }

void dict_dropped_t::forget_space(uint32_t space_id) noexcept
{
  ut_ad(dict_sys.locked());
  if (!tablespaces.erase(space_id))
    return;
  for (auto it= names.begin(); it != names.end(); )
    if (it->second.space_id == space_id)
      it= names.erase(it);
    else
      ++it;
}

/** @return whether a file begins with zeros and fil_system does not know it: its table's page 0
was never written. A table that was not dropped is known then, because the log has that page;
the log of a dropped one has the record that DROP writes before it deletes the file. */
static bool was_never_written(const char *path)
{
  bool success;
  byte start[UNIV_PAGE_SIZE_MIN];
  const pfs_os_file_t file=
    os_file_create_simple_no_error_handling(innodb_data_file_key, path, OS_FILE_OPEN,
                                            OS_FILE_READ_ONLY, true, &success);
  if (!success)
    return false;
  const bool blank=
    os_file_read(IORequestRead, file, start, 0, sizeof start, nullptr) == DB_SUCCESS &&
    buf_is_zeroes(span<const byte>(start, sizeof start));
  os_file_close(file);
  if (!blank)
    return false;
  bool known= false;
  mysql_mutex_lock(&fil_system.mutex);
  for (const fil_space_t &space : fil_system.space_list)
    for (const fil_node_t *node= UT_LIST_GET_FIRST(space.chain); node;
         node= UT_LIST_GET_NEXT(chain, node))
      known|= !strcmp(node->name, path);
  mysql_mutex_unlock(&fil_system.mutex);
  return !known;
}

/** Open a file, or delete the link to it if it does not exist. Delete a file that was never
written: threads that encrypt tables could not read it, and would say so again and again
until purge deletes it.
@param name   the table
@param table  its tablespace and flags */
static void open_file(const span<const char> name, const dropped &table)
{
  /* Where transactions are not rolled back, DROP may not be committed */
  const bool may_delete= !high_level_read_only && srv_force_recovery <= SRV_FORCE_NO_TRX_UNDO;
  bool exists= false;
  os_file_type_t type;
  RemoteDatafile remote;
  char *path= fil_make_filepath(nullptr, name, IBD, false);
  if (remote.open_link_file(name))
  {
    if (os_file_status(remote.filepath(), &exists, &type) && !exists && may_delete)
      RemoteDatafile::delete_link_file(name);
  }
  else if (!os_file_status(path, &exists, &type))
    exists= false;
  else if (exists && may_delete && was_never_written(path) && os_file_delete(innodb_data_file_key, path))
    exists= false;
  /* This checks the identifier: purge must not delete another table's file */
  if (exists)
    fil_ibd_open(table.space_id, dict_tf_to_fsp_flags(table.flags),
                 fil_space_t::VALIDATE_SPACE_ID, name, path);
  ut_free(path);
}

void dict_dropped_t::open_files() noexcept
{
  ut_ad(dict_sys.locked());
  tablespaces.clear();
  for (auto it= names.begin(); it != names.end(); )
  {
    /* If recovery has opened the file, this notes DATA DIRECTORY in the tablespace, so
    that purge deletes the link, too */
    if (!fil_space_for_table_exists_in_mem(it->second.space_id, it->second.flags))
      open_file({it->first.data(), it->first.size()}, it->second);
    if (fil_space_get(it->second.space_id))
      ++it;
    else
      it= names.erase(it);
  }
  /* Where transactions are not rolled back, DROP may not be committed */
  if (high_level_read_only || srv_force_recovery > SRV_FORCE_NO_TRX_UNDO)
    names.clear();
}

void dict_dropped_t::close() noexcept
{
  names.clear();
  tablespaces.clear();
}

/** Delete a file, if purge has not.
@param name   the table
@param table  its tablespace */
static void delete_file(const std::string &name, const dropped &table)
{
  /* Purge may free the tablespace at any time. If the table was renamed before it was
  dropped, the list has both names; the file has the second one. */
  mysql_mutex_lock(&fil_system.mutex);
  const fil_space_t *space= fil_space_get_by_id(table.space_id);
  const bool there= space && space->name().size() == name.size() &&
    !memcmp(space->name().data(), name.data(), name.size());
  mysql_mutex_unlock(&fil_system.mutex);
  if (!there)
    return;
  sql_print_information("InnoDB: Deleting the file that an interrupted DROP TABLE of %s has"
                        " left", name.c_str());
  const pfs_os_file_t handle= fil_delete_tablespace(table.space_id);
  if (handle != OS_FILE_CLOSED)
    os_file_close(handle);
}

void dict_dropped_t::make_way(const span<const char> name) noexcept
{
  ut_ad(dict_sys.locked());
  if (names.empty())
    return;
  const auto it= names.find(std::string(name.data(), name.size()));
  if (it == names.end())
    return;
  delete_file(it->first, it->second);
  names.erase(it);
}

void dict_dropped_t::before_purge(const span<const char> name) noexcept
{
  const std::string table_name(name.data(), name.size());
  dropped table{0, 0};
  dict_sys.freeze(SRW_LOCK_CALL);
  const auto it= names.find(table_name);
  if (it != names.end())
    table= it->second;
  dict_sys.unfreeze();
  /* Not under the latch: the thread waits for the log. If a statement is deleting the file
  to make way, this waits for it. */
  if (table.space_id)
    delete_file(table_name, table);
}

void dict_dropped_t::make_way_in(const span<const char> database) noexcept
{
  ut_ad(dict_sys.locked());
  const std::string prefix(database.data(), database.size());
  const auto first= names.lower_bound(prefix);
  auto it= first;
  for (; it != names.end() && !it->first.compare(0, prefix.size(), prefix); ++it)
    delete_file(it->first, it->second);
  names.erase(first, it);
}
