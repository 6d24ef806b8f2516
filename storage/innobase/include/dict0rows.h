/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file include/dict0rows.h
Read rows of the dictionary tables without dict_sys.latch.
*/

#ifndef dict0rows_h
#define dict0rows_h

#include "dict0dict.h"
#include "mtr0mtr.h"
#include <set>
#include <string>
#include <vector>

/* In 11.8, a mini-transaction belongs to a transaction, whose page accesses it
counts, or to none. */
#if MYSQL_VERSION_ID < 110800
struct dict_mtr_t : mtr_t {};
#else
struct dict_mtr_t : mtr_t { dict_mtr_t() : mtr_t(nullptr) {} };
#endif

/* Strings and lists, in functions that throw nothing. Without memory, the allocator
tries again for a minute, then says so in the error log and ends the server, as it does
for all of InnoDB. */
typedef std::basic_string<char, std::char_traits<char>, ut_allocator<char>> dict_string;
template <class T> using dict_vector= std::vector<T, ut_allocator<T>>;

/** The latch for rows of the dictionary tables, names of tables, and files. A thread
may change these only between dict_sys.lock() and dict_sys.unlock(), and holds the
latch exclusively then. After dict_sys.lock_cache() a thread does not hold it: it only
loads tables, evicts tables, and opens tablespaces.

Debug builds check

1. may_change() where a thread writes rows or renames a file;
2. may_read() where it reads rows;
3. dict_sys.frozen() where it uses the cache of definitions, which a thread that only
   reads rows must not do;
4. dict_rows_held where it waits for a latch: it must hold nothing for which the owner
   of the latch may wait. */
class dict_rows_t
{
  /** A thread that reads rows holds this latch in shared mode. Meanwhile it neither holds
  dict_sys.latch nor waits for it. dict_sys.lock() acquires this latch before
  dict_sys.latch. So while dict_sys.lock() waits for threads that read rows from a slow
  disk, it blocks only threads that load tables. */
  static srw_lock latch;
  /** how often dict_sys.unlock() was called; modified while holding latch and
  dict_sys.latch exclusively, read while holding either */
  static uint64_t n_changes;
  /** Whether SYS_FOREIGN has any record: 2 * n_changes at the time when a thread
  looked, plus 1 if it found one. As long as n_changes stays the same, no record can
  appear, and all threads that look store the same value. */
  static Atomic_relaxed<uint64_t> foreign_known;

public:
  /** dict_sys calls these when it creates and frees dict_sys.latch. */
  static void create() noexcept { latch.SRW_LOCK_INIT(dict_operation_lock_key); }
  static void close() noexcept { latch.destroy(); }

  /** Wait for the threads that read rows, and keep others from reading. dict_sys.lock()
  calls this before it acquires dict_sys.latch. */
  static void begin_change() noexcept;
  /** dict_sys.lock() calls this when it has acquired dict_sys.latch. */
  static void changing() noexcept;
  /** Invalidate what others have read, and let them read again. dict_sys.unlock()
  calls this before it releases dict_sys.latch. */
  static void end_change() noexcept;
  /** @return whether a transaction has not ended yet
  @param id  identifier, from a row of a dictionary table */
  static bool is_active(trx_id_t id) noexcept;

#ifdef UNIV_DEBUG
  /** What a thread must give back before it waits for dict_sys.latch, or for the latch
  here. Otherwise it could deadlock with the owner of the latch, which may wait for
  the thread to give these back. */
  enum held : unsigned
  {
    /** a reader: dict_sys.lock() waits for it */
    ROWS= 1,
    /** a reference to a tablespace: fil_space_t::drop() waits for it */
    SPACE= 2
  };
  /** @return whether this thread may read rows */
  static bool may_read() noexcept;
  /** @return whether this thread is between dict_sys.lock() and dict_sys.unlock() */
  static bool may_change() noexcept;
  /** @return whether this thread may add an index to a definition. If the
  definition is in the cache, the thread must hold dict_sys.latch exclusively;
  otherwise may_read() is enough. */
  static bool may_build(const dict_table_t &table) noexcept;
  /** @return whether this thread may write rows of a table: those of the dictionary
  tables only if may_change() */
  static bool may_write(const dict_table_t &table) noexcept;
#endif
  /** @return a number that is the same as long as nobody changes the dictionary; the
  caller holds dict_sys.latch, or has a reader */
  static uint64_t changes() noexcept
  { ut_ad(may_read()); return n_changes; }

