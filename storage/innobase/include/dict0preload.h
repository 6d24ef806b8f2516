/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/dict0preload.h
Load table definitions: do the file I/O before dict_sys.latch is acquired
exclusively. dict/dict0preload.cc describes how.
*/

#ifndef dict0preload_h
#define dict0preload_h

#include "dict0rows.h"
#include <string>
#include <vector>

/** The definitions that one thread prepares before it acquires dict_sys.latch
exclusively to load a table. The object is on the stack of that thread. Other threads
access only name and next, which the mutex of the slot in dict0preload.cc protects. */
class dict_preload_t
{
  /** A table definition that no other thread can see */
  struct built
  {
    /** the definition, owned until take() */
    dict_table_t *table;
    /** whether SYS_FOREIGN mentions the table */
    bool foreign;
  };

  /** name of the table that this thread loads; others that want it look for this */
  dict_string name;
  /** the next loading thread in the slot */
  dict_preload_t *next= nullptr;
  /** whether this is in a slot, and others wait for it */
  bool entered= false;
  /** whether build() gave up because of a change */
  bool interrupted= false;
  /** whether this thread holds dict_sys.latch, from lock() to unlock() */
  bool locked= false;
  /** the errors that the load is going to ignore */
  dict_err_ignore_t ignore= DICT_ERR_IGNORE_NONE;
  /** dict_rows_t::changes() when the first row was read */
  uint64_t changes= 0;
  /** the definitions: the wanted table, then its FOREIGN KEY children */
  dict_vector<built> tables;

public:
  dict_preload_t()= default;
  dict_preload_t(const dict_preload_t&)= delete;
  dict_preload_t &operator=(const dict_preload_t&)= delete;
  ~dict_preload_t() { ut_ad(!locked); leave(); }

  /** Prepare a table without dict_sys.latch, as far as possible, and announce that
  this thread loads it.
  @param table_name   table name
  @param ignore_err   errors that the load is going to ignore
  @retval true  if the caller must invoke lock() and load the table
  @retval false if another thread was loading the table: it has finished,
  and the caller must look up the table again */
  bool prepare(const span<const char> &table_name,
               dict_err_ignore_t ignore_err) noexcept;

  /** The same for a table that is known by its identifier.
  @param id           table identifier
  @param ignore_err   errors that the load is going to ignore
  @return see above */
  bool prepare(table_id_t id, dict_err_ignore_t ignore_err) noexcept;

  /** Acquire the exclusive dict_sys.latch. dict_sys.load_table() uses the prepared
  definitions of the object that is passed to it. */
  void lock() noexcept;

  /** Release the exclusive dict_sys.latch, and wake up the threads that waited. */
  void unlock() noexcept;

  /** Add a prepared definition to the cache, so that dict_sys.find_table() finds it.
  @param table_name   table name
  @param ignore_err   errors that the load ignores
  @param foreign      set to whether there may be FOREIGN KEY constraints
  @return the table
  @retval nullptr if it was not prepared */
  dict_table_t *take(const span<const char> &table_name,
                     dict_err_ignore_t ignore_err, bool *foreign) noexcept;

private:
  bool enter(const span<const char> &table_name) noexcept;
  void leave() noexcept;
  void build() noexcept;
  bool build(const dict_string &table_name, dict_vector<dict_string> *names)
    noexcept;
  bool open_file(dict_rows_t::reader *rows, const dict_string &table_name,
                 dict_table_t **table, unsigned *uncommitted) noexcept;
  void discard() noexcept;
};

#endif
