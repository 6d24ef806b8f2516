/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file dict/dict0preload.cc
Load table definitions: do the file I/O before dict_sys.latch is acquired
exclusively.

The idea
========

The first thread that uses a table loads its definition into a cache: it reads rows of
SYS_TABLES, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS and SYS_FOREIGN, opens the .ibd file,
validates the first page, and reads the root page of the clustered index. In MariaDB,
dict_load_table_one() does all of it while it holds dict_sys.latch exclusively, so every
thread that looks up any table waits for that I/O.

Here the thread builds the definition before, in a dict_preload_t that no other thread
can see. It acquires dict_sys.latch only to link the definition into the cache.

1. Rows cannot change while a thread reads them: it holds dict_rows_t::latch in shared
   mode. DDL acquires that latch exclusively, before dict_sys.latch (dict0rows.h).
2. Rows may change before the thread links the definition. Each DDL operation
   changes the number that dict_rows_t::changes() returns. If the thread finds
   another number, it frees the definition and builds it again.
3. Two threads may want the same table. The first one puts the table's name in a slot,
   and the second one waits until the first one has finished. This only saves work: a
   thread that gets the latch, and finds the table in the cache by then, frees its own
   definition.
4. If anything is unusual, dict_load_table_one() loads the table as in MariaDB.

So a thread may hold dict_sys.latch exclusively in one of two ways: by dict_sys.lock()
it may change rows, names and files, by dict_sys.lock_cache() only the cache. Debug
builds check this, and the order of locks, wherever a thread reads or writes rows,
renames a file, acquires a latch (dict_rows_t::held), creates a tablespace, or links a
definition (take()).

Steps of a thread that wants table T, which dict_sys.find_table() did not find
==============================================================================

  prepare()
   1 enter    Put the name of T in a slot. If another thread has put it there,
              wait until that thread has left. Then look up T again.
   2 rows     Keep DDL out (dict_rows_t::reader). Note changes(). Read the row of
              SYS_TABLES.
   3 file     Hold no latch. Open the .ibd file, read and validate page 0
              (fil0ibd.cc). If fil_system knows the tablespace, this step is skipped.
   4 rows     Keep DDL out. If changes() is another number, stop unless the row of
              SYS_TABLES is the same as before. Create the fil_space_t with the open
              file, unless there is one by now. Note changes(). Read the other rows
              into a dict_table_t that only this thread can see. Acquire a reference
              to the fil_space_t.
   5 root     Hold no latch. Read the root page of the clustered index.
              Release the reference.
              Repeat 2 to 5 for the child tables of T by FOREIGN KEY.
  lock()
   6          Acquire dict_sys.latch exclusively, by lock_cache(). If changes() is
              another number, free the definitions, release the latch and go to 2;
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

A thread changes rows of the dictionary tables, names of tables, and files only between
dict_sys.lock() and dict_sys.unlock(), which counts in changes(). If changes() is the same
in steps 4 and 6, no thread has held dict_sys.lock() between these steps. A thread that
holds dict_sys.latch by lock_cache() may add tables to the cache and remove them, and open
tablespaces. So a thread that loads or evicts tables does not stop threads that read rows.
Threads that read rows stop only DDL.

In step 5 the thread holds neither of the two latches. It reads only the type of the root
page, which exists as long as the .ibd file. Between 5 and 7 another thread may load T,
write to it, and evict it. Only two parts of a definition can change then:

 1. The metadata of instant ALTER TABLE: InnoDB forgets it when the table becomes empty.
 2. In 11.8, the greatest DB_ROW_ID of a table without PRIMARY KEY, which is on the
    table's last page.

So step 7 reads both. If T is in the system tablespace, step 7 also reads its root page,
because DDL may have freed that page.

If changes() is another number in step 6, the thread frees the definitions that it built,
whatever the change was. A separate number for each table would save little: to build a
definition again, the thread reads rows that are in the buffer pool by then, and opens no
file. In a test, another connection repeated CREATE and DROP TABLE (991 of each). Of
2,006 loads, 6 built the definition again, in 0.1 ms together, and none loaded it under
the latch.

In step 4 the thread creates the fil_space_t for the file that it opened in step 3. This
is right even after a change, because no thread can have replaced the file:

 1. DDL that replaces or renames the file opens the tablespace first, and the
    tablespace stays in fil_system until the file is deleted.
 2. A new file gets a new identifier.
 3. DISCARD TABLESPACE gives the table another identifier, so the row has changed.
 4. If DROP TABLE has a definition without a tablespace, because the file could not be
    opened when the definition was loaded, it deletes the file by its name, and later
    the row. In between, the thread may create the fil_space_t for the deleted file.
    The commit of DROP looks for it, and removes it: see fil_deletion_t::for_commit.

