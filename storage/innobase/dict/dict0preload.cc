/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file dict/dict0preload.cc
Load table definitions: do the file I/O before dict_sys.latch is acquired
exclusively.

The first thread that uses a table loads its definition: it reads rows of
SYS_TABLES, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS and SYS_FOREIGN, opens the
.ibd file, validates the first page and reads the root page of the clustered
index. dict_load_table_one() does all of it while it holds dict_sys.latch
exclusively, so every thread that looks up any table waits for that I/O.

Here the thread does the same work in advance. A dict_preload_t holds the
result, which dict_load_table_one() then only has to link into the cache.

Steps of a thread that wants table T, which dict_sys.find_table() did not find
==============================================================================

  prepare()
   1 enter    Put the name of T in a slot. If another thread has put it there,
              wait until that thread has left. Then look up T again.
   2 rows     Hold rows_latch in shared mode. Note n_changes. Read the row of
              SYS_TABLES.
   3 file     Hold no latch. Open the .ibd file, read and validate page 0.
              If fil_system knows the tablespace, this step is skipped.
   4 rows     Hold rows_latch in shared mode. If n_changes has changed, stop
              unless the row of SYS_TABLES is the same as before. Create the
              fil_space_t with the open file, unless there is one by now. Note
              n_changes. Read the other rows into a dict_table_t that only this
              thread can see. Acquire a reference to the fil_space_t.
   5 root     Hold no latch. Read the root page of the clustered index.
              Release the reference.
              Repeat 2 to 5 for the child tables of T by FOREIGN KEY.
  lock()
   6          Acquire dict_sys.latch exclusively, by lock_cache(). If n_changes
              has changed, free the definitions, release the latch and go to 2;
              at the second time, keep the latch and go on with nothing prepared.
  dict_sys.load_table()
   7 link     If T is in the cache by now, use that one. Otherwise add the
              prepared definition to the cache, read the metadata of instant
              ALTER TABLE from the root page, and load the FOREIGN KEY
              constraints if SYS_FOREIGN mentions T. If there is no prepared
              definition, load everything here.
  unlock()
   8 leave    Release dict_sys.latch, leave the slot, wake up the waiters, free
              the prepared definitions that were not used.

Why the prepared definition is the one that dict_load_table_one() would have loaded
===================================================================================

A thread that holds dict_sys.latch exclusively by dict_sys.lock() holds rows_latch
exclusively, too; dict_sys.unlock() increments n_changes. A thread that has it by
dict_sys.lock_cache() does neither. It may add tables to the cache and remove them,
and open tablespaces, but it does not change what is read here: rows of the
dictionary tables, names of tables, files. So a thread that loads or evicts tables
does not stop threads that read rows, and these stop nothing but DDL.

If n_changes is the same in steps 4 and 6, no thread was between dict_sys.lock() and
dict_sys.unlock() in between. Other threads may have done work that does not require
the exclusive latch: purge the history of the dictionary tables, roll back a recovered
transaction, write pages, look up tables. They may do that during a
dict_load_table_one(), too. So it does not matter that dict_load_table_one() would
have held the latch exclusively all the time. A thread reads rows while it holds
rows_latch in shared mode, so it never sees half of an ALTER TABLE, which it would
have to distinguish from corruption.

Step 5 reads without a latch only the type of one page, which lives as long as the
.ibd file. Between 5 and 7 another thread may load T, write to it, and evict it. Only
two parts of a definition can change then:

 1. The metadata of instant ALTER TABLE: it is forgotten when the table becomes empty.
 2. In 11.8, the greatest DB_ROW_ID of a table without PRIMARY KEY, which is on the
    table's last page.

That is why step 7 reads both. Step 7 also reads a root page in the system tablespace,
because DDL may have freed it.

If the pages with these rows have to be read from a slow disk, a thread reads them
before 2 and in 3, where it holds no latch. Otherwise DDL, which holds dict_sys.latch
while it waits for rows_latch, would stop all threads for that long. See page_warmer.

If n_changes has changed in 6, the thread frees what it built, whatever the change was.

The file that was opened in 3 is the file of the fil_space_t that is created in 4,
also if n_changes has changed, because no thread can have put another file in its
place:

 1. DDL that replaces or renames the file opens the tablespace first, and the
    tablespace stays in fil_system until the file is deleted.
 2. A new file gets a new identifier.
 3. DISCARD TABLESPACE gives the table another identifier, so the row has changed.
 4. DDL that removes a file which it has not opened removes the row, too.

So if fil_system does not have the identifier in 4, while SYS_TABLES still has the
same row, the file belongs to that row.

What another thread can see
===========================

- After 1: that T is being loaded, in dict_preload_t::enter() only. This saves
  work and I/O. Correctness does not depend on it: threads that hold
  dict_sys.latch exclusively load T without looking at the slots.
