/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's storage/innobase/fil/fil0fil.cc:
   Copyright (c) 1995, 2021, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2014, 2022, MariaDB Corporation. */
/* Parts of this file come from MariaDB's storage/innobase/os/os0file.cc:
   Copyright (c) 1995, 2019, Oracle and/or its affiliates. All Rights Reserved.
   Copyright (c) 2009, Percona Inc.
   Copyright (c) 2013, 2022, MariaDB Corporation. */

/**
@file fil/fil0ibd.cc
The file of a table, before fil_system knows of it.

fil_ibd_open() looks for the file, opens it to validate it, closes it, and creates a
tablespace. The first I/O opens the file again, while its thread holds fil_system.mutex.
fil_ibd_file::open() is for the usual case: the file is where the dictionary says, and
nothing is wrong with it. open() opens the file as the first I/O would, reads the first
page once, and validates it. If anything is unusual, open() returns false and prints
nothing. Then fil_ibd_open() examines the file, decides, and reports.

Both create the tablespace by fil_ibd_file::create_space(). This file and
fil_node_t::read_page0() validate the first page by the same fil_page0_t::read().
*/

#include "fil0ibd.h"
#include "dict0rows.h"
#include "fil0crypt.h"
#include "fsp0file.h"
#include "fsp0fsp.h"
#include "srv0start.h"
#include "buf0buf.h"
#include "log0log.h"
#include "fut0lst.h"
#include "page0page.h"
#include <algorithm>

/* How a data file is opened depends on caching(), which SET GLOBAL
innodb_data_file_write_through and innodb_data_file_buffering change in 11.8. Then
the server opens the files that fil_system knows again. */
#if MYSQL_VERSION_ID < 110800
static constexpr int caching() { return 0; }
#else
static int caching()
{ return fil_system.is_write_through() + 2 * fil_system.is_buffered(); }
#endif

fil_page0_t::result fil_page0_t::read(const page_t *page, uint32_t expected_id,
                                      uint32_t expected, bool check_lsn)
  noexcept
{
  id= mach_read_from_4(page + FIL_PAGE_SPACE_ID);
  if (id != mach_read_from_4(page + FSP_HEADER_OFFSET + FSP_SPACE_ID))
    id= UINT32_MAX;
  flags= fsp_header_get_flags(page);
  size= fsp_header_get_field(page, FSP_SIZE);
  free_limit= fsp_header_get_field(page, FSP_FREE_LIMIT);
  free_len= flst_get_len(FSP_HEADER_OFFSET + FSP_FREE + page);

  expected&= ~FSP_FLAGS_MEM_MASK;
  const auto is_expected= [expected](uint32_t f)
  {
    f&= ~FSP_FLAGS_MEM_MASK;
    return fil_space_t::is_flags_equal(f, expected) ||
      fil_space_t::is_flags_equal(expected, f);
  };

  if (!fil_space_t::is_valid_flags(flags, expected_id))
  {
    const uint32_t converted= fsp_flags_convert_from_101(flags);
    if (converted == UINT32_MAX || !is_expected(converted))
      return BAD_FLAGS;
    flags= converted;
  }
  else if (!is_expected(flags))
    return BAD_FLAGS;

  if (buf_page_is_corrupted(check_lsn, page, flags) != NOT_CORRUPTED)
    return CORRUPTED;
  return id == expected_id ? VALID : BAD_ID;
}

void fil_page0_t::note(fil_space_t *space) const noexcept
{
  mysql_mutex_assert_owner(&fil_system.mutex);
  ut_ad(space->id == id);
  ut_ad(!(flags & FSP_FLAGS_MEM_MASK));
  ut_ad(space->free_limit == 0 || space->free_limit == free_limit);
  ut_ad(space->free_len == 0 || space->free_len == free_len);
  space->flags= (space->flags & FSP_FLAGS_MEM_MASK) | flags;
  space->size_in_header= size;
  space->free_limit= free_limit;
  space->free_len= free_len;
}

fil_ibd_file::fil_ibd_file(const char *path, fil_space_crypt_t *crypt_data)
  noexcept : path(mem_strdup(path)), crypt_data(crypt_data) {}

bool fil_ibd_file::may_open() noexcept
{
  return !srv_read_only_mode && my_disable_locking && !srv_force_recovery &&
    srv_operation == SRV_OPERATION_NORMAL;
}