So if fil_system does not have the identifier in 4, while SYS_TABLES still has the
same row, the file belongs to that row.

What another thread can see
===========================

After 1: another thread in dict_preload_t::enter() sees that T is being loaded. This
saves work and I/O. Correctness does not depend on it: threads that hold dict_sys.latch
exclusively load T without looking at the slots.

After 4: another thread finds a fil_space_t that was created while SYS_TABLES had a row
for it. T is not in the cache, but its tablespace is in fil_system. InnoDB leaves the
same state when it evicts T, so DROP TABLE, RENAME, TRUNCATE, DISCARD TABLESPACE, and
shutdown can handle it.

 1. A thread that loads the parent table of T may load T too, without having prepared
    it. It holds dict_sys.latch by lock_cache(), and may be in fil_ibd_open() for the
    same file. Both threads create the fil_space_t by fil_ibd_file::create_space(),
    which looks for it again.
 2. Until the end of 5 the reference keeps the fil_space_t from being freed, because
    fil_space_t::drop() waits for the reference. DDL may call drop() while it holds
    dict_rows_t::latch and dict_sys.latch exclusively. So a thread must not wait for
    either latch while it holds a reference.
 3. Purge calls drop() while it has latched a page of SYS_INDEXES, which a thread with a
    reference may read in 4. This cannot deadlock: in 4 the thread keeps DDL out, and
    purge drops T only after DROP TABLE was committed.
 4. In 7 the thread uses the pointer to the fil_space_t only if changes() shows that no
    DDL has freed it.

After 7: the complete table, with its FOREIGN KEY constraints and child tables, as in
unpatched MariaDB.

Failure
=======

On anything unexpected (no file, wrong flags, a bad page, a missing key, a .isl
file and a file in the data directory, an uncommitted ALTER TABLE, ...) the thread
stops preparing and reports nothing. dict_load_table_one() meets the same condition
under the latch, and returns MariaDB's error. Messages of the functions for rows and
pages may be in the error log twice. A fil_space_t that the thread has created stays; it
frees the rest.

The thread does not pass a failure on to the threads that wait for the name. Each of
these finds out for itself, and reports it, as in MariaDB:

 1. The file is missing or bad: dict_load_table_one() adds the table to the cache as
    unreadable, so the waiters find it there and read nothing.
 2. SYS_TABLES has no such row: a waiter looks for it, and opens no file.
 3. Other rows or pages are bad: the waiters load the table one after the other, as
    they do in MariaDB under the latch.

A thread does not prepare

 1. a table with a FULLTEXT INDEX or FTS_DOC_ID: it opens the file in advance, but loads
    the definition under the latch;
 2. a table whose tablespace is discarded, or whose name begins with #sql;
 3. any table if the load ignores errors other than DICT_ERR_IGNORE_FK_NOKEY, while the
    server starts, or if fil_ibd_file::may_open() returns false.

Order of locks
==============

MDL, then a name in a slot, then the latch of dict_rows_t, then dict_sys.latch, then the
locks that have always come after dict_sys.latch (page latches, references to
tablespaces, fil_system.mutex). There is no cycle:

 1. A reader holds no dict_sys.latch and does not ask for it. So DDL that waits for
    readers waits for pages at most: for I/O, or for purge, which may have latched one.
    It does not hold dict_sys.latch yet.
 2. A thread that holds dict_sys.latch, but not by dict_sys.lock(), does not ask for the
    latch of dict_rows_t.
 3. A thread that waits for a name holds no latch and has no name in a slot.
 4. A thread that has a name in a slot never waits for another name. If another thread
    is loading a child table of T, this thread builds the definition a second time, and
    frees the later one in 8.
 5. A thread that holds dict_sys.latch never waits for a name.
 6. A thread holds a slot's mutex for a few instructions, and acquires nothing
    meanwhile.

Waiting for a name is no new wait: in unpatched MariaDB the thread waits here for
dict_sys.latch, which the loader holds during the same I/O. If the loader hangs, the
server ends after innodb_fatal_semaphore_wait_threshold seconds, as in MariaDB; see
dict_sys_t::wait_t.
*/

#include "dict0preload.h"
#include "btr0btr.h"
#include "btr0cur.h"
#include "dict0load.h"
#include "dict0rows.h"
#include "fil0ibd.h"
#include "log0recv.h"
#include "srv0start.h"
#include "debug_sync.h"
#include <algorithm>
#include <condition_variable>
#include <mutex>

/* In dict0load.cc */
bool dict_load_rows(dict_table_t *table, unsigned uncommitted);