- After 4: a fil_space_t, created while SYS_TABLES had a row for it. T is not in the
  cache, but its tablespace is in fil_system. The same remains when T is evicted, so
  DROP TABLE, RENAME, TRUNCATE, DISCARD TABLESPACE, and shutdown know this state.
  Another thread can be in fil_ibd_open() for the same file at that time: it has
  dict_sys.latch by lock_cache(), and loads T because T has a FOREIGN KEY to its table,
  but did not prepare T. So both look for a fil_space_t again before they create one,
  while they hold fil_system.mutex, and do not release it before the file is added.
  Until the end of 5 the reference keeps the fil_space_t from being freed.
  fil_space_t::drop() waits for the reference while its caller holds dict_sys.latch
  and rows_latch, so a thread that has a reference must not wait for either. In 7 the
  thread uses the pointer to the fil_space_t only if n_changes shows that no DDL has
  freed it.
- After 7: the table, complete, its FOREIGN KEY constraints and child tables
  loaded, as ever.

Failure
=======

Everything unexpected (no file, wrong flags, a bad page, a missing key, a .isl
file and a file in the data directory, an uncommitted ALTER TABLE, ...) ends the
preparation, which returns no error. dict_load_table_one() then meets the same with
the latch held, and returns what it always returned. Messages of the functions for
rows and pages may be in the error log twice. A fil_space_t that has been created
stays; the thread frees the rest.

A thread does not prepare

 1. tables with FULLTEXT INDEX: it opens their file in advance, but loads their
    definition under the latch;
 2. tables whose tablespace is discarded;
 3. any table while the server starts, in read-only mode, with innodb_force_recovery,
    in mariadb-backup, and with --external-locking (closing a second descriptor of a
    file would end the lock on it).

Order of locks
==============

MDL, then a name in a slot, then dict_sys.latch, then rows_latch, then the locks that
have always come after dict_sys.latch (page latches, references to tablespaces,
fil_system.mutex). There is no cycle:

 1. A thread that holds rows_latch in shared mode holds no dict_sys.latch and does not
    ask for it.
 2. A thread that waits for a name holds no latch and has no name in a slot.
 3. A thread that has a name in a slot never waits for another name. If another thread
    is loading a child table of T, this thread builds the definition a second time, and
    frees the later one in 8.
 4. A thread that holds dict_sys.latch never waits for a name.
 5. A thread holds a slot's mutex for a few instructions, and acquires nothing
    meanwhile.

A thread that waits for a name waited for dict_sys.latch at the same place
before, while the other thread held that latch for the same I/O.
*/

#include "dict0preload.h"
#include "btr0btr.h"
#include "btr0cur.h"
#include "btr0pcur.h"
#include "dict0boot.h"
#include "dict0load.h"
#include "fil0crypt.h"
#include "fsp0file.h"
#include "log0recv.h"
#include "rem0cmp.h"
#include "srv0start.h"
#include "debug_sync.h"
#include <condition_variable>
#include <mutex>

/* In dict0load.cc */
bool dict_load_rows(dict_table_t *table, unsigned uncommitted,
                    dict_err_ignore_t ignore);

#ifdef UNIV_DEBUG
thread_local bool dict_preload_reads;
#endif

namespace
{

/** How often prepared definitions are built again after a DDL operation */
constexpr unsigned MAX_REBUILDS= 1;

/** The most tables that are built for one, if it has FOREIGN KEY children */
constexpr size_t MAX_BUILT= 64;

/** Finds out whether pages of the dictionary tables come from a slow disk. If so,
threads read them into the buffer pool before they acquire rows_latch. If not,
they leave out these searches, which take a twenty-fifth of the CPU time of the
statement. An object measures the time of the reading from its creation to its end. */
class page_warmer
{
  /** A read that takes longer than this has waited for a disk, in microseconds */
  static constexpr ulonglong SLOW= 200;
  /** How many loads read pages in advance after a read was slow */
  static constexpr unsigned LOADS= 256;
  /** how many loads are still to do so. A lost update does no harm: each slow read is
  noted. Nor does a load that was slow for want of a CPU. */
  static Atomic_relaxed<unsigned> left;
  /** when the caller began to read */
  const ulonglong begin= microsecond_interval_timer();

public:
  /** Note how long it took to read, with or without rows_latch */
  ~page_warmer()
  {
    if (microsecond_interval_timer() - begin > SLOW)
      left= LOADS;
  }

