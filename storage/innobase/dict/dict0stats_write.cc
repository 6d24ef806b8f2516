/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file dict/dict0stats_write.cc
Save persistent statistics without SQL

A thread that creates, alters or analyzes a table saves one row in
mysql.innodb_table_stats, and for each index some rows in
mysql.innodb_index_stats.  MariaDB parses the text of a procedure for each of these
rows, with dict_sys.latch held exclusively.  Here the thread copies the statistics
while it holds the latch in shared mode, releases it, and writes the rows to the
clustered indexes.  DROP deletes its rows likewise.

This is the same as with SQL:
1. The thread holds metadata locks on both statistics tables, so that no other thread
   alters them, and LOCK_X on each in InnoDB.  So it needs no lock on a row, and meets
   no record of another active transaction.
2. One transaction writes all rows, and commits them together.
3. The rows have the same values in all columns.  Statistics of the user's own, and
   rows of indexes that are gone, remain.

These points differ:
1. The thread copies all statistics of the table under one stats_mutex.
2. It updates a row where SQL deletes and inserts it, so that the row has one
   version more, not two.
3. It writes the rows of a table in the order of the key, and searches only for the
   first one.  The others are next to each other: the thread keeps the latch on the
   leaf page, and steps from each record to the next.  See stats_writer::step().

The thread writes the rows by SQL if the keys of a statistics table are not those
that MariaDB creates, or while ALTER TABLE rebuilds it.
*******************************************************/

#define MYSQL_SERVER
#include <my_config.h>
#include "dict0stats_write.h"
#include "dict0stats_read.h"
#include "dict0stats.h"
#include "dict0dict.h"
#include "btr0pcur.h"
#include "data0data.h"
#include "lock0lock.h"
#include "log0log.h"
#include "pars0pars.h"
#include "rem0cmp.h"
#include "row0ins.h"
#include "row0upd.h"
#include "small_vector.h"
#include "trx0trx.h"
#include "debug_sync.h"
#include <algorithm>

/* Differences between the release series: 11.8 gives a mini-transaction its trx, and
column names a length. */
#if MYSQL_VERSION_ID < 110800
# define MTR_OF(trx)
typedef const char *stats_column;
#else
# define MTR_OF(trx) {trx}
typedef Lex_cstring_strlen stats_column;
#endif

namespace
{

/** @return whether the transaction of this thread has locked a table with LOCK_X */
bool locked_by(const trx_t *trx, const dict_table_t *table)
{
  for (const lock_t *lock : trx->lock.table_locks)
    if (lock && lock->un_member.tab_lock.table == table &&
        lock->mode() == LOCK_X)
      return true;
  return false;
}

/** Writes to a statistics table.  The transaction has locked it with LOCK_X, so that
there is no lock on a record, and the thread need not look for one. */
class stats_writer
{
  static constexpr unsigned MAX_COLUMNS= 8;
  /** How many rows the thread writes before it releases the leaf page, so that the
  log records of a mini-transaction stay small */
  static constexpr unsigned MAX_ROWS= 64;
  /** How many rows of other keys the thread steps over, before a search costs less */
  static constexpr unsigned MAX_STEPS= 4;

  dict_index_t *const index;
  trx_t *const trx;
  /** memory of the query thread, and of one row */
  mem_heap_t *graph_heap, *heap;
  que_thr_t *const thr;
  /** number of columns that users see, and the position in the index of each */
  unsigned n_columns= 0;
  uint16_t pos[MAX_COLUMNS];
  byte trx_id[DATA_TRX_ID_LEN];
  byte roll_ptr[DATA_ROLL_PTR_LEN];
  /** the row or key that the caller is filling in */
  dtuple_t *tuple= nullptr;
  /** From put() to end(), while rows_latched is not 0, this mini-transaction holds the
  leaf page, and the cursor is on the row that was written last */
  mtr_t mtr MTR_OF(trx);
  btr_pcur_t pcur;
  unsigned rows_latched= 0;
  rec_offs offsets_[REC_OFFS_NORMAL_SIZE], *offsets= offsets_;

public:
  stats_writer(const dict_table_t *table, trx_t *trx) :
    index(dict_table_get_first_index(table)), trx(trx),
    graph_heap(mem_heap_create(256)), heap(mem_heap_create(1024)),
    thr(pars_complete_graph_for_exec(nullptr, trx, graph_heap, nullptr))
  {
    trx_write_trx_id(trx_id, trx->id);
    memset(roll_ptr, 0, sizeof roll_ptr);
    rec_offs_init(offsets_);
    btr_pcur_init(&pcur);
    pcur.btr_cur.page_cur.index= index;
  }

