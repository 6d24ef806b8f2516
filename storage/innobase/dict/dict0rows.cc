/* SPDX-License-Identifier: GPL-2.0-only */

/**
@file dict/dict0rows.cc
Read rows of the dictionary tables without dict_sys.latch.

A thread that reads here never sees half of an ALTER TABLE, which it would have to
distinguish from corruption. Threads that do not need dict_sys.latch exclusively may
work at the same time: purge the history of the dictionary tables, roll back a recovered
transaction, write pages, look up tables. They may do that during a
dict_load_table_one(), too.
*/

#include "dict0rows.h"
#include "btr0cur.h"
#include "btr0pcur.h"
#include "dict0boot.h"
#include "dict0load.h"
#include "fts0fts.h"
#include "rem0cmp.h"
#include "trx0sys.h"
#include "debug_sync.h"
#include <algorithm>

srw_lock dict_rows_t::latch;
uint64_t dict_rows_t::n_changes;
Atomic_relaxed<uint64_t> dict_rows_t::foreign_known{~uint64_t{0}};

#ifdef UNIV_DEBUG
thread_local unsigned dict_rows_held;
/** whether the thread that holds dict_sys.latch exclusively did dict_sys.lock();
protected by dict_sys.latch */
static bool changer;

bool dict_rows_t::may_read() noexcept
{ return dict_rows_held & ROWS || dict_sys.frozen(); }

bool dict_rows_t::may_change() noexcept
{ return dict_sys.locked() && changer; }

bool dict_rows_t::may_build(const dict_table_t &table) noexcept
{ return dict_sys.locked() || (!table.cached && may_read()); }

bool dict_rows_t::may_write(const dict_table_t &table) noexcept
{
  return (!dict_is_sys_table(table.id) && &table != dict_sys.sys_foreign &&
          &table != dict_sys.sys_foreign_cols &&
          &table != dict_sys.sys_virtual) || may_change();
}
#endif

bool dict_rows_t::is_active(trx_id_t id) noexcept
{
  /* Nearly all rows of a table are from the transaction that created it. Once that has
  ended, it has ended for good. */
  static thread_local trx_id_t ended;
  if (id == ended)
    return false;
  if (trx_sys.find(nullptr, id, false))
    return true;
  ended= id;
  return false;
}

void dict_rows_t::begin_change() noexcept
{
  ut_ad(!dict_rows_held);
  ut_ad(!dict_sys.frozen());
  if (latch.wr_lock_try())
    return;
  DEBUG_SYNC_C("dict_rows_wait");
  const dict_sys_t::wait_t wait;
  latch.wr_lock(SRW_LOCK_CALL);
}

void dict_rows_t::changing() noexcept
{
  ut_ad(dict_sys.locked());
  ut_d(changer= true);
}

void dict_rows_t::end_change() noexcept
{
  ut_ad(may_change());
  ut_d(changer= false);
  n_changes++;
  latch.wr_unlock();
}

void dict_rows_t::reader::lock() noexcept
{
  ut_ad(!is_locked);
  ut_ad(!dict_rows_held);
  ut_ad(!dict_sys.frozen());
  if (!latch.rd_lock_try())
  {
    const dict_sys_t::wait_t wait;
    latch.rd_lock(SRW_LOCK_CALL);
  }
  is_locked= true;
  ut_d(dict_rows_held|= ROWS);
}

void dict_rows_t::reader::unlock() noexcept
{
  ut_ad(is_locked);
  ut_ad(dict_rows_held & ROWS);
  ut_d(dict_rows_held&= ~ROWS);
  is_locked= false;
  latch.rd_unlock();
}