  /** Keeps DDL out as long as the object exists, except between unlock() and lock() */
  class reader
  {
    bool is_locked= false;
  public:
    reader() noexcept { lock(); }
    ~reader() { if (is_locked) unlock(); }
    reader(const reader&)= delete;
    reader &operator=(const reader&)= delete;
    void lock() noexcept;
    void unlock() noexcept;
  };

  /* The functions below require a reader, or dict_sys.latch. */

  /** Find the name that SYS_TABLES has for a table identifier.
  @param id    table identifier
  @param name  the name
  @return whether a name was found */
  static bool name_of(table_id_t id, dict_string *name) noexcept;

  /** Read the row of SYS_TABLES.
  @param name         table name
  @param uncommitted  what to pass to dict_load_columns()
  @return a definition without columns and indexes, to be freed by free_table()
  @retval nullptr if there is no row, or it is not understood */
  static dict_table_t *read_table(const dict_string &name,
                                  unsigned *uncommitted) noexcept;

  /** How a row of SYS_INDEXES counts for the definition of a table */
  enum index_row { INDEX, DELETED, END, UNUSUAL };
  /** Read a row of SYS_INDEXES, in the version that a transaction has committed.
  @param id     table->id, as it is stored
  @param table  definition
  @param rec    record
  @param heap   temporary memory, which the index refers to until it is in the cache
  @param mtr    mini-transaction that has latched the record
  @param index  the index, without fields; to be freed
  @return what the row is */
  static index_row read_index(byte *id, dict_table_t *table, const rec_t *rec,
                              mem_heap_t *heap, mtr_t *mtr,
                              dict_index_t **index) noexcept;
  /** The same with a row of SYS_FIELDS.
  @param id     index->id, as it is stored
  @param index  the index, to which this adds a field
  @param rec    record
  @param heap   as above
  @param mtr    as above
  @return whether the row is the next field */
  static bool read_field(byte *id, dict_index_t *index, const rec_t *rec,
                         mem_heap_t *heap, mtr_t *mtr) noexcept;
  /** Read all indexes of a table, by one search in SYS_INDEXES, and one in SYS_FIELDS
  if the indexes were created together. dict_load_indexes() searches in SYS_FIELDS once
  for each index, while it has latched a page of SYS_INDEXES.
  @param table  definition that has its columns and its tablespace
  @param heap   temporary memory
  @return whether nothing is unusual */
  static bool read_indexes(dict_table_t *table, mem_heap_t *heap) noexcept;

  /** Read the next rows of SYS_TABLES, of tables that have a file.
  @param after   name after which to begin; set to the last name that was read
  @param spaces  tablespaces that are wanted, or nullptr for all
  @param tables  this adds their definitions, without columns and indexes
  @param dropped set if there are rows of tables that were dropped, and not yet purged
  @return whether there may be more rows */
  static bool read_tables(dict_string *after, const std::set<uint32_t> *spaces,
                          dict_vector<dict_table_t*> *tables, bool *dropped)
    noexcept;

  /** @return whether two definitions are of the same table and file */
  static bool is_same(const dict_table_t &a, const dict_table_t &b) noexcept
  {
    return a.id == b.id && a.space_id == b.space_id && a.flags == b.flags &&
      a.flags2 == b.flags2;
  }

  /** Find a column by its exact name. (For each field of an index, MariaDB compares the
  names of all columns, ignoring case. To reach the name of a column, it walks along all
  names before it.)
  @param table  definition
  @param name   name of a column that is not virtual
  @return the number of the column, or 0 if there is none; from this column on, the
  caller compares names as MariaDB does */
  static ulint find_name(const dict_table_t &table, const char *name) noexcept
  {
    const char *s= table.col_names;
    for (ulint i= 0; i < table.n_def; i++, s+= strlen(s) + 1)
      if (!strcmp(s, name))
        return i;
    return 0;
  }

  /** Free a definition that was never added to the cache. */
  static void free_table(dict_table_t *table) noexcept;

  /** Find out if SYS_FOREIGN mentions a table.
  @param name      table name
  @param children  this adds the names of the tables that have a FOREIGN KEY to it
  @return whether there are constraints, or they cannot be read */
  static bool has_foreign(const dict_string &name,
                          dict_vector<dict_string> *children) noexcept;
};

#endif