  ~stats_writer()
  {
    ut_ad(!rows_latched);
    ut_free(pcur.old_rec_buf);
    mem_heap_free(graph_heap);
    mem_heap_free(heap);
  }

  stats_writer(const stats_writer&)= delete;
  stats_writer &operator=(const stats_writer&)= delete;

  /** @return whether all of these are true:
  1. The table has the primary key that MariaDB gives it, and no other index.
  2. It has no other columns, not even dropped ones.
  3. No thread is rebuilding it.
  @param names  the columns, those of the key first
  @param n      their number
  @param n_key  number of columns of the key */
  bool init(const char *const *names, unsigned n, unsigned n_key)
  {
    ut_ad(n <= MAX_COLUMNS);
    const dict_table_t *const table= index->table;
    if (!index->is_clust() || !index->is_committed() || index->is_corrupted() ||
        index->n_uniq != n_key || index->n_fields != n + 2 ||
        UT_LIST_GET_LEN(table->indexes) != 1 ||
        table->n_v_cols || dict_index_is_online_ddl(index))
      return false;
    for (n_columns= 0; n_columns < n; n_columns++)
    {
      const ulint col= dict_table_has_column(table,
                                             stats_column(names[n_columns]));
      ut_ad(col != table->n_def);
      const ulint at=
        dict_col_get_clust_pos(dict_table_get_nth_col(table, col), index);
      if (at == ULINT_UNDEFINED)
        return false;
      pos[n_columns]= uint16_t(at);
      if (n_columns >= n_key)
        continue;
      const dict_field_t &f= index->fields[n_columns];
      if (at != n_columns || f.prefix_len || f.descending)
        return false;
    }
    return true;
  }

  /** Begin a row. The caller sets all columns. */
  void begin_row()
  {
    begin(index->n_fields);
    dfield_set_data(dtuple_get_nth_field(tuple, index->db_trx_id()),
                    trx_id, sizeof trx_id);
    dfield_set_data(dtuple_get_nth_field(tuple, index->db_roll_ptr()),
                    roll_ptr, sizeof roll_ptr);
    tuple->n_fields_cmp= uint16_t(dict_index_get_n_unique_in_tree(index));
  }

  /** Begin a prefix of the primary key.
  @param n  number of columns */
  void begin_key(unsigned n)
  {
    begin(n);
  }

  /** Set a column to a string.
  @param n      number of the column in the order of init()
  @param value  the string, which must last as long as the row */
  void set(unsigned n, const char *value)
  {
    dfield_set_data(field(n), value, strlen(value));
  }

  /** Set a column to a number of 8 bytes */
  void set_number(unsigned n, uint64_t value)
  {
    byte *buf= static_cast<byte*>(mem_heap_alloc(heap, 8));
    mach_write_to_8(buf, value);
    dfield_set_data(field(n), buf, 8);
  }

  /** Set a column to a time of 4 bytes */
  void set_time(unsigned n, time_t value)
  {
    byte *buf= static_cast<byte*>(mem_heap_alloc(heap, 4));
    mach_write_to_4(buf, uint32_t(value));
    dfield_set_data(field(n), buf, 4);
  }

  void set_null(unsigned n) { dfield_set_null(field(n)); }

