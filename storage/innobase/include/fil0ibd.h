/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/fil0ibd.h
The file of a table that fil_system does not know yet. A thread opens and validates it
without any latch, and then makes it a tablespace in one step.
*/

#ifndef fil0ibd_h
#define fil0ibd_h

#include "fil0fil.h"
#include "page0types.h"

/** The fields of a tablespace's first page that fil_system keeps */
struct fil_page0_t
{
  enum result { VALID, BAD_FLAGS, CORRUPTED, BAD_ID };

  /** tablespace identifier; UINT32_MAX if the page has two different ones */
  uint32_t id;
  /** FSP_SPACE_FLAGS, converted if they are of MariaDB 10.1 */
  uint32_t flags;
  /** FSP_SIZE */
  uint32_t size;
  /** FSP_FREE_LIMIT */
  uint32_t free_limit;
  /** length of FSP_FREE */
  uint32_t free_len;

  /** Read and validate.
  @param page         the page
  @param expected_id  tablespace identifier
  @param expected     fil_space_t::flags, or those of the dictionary
  @param check_lsn    whether to check that FIL_PAGE_LSN is not in the future
  @return VALID, or the first reason to reject the page */
  result read(const page_t *page, uint32_t expected_id, uint32_t expected,
              bool check_lsn) noexcept;
  /** @return whether the page was not initialized */
  bool is_blank() const noexcept { return !id && !flags && !size; }
  /** Note the fields.
  @param space  tablespace; the caller holds fil_system.mutex */
  void note(fil_space_t *space) const noexcept;
};

/** An .ibd file. One thread has the object; no other thread sees it. */
class fil_ibd_file
{
  /** the open file, owned, or OS_FILE_CLOSED */
  pfs_os_file_t handle= OS_FILE_CLOSED;
  /** how InnoDB opened files when it opened this one; see caching() in fil0ibd.cc */
  int opened_with= 0;
  /** path name, owned */
  char *path= nullptr;
  /** size of the file in pages, as fil_node_t::size has it */
  uint32_t size= 0;
  /** fields of the first page, if the file is open */
  fil_page0_t page0{};
  /** encryption information, owned */
  fil_space_crypt_t *crypt_data= nullptr;

  bool set_path(const fil_space_t::name_type &name, bool has_link) noexcept;
  bool validate(uint32_t id, uint32_t expected, os_offset_t bytes,
                const page_t *page) noexcept;

public:
  /** Whether create_space() closes files of other tablespaces rather than exceed
  innodb_open_files */
  enum make_room { CLOSE_OTHERS, CLOSE_NONE };

  fil_ibd_file()= default;
  /** A file that is not open.
  @param path        path name
  @param crypt_data  encryption information; the object becomes its owner */
  fil_ibd_file(const char *path, fil_space_crypt_t *crypt_data) noexcept;
  fil_ibd_file(const fil_ibd_file&)= delete;
  fil_ibd_file &operator=(const fil_ibd_file&)= delete;
  ~fil_ibd_file() { close(); }

  /** @return whether a thread may call open(). It may not
  1. in read-only mode, with innodb_force_recovery, and in mariadb-backup;
  2. with --external-locking: to close a second descriptor of a file would end the lock
  on the file. */
  static bool may_open() noexcept;

  /** Free everything that create_space() did not hand over. */
  void close() noexcept;

  /** Open the file and read the first page. The caller holds no latch.
  @param id        tablespace identifier
  @param expected  flags according to the dictionary
  @param name      table name
  @param has_link  whether the dictionary says that the file is not in the data directory
  @return whether there is one file that fil_ibd_open() would accept */
  bool open(uint32_t id, uint32_t expected, const fil_space_t::name_type &name,
            bool has_link) noexcept;

  /** Make the file known to fil_system, unless another thread has done so. The tablespace
  is complete when another thread can find it.
  @param id        tablespace identifier
  @param expected  flags according to the dictionary
  @param imported  fil_space_t::being_imported
  @param room      what to do if innodb_open_files are open
  @param created   whether this thread has created the tablespace
  @return the tablespace */
  fil_space_t *create_space(uint32_t id, uint32_t expected, bool imported,
                            make_room room, bool *created) noexcept;
};

#endif
