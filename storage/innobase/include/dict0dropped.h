/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/dict0dropped.h
Files that a DROP has left, because the server was killed before it deleted them

DROP TABLE commits, and then deletes the file. If the server is killed in between, the
next start finds a delete-marked row in SYS_TABLES, and the file. InnoDB opens the
file, so that purge finds the tablespace in fil_system, and deletes the file when it
reaches the history of the DROP.

That may be long after the start. Until then the file has the name of a table that does
not exist. If a statement creates a table of that name, gives that name to another table,
or drops the database, the thread deletes the file first: make_way(). Otherwise

1. the statement would fail, because the file exists, and
2. if an administrator then removes the file, as the error message suggests, the
   statement would succeed, and purge would later delete the file of the new table. It
   deletes by name.

RENAME delete-marks a row of SYS_TABLES, too, but the file belongs to the row with the new
name. Two checks keep that file:

1. forget_space(): at the end of the start, no name here has a tablespace that is in a row
   without delete mark.
2. The name of the file must still be that of the dropped table.

Only the start adds names here. While the server runs, the metadata lock of a DROP
keeps other statements from using the name until the file is deleted.

dict_sys.latch, held exclusively, protects the list. A thread may delete a file while it
holds the latch: this happens at most once for each file that a crash has left. */

#ifndef dict0dropped_h
#define dict0dropped_h

#include "univ.i"
#include "span.h"

/** The tables that were dropped before the start */
class dict_dropped_t
{
public:
  /** Open the file of a dropped table, if it exists, for purge to delete. If the server
  was killed after it deleted the file, it may have left the link: delete the link,
  because a CREATE of that name would fail.
  @param name      the table
  @param path      its file, unless there is a link
  @param space_id  its tablespace
  @param flags     dict_table_t::flags */
  static void open_file(const st_::span<const char> name, const char *path,
                        uint32_t space_id, uint32_t flags) noexcept;

  /** Remember the name in a delete-marked row of SYS_TABLES at the start. Recovery or
  open_file() may have opened the file. If neither has, this does nothing.
  @param name      the table
  @param space_id  its tablespace */
  static void add(const st_::span<const char> name, uint32_t space_id) noexcept;

  /** @return whether the list is empty */
  static bool is_empty() noexcept;

  /** Forget the names with a tablespace that belongs to a table.
  @param space_id  tablespace in a row without delete mark
  @return whether there was one */
  static bool forget_space(uint32_t space_id) noexcept;

  /** Forget all names; InnoDB shuts down. */
  static void close() noexcept;

  /** Delete the file that a DROP has left under a name, if purge has not.
  @param name  of a table that the caller creates, or the new name of a table; nobody
               else can use the name */
  static void make_way(const st_::span<const char> name) noexcept;

  /** Delete the files that DROPs have left in a database: its directory must be empty.
  @param database  name of a database that the caller drops, and '/' */
  static void make_way_in(const st_::span<const char> database) noexcept;
};

#endif