  /** Insert the row, or update the one that has its key.  After the last row the
  caller calls end().  If a row does not have a higher key than the one before it in this
  transaction, the thread searches for its place from the root. */
  dberr_t put()
  {
    bool found;
    if (!step(&found))
    {
      end();
      start();
      rows_latched= 1;
      if (dberr_t err= search(&found))
        return err;
    }
    const dberr_t err= found ? update() : insert();
    switch (err) {
    default:
      return err;
    case DB_FAIL:
    case DB_OVERFLOW:
    case DB_UNDERFLOW:
    case DB_ZIP_OVERFLOW:
      break;
    }
    /* The page has to be split or merged */
    if (found)
    {
      /* Mark the row as deleted, as SQL does. row_ins_clust_index_entry() then updates
      it. */
      rec_t *const rec= btr_pcur_get_rec(&pcur);
      offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                               ULINT_UNDEFINED, &graph_heap);
      if (!is_deleted(rec))
        if (dberr_t err=
            btr_cur_del_mark_set_clust_rec(btr_pcur_get_block(&pcur), rec, index,
                                           offsets, thr, tuple, &mtr))
          return err;
    }
    end();
    return row_ins_clust_index_entry(index, tuple, thr, 0);
  }

  /** Release the page that put() has latched. */
  void end()
  {
    if (rows_latched)
      mtr.commit();
    rows_latched= 0;
  }

  /** Delete all rows that have the prefix of the key. */
  dberr_t remove()
  {
    start();
    dberr_t err= btr_pcur_open_on_user_rec(tuple, BTR_MODIFY_LEAF, &pcur, &mtr);
    while (err == DB_SUCCESS && btr_pcur_is_on_user_rec(&pcur))
    {
      rec_t *const rec= btr_pcur_get_rec(&pcur);
      if (!rec_is_metadata(rec, *index))
      {
        offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                                 ULINT_UNDEFINED, &graph_heap);
        if (cmp_dtuple_rec(tuple, rec, index, offsets))
          break;
        if (!is_deleted(rec))
        {
          err= btr_cur_del_mark_set_clust_rec(btr_pcur_get_block(&pcur), rec,
                                              index, offsets, thr, tuple, &mtr);
          if (err)
            break;
          /* Give back the latch on the page before the next page is latched */
          btr_pcur_store_position(&pcur, &mtr);
          mtr.commit();
          start();
          if (pcur.restore_position(BTR_MODIFY_LEAF, &mtr) ==
              btr_pcur_t::CORRUPTED)
          {
            err= DB_CORRUPTION;
            break;
          }
        }
      }
      if (!btr_pcur_move_to_next_user_rec(&pcur, &mtr))
        break;
    }
    mtr.commit();
    return err;
  }