void fil_ibd_file::close() noexcept
{
  if (handle != OS_FILE_CLOSED)
    os_file_close(handle);
  handle= OS_FILE_CLOSED;
  ut_free(path);
  path= nullptr;
  fil_space_destroy_crypt_data(&crypt_data);
}

/** Find out where the file is: where a link file says, or else in the data
directory.
@param name      table name
@param has_link  whether to look for a link file
@return whether there is just one place */
bool fil_ibd_file::set_path(const fil_space_t::name_type &name, bool has_link)
  noexcept
{
  path= fil_make_filepath(nullptr, name, IBD, false);
  if (!has_link)
    return path != nullptr;
  RemoteDatafile remote;
  remote.init(0);
  if (const char *linked= remote.open_link_file(name))
  {
    if (!access(path, F_OK))
      return false;
    ut_free(path);
    path= mem_strdup(linked);
  }
  return path != nullptr;
}

/** Validate the first page, and remember its fields.
@param id        tablespace identifier
@param expected  flags according to the dictionary
@param bytes     size of the file
@param page      the page
@return whether fil_ibd_open() and fil_node_t::read_page0() would accept it,
and fsp_flags_try_adjust() would not change it */
bool fil_ibd_file::validate(uint32_t id, uint32_t expected, os_offset_t bytes,
                            const page_t *page) noexcept
{
  /* If the page is newer than the log, return false, so that fil_ibd_open() reports it.
  buf_page_is_corrupted() would report it here already. */
  if (page_get_page_no(page) != 0 ||
      mach_read_from_8(page + FIL_PAGE_LSN) > log_sys.get_flushed_lsn() ||
      page0.read(page, id, expected, false) != fil_page0_t::VALID)
    return false;

  const uint32_t flags= page0.flags;
  const uint32_t dict_flags= expected & ~FSP_FLAGS_MEM_MASK;
  /* Flags that were converted, or are equal only the other way round, would have to be
  adjusted in the file */
  if (flags != fsp_header_get_flags(page) ||
      fil_space_t::logical_size(flags) != srv_page_size ||
      fil_space_t::physical_size(flags) !=
      fil_space_t::physical_size(dict_flags) ||
      (!fil_space_t::is_flags_equal(flags, dict_flags) &&
       !fil_space_t::full_crc32(flags) &&
       !fil_space_t::full_crc32(dict_flags)))
    return false;

  if (fil_space_t::full_crc32(flags) &&
      !fil_comp_algo_loaded(FSP_FLAGS_FCRC32_GET_COMPRESSED_ALGO(flags)))
    return false;

  crypt_data= fil_space_read_crypt_data(fil_space_t::zip_size(flags), page);
  if (crypt_data && !crypt_data->is_key_found())
    return false;

  /* A file of at least one extent counts in whole extents. */
  const unsigned psize= fil_space_t::physical_size(flags);
  const os_offset_t extent= os_offset_t{psize} * FSP_EXTENT_SIZE;
  if (bytes >= extent)
    bytes-= bytes % extent;
  size= uint32_t(bytes / psize);
  return true;
}

/** Allocate memory for a page. The page of a compressed table is shorter than
srv_page_size, but functions for pages expect an address that is a multiple of it.

A table that a thread opens keeps some 20 KiB of the heap. glibc's malloc() extends the
thread's arena by just the missing bytes, with one mprotect() for each table, and that
takes 3 % of a first touch. So every fourth call asks for MORE bytes. glibc shrinks an
arena only if more than 128 KiB at its end are free, so these bytes stay in the arena for
the next tables.
@return the page, for aligned_free() */
static page_t *get_page() noexcept
{
  constexpr size_t MORE= 112 << 10;
  static thread_local unsigned n_opened;
  size_t size= srv_page_size;
  if (n_opened++ % 4 == 0)
    size= std::max<size_t>(size, MORE - size);
  return static_cast<byte*>(aligned_malloc(size, srv_page_size));
}