namespace
{

/** The most rows that are read at once */
constexpr size_t MAX_ROWS_READ= 512;
/** The most definitions that are made at once */
constexpr size_t MAX_MADE= 64;

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

/** @return a column that may be NULL or of any length, as a string */
dict_string column(const rec_t *rec, ulint n)
{
  ulint len;
  const byte *field= rec_get_nth_field_old(rec, n, &len);
  return len == UNIV_SQL_NULL
    ? dict_string() : dict_string(reinterpret_cast<const char*>(field), len);
}

/** Check the flags of a record before dict_load_table_low() reads it, which
would report invalid flags. dict_load_table_one() will report them later.
@param rec  record of SYS_TABLES
@return whether there is nothing to report */
bool are_flags_usual(const rec_t *rec)
{
  if (rec_get_n_fields_old(rec) != DICT_NUM_FIELDS__SYS_TABLES)
    return false;
  const auto read= [rec](ulint n)
  {
    ulint len;
    const byte *field= rec_get_nth_field_old(rec, n, &len);
    return len == 4 ? mach_read_from_4(field) : 0;
  };
  const uint32_t type= read(DICT_FLD__SYS_TABLES__TYPE);
  const uint32_t plain= type & ~uint32_t{DICT_TF_MASK_DATA_DIR};
  const bool compact= read(DICT_FLD__SYS_TABLES__N_COLS) & DICT_N_COLS_COMPACT;
  if (!(plain & 1) || plain >= 1U << DICT_TF_POS_UNUSED)
    return false;
  if (plain & ~(1U | DICT_TF_MASK_NO_ROLLBACK) &&
      !(compact && dict_tf_is_valid_not_redundant(plain)))
    return false;
  /* Tables created before MySQL 4.1 may have garbage in MIX_LEN */
  return (!compact && !read(DICT_FLD__SYS_TABLES__SPACE)) ||
    dict_tf2_is_valid((type & ~1U) | compact,
                      read(DICT_FLD__SYS_TABLES__MIX_LEN));
}

/** Find out if an index of SYS_FOREIGN mentions a table.
@param index     index on FOR_NAME or REF_NAME
@param name      table name, or nullptr for any
@param ids       if not nullptr, this adds the identifiers of the constraints
@return whether there are constraints, or they cannot be read */
bool find_foreign(dict_index_t *index, const dict_string *name,
                  dict_vector<dict_string> *ids)
{
  ut_ad(dict_rows_t::may_read());
  const search_key key(index, name ? name->data() : "",
                       name ? name->size() : 0);
  const dtype_t &type= *dfield_get_type(&key.field);
  bool found= false;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
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
      if (name &&
          cmp_data(type.mtype, type.prtype, false,
                   reinterpret_cast<const byte*>(name->data()), name->size(),
                   field, len))
        break;
      found= true;
      if (!ids)
        break;
      if (!rec_get_deleted_flag(rec, 0))
        ids->push_back(column(rec, DICT_FLD__SYS_FOREIGN_FOR_NAME__ID));
    }

  mtr.commit();
  return found;
}

/** Read SYS_FOREIGN.FOR_NAME.
@param id    identifier of a constraint
@return name of the child table, empty if it was not found */
dict_string child_of(const dict_string &id)
{
  ut_ad(dict_rows_t::may_read());
  dict_index_t *index= dict_sys.sys_foreign->indexes.start;
  const search_key key(index, id.data(), id.size());
  dict_string name;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
  mtr.start();
  if (find_first(&pcur, index, key, &mtr))
  {
    const rec_t *rec= btr_pcur_get_rec(&pcur);
    if (column(rec, DICT_FLD__SYS_FOREIGN__ID) == id)
      name= column(rec, DICT_FLD__SYS_FOREIGN__FOR_NAME);
  }
  mtr.commit();
  return name;
}

