/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/dict0files.h
Make the files of many tables known to fil_system, without dict_sys.latch.
dict/dict0files.cc describes how.
*/

#ifndef dict0files_h
#define dict0files_h

#include "dict0rows.h"
#include <mutex>
#include <thread>

/** The object that the threads share; it is on the stack of one of them */
class dict_files_t
{
  /** tablespaces that are wanted, or nullptr for all of SYS_TABLES */
  const std::set<uint32_t> *const spaces;
  /** protects the fields below. Under it a thread acquires the latch of dict_rows_t, and
  what it needs to read rows; no thread that holds any of these asks for this mutex. */
  std::mutex mutex;
  /** the last row that was read */
  dict_string position;
  /** whether there may be rows after it */
  bool more= true;
  /** whether there are rows of tables that were dropped, and not yet purged */
  bool dropped= false;
  /** how many more threads may be started */
  unsigned may_start;
  /** the threads that were started and not yet joined */
  std::vector<std::thread> threads;

  /** A few tables whose files one thread opens */
  struct slice
  {
    /** their rows of SYS_TABLES, owned */
    dict_vector<dict_table_t*> tables;
    /** dict_rows_t::changes() when the rows were read */
    uint64_t changes;
    ~slice();
  };

  explicit dict_files_t(const std::set<uint32_t> *spaces) noexcept;
  bool must_end() const noexcept;
  bool next(slice *s, bool help) noexcept;
  void open(const slice &s) const noexcept;
  void run() noexcept;
  void run_thread() noexcept;
  void join() noexcept;

public:
  /** Open the files of tables, and create their tablespaces. Return when all are open, or
  when the server shuts down.
  @param spaces     wanted tablespaces; nullptr when the server starts: this opens all
                    of them, if must_open or if encryption needs them
  @param must_open  whether the caller needs all files
  @return whether the work is done; if not, the caller opens the files as MariaDB does */
  static bool open_all(const std::set<uint32_t> *spaces, bool must_open)
    noexcept;
};

#endif