bool fil_ibd_file::open(uint32_t id, uint32_t expected,
                        const fil_space_t::name_type &name, bool has_link)
  noexcept
{
  DBUG_EXECUTE_IF("fil_space_create_failure", return false;);
  DBUG_EXECUTE_IF("dict_preload_fail_file", return false;);
  ut_ad(!path);

  if (expected == UINT32_MAX || !set_path(name, has_link))
    return false;

  ulint type= OS_DATA_FILE;
#if defined _WIN32 || defined O_DIRECT
  switch (FSP_FLAGS_GET_ZIP_SSIZE(expected)) {
  case 1:
  case 2:
    /* as fil_node_open_file_low() has it */
    type= OS_DATA_FILE_NO_O_DIRECT;
  }
#endif
  bool success;
  opened_with= caching();
  handle= os_file_create(innodb_data_file_key, path, OS_FILE_OPEN_SILENT, type,
                         false, &success);
  if (!success)
  {
    handle= OS_FILE_CLOSED;
    return false;
  }

  const unsigned psize=
    fil_space_t::physical_size(expected & ~FSP_FLAGS_MEM_MASK);
  const os_offset_t bytes= os_file_get_size(handle);
  if (bytes == os_offset_t(-1) || bytes < FIL_IBD_FILE_INITIAL_SIZE * psize)
    return false;

  page_t *page= DBUG_IF("ib_first_page_no_memory") ? nullptr : get_page();
  const bool ok= page &&
    os_file_read(IORequestRead, handle, page, 0, psize, nullptr) ==
    DB_SUCCESS && validate(id, expected, bytes, page);
  aligned_free(page);
  return ok;
}

#if defined UNIV_DEBUG && !defined _WIN32
/** @return whether a path does not lead to another file than this one. There may be no
file: DROP deletes the file first if it has no tablespace for it. */
static bool is_no_other_at(const char *path, os_file_t file)
{
  struct stat a, b;
  if (stat(path, &a))
    return errno == ENOENT;
  return !fstat(file, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}
#endif

/** @return whether the start has ended. A thread that loads the buffer pool may ask just
then, without synchronization; both answers are right. */
TPOOL_SUPPRESS_TSAN static bool has_started() noexcept
{ return srv_was_started; }

fil_space_t *fil_ibd_file::create_space(uint32_t id, uint32_t expected,
                                        bool imported, make_room room,
                                        bool *created) noexcept
{
  mysql_mutex_lock(&fil_system.mutex);
  fil_space_t *space= fil_space_get_by_id(id);
  bool encrypt= false;
  *created= !space;

  if (!space)
  {
    const bool is_open= handle != OS_FILE_CLOSED;
    /* DDL may have put another file there since open(): the caller keeps it out, and has
    read the table's row again */
    ut_ad(!is_open || dict_rows_t::may_read());
    IF_WIN(, ut_ad(!is_open || is_no_other_at(path, handle)));
    /* If InnoDB has a key for encryption, startup opens the files of all tables. Let it
    keep at most half of innodb_open_files open, because innodb_open_files may be as
    large as the limit of descriptors. Startup neither waits for a descriptor nor closes
    another file to get one. Without one, fil_system would not know the next table. */
    const auto is_full= []()
    {
      return fil_system.n_open + 1 >=
        (has_started() ? srv_max_n_open_files : srv_max_n_open_files / 2);
    };

    if (is_open && room == CLOSE_OTHERS)
      for (unsigned left= 8;
           left && is_full() && fil_space_t::try_to_close(nullptr, false);
           left--);
    /* Close the file in two cases; the first I/O opens it again:
    1. There is no room. The first I/O waits for room.
    2. SET GLOBAL has changed how files are opened since this thread opened the file. It
    opened all files of fil_system again, but did not know this one. */
    const bool keep= is_open && !is_full() && opened_with == caching();

    space= fil_space_t::create(id, expected, imported, crypt_data,
                               FIL_ENCRYPTION_DEFAULT, keep, false);
    crypt_data= nullptr;
    fil_node_t *node=
      space->add(path, keep ? handle : pfs_os_file_t(OS_FILE_CLOSED),
                 0, false, true);
    if (is_open)
    {
      /* The first I/O need not read the page again */
      page0.note(space);
      node->handle= handle;
      /* This looks at the file's flags */
      node->find_metadata(IF_WIN(,false));
      if (keep)
        handle= OS_FILE_CLOSED;
      else
        node->handle= OS_FILE_CLOSED;
      node->size= size;
      space->set_sizes(size);
    }
    encrypt= space->is_in_default_encrypt;
  }

  mysql_mutex_unlock(&fil_system.mutex);
  fil_space_t::signal_encryption(encrypt);
  close();
  return space;
}