private:
  void begin(unsigned n_fields)
  {
    mem_heap_empty(heap);
    tuple= dtuple_create(heap, n_fields);
    dict_index_copy_types(tuple, index, n_fields);
  }

  dfield_t *field(unsigned n)
  {
    ut_ad(n < n_columns);
    return dtuple_get_nth_field(tuple, pos[n]);
  }

  void start()
  {
    log_free_check();
    mtr.start();
    index->set_modified(mtr);
  }

  bool is_deleted(const rec_t *rec) const
  {
    return rec_get_deleted_flag(rec, index->table->not_redundant());
  }

  /** @return the order of the tuple and a record: less than 0, 0 or more */
  int compare(const rec_t *rec)
  {
    offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                             index->n_uniq, &graph_heap);
    return cmp_dtuple_rec(tuple, rec, index, offsets);
  }

  /** Go from the row that was written last to the place of the tuple.
  @param found  whether there is a record with the key of the tuple, delete-marked or
  not.  If so, the cursor is on it, otherwise on the record before its place.
  @return whether the thread has found the place on the page */
  bool step(bool *found)
  {
    if (!rows_latched || rows_latched++ == MAX_ROWS)
      return false;
#ifdef BTR_CUR_HASH_ADAPT
    pcur.btr_cur.flag= BTR_CUR_BINARY; /* The search did not find the next record */
#endif
    const page_t *const page= btr_pcur_get_page(&pcur);
    const rec_t *const current= btr_pcur_get_rec(&pcur);
    /* The keys compare a name as if spaces followed it, so the index `k` comes after
    `k<newline>x`.  The thread has copied `k` first. */
    if (page_rec_is_user_rec(current) && compare(current) <= 0)
      return false;
    for (unsigned i= 0; i < MAX_STEPS; i++)
    {
      rec_t *const rec= page_rec_get_next(btr_pcur_get_rec(&pcur));
      if (!rec)
        return false;
      if (page_rec_is_supremum(rec))
      {
        /* The place may be on the next page */
        *found= false;
        return !page_has_next(page);
      }
      const int cmp= compare(rec);
      if (cmp >= 0)
        btr_pcur_get_page_cur(&pcur)->rec= rec;
      if (cmp <= 0)
      {
        *found= !cmp;
        return true;
      }
    }
    return false;
  }

  /** Find the place of the tuple. The parameter is that of step(). */
  dberr_t search(bool *found)
  {
    const dberr_t err= btr_pcur_open(tuple, PAGE_CUR_LE, BTR_MODIFY_LEAF, &pcur,
                                     &mtr);
    const rec_t *const rec= btr_pcur_get_rec(&pcur);
    *found= err == DB_SUCCESS && page_rec_is_user_rec(rec) &&
      !rec_is_metadata(rec, *index) && pcur.btr_cur.low_match >= index->n_uniq;
    return err;
  }

  /** Insert the tuple after the cursor, and move the cursor to it.
  @return DB_FAIL if this needs more than the page */
  dberr_t insert()
  {
    /* Small pages may store a part of the row on a page of its own */
    if (index->is_instant() || index->table->space->zip_size() ||
        srv_page_size < UNIV_PAGE_SIZE_ORIG)
      return DB_FAIL;
    rec_t *rec;
    big_rec_t *big_rec;
    const dberr_t err=
      btr_cur_optimistic_insert(BTR_NO_LOCKING_FLAG, &pcur.btr_cur, &offsets,
                                &graph_heap, tuple, &rec, &big_rec, 0, thr,
                                &mtr);
    ut_ad(!big_rec);
    if (err == DB_SUCCESS)
      btr_pcur_get_page_cur(&pcur)->rec= rec;
    return err;
  }

  /** Update the record at the cursor, which may be delete-marked.
  @return as btr_cur_optimistic_update() */
  dberr_t update()
  {
    const rec_t *const rec= btr_pcur_get_rec(&pcur);
    dberr_t err= DB_SUCCESS;
    offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                             ULINT_UNDEFINED, &graph_heap);
    const upd_t *upd=
      row_upd_build_difference_binary(index, tuple, rec, offsets, true, true,
                                      trx, heap, nullptr, &err);
    if (err == DB_SUCCESS)
      err= btr_cur_optimistic_update(BTR_NO_LOCKING_FLAG, &pcur.btr_cur,
                                     &offsets, &heap, upd, 0, thr, trx->id,
                                     &mtr);
    return err;
  }
};

const char *const table_columns[]=
{
  "database_name", "table_name", "last_update", "n_rows",
  "clustered_index_size", "sum_of_other_index_sizes"
};

const char *const index_columns[]=
{
  "database_name", "table_name", "index_name", "stat_name", "last_update",
  "stat_value", "sample_size", "stat_description"
};

bool init_table(stats_writer &writer)
{ return writer.init(table_columns, array_elements(table_columns), 2); }

bool init_index(stats_writer &writer)
{ return writer.init(index_columns, array_elements(index_columns), 4); }

/** A copy of a row of mysql.innodb_index_stats. Strings are in the memory heap of
the copy. */
struct index_row
{
  const char *index_name;
  const char *stat_name;
  const char *description;
  uint64_t value;
  /** nullptr for NULL */
  const uint64_t *sample_size;
};