  /** @return whether a load that begins is to read pages in advance */
  static bool begin_load()
  {
    const unsigned n= left;
    if (n)
      left= n - 1;
    return n != 0;
  }
};

/* After a start, nothing is in the buffer pool */
Atomic_relaxed<unsigned> page_warmer::left{page_warmer::LOADS};

/** Names of the tables that are being loaded */
struct slot
{
  /** protects first, and dict_preload_t::name, next, entered of the list */
  std::mutex mutex;
  /** woken up when a name leaves the list */
  std::condition_variable left;
  /** the loading threads */
  dict_preload_t *first= nullptr;
};

slot slots[64];

slot &slot_of(const char *name, size_t len)
{
  return slots[my_crc32c(0, name, len) % array_elements(slots)];
}

/* In 11.8, a mini-transaction belongs to a transaction, whose page accesses it
counts, or to none.

read_changing() reads the parts of a definition that can change while no latch is
held, when the table is in the cache: the metadata of instant ALTER TABLE, and in
11.8 the greatest DB_ROW_ID of a table without PRIMARY KEY.

How a data file is opened depends on caching(), which SET GLOBAL
innodb_data_file_write_through and innodb_data_file_buffering change in 11.8. Then
the server opens the files that fil_system knows again. */
#if MYSQL_VERSION_ID < 110800
struct own_mtr : mtr_t {};
dberr_t read_changing(dict_table_t *table)
{ return table->supports_instant() ? btr_cur_instant_init(table) : DB_SUCCESS; }
constexpr int caching() { return 0; }
#else
struct own_mtr : mtr_t { own_mtr() : mtr_t(nullptr) {} };
dberr_t read_changing(dict_table_t *table)
{ own_mtr mtr; return btr_cur_instant_init(&mtr, table); }
int caching()
{ return fil_system.is_write_through() + 2 * fil_system.is_buffered(); }
#endif

/** The key of a lookup by the first column of an index */
struct search_key
{
  dfield_t field;
  dtuple_t tuple;

