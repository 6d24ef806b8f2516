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
name. So the start first notes all delete-marked rows (note()), then forgets those of which
another row has the tablespace (forget_space()), and opens the files of the rest
(open_files()).

Purge removes the row of SYS_TABLES before it comes to that of SYS_INDEXES, with which it
deletes the file. If the server is killed in between, the next start no longer finds the
file. So purge deletes the file before it removes the row of SYS_TABLES: before_purge().

Only the start adds names here. While the server runs, the metadata lock of a DROP
keeps other statements from using the name until the file is deleted.

dict_sys.latch protects the list; a thread that changes it holds the latch exclusively. A
thread may delete a file while it holds the latch: this happens at most once for each file
that a crash has left. */

#ifndef dict0dropped_h
#define dict0dropped_h

#include "univ.i"
#include "span.h"

/** The tables that were dropped before the start */
class dict_dropped_t
{
public:
  /** Note a delete-marked row of SYS_TABLES.
  @param name      the table
  @param space_id  its tablespace
  @param flags     dict_table_t::flags */
  static void note(const st_::span<const char> name, uint32_t space_id, uint32_t flags)
    noexcept;

  /** @return whether the list is empty */
  static bool is_empty() noexcept;

  /** Forget the noted rows with a tablespace that belongs to a table.
  @param space_id  tablespace in a row without delete mark */
  static void forget_space(uint32_t space_id) noexcept;

  /** Open the files of the noted rows, for purge to delete, if they exist. Recovery may
  have opened some. If the server was killed after it deleted the file, it may have left
  the link: delete the link, because a CREATE of that name would fail. */
  static void open_files() noexcept;

  /** Forget all names; InnoDB shuts down. */
  static void close() noexcept;

  /** Delete the file that a DROP has left under a name, if purge has not.
  @param name  of a table that the caller creates, or the new name of a table; nobody
               else can use the name */
  static void make_way(const st_::span<const char> name) noexcept;

  /** Delete the file that a DROP has left under a name. Purge calls this before it removes
  a row of SYS_TABLES; the caller holds no latch.
  @param name  of the table in that row */
  static void before_purge(const st_::span<const char> name) noexcept;

  /** Delete the files that DROPs have left in a database: its directory must be empty.
  @param database  name of a database that the caller drops, and '/' */
  static void make_way_in(const st_::span<const char> database) noexcept;
};

#endif