/** Read the rows of SYS_FIELDS that belong to an index. Those of indexes that one
statement has created follow each other.
@param index          the index
@param pcur           cursor on SYS_FIELDS
@param is_positioned  whether the cursor is behind the fields of another index; set
@param heap           temporary memory
@param mtr            mini-transaction
@return whether all are there */
bool read_fields(dict_index_t *index, btr_pcur_t *pcur, bool *is_positioned,
                 mem_heap_t *heap, mtr_t *mtr)
{
  byte id[8];
  mach_write_to_8(id, index->id);
  if (!*is_positioned || !btr_pcur_is_on_user_rec(pcur) ||
      memcmp(btr_pcur_get_rec(pcur), id, sizeof id))
  {
    if (*is_positioned)
    {
      mtr->commit();
      mtr->start();
    }
    dict_index_t *sys_index= dict_sys.sys_fields->indexes.start;
    const search_key key(sys_index, id, sizeof id);
    *is_positioned= true;
    if (!find_first(pcur, sys_index, key, mtr))
      return false;
  }
  for (unsigned n= index->n_fields; n--;
       btr_pcur_move_to_next_user_rec(pcur, mtr))
    if (!btr_pcur_is_on_user_rec(pcur) ||
        !dict_rows_t::read_field(id, index, btr_pcur_get_rec(pcur), heap, mtr))
      return false;
  return true;
}

} /* anonymous namespace */

bool dict_rows_t::name_of(table_id_t id, dict_string *name) noexcept
{
  ut_ad(may_read());
  byte id_buf[8];
  mach_write_to_8(id_buf, id);
  dict_index_t *index= dict_sys.sys_tables->indexes.start->indexes.next;
  const search_key key(index, id_buf, sizeof id_buf);
  bool found= false;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
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
      *name= column(rec, DICT_FLD__SYS_TABLE_IDS__NAME);
      found= !name->empty();
      if (!found || !rec_get_deleted_flag(rec, 0))
        break;
    }
    while (btr_pcur_move_to_next_user_rec(&pcur, &mtr));
  }

  mtr.commit();
  return found;
}

dict_table_t *dict_rows_t::read_table(const dict_string &name,
                                      unsigned *uncommitted) noexcept
{
  ut_ad(may_read());
  dict_index_t *index= dict_sys.sys_tables->indexes.start;
  const search_key key(index, name.data(), name.size());
  dict_table_t *table= nullptr;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
  mtr.start();

  if (find_first(&pcur, index, key, &mtr))
  {
    const rec_t *rec= btr_pcur_get_rec(&pcur);
    if (rec_get_field_start_offs(rec, 1) == name.size() &&
        !memcmp(name.data(), rec, name.size()) && are_flags_usual(rec) &&
        !dict_load_table_low(&mtr, false, rec, &table) && table)
      /* The definition is that of the committed row. If the newest row has the same table
      identifier, the caller must detect an uncommitted instant ALTER TABLE. */
      *uncommitted= table->id == mach_read_from_8
        (rec + rec_get_field_start_offs(rec, DICT_FLD__SYS_TABLES__ID));
  }

  mtr.commit();
  return table;
}

bool dict_rows_t::read_tables(dict_string *after,
                              const std::set<uint32_t> *spaces,
                              dict_vector<dict_table_t*> *tables,
                              bool *dropped) noexcept
{
  ut_ad(may_read());
  dict_index_t *index= dict_sys.sys_tables->indexes.start;
  const dict_string first{*after};
  const search_key key(index, first.data(), first.size());
  bool more= false;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
  mtr.start();

  if (find_first(&pcur, index, key, &mtr))
  {
    size_t n_read= 0, n_tables= 0;
    do
    {
      const rec_t *rec= btr_pcur_get_rec(&pcur);
      const char *name= reinterpret_cast<const char*>(rec);
      const size_t name_len= rec_get_field_start_offs(rec, 1);
      if (!n_read && name_len == first.size() &&
          !memcmp(name, first.data(), name_len))
        continue;
      if (n_read == MAX_ROWS_READ || n_tables == MAX_MADE)
      {
        more= true;
        break;
      }
      n_read++;
      after->assign(name, name_len);
      if (rec_get_n_fields_old(rec) != DICT_NUM_FIELDS__SYS_TABLES)
        continue;
      if (rec_get_deleted_flag(rec, 0))
      {
        *dropped= true;
        continue;
      }
      ulint len;
      const byte *field=
        rec_get_nth_field_old(rec, DICT_FLD__SYS_TABLES__SPACE, &len);
      if (len != 4)
        continue;
      const uint32_t space= mach_read_from_4(field);
      if (space == TRX_SYS_SPACE || space >= SRV_SPACE_ID_UPPER_BOUND ||
          (spaces && spaces->find(space) == spaces->end()))
        continue;
      dict_table_t *table;
      if (!dict_load_table_low(&mtr, false, rec, &table) && table)
      {
        tables->push_back(table);
        n_tables++;
      }
    }
    while (btr_pcur_move_to_next_user_rec(&pcur, &mtr));
  }

  mtr.commit();
  return more;
}