  search_key(dict_index_t *index, const void *data, size_t len) : tuple()
  {
    tuple.n_fields= tuple.n_fields_cmp= 1;
    tuple.fields= &field;
    ut_d(tuple.magic_n= DATA_TUPLE_MAGIC_N);
    dfield_set_data(&field, data, len);
    dict_index_copy_types(&tuple, index, 1);
  }
};

/** Position a cursor on the first record whose first column is not less.
@return whether there is such a record */
bool find_first(btr_pcur_t *pcur, dict_index_t *index, const search_key &key,
                mtr_t *mtr)
{
  pcur->btr_cur.page_cur.index= index;
  return btr_pcur_open_on_user_rec(&key.tuple, BTR_SEARCH_LEAF, pcur, mtr) ==
    DB_SUCCESS && btr_pcur_is_on_user_rec(pcur);
}

/** Read the page that has the first record for a key into the buffer pool,
so that no thread waits for the disk when it is read with dict_sys.latch held.
@param table   dictionary table
@param key     first column of its clustered index
@param len     length of the key
@param column  column to read from the record, of 8 bytes
@param value   the column, unchanged if there is no record */
void touch(const dict_table_t *table, const void *key, size_t len,
           ulint column= 0, byte *value= nullptr)
{
  ut_ad(!dict_sys.frozen());
  dict_index_t *index= table->indexes.start;
  const search_key search(index, key, len);
  btr_pcur_t pcur;
  own_mtr mtr;
  mtr.start();
  if (find_first(&pcur, index, search, &mtr) && value)
  {
    const byte *field=
      rec_get_nth_field_old(btr_pcur_get_rec(&pcur), column, &len);
    if (len == 8)
      memcpy(value, field, 8);
  }
  mtr.commit();
}

/** Read the pages of the dictionary tables that have a table's columns,
indexes and index fields into the buffer pool.
@param id  table identifier */
void touch_rows(table_id_t id)
{
  page_warmer time;
  byte table_id[8], index_id[8];
  mach_write_to_8(table_id, id);
  memset(index_id, 0, sizeof index_id);
  touch(dict_sys.sys_columns, table_id, 8);
  touch(dict_sys.sys_indexes, table_id, 8, DICT_FLD__SYS_INDEXES__ID, index_id);
  touch(dict_sys.sys_fields, index_id, 8);
}

/** Find the name that SYS_TABLES has for a table identifier.
@param id    table identifier
@param name  the name
@return whether a name was found */
bool name_of(table_id_t id, std::string *name)
{
  ut_ad(dict_sys.frozen());
  byte id_buf[8];
  mach_write_to_8(id_buf, id);
  dict_index_t *index= dict_sys.sys_tables->indexes.start->indexes.next;
  const search_key key(index, id_buf, sizeof id_buf);
  bool found= false;
  btr_pcur_t pcur;
  own_mtr mtr;
  mtr.start();

  if (find_first(&pcur, index, key, &mtr))
  {
    do
    {
      const rec_t *rec= btr_pcur_get_rec(&pcur);
      ulint len;
      const byte *field=
        rec_get_nth_field_old(rec, DICT_FLD__SYS_TABLE_IDS__ID, &len);
      if (len != 8 || memcmp(field, id_buf, 8))
        break;
      /* A renamed table has a delete-marked record with its old name */
      if (found && rec_get_deleted_flag(rec, 0))
        continue;
      field= rec_get_nth_field_old(rec, DICT_FLD__SYS_TABLE_IDS__NAME, &len);
      if (len == UNIV_SQL_NULL)
        break;
      name->assign(reinterpret_cast<const char*>(field), len);
      found= true;
      if (!rec_get_deleted_flag(rec, 0))
        break;
    }
    while (btr_pcur_move_to_next_user_rec(&pcur, &mtr));
  }

  mtr.commit();
  return found;
}

/** Read the row of SYS_TABLES.
@param name         table name
@param uncommitted  what to pass to dict_load_columns()
@return a definition without columns and indexes
@retval nullptr if there is no row, or it is not understood */
dict_table_t *read_table(const std::string &name, unsigned *uncommitted)
{
  ut_ad(dict_sys.frozen());
  page_warmer time;
  dict_index_t *index= dict_sys.sys_tables->indexes.start;
  const search_key key(index, name.data(), name.size());
  dict_table_t *table= nullptr;
  btr_pcur_t pcur;
  own_mtr mtr;
  mtr.start();
  dict_preload_t::quiet= true;

  if (find_first(&pcur, index, key, &mtr))
  {
    const rec_t *rec= btr_pcur_get_rec(&pcur);
    if (rec_get_field_start_offs(rec, 1) == name.size() &&
        !memcmp(name.data(), rec, name.size()) &&
        !dict_load_table_low(&mtr, false, rec, &table) && table)
      /* Whether this is a version of the table that the newest row describes: then
      an uncommitted instant ALTER TABLE is to be detected. */
      *uncommitted= table->id == mach_read_from_8
        (rec + rec_get_field_start_offs(rec, DICT_FLD__SYS_TABLES__ID));
  }

  dict_preload_t::quiet= false;
  mtr.commit();
  return table;
}

/** Find out if SYS_FOREIGN mentions a table.
@param index     index on FOR_NAME or REF_NAME
@param name      table name
@param ids       if not nullptr, this adds the identifiers of the constraints
@return whether there are constraints, or they cannot be read */
bool has_foreign(dict_index_t *index, const std::string &name,
                 std::vector<std::string> *ids)
{
  ut_ad(dict_sys.frozen());
  const search_key key(index, name.data(), name.size());
  const dtype_t &type= *dfield_get_type(&key.field);
  bool found= false;
  btr_pcur_t pcur;
  own_mtr mtr;
  mtr.start();
  pcur.btr_cur.page_cur.index= index;

  if (btr_pcur_open_on_user_rec(&key.tuple, BTR_SEARCH_LEAF, &pcur, &mtr) !=
      DB_SUCCESS)
    found= true;
  else
    for (; btr_pcur_is_on_user_rec(&pcur);
         btr_pcur_move_to_next_user_rec(&pcur, &mtr))
    {
      const rec_t *rec= btr_pcur_get_rec(&pcur);
      ulint len;
      const byte *field=
        rec_get_nth_field_old(rec, DICT_FLD__SYS_FOREIGN_FOR_NAME__NAME, &len);
      /* This compares case-insensitively, as dict_load_foreigns() does */
      if (cmp_data(type.mtype, type.prtype, false,
                   reinterpret_cast<const byte*>(name.data()), name.size(),
                   field, len))
        break;
      found= true;
      if (!ids)
        break;
      field= rec_get_nth_field_old(rec, DICT_FLD__SYS_FOREIGN_FOR_NAME__ID,
                                   &len);
      if (len != UNIV_SQL_NULL && !rec_get_deleted_flag(rec, 0))
        ids->emplace_back(reinterpret_cast<const char*>(field), len);
    }

  mtr.commit();
  return found;
}

/** Read SYS_FOREIGN.FOR_NAME.
@param id    identifier of a constraint
@param name  name of the child table
@return whether it was found */
bool child_of(const std::string &id, std::string *name)
{
  ut_ad(dict_sys.frozen());
  dict_index_t *index= dict_sys.sys_foreign->indexes.start;
  const search_key key(index, id.data(), id.size());
  bool found= false;
  btr_pcur_t pcur;
  own_mtr mtr;
  mtr.start();

  if (find_first(&pcur, index, key, &mtr))
  {
    const rec_t *rec= btr_pcur_get_rec(&pcur);
    ulint len;
    const byte *field=
      rec_get_nth_field_old(rec, DICT_FLD__SYS_FOREIGN__ID, &len);
    if (len == id.size() && !memcmp(field, id.data(), len))
    {
      field= rec_get_nth_field_old(rec, DICT_FLD__SYS_FOREIGN__FOR_NAME, &len);
      if (len != UNIV_SQL_NULL)
      {
        name->assign(reinterpret_cast<const char*>(field), len);
        found= true;
      }
    }
  }

  mtr.commit();
  return found;
}

/** An .ibd file, opened and validated, before fil_system knows of it */
class opened_file
{
  /** the open file */
  pfs_os_file_t handle= OS_FILE_CLOSED;
  /** caching(), before the file was opened */
  int opened_with= 0;
  /** path name */
  char *path= nullptr;
  /** size in pages, as fil_node_t::size has it */
  uint32_t size= 0;
  /** FSP_SPACE_FLAGS */
  uint32_t flags= 0;
  /** FSP_SIZE */
  uint32_t size_in_header= 0;
  /** FSP_FREE_LIMIT */
  uint32_t free_limit= 0;
  /** length of FSP_FREE */
  uint32_t free_len= 0;
  /** encryption information, owned */
  fil_space_crypt_t *crypt_data= nullptr;

