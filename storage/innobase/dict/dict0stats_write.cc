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

/** Writes to a statistics table.  The transaction has locked it with LOCK_X. */
class stats_writer
{
  static constexpr unsigned MAX_COLUMNS= 8;

  dict_index_t *const index;
  trx_t *const trx;
  /** memory of the query thread, and of one row */
  mem_heap_t *const graph_heap, *const heap;
  que_thr_t *const thr;
  /** number of columns that users see, and the position in the index of each */
  unsigned n_columns= 0;
  uint16_t pos[MAX_COLUMNS];
  byte trx_id[DATA_TRX_ID_LEN];
  byte roll_ptr[DATA_ROLL_PTR_LEN];
  /** the row or key that the caller is filling in */
  dtuple_t *tuple= nullptr;

public:
  stats_writer(const dict_table_t *table, trx_t *trx) :
    index(dict_table_get_first_index(table)), trx(trx),
    graph_heap(mem_heap_create(256)), heap(mem_heap_create(1024)),
    thr(pars_complete_graph_for_exec(nullptr, trx, graph_heap, nullptr))
  {
    trx_write_trx_id(trx_id, trx->id);
    memset(roll_ptr, 0, sizeof roll_ptr);
  }

  ~stats_writer()
  {
    mem_heap_free(graph_heap);
    mem_heap_free(heap);
  }

  stats_writer(const stats_writer&)= delete;
  stats_writer &operator=(const stats_writer&)= delete;

  /** @return whether the table has the primary key that MariaDB gives it and no
  other, and nobody rebuilds it
  @param names  the columns, those of the key first
  @param n      their number
  @param n_key  number of columns of the key */
  bool init(const char *const *names, unsigned n, unsigned n_key)
  {
    ut_ad(n <= MAX_COLUMNS);
    const dict_table_t *const table= index->table;
    if (!index->is_clust() || !index->is_committed() || index->is_corrupted() ||
        index->n_uniq != n_key || UT_LIST_GET_LEN(table->indexes) != 1 ||
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

  /** Insert the row, or update the one that has its key. */
  dberr_t put()
  {
    bool insert;
    if (dberr_t err= update(&insert))
      return err;
    return insert ? row_ins_clust_index_entry(index, tuple, thr, 0) : DB_SUCCESS;
  }

  /** Delete all rows that have the prefix of the key. */
  dberr_t remove()
  {
    mtr_t mtr MTR_OF(trx);
    btr_pcur_t pcur;
    rec_offs offsets_[REC_OFFS_NORMAL_SIZE], *offsets= offsets_;
    rec_offs_init(offsets_);
    mem_heap_t *offsets_heap= nullptr;

    start(&mtr);
    btr_pcur_init(&pcur);
    pcur.btr_cur.page_cur.index= index;
    dberr_t err= btr_pcur_open_on_user_rec(tuple, BTR_MODIFY_LEAF, &pcur, &mtr);
    while (err == DB_SUCCESS && btr_pcur_is_on_user_rec(&pcur))
    {
      rec_t *const rec= btr_pcur_get_rec(&pcur);
      if (!rec_is_metadata(rec, *index))
      {
        offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                                 ULINT_UNDEFINED, &offsets_heap);
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
          start(&mtr);
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
    ut_free(pcur.old_rec_buf);
    if (offsets_heap)
      mem_heap_free(offsets_heap);
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

  void start(mtr_t *mtr)
  {
    log_free_check();
    mtr->start();
    index->set_modified(*mtr);
  }

  bool is_deleted(const rec_t *rec) const
  {
    return rec_get_deleted_flag(rec, index->table->not_redundant());
  }

  /** Update the row that has the key of the tuple.
  @param insert  whether the tuple has to be inserted: there is no such row, or it
  was delete-marked because it does not fit on its page any more */
  dberr_t update(bool *insert)
  {
    mtr_t mtr MTR_OF(trx);
    btr_pcur_t pcur;
    start(&mtr);
    pcur.btr_cur.page_cur.index= index;
    dberr_t err= btr_pcur_open(tuple, PAGE_CUR_LE, BTR_MODIFY_LEAF, &pcur,
                               &mtr);
    *insert= true;
    const rec_t *rec= btr_pcur_get_rec(&pcur);
    if (err == DB_SUCCESS && page_rec_is_user_rec(rec) &&
        !rec_is_metadata(rec, *index) &&
        pcur.btr_cur.low_match >= index->n_uniq && !is_deleted(rec))
    {
      rec_offs offsets_[REC_OFFS_NORMAL_SIZE], *offsets= offsets_;
      rec_offs_init(offsets_);
      mem_heap_t *row_heap= mem_heap_create(1024);
      offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                               ULINT_UNDEFINED, &row_heap);
      const upd_t *upd=
        row_upd_build_difference_binary(index, tuple, rec, offsets, true, true,
                                        trx, row_heap, nullptr, &err);
      if (err == DB_SUCCESS)
      {
        err= btr_cur_optimistic_update(0, &pcur.btr_cur, &offsets, &row_heap,
                                       upd, 0, thr, trx->id, &mtr);
        switch (err) {
        case DB_OVERFLOW:
        case DB_UNDERFLOW:
        case DB_ZIP_OVERFLOW:
          /* As SQL does; row_ins_clust_index_entry() may then split pages */
          offsets= rec_get_offsets(btr_pcur_get_rec(&pcur), index, offsets,
                                   index->n_core_fields, ULINT_UNDEFINED,
                                   &row_heap);
          err= btr_cur_del_mark_set_clust_rec(btr_pcur_get_block(&pcur),
                                              btr_pcur_get_rec(&pcur), index,
                                              offsets, thr, tuple, &mtr);
          break;
        default:
          *insert= false;
        }
      }
      mem_heap_free(row_heap);
    }
    mtr.commit();
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
  /** in the order of the primary key */
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
  if (dberr_t err= table_rows.put())
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
    dberr_t err= index_rows.put();
    DBUG_EXECUTE_IF("dict_stats_write_fail",
                    if (&row == copy.rows.end() - 1)
                      err= DB_OUT_OF_FILE_SPACE;);
    DBUG_EXECUTE_IF("dict_stats_write_crash",
                    if (&row == copy.rows.end() - 1)
                    {
                      log_buffer_flush_to_disk();
                      DBUG_SUICIDE();
                    });
    if (err)
    {
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

  ut_ad(locked_by(trx, table_stats));
  ut_ad(locked_by(trx, index_stats));
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