/** A copy of the statistics of a table. It lets the caller release dict_sys.latch and
stats_mutex before the rows are written. */
class stats_copy
{
  mem_heap_t *const heap= mem_heap_create(4096);

public:
  uint64_t n_rows, clustered_index_size, sum_of_other_index_sizes;
  /** Mostly in the order of the primary key: see stats_writer::step() */
  small_vector<index_row, 32> rows;

  /** @param table     table; the caller holds dict_sys.latch, so that no index
  appears or disappears
  @param index_id  the index whose statistics to copy; 0 for all */
  stats_copy(dict_table_t *table, index_id_t index_id)
  {
    ut_ad(dict_sys.frozen());
    small_vector<dict_index_t*, 16> indexes;
    for (dict_index_t *index= dict_table_get_first_index(table); index;
         index= dict_table_get_next_index(index))
      /* As in dict_stats_should_ignore_index() */
      if ((!index_id || index->id == index_id) && index->is_btree() &&
          !index->to_be_dropped && index->is_committed())
        indexes.emplace_back(index);
    std::sort(indexes.begin(), indexes.end(),
              [](const dict_index_t *a, const dict_index_t *b)
              { return strcmp(a->name, b->name) < 0; });

    table->stats_mutex_lock();
    n_rows= table->stat_n_rows;
    clustered_index_size= table->stat_clustered_index_size;
    sum_of_other_index_sizes= table->stat_sum_of_other_index_sizes;
    for (const dict_index_t *index : indexes)
      add(index);
    table->stats_mutex_unlock();
  }

  ~stats_copy() { mem_heap_free(heap); }

  stats_copy(const stats_copy&)= delete;
  stats_copy &operator=(const stats_copy&)= delete;

private:
  void add(const dict_index_t *index)
  {
    index_row row;
    row.index_name= mem_heap_strdup(heap, index->name);
    char description[1024];
    size_t len= 0;
    for (unsigned i= 0; i < index->n_uniq; i++)
    {
      char name[16];
      snprintf(name, sizeof name, "n_diff_pfx%02u", i + 1);
      /* The names of the first columns, cut off like MariaDB's */
      if (len < sizeof description - 1)
      {
        const int n= snprintf(description + len, sizeof description - len,
                              i ? ",%s" : "%s",
                              static_cast<const char*>(index->fields[i].name));
        len= std::min(len + size_t(n), sizeof description - 1);
      }
      row.stat_name= mem_heap_strdup(heap, name);
      row.description=
        static_cast<const char*>(mem_heap_dup(heap, description, len + 1));
      row.value= index->stat_n_diff_key_vals[i];
      row.sample_size= static_cast<const uint64_t*>
        (mem_heap_dup(heap, &index->stat_n_sample_sizes[i],
                      sizeof *row.sample_size));
      rows.emplace_back(row);
    }
    row.sample_size= nullptr;
    row.stat_name= "n_leaf_pages";
    row.value= index->stat_n_leaf_pages;
    row.description= "Number of leaf pages in the index";
    rows.emplace_back(row);
    row.stat_name= "size";
    row.value= index->stat_index_size;
    row.description= "Number of pages in the index";
    rows.emplace_back(row);
  }
};