namespace
{

/** Number of times that a thread builds the definitions again after DDL operations */
constexpr unsigned MAX_REBUILDS= 1;

/** Number of definitions that a thread builds at most for a table with FOREIGN KEY
children */
constexpr size_t MAX_BUILT= 64;

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

/* read_changing() reads the parts of a definition that can change while no latch is
held, when the table is in the cache: the metadata of instant ALTER TABLE, and in
11.8 the greatest DB_ROW_ID of a table without PRIMARY KEY. */
#if MYSQL_VERSION_ID < 110800
dberr_t read_changing(dict_table_t *table)
{ return table->supports_instant() ? btr_cur_instant_init(table) : DB_SUCCESS; }
#else
dberr_t read_changing(dict_table_t *table)
{ dict_mtr_t mtr; return btr_cur_instant_init(&mtr, table); }
#endif

/** A reference to a tablespace, which keeps it from being freed. The file need not be
open. */
class space_reference
{
  fil_space_t *space= nullptr;

public:
  ~space_reference() { ut_ad(!space); }

  /** @return the tablespace, to be released
  @retval nullptr if it does not exist or is being dropped
  @param id  tablespace identifier */
  fil_space_t *acquire(uint32_t id) noexcept
  {
    ut_ad(!space);
    mysql_mutex_lock(&fil_system.mutex);
    space= fil_space_get_by_id(id);
    /* The STOPPING flags are set while holding fil_system.mutex */
    if (space && (space->is_stopping() || !space->acquire(0)))
      space= nullptr;
    mysql_mutex_unlock(&fil_system.mutex);
    ut_d(if (space) dict_rows_held|= dict_rows_t::SPACE);
    return space;
  }

  void release() noexcept
  {
    if (space)
      space->release();
    space= nullptr;
    ut_d(dict_rows_held&= ~dict_rows_t::SPACE);
  }
};

#ifdef UNIV_DEBUG
/** whether this thread has a name in a slot */
thread_local bool has_name;

/** @return whether the tablespace that was found before is still there */
bool is_space_there(const dict_table_t &table)
{
  mysql_mutex_lock(&fil_system.mutex);
  const bool there= fil_space_get_by_id(table.space_id) == table.space &&
    !table.space->is_stopping();
  mysql_mutex_unlock(&fil_system.mutex);
  return there;
}
#endif

/** @return the size of a tablespace, in pages; 0 if DDL is deleting its file, or the file
cannot be read
@param space  tablespace; the caller holds a reference */
uint32_t get_size(fil_space_t *space)
{
  if (!space->size)
  {
    mysql_mutex_lock(&fil_system.mutex);
    if (!space->is_stopping())
      space->read_page0(nullptr, false);
    mysql_mutex_unlock(&fil_system.mutex);
  }
  return space->size;
}

/** @return whether the root page of the clustered index is valid
@param table  definition; the caller holds a reference to table->space */
bool read_root(dict_table_t *table)
{
  dict_index_t *index= dict_table_get_first_index(table);
  if (!index || !index->is_primary() || index->is_corrupted() ||
      index->page >= get_size(table->space))
    return false;

  bool ok= false;
  dict_mtr_t mtr;
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

/** @return whether the cache has a table */
static bool is_cached(const dict_string &name)
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
  ut_ad(!dict_rows_held);
  ut_ad(!has_name);
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
    dict_sys_t::wait_t wait;
    wait.until(s.left, lock, [&]() { return !is_loading(); });
    return false;
  }

  name.assign(table_name.data(), table_name.size());
  next= s.first;
  s.first= this;
  entered= true;
  ut_d(has_name= true);
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
    ut_d(has_name= false);
    s.left.notify_all();
  }
  discard();
}

/** Free the definitions that were built and not taken. */
void dict_preload_t::discard() noexcept
{
  for (const built &b : tables)
    if (b.table)
      dict_rows_t::free_table(b.table);
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
  dict_string found;
  bool ok;
  {
    dict_rows_t::reader rows;
    ok= dict_rows_t::name_of(id, &found);
  }
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
      recv_recovery_is_on() || !fil_ibd_file::may_open())
    return;

  dict_vector<dict_string> names{name};
  for (size_t i= 0; i < names.size() && tables.size() < MAX_BUILT; i++)
  {
    const dict_string n{names[i]};
    if (!build(n, &names) && i == 0)
      break;
  }
}