bool dict_rows_t::read_indexes(dict_table_t *table, mem_heap_t *heap) noexcept
{
  ut_ad(may_read());
  ut_ad(!dict_is_sys_table(table->id));
  ut_ad(!table->fts);
  byte id[8];
  mach_write_to_8(id, table->id);
  dict_index_t *sys_index= dict_sys.sys_indexes->indexes.start;
  const search_key key(sys_index, id, sizeof id);
  /* SYS_INDEXES and SYS_FIELDS have an mtr each, so this never has latches in both */
  dict_vector<dict_index_t*> indexes;
  bool ok= true;
  btr_pcur_t pcur;
  dict_mtr_t mtr;
  mtr.start();

  if (find_first(&pcur, sys_index, key, &mtr))
    do
    {
      const rec_t *rec= btr_pcur_get_rec(&pcur);
      dict_index_t *index;
      const index_row row= read_index(id, table, rec, heap, &mtr, &index);
      if (row == END)
        break;
      if (row == DELETED)
        continue;
      ok= row == INDEX;
      if (!ok)
        break;
      if (*index->name == *TEMP_INDEX_PREFIX_STR)
      {
        dict_mem_index_free(index);
        continue;
      }
      ok= index->is_clust() == indexes.empty() && index->page != FIL_NULL &&
        !(index->is_clust() && index->is_corrupted()) &&
        !(index->type & ~(DICT_CLUSTERED | DICT_UNIQUE | DICT_CORRUPT |
                          DICT_SPATIAL | DICT_VIRTUAL));
      indexes.push_back(index);
      table->def_trx_id= std::max(table->def_trx_id,
                                  trx_read_trx_id(rec + 8 + 8));
    }
    while (ok && btr_pcur_move_to_next_user_rec(&pcur, &mtr));

  mtr.commit();
  ok= ok && !indexes.empty();

  mtr.start();
  bool is_positioned= false;
  for (dict_index_t *index : indexes)
    ok= ok && read_fields(index, &pcur, &is_positioned, heap, &mtr);
  mtr.commit();

  size_t n_added= 0;
  while (ok && n_added < indexes.size())
  {
    dict_index_t *index= indexes[n_added++];
    /* This frees the index, whether it succeeds or not */
    ok= dict_index_add_to_cache(index, index->page) == DB_SUCCESS;
  }
  while (n_added < indexes.size())
    dict_mem_index_free(indexes[n_added++]);
  return ok;
}

void dict_rows_t::free_table(dict_table_t *table) noexcept
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

bool dict_rows_t::has_foreign(const dict_string &name,
                              dict_vector<dict_string> *children) noexcept
{
  ut_ad(may_read());
  if (!dict_sys.sys_foreign || !dict_sys.sys_foreign_cols)
    return true;
  dict_index_t *for_name= dict_sys.sys_foreign->indexes.start->indexes.next;
  uint64_t known= foreign_known;
  if (known >> 1 != changes())
  {
    known= changes() << 1 | find_foreign(for_name, nullptr, nullptr);
    foreign_known= known;
  }
  if (!(known & 1))
    return false;
  dict_vector<dict_string> ids;
  bool found= find_foreign(for_name, &name, nullptr);
  found|= find_foreign(for_name->indexes.next, &name, &ids);
  for (const dict_string &id : ids)
  {
    dict_string child{child_of(id)};
    if (!child.empty())
      children->push_back(std::move(child));
  }
  return found;
}