/** Write all rows of a table. The caller commits them, or rolls back. */
dberr_t write_rows(dict_table_t *table, const stats_copy &copy, time_t now,
                   stats_writer &table_rows, stats_writer &index_rows)
{
  char db[MAX_DB_UTF8_LEN], name[MAX_TABLE_UTF8_LEN];
  dict_fs2utf8(table->name.m_name, db, sizeof db, name, sizeof name);

  table_rows.begin_row();
  table_rows.set(0, db);
  table_rows.set(1, name);
  table_rows.set_time(2, now);
  table_rows.set_number(3, copy.n_rows);
  table_rows.set_number(4, copy.clustered_index_size);
  table_rows.set_number(5, copy.sum_of_other_index_sizes);
  dberr_t err= table_rows.put();
  table_rows.end();
  if (err)
  {
    ib::error() << "Cannot save table statistics for table " << table->name
                << ": " << err;
    return err;
  }

  for (const index_row &row : copy.rows)
  {
    index_rows.begin_row();
    index_rows.set(0, db);
    index_rows.set(1, name);
    index_rows.set(2, row.index_name);
    index_rows.set(3, row.stat_name);
    index_rows.set_time(4, now);
    index_rows.set_number(5, row.value);
    if (row.sample_size)
      index_rows.set_number(6, *row.sample_size);
    else
      index_rows.set_null(6);
    index_rows.set(7, row.description);
    err= index_rows.put();
    DBUG_EXECUTE_IF("dict_stats_write_fail",
                    if (&row == copy.rows.end() - 1)
                      err= DB_OUT_OF_FILE_SPACE;);
    DBUG_EXECUTE_IF("dict_stats_write_crash",
                    if (&row == copy.rows.end() - 1)
                    {
                      index_rows.end();
                      log_buffer_flush_to_disk();
                      DBUG_SUICIDE();
                    });
    if (err)
    {
      index_rows.end();
      if (!table->stats_error_printed)
      {
        table->stats_error_printed= true;
        ib::error() << "Cannot save index statistics for table " << table->name
                    << ", index " << row.index_name << ", stat name \""
                    << row.stat_name << "\": " << err;
      }
      return err;
    }
  }
  index_rows.end();
  return DB_SUCCESS;
}

} // namespace

bool dict_stats_write(dict_table_t *table, index_id_t index_id, trx_t *trx,
                      time_t now, dberr_t *err) noexcept
{
  ut_ad(!dict_sys.locked());
  ut_ad(!table->stats_mutex_is_owner());
  DBUG_EXECUTE_IF("dict_stats_write_by_sql", return false;);
  dict_table_t *table_stats, *index_stats;
  dict_sys.freeze(SRW_LOCK_CALL);
  if (!dict_stats_find_tables(&table_stats, &index_stats))
  {
    dict_sys.unfreeze();
    return false;
  }
  const stats_copy copy{table, index_id};
  dict_sys.unfreeze();

  /* dict_stats_save() has locked both, and its metadata locks keep the tables from
  being replaced. If that were not so, SQL would lock each row. */
  const bool locked= locked_by(trx, table_stats) && locked_by(trx, index_stats);
  ut_ad(locked);
  if (!locked)
    return false;
  stats_writer table_rows{table_stats, trx};
  stats_writer index_rows{index_stats, trx};
  if (!init_table(table_rows) || !init_index(index_rows))
    return false;
  DEBUG_SYNC_C("dict_stats_write");
  *err= write_rows(table, copy, now, table_rows, index_rows);
  if (*err == DB_SUCCESS)
    trx->commit();
  else
    trx->rollback();
  return true;
}

bool dict_stats_delete_rows(const char *stats, const char *db,
                            const char *table, const char *index,
                            trx_t *trx, dberr_t *err) noexcept
{
  ut_ad(dict_sys.locked());
  DBUG_EXECUTE_IF("dict_stats_write_by_sql", return false;);
  dict_table_t *table_stats, *index_stats;
  if (!dict_stats_find_tables(&table_stats, &index_stats))
    return false;
  const bool of_table= !strcmp(stats, TABLE_STATS_NAME);
  dict_table_t *const t= of_table ? table_stats : index_stats;
  if (!locked_by(trx, t))
    return false;
  stats_writer writer{t, trx};
  if (!(of_table ? init_table(writer) : init_index(writer)))
    return false;
  writer.begin_key(index ? 3 : 2);
  writer.set(0, db);
  writer.set(1, table);
  if (index)
    writer.set(2, index);
  *err= writer.remove();
  return true;
}