/** Make sure that fil_system knows the tablespace of a table.
@param rows         keeps DDL out; this unlocks it while it opens the file
@param table_name   table name
@param table        the table, replaced if its row was read again
@param uncommitted  belongs to table
@return whether there is a matching tablespace */
bool dict_preload_t::open_file(dict_rows_t::reader *rows,
                               const dict_string &table_name,
                               dict_table_t **table, unsigned *uncommitted)
  noexcept
{
  const uint32_t id= (*table)->space_id;
  if (!fil_space_get(id))
  {
    const uint32_t flags= dict_tf_to_fsp_flags((*table)->flags);
    const bool first= tables.empty();
    rows->unlock();
    if (first)
      DEBUG_SYNC_C("dict_preload_file");
    else
      DEBUG_SYNC_C("dict_preload_child_file");
    fil_ibd_file file;
    bool ok= file.open(id, flags, {table_name.data(), table_name.size()},
                       DICT_TF_HAS_DATA_DIR((*table)->flags));
    DEBUG_SYNC_C("dict_preload_file_opened");
    rows->lock();

    if (changes != dict_rows_t::changes())
    {
      if (!first)
        return false;
      /* The file is the right one if SYS_TABLES has the same row */
      changes= dict_rows_t::changes();
      dict_table_t *again= dict_rows_t::read_table(table_name, uncommitted);
      if (!again)
        return false;
      ok= ok && dict_rows_t::is_same(*again, **table);
      dict_rows_t::free_table(*table);
      *table= again;
    }
    bool created;
    if (!ok)
      return false;
    file.create_space(id, flags, false, fil_ibd_file::CLOSE_OTHERS, &created);
    if (created)
      return true;
  }
  return fil_space_for_table_exists_in_mem(id, (*table)->flags) != nullptr;
}

/** Build a definition.
@param table_name  table name
@param names       this adds the names of child tables that are not there
@return whether this was possible */
bool dict_preload_t::build(const dict_string &table_name,
                           dict_vector<dict_string> *names) noexcept
{
  /* The wanted table was looked up just now */
  if (!tables.empty() && is_cached(table_name))
    return false;

  dict_rows_t::reader rows;
  if (tables.empty())
    changes= dict_rows_t::changes();
  else if (changes != dict_rows_t::changes())
  {
    interrupted= true;
    return false;
  }

  unsigned uncommitted;
  dict_table_t *table= dict_rows_t::read_table(table_name, &uncommitted);
  DEBUG_SYNC_C("dict_preload_rows");
  if (!table)
    return false;

  built b{table, true};
  space_reference reference;
  fil_space_t *space= nullptr;
  if (!table->name.is_temporary() && !table->file_unreadable &&
      !(table->flags2 & DICT_TF2_DISCARDED) &&
      table->space_id < SRV_SPACE_ID_UPPER_BOUND &&
      (table->space_id == TRX_SYS_SPACE ||
       open_file(&rows, table_name, &b.table, &uncommitted)))
    space= reference.acquire(b.table->space_id);
  table= b.table;
  bool ok= space != nullptr;
  if (ok)
  {
    table->space= space;
    ok= !(table->flags2 & (DICT_TF2_FTS | DICT_TF2_FTS_HAS_DOC_ID |
                           DICT_TF2_FTS_ADD_DOC_ID)) &&
      dict_load_rows(table, uncommitted);
  }
  if (ok)
  {
    dict_vector<dict_string> children;
    b.foreign= dict_rows_t::has_foreign(table_name, &children);
    for (dict_string &child : children)
      if (std::find(names->begin(), names->end(), child) == names->end())
        names->push_back(std::move(child));
  }

  rows.unlock();
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
  /* DDL may keep readers out, and hold dict_sys.latch, while it waits for the reference
  in fil_space_t::drop(): release the one before waiting for the others. */
  reference.release();
  if (ok)
    tables.push_back(b);
  else
    dict_rows_t::free_table(table);
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
      if (tables.empty() || changes == dict_rows_t::changes())
        break;
      if (last)
      {
        discard();
        break;
      }
      dict_sys.unlock_cache();
    }
    discard();
    DEBUG_SYNC_C("dict_preload_rebuild");
    build();
  }
  locked= true;
}

void dict_preload_t::unlock() noexcept
{
  ut_ad(locked);
  locked= false;
  dict_sys.unlock_cache();
  leave();
}

dict_table_t *dict_preload_t::take(const span<const char> &table_name,
                                   dict_err_ignore_t ignore_err, bool *foreign)
  noexcept
{
  ut_ad(dict_sys.locked());
  /* The caller of load_table() may have the latch by dict_sys.lock(), and prepared
  nothing */
  if (!locked || ignore != ignore_err)
    return nullptr;
  ut_ad(tables.empty() || changes == dict_rows_t::changes());

  for (built &b : tables)
    if (b.table && strlen(b.table->name.m_name) == table_name.size() &&
        !memcmp(b.table->name.m_name, table_name.data(), table_name.size()))
    {
      dict_table_t *table= b.table;
      b.table= nullptr;
      *foreign= b.foreign;
      ut_ad(!dict_sys.find_table(table_name));
      ut_ad(is_space_there(*table));
      /* If this fails, dict_load_table_one() will meet the same error */
      if (table->space_id == TRX_SYS_SPACE && !read_root(table))
      {
        dict_rows_t::free_table(table);
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