  bool set_path(const fil_space_t::name_type &name) noexcept;
  bool read_page0(uint32_t id, uint32_t expected, os_offset_t bytes,
                  const page_t *page) noexcept;

public:
  opened_file()= default;
  opened_file(const opened_file&)= delete;
  opened_file &operator=(const opened_file&)= delete;
  ~opened_file() { close(); }

  void close() noexcept;
  bool open(uint32_t id, uint32_t expected,
            const fil_space_t::name_type &name) noexcept;
  bool create_space(uint32_t id, uint32_t expected, uint32_t table_flags) noexcept;
};

/** Free everything that create_space() did not hand over. */
void opened_file::close() noexcept
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
@param name   table name
@return whether there is just one place */
bool opened_file::set_path(const fil_space_t::name_type &name) noexcept
{
  path= fil_make_filepath(nullptr, name, IBD, false);
  RemoteDatafile remote;
  remote.init(0);
  if (const char *linked= remote.open_link_file(name))
  {
    if (!access(path, F_OK))
      return false; /* dict_load_table_one() will decide */
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
bool opened_file::read_page0(uint32_t id, uint32_t expected, os_offset_t bytes,
                             const page_t *page) noexcept
{
  if (mach_read_from_4(page + FIL_PAGE_SPACE_ID) != id ||
      mach_read_from_4(page + FSP_HEADER_OFFSET + FSP_SPACE_ID) != id ||
      page_get_page_no(page) != 0)
    return false;

  flags= fsp_header_get_flags(page);
  const uint32_t dict_flags= expected & ~FSP_FLAGS_MEM_MASK;
  if (!fil_space_t::is_valid_flags(flags, id) ||
      fil_space_t::logical_size(flags) != srv_page_size ||
      fil_space_t::physical_size(flags) !=
      fil_space_t::physical_size(dict_flags) ||
      (!fil_space_t::is_flags_equal(flags, dict_flags) &&
       (!(fil_space_t::full_crc32(flags) ||
          fil_space_t::full_crc32(dict_flags)) ||
        !fil_space_t::is_flags_equal(dict_flags, flags))))
    return false;

  if (fil_space_t::full_crc32(flags) &&
      !fil_comp_algo_loaded(FSP_FLAGS_FCRC32_GET_COMPRESSED_ALGO(flags)))
    return false;

  if (mach_read_from_8(page + FIL_PAGE_LSN) > log_sys.get_flushed_lsn() ||
      buf_page_is_corrupted(false, page, flags) != NOT_CORRUPTED)
    return false;

  const unsigned zip_size= fil_space_t::zip_size(flags);
  crypt_data= fil_space_read_crypt_data(zip_size, page);
  if (crypt_data && !crypt_data->is_key_found())
    return false;

  size_in_header= fsp_header_get_field(page, FSP_SIZE);
  free_limit= fsp_header_get_field(page, FSP_FREE_LIMIT);
  free_len= flst_get_len(FSP_HEADER_OFFSET + FSP_FREE + page);

  /* A file of at least one extent counts in whole extents. */
  const unsigned psize= fil_space_t::physical_size(flags);
  const os_offset_t extent= os_offset_t{psize} * FSP_EXTENT_SIZE;
  if (bytes >= extent)
    bytes-= bytes % extent;
  size= uint32_t(bytes / psize);
  return true;
}

/** Open the file and read the first page.
@param id        tablespace identifier
@param expected  flags according to the dictionary
@param name      table name
@return whether there is a valid file */
bool opened_file::open(uint32_t id, uint32_t expected,
                       const fil_space_t::name_type &name) noexcept
{
  DBUG_EXECUTE_IF("fil_space_create_failure", return false;);
  DBUG_EXECUTE_IF("dict_preload_fail_file", return false;);
  ut_ad(!dict_sys.frozen());

  if (!set_path(name))
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

  /* Of a compressed table, the page is shorter; functions for pages expect its
  address to be a multiple of srv_page_size */
  page_t *page= static_cast<byte*>(aligned_malloc(srv_page_size,
                                                  srv_page_size));
  const bool ok=
    os_file_read(IORequestRead, handle, page, 0, psize, nullptr) ==
    DB_SUCCESS && read_page0(id, expected, bytes, page);
  aligned_free(page);
  return ok;
}

/** Make the file known to fil_system, unless another thread has done so.
@param id           tablespace identifier
@param expected     flags according to the dictionary
@param table_flags  dict_table_t::flags
@return whether a matching tablespace exists */
bool opened_file::create_space(uint32_t id, uint32_t expected,
                               uint32_t table_flags) noexcept
{
  ut_ad(dict_sys.frozen());
  mysql_mutex_lock(&fil_system.mutex);
  fil_space_t *space= fil_space_get_by_id(id);
  const bool exists= space != nullptr;
  bool encrypt= false;

  if (!exists)
  {
    for (unsigned left= 8;
         left && fil_system.n_open + 1 >= srv_max_n_open_files &&
           fil_space_t::try_to_close(nullptr, false); left--);
    /* If no file could be closed, the tablespace is closed at first, and the
    first I/O waits until there is room. The same if files are opened in another
    way by now: no other thread knew of this file, so none opened it again. */
    const bool hand_over= fil_system.n_open + 1 < srv_max_n_open_files &&
      opened_with == caching();

    space= fil_space_t::create(id, expected, false, crypt_data,
                               FIL_ENCRYPTION_DEFAULT, hand_over, false);
    crypt_data= nullptr;
    fil_node_t *node=
      space->add(path, hand_over ? handle : pfs_os_file_t(OS_FILE_CLOSED),
                 0, false, true);
    if (hand_over)
    {
      handle= OS_FILE_CLOSED;
      space->flags= (space->flags & FSP_FLAGS_MEM_MASK) | flags;
      space->size_in_header= size_in_header;
      space->free_limit= free_limit;
      space->free_len= free_len;
      node->find_metadata(IF_WIN(,false));
      node->size= size;
      space->set_sizes(size);
    }
    encrypt= space->is_in_default_encrypt;
  }

  mysql_mutex_unlock(&fil_system.mutex);
  fil_space_t::signal_encryption(encrypt);
  close();
  return !exists ||
    fil_space_for_table_exists_in_mem(id, table_flags) != nullptr;
}

/** Acquire a reference to a tablespace, so that it will not be freed. The file
need not be open.
@param id  tablespace identifier
@return the tablespace, to be released
@retval nullptr if it does not exist or is being dropped */
fil_space_t *acquire_space(uint32_t id)
{
  mysql_mutex_lock(&fil_system.mutex);
  fil_space_t *space= fil_space_get_by_id(id);
  /* The STOPPING flags are set while holding fil_system.mutex */
  if (space && (space->is_stopping() || !space->acquire(0)))
    space= nullptr;
  mysql_mutex_unlock(&fil_system.mutex);
  return space;
}

/** Free a definition that was never added to the cache. */
void free_table(dict_table_t *table)
{
  ut_ad(!table->cached);
  while (dict_index_t *index= UT_LIST_GET_LAST(table->indexes))
  {
    ut_ad(!index->online_log);
    UT_LIST_REMOVE(table->indexes, index);
    index->detach_columns();
    index->lock.free();
    dict_mem_index_free(index);
  }
  if (table->fts)
  {
    /* for a column FTS_DOC_ID */
    table->fts->~fts_t();
    table->fts= nullptr;
  }
  dict_mem_table_free(table);
}

/** @return whether the root page of the clustered index is valid
@param table  definition; the caller holds a reference to table->space */
bool read_root(dict_table_t *table)
{
  dict_index_t *index= dict_table_get_first_index(table);
  if (!index || !index->is_primary() || index->is_corrupted() ||
      index->page >= table->space->get_size())
    return false;

  bool ok= false;
  own_mtr mtr;
  mtr.start();
  if (const buf_block_t *block=
      buf_page_get(page_id_t(table->space->id, index->page),
                   table->space->zip_size(), RW_S_LATCH, &mtr))
  {
    const auto type= fil_page_get_type(block->page.frame);
    ok= type == FIL_PAGE_INDEX || type == FIL_PAGE_TYPE_INSTANT;
  }
  mtr.commit();
  return ok;
}

} /* anonymous namespace */

srw_lock_low dict_preload_t::rows_latch;
uint64_t dict_preload_t::n_changes;
thread_local bool dict_preload_t::quiet;
dict_preload_t *dict_preload_t::current;

/** Acquire rows_latch in shared mode. */
inline void dict_preload_t::keep_ddl_out() noexcept
{
  ut_ad(!dict_sys.frozen());
  rows_latch.rd_lock();
  ut_d(dict_preload_reads= true);
}

/** Release it. */
inline void dict_preload_t::let_ddl_in() noexcept
{
  ut_ad(dict_preload_reads);
  ut_d(dict_preload_reads= false);
  rows_latch.rd_unlock();
}

/** @return whether the cache has a table */
static bool is_cached(const std::string &name)
{
  dict_sys.freeze(SRW_LOCK_CALL);
  const bool found= dict_sys.find_table({name.data(), name.size()});
  dict_sys.unfreeze();
  return found;
}

/** Announce that this thread loads a table.
@param table_name  table name
@return whether no other thread was loading it; if one was, it has finished */
bool dict_preload_t::enter(const span<const char> &table_name) noexcept
{
  ut_ad(!dict_sys.frozen());
  ut_ad(!entered);
  slot &s= slot_of(table_name.data(), table_name.size());
  std::unique_lock<std::mutex> lock(s.mutex);
  const auto is_loading= [&]()
  {
    for (const dict_preload_t *p= s.first; p; p= p->next)
      if (p->name.size() == table_name.size() &&
          !memcmp(p->name.data(), table_name.data(), table_name.size()))
        return true;
    return false;
  };

  if (is_loading())
  {
    lock.unlock();
    DEBUG_SYNC_C("dict_preload_wait");
    lock.lock();
    s.left.wait(lock, [&]() { return !is_loading(); });
    return false;
  }

  name.assign(table_name.data(), table_name.size());
  next= s.first;
  s.first= this;
  entered= true;
  return true;
}

/** Undo enter(), and free the definitions that were built and not taken. */
void dict_preload_t::leave() noexcept
{
  if (entered)
  {
    slot &s= slot_of(name.data(), name.size());
    std::lock_guard<std::mutex> lock(s.mutex);
    dict_preload_t **prev= &s.first;
    while (*prev != this)
      prev= &(*prev)->next;
    *prev= next;
    entered= false;
    s.left.notify_all();
  }
  discard();
}

/** Free the definitions that were built and not taken. */
void dict_preload_t::discard() noexcept
{
  for (const built &b : tables)
    if (b.table)
      free_table(b.table);
  tables.clear();
}

bool dict_preload_t::prepare(const span<const char> &table_name,
                             dict_err_ignore_t ignore_err) noexcept
{
  if (!enter(table_name))
    return false;
  ignore= ignore_err;
#ifdef ENABLED_DEBUG_SYNC
  DBUG_EXECUTE_IF("dict_preload_background",
                  THD *thd= _current_thd();
                  if (thd && !thd_get_thread_id(thd) && name == "test/t1")
                    debug_sync_set_action
                      (thd, STRING_WITH_LEN("now SIGNAL background_loads"
                                            " WAIT_FOR background_go")););
#endif
  build();
  return true;
}

bool dict_preload_t::prepare(table_id_t id, dict_err_ignore_t ignore_err)
  noexcept
{
  std::string found;
  keep_ddl_out();
  const bool ok= name_of(id, &found);
  let_ddl_in();
  /* dict_load_table_on_id() will find out again */
  return !ok || prepare({found.data(), found.size()}, ignore_err);
}

/** Build the definition of the wanted table, and those of the child tables
that dict_sys_t::load_table() loads with it. */
void dict_preload_t::build() noexcept
{
  ut_ad(tables.empty());
  interrupted= false;
  if ((ignore & ~DICT_ERR_IGNORE_FK_NOKEY) || !srv_was_started ||
      srv_read_only_mode || !my_disable_locking || srv_force_recovery || recv_recovery_is_on() ||
      srv_operation != SRV_OPERATION_NORMAL)
    return;

  std::vector<std::string> names{name};
  for (size_t i= 0; i < names.size() && tables.size() < MAX_BUILT; i++)
  {
    const std::string n{names[i]};
    if (!build(n, &names) && i == 0)
      break;
  }
}

/** Build a definition.
@param table_name  table name
@param names       this adds the names of child tables that are not there
@return whether this was possible */
bool dict_preload_t::build(const std::string &table_name,
                           std::vector<std::string> *names) noexcept
{
  /* The wanted table was looked up just now */
  if (!tables.empty() && is_cached(table_name))
    return false;
  const bool warm= page_warmer::begin_load();
  if (warm)
  {
    page_warmer time;
    touch(dict_sys.sys_tables, table_name.data(), table_name.size());
  }
  keep_ddl_out();
  if (tables.empty())
    changes= n_changes;
  else if (changes != n_changes)
  {
    interrupted= true;
  let_in_and_fail:
    let_ddl_in();
    return false;
  }

  unsigned uncommitted;
  dict_table_t *table= read_table(table_name, &uncommitted);
  if (!table)
    goto let_in_and_fail;

  fil_space_t *space= nullptr;
  bool ok= !table->name.is_temporary() && !table->file_unreadable &&
    !(table->flags2 & DICT_TF2_DISCARDED) &&
    table->space_id < SRV_SPACE_ID_UPPER_BOUND;

  if (ok && table->space_id != TRX_SYS_SPACE)
  {
    mysql_mutex_lock(&fil_system.mutex);
    ok= fil_space_get_by_id(table->space_id) != nullptr;
    mysql_mutex_unlock(&fil_system.mutex);
    if (ok)
      ok= fil_space_for_table_exists_in_mem(table->space_id, table->flags) !=
        nullptr;
    else
    {
      const uint32_t flags= dict_tf_to_fsp_flags(table->flags);
      const uint32_t id= table->space_id;
      const table_id_t table_id= table->id;
      let_ddl_in();
      if (tables.empty())
        DEBUG_SYNC_C("dict_preload_file");
      else
        DEBUG_SYNC_C("dict_preload_child_file");
      opened_file file;
      ok= flags != UINT32_MAX &&
        file.open(id, flags, {table_name.data(), table_name.size()});
      DEBUG_SYNC_C("dict_preload_file_opened");
      if (ok && warm)
        touch_rows(table_id);
      keep_ddl_out();
      if (changes == n_changes)
        ok= ok && file.create_space(id, flags, table->flags);
      else if (!tables.empty())
        ok= false;
      else
      {
        /* The file is the right one if SYS_TABLES has the same row */
        dict_table_t *again= read_table(table_name, &uncommitted);
        ok= ok && again && again->id == table->id &&
          again->space_id == id && again->flags == table->flags &&
          again->flags2 == table->flags2 &&
          file.create_space(id, flags, table->flags);
        if (again)
        {
          free_table(table);
          table= again;
        }
        changes= n_changes;
      }
    }
  }

  built b{table, true};
  if (ok)
    space= acquire_space(table->space_id);
  ok= space != nullptr;
  if (ok)
  {
    page_warmer time;
    table->space= space;
    ok= !(table->flags2 & (DICT_TF2_FTS | DICT_TF2_FTS_HAS_DOC_ID |
                           DICT_TF2_FTS_ADD_DOC_ID)) &&
      dict_load_rows(table, uncommitted, ignore);
  }

  if (ok && dict_sys.sys_foreign && dict_sys.sys_foreign_cols)
  {
    dict_index_t *for_name= dict_sys.sys_foreign->indexes.start->indexes.next;
    std::vector<std::string> ids;
    b.foreign= has_foreign(for_name, table_name, nullptr);
    b.foreign|= has_foreign(for_name->indexes.next, table_name, &ids);
    for (const std::string &id : ids)
    {
      std::string child;
      if (child_of(id, &child) &&
          std::find(names->begin(), names->end(), child) == names->end())
        names->push_back(std::move(child));
    }
  }

  let_ddl_in();
  if (ok)
  {
    if (tables.empty())
      DEBUG_SYNC_C("dict_preload_root");
    else
      DEBUG_SYNC_C("dict_preload_child_root");
    /* DDL may free the page of a table in the system tablespace, and use it again,
    while no latch is held. */
    ok= table->space_id == TRX_SYS_SPACE || read_root(table);
    DBUG_EXECUTE_IF("dict_preload_fail_root", ok= false;);
  }
  /* fil_space_t::drop() waits for the reference, and its caller holds
  dict_sys.latch: release the one before waiting for the other. */
  if (space)
    space->release();
  if (ok)
    tables.push_back(b);
  else
    free_table(table);
  if (table_name == name)
    DEBUG_SYNC_C("dict_preload_root_read");
  else
    DEBUG_SYNC_C("dict_preload_child_root_read");
  return ok;
}

void dict_preload_t::lock() noexcept
{
  ut_ad(!locked);
  DEBUG_SYNC_C("dict_preload_lock");
  for (unsigned rebuilds= 0;; rebuilds++)
  {
    const bool last= rebuilds == MAX_REBUILDS;
    if (last || !interrupted)
    {
      dict_sys.lock_cache(SRW_LOCK_CALL);
      if (tables.empty() || changes == n_changes)
        break;
      if (last)
      {
        discard();
        break;
      }
      dict_sys.unlock_cache();
    }
    discard();
    build();
  }
  ut_ad(!current);
  current= this;
  locked= true;
}

void dict_preload_t::unlock() noexcept
{
  ut_ad(locked);
  ut_ad(current == this);
  current= nullptr;
  locked= false;
  dict_sys.unlock_cache();
  leave();
}

dict_table_t *dict_preload_t::take(const span<const char> &table_name,
                                   dict_err_ignore_t ignore_err, bool *foreign)
  noexcept
{
  ut_ad(dict_sys.locked());
  if (!current || current->ignore != ignore_err)
    return nullptr;
  ut_ad(current->tables.empty() || current->changes == n_changes);

  for (built &b : current->tables)
    if (b.table && strlen(b.table->name.m_name) == table_name.size() &&
        !memcmp(b.table->name.m_name, table_name.data(), table_name.size()))
    {
      dict_table_t *table= b.table;
      b.table= nullptr;
      *foreign= b.foreign;
      ut_ad(!dict_sys.find_table(table_name));
      /* If this fails, dict_load_table_one() will meet the same */
      if (table->space_id == TRX_SYS_SPACE && !read_root(table))
      {
        free_table(table);
        return nullptr;
      }
      table->can_be_evicted= true;
      table->add_to_cache();
      if (read_changing(table) != DB_SUCCESS)
      {
        dict_sys.remove(table);
        return nullptr;
      }
      return table;
    }

  return nullptr;
}
