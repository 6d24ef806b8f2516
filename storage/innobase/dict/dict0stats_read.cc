/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file dict/dict0stats_read.cc
Persistent statistics without SQL

A thread that opens a table for the first time reads the table's statistics: one
row of mysql.innodb_table_stats and some rows of mysql.innodb_index_stats.
MariaDB selects them by a procedure in InnoDB's internal SQL, whose text it
parses each time with dict_sys.latch held exclusively.  Before that, it takes
the latch to check the statistics tables.  Here the thread searches the primary
key of each statistics table for the same rows.  It takes the latch once, in
shared mode, to find and to check both tables.

This is the same as with SQL:
1. The thread opens both statistics tables, with a shared metadata lock that
   keeps DDL away, before it reads anything.
2. One read view serves both tables: a non-locking consistent read, which waits
   for no other thread.  The thread skips rows that are delete-marked, or that
   the view does not see; it builds older versions from the undo log.
3. A row belongs to the table if the columns database_name and table_name are
   equal in their collation.
4. Each row changes the same statistics, and the thread reports rows that make
   no sense in the same words.

These points differ:
1. The thread checks the columns after it has taken the metadata locks.  MariaDB
   checks them before, and crashes if DDL removes a column in between.
2. The thread latches no page while it changes the statistics or reports
   anything, and it writes the statistics under stats_mutex.
3. The thread does not read the first row after the table's last row in the read
   view, so it does not notice damage in the history of that row.

dict_table_schema_check() checks the columns of the statistics tables, but not
the keys.  If a user has changed the primary keys, the thread reads the rows by
SQL, as MariaDB does.
*******************************************************/

#define MYSQL_SERVER
#include <my_config.h>
#include <string>
#ifdef UNIV_DEBUG
# include <vector>
#endif
#include "dict0stats_read.h"
#include "dict0dict.h"
#include "dict0stats.h"
#include "btr0pcur.h"
#include "data0data.h"
#include "rem0cmp.h"
#include "row0row.h"
#include "row0vers.h"
#include "small_vector.h"
#include "trx0sys.h"
#include "trx0trx.h"
#include "mysqld.h"
#include "sql_class.h"
#include "debug_sync.h"

/* Differences between the release series: 11.8 has no defragmentation, gives a
mini-transaction its trx, and column names a length. */
#if MYSQL_VERSION_ID < 110800
# define STATS_OF_DEFRAGMENTATION
# define MTR_OF(trx)
typedef const char *stats_column;
#else
# define MTR_OF(trx) , mtr(trx)
typedef Lex_cstring_strlen stats_column;
#endif

namespace
{

/** The statistics tables, open and protected by metadata locks */
class stats_tables
{
  MDL_context *const mdl_context;
  MDL_ticket *tickets[2]= {nullptr, nullptr};

public:
  dict_table_t *table_stats= nullptr, *index_stats= nullptr;

  /** @param thd  connection; the constructor waits for DDL */
  explicit stats_tables(THD *thd) : mdl_context(&thd->mdl_context)
  {
    static const char *const names[]=
    {"innodb_table_stats", "innodb_index_stats"};
    /* As in dict_stats::open() */
    const double timeout= double(global_system_variables.lock_wait_timeout);
    for (unsigned i= 0; i < 2; i++)
    {
      MDL_request request;
      MDL_REQUEST_INIT(&request, MDL_key::TABLE, "mysql", names[i],
                       MDL_SHARED, MDL_EXPLICIT);
      if (mdl_context->acquire_lock(&request, timeout))
        return;
      tickets[i]= request.ticket;
    }
  }

  ~stats_tables()
  {
    if (table_stats)
    {
      table_stats->release();
      index_stats->release();
    }
    for (MDL_ticket *ticket : tickets)
      if (ticket)
        mdl_context->release_lock(ticket);
  }

  /** @return whether all metadata locks were granted */
  bool locked() const { return tickets[1]; }

  /** Find the tables, and keep them in the data dictionary cache. Load them if
  they are not there: after a restart, or after an eviction.
  @return whether they exist and have the required columns */
  bool open()
  {
    if (find())
      return true;
    for (const char *name : {TABLE_STATS_NAME, INDEX_STATS_NAME})
      if (dict_table_t *table=
          dict_table_open_on_name(name, false, DICT_ERR_IGNORE_FK_NOKEY))
        table->release();
      else
        return false;
    return find();
  }

private:
  bool find()
  {
    dict_table_t *table, *index;
    dict_sys.freeze(SRW_LOCK_CALL);
    DEBUG_SYNC_C("dict_stats_frozen");
    if (dict_stats_find_tables(&table, &index))
    {
      (table_stats= table)->acquire();
      (index_stats= index)->acquire();
    }
    dict_sys.unfreeze();
    return table_stats;
  }
};

/** The name of a table as the statistics tables store it */
struct stats_key
{
  char db[MAX_DB_UTF8_LEN];
  char table[MAX_TABLE_UTF8_LEN];

  explicit stats_key(const dict_table_t &t)
  {
    dict_fs2utf8(t.name.m_name, db, sizeof db, table, sizeof table);
  }
};

/** Reads the rows of one table from a statistics table */
class stats_rows
{
  dict_index_t *const index;
  trx_t *const trx;
  dfield_t fields[2];
  dtuple_t key;
  mtr_t mtr;
  btr_pcur_t pcur;
  mem_heap_t *heap= nullptr;
  mem_heap_t *old_heap= nullptr;
  rec_offs offsets_[REC_OFFS_NORMAL_SIZE];
  rec_offs *offsets= offsets_;
  /** position in the index of each column that the caller reads */
  small_vector<uint16_t, 8> pos;

public:
  /** @param table  statistics table; the caller holds its metadata lock
  @param trx    transaction with an open read view */
  stats_rows(const dict_table_t *table, trx_t *trx) :
    index(dict_table_get_first_index(table)), trx(trx),
    key() MTR_OF(trx)
  {
    key.n_fields= key.n_fields_cmp= 2;
    key.fields= fields;
    ut_d(key.magic_n= DATA_TUPLE_MAGIC_N);
    rec_offs_init(offsets_);
  }

  ~stats_rows()
  {
    if (heap)
      mem_heap_free(heap);
    if (old_heap)
      mem_heap_free(old_heap);
  }

  /** @return whether a search by name finds all rows of a table */
  bool key_is_as_created() const
  {
    static const char *const names[]= {"database_name", "table_name"};
    if (!index->is_clust() || !index->is_committed() || index->n_uniq < 2)
      return false;
    for (unsigned i= 0; i < 2; i++)
    {
      const dict_field_t &f= index->fields[i];
      if (f.prefix_len || f.descending || strcmp(f.name, names[i]))
        return false;
    }
    return true;
  }

  /** Remember the position of a column. dict_table_schema_check() has checked that
  the column exists.
  @param name   column name
  @param usual  number of the column in the table that MariaDB creates: looked at first
  @return whether its values are in the row, and not on other pages */
  bool add_column(const char *name, ulint usual)
  {
    const dict_table_t *table= index->table;
    const ulint col= dict_table_has_column(table, stats_column(name),
                                           usual);
    ut_ad(col != table->n_def);
    const ulint at=
      dict_col_get_clust_pos(dict_table_get_nth_col(table, col), index);
    if (at == ULINT_UNDEFINED ||
        (at >= index->n_uniq && index->fields[at].col->mtype != DATA_INT))
      return false;
    pos.emplace_back(uint16_t(at));
    return true;
  }

  /** Read all rows of a table.
  @param name  name of the table
  @param row   function to call for each row while its page is latched; it
               returns DB_SUCCESS, DB_SUCCESS_LOCKED_REC to end, or an error
  @return DB_SUCCESS or error code */
  template <typename F> dberr_t read(const stats_key &name, F row)
  {
    dict_index_copy_types(&key, index, 2);
    dfield_set_data(&fields[0], name.db, strlen(name.db));
    dfield_set_data(&fields[1], name.table, strlen(name.table));

    btr_pcur_init(&pcur);
    pcur.btr_cur.page_cur.index= index;
    mtr.start();
    dberr_t err= btr_pcur_open_with_no_init(&key, PAGE_CUR_GE, BTR_SEARCH_LEAF,
                                            &pcur, &mtr);
    if (err == DB_SUCCESS)
    {
      const trx_id_t bulk= index->table->bulk_trx_id;
      /* See row_search_mvcc() for a comment on bulk_trx_id */
      if (!bulk || trx->read_view.changes_visible(bulk))
        do
          err= visit(row);
        while (err == DB_SUCCESS && btr_pcur_move_to_next(&pcur, &mtr));
      if (err == DB_SUCCESS_LOCKED_REC)
        err= DB_SUCCESS;
    }
    mtr.commit();
    return err;
  }

  /** @return the value of a column in a row
  @param rec  the row, as read() has passed it to the function
  @param n    number of the column in the order of add_column()
  @param len  length of the value, or UNIV_SQL_NULL */
  const byte *value(const rec_t *rec, size_t n, ulint *len) const
  {
    ut_ad(!rec_offs_nth_extern(offsets, pos[n]));
    return rec_get_nth_cfield(rec, index, offsets, pos[n], len);
  }

private:
  /** Visit the record at the cursor.
  @return DB_SUCCESS, DB_SUCCESS_LOCKED_REC after the last row, or an error */
  template <typename F> dberr_t visit(F row)
  {
    rec_t *rec= btr_pcur_get_rec(&pcur);
    if (!page_rec_is_user_rec(rec) || rec_is_metadata(rec, *index))
      return DB_SUCCESS;

    offsets= rec_get_offsets(rec, index, offsets, index->n_core_fields,
                             ULINT_UNDEFINED, &heap);
    if (cmp_dtuple_rec(&key, rec, index, offsets))
      return DB_SUCCESS_LOCKED_REC;

    const trx_id_t id= row_get_rec_trx_id(rec, index, offsets);
    if (!trx->read_view.changes_visible(id))
    {
      if (id >= trx->read_view.low_limit_id() &&
          id >= trx_sys.get_max_trx_id())
        return DB_CORRUPTION;
      if (old_heap)
        mem_heap_empty(old_heap);
      else
        old_heap= mem_heap_create(512);
      rec_t *old= nullptr;
      if (dberr_t err=
          row_vers_build_for_consistent_read(rec, &mtr, index, &offsets,
                                             &trx->read_view, &heap, old_heap,
                                             &old, nullptr))
        return err;
      if (!old)
        return DB_SUCCESS;
      rec= old;
    }

    return rec_get_deleted_flag(rec, index->table->not_redundant())
      ? DB_SUCCESS : row(rec);
  }
};

/** A row of mysql.innodb_index_stats that belongs to an index */
struct index_stat
{
  enum kind_t : uint8_t
  { SIZE, N_LEAF_PAGES, N_PAGE_SPLIT, N_PAGES_FREED, N_DIFF, STRANGE };

  dict_index_t *index;
  uint64_t value;
  /** N_DIFF only; UINT64_MAX if it is NULL */
  uint64_t sample_size;
  kind_t kind;
  /** N_DIFF: number of columns of the prefix. STRANGE: the same if it is out of
  range, UINT8_MAX if the name is malformed */
  uint8_t n_prefix;
  /** STRANGE only: offset of its name in the buffer of such names */
  uint32_t name, name_len;
};

/** Report why the thread ignores a row */
ATTRIBUTE_COLD
void report_strange(const stats_key &key, const index_stat &s,
                    const char *names)
{
  ib::info out;
  out << "Ignoring strange row from mysql.innodb_index_stats WHERE"
    " database_name = '" << key.db << "' AND table_name = '" << key.table
    << "' AND index_name = '" << s.index->name() << "' AND stat_name = '";
  out.write(names + s.name, s.name_len);
  if (s.n_prefix == UINT8_MAX)
    out << "'; because stat_name is malformed";
  else
    out << "'; because stat_name is out of range, the index has "
        << ulint{s.index->n_uniq} << " unique columns";
}

/** Parse the name of a statistic, and set the kind of the row.
@param s     the row; index is set
@param name  stat_name
@param len   its length
@return whether the caller has to apply or to report the row */
bool parse_stat_name(index_stat *s, const char *name, ulint len)
{
  static constexpr size_t PREFIX_LEN= sizeof "n_diff_pfx" - 1;
  auto is= [name, len](const char *what, size_t what_len)
  {
    return len == what_len && !strncasecmp(what, name, what_len);
  };

  if (len > PREFIX_LEN && !strncasecmp("n_diff_pfx", name, PREFIX_LEN))
  {
    const char *digits= name + PREFIX_LEN;
    s->kind= index_stat::STRANGE;
    if (len != PREFIX_LEN + 2 || digits[0] < '0' || digits[0] > '9' ||
        digits[1] < '0' || digits[1] > '9')
    {
      s->n_prefix= UINT8_MAX;
      return true;
    }
    s->n_prefix= uint8_t((digits[0] - '0') * 10 + (digits[1] - '0'));
    if (s->n_prefix && s->n_prefix <= s->index->n_uniq)
      s->kind= index_stat::N_DIFF;
  }
  else if (is(STRING_WITH_LEN("size")))
    s->kind= index_stat::SIZE;
  else if (is(STRING_WITH_LEN("n_leaf_pages")))
    s->kind= index_stat::N_LEAF_PAGES;
#ifdef STATS_OF_DEFRAGMENTATION
  else if (is(STRING_WITH_LEN("n_page_split")))
    s->kind= index_stat::N_PAGE_SPLIT;
  else if (is(STRING_WITH_LEN("n_pages_freed")))
    s->kind= index_stat::N_PAGES_FREED;
#endif
  else
    return false;               /* Users may store statistics of their own */
  return true;
}

/** @return the index to which a row belongs, or nullptr
@param table  table
@param hint   index of the previous row, or nullptr: rows of an index are next
              to each other
@param name   index_name
@param len    its length */
dict_index_t *find_index(const dict_table_t *table, dict_index_t *hint,
                         const byte *name, ulint len)
{
  auto is= [name, len](const dict_index_t *index)
  {
    return index->is_committed() && strlen(index->name) == len &&
      !memcmp(index->name, name, len);
  };
  if (hint && is(hint))
    return hint;
  dict_index_t *index= dict_table_get_first_index(table);
  while (index && !is(index))
    index= dict_table_get_next_index(index);
  return index;
}

/** Set a statistic of an index to the value of a row.
@param s  the row; the caller holds stats_mutex */
void apply(const index_stat &s)
{
  switch (s.kind) {
  case index_stat::SIZE:
    s.index->stat_index_size= std::max(uint32_t(s.value), 1U);
    break;
  case index_stat::N_LEAF_PAGES:
    s.index->stat_n_leaf_pages= std::max(uint32_t(s.value), 1U);
    break;
#ifdef STATS_OF_DEFRAGMENTATION
  case index_stat::N_PAGE_SPLIT:
    s.index->stat_defrag_n_page_split= ulint(s.value);
    break;
  case index_stat::N_PAGES_FREED:
    s.index->stat_defrag_n_pages_freed= ulint(s.value);
    break;
#else
  case index_stat::N_PAGE_SPLIT:
  case index_stat::N_PAGES_FREED:
    break;                      /* parse_stat_name() does not set these */
#endif
  case index_stat::N_DIFF:
    s.index->stat_n_diff_key_vals[s.n_prefix - 1]= s.value;
    /* UINT64_MAX: a user has stored a NULL */
    s.index->stat_n_sample_sizes[s.n_prefix - 1]=
      s.sample_size == UINT64_MAX ? 0 : std::max<uint64_t>(s.sample_size, 1);
    s.index->stat_n_non_null_key_vals[s.n_prefix - 1]= 0;
    break;
  case index_stat::STRANGE:
    break;
  }
}

#ifdef UNIV_DEBUG
/** @return all statistics of a table as numbers, and the result of reading them
@param table  table
@param err    the result of reading */
std::vector<uint64_t> all_statistics(const dict_table_t *table, dberr_t err)
{
  std::vector<uint64_t> all
  {
    uint64_t(err), table->stat_n_rows, table->stat_clustered_index_size,
    table->stat_sum_of_other_index_sizes, table->stat
  };
  for (const dict_index_t *index= dict_table_get_first_index(table); index;
       index= dict_table_get_next_index(index))
  {
    for (uint64_t number :
         {uint64_t{index->stat_index_size}, uint64_t{index->stat_n_leaf_pages},
#ifdef STATS_OF_DEFRAGMENTATION
          uint64_t{index->stat_defrag_n_page_split},
          uint64_t{index->stat_defrag_n_pages_freed},
#endif
          uint64_t{index->n_uniq}})
      all.push_back(number);
    if (index->stat_n_diff_key_vals)
      for (unsigned i= 0; i < index->n_uniq; i++)
      {
        all.push_back(index->stat_n_diff_key_vals[i]);
        all.push_back(index->stat_n_sample_sizes[i]);
        all.push_back(index->stat_n_non_null_key_vals[i]);
      }
  }
  return all;
}
#endif

/** If a table has no statistics yet, give it those of an empty table, for two reasons:
1. If a statistic has no row, its value must be neither a former one nor undefined.
2. While this thread waits for DDL on the statistics tables, other threads can open the
table without waiting, as with SQL.
@return whether the table has statistics: another thread has read or computed them */
bool begin_reading(dict_table_t *table)
{
  table->stats_mutex_lock();
  const bool known= table->stat_initialized();
  if (!known)
  {
    table->stat_n_rows= 0;
    table->stat_clustered_index_size= 1;
    table->stat_sum_of_other_index_sizes=
      uint32_t(UT_LIST_GET_LEN(table->indexes) - 1);
    table->stat_modified_counter= 0;
    for (dict_index_t *index= dict_table_get_first_index(table); index;
         index= dict_table_get_next_index(index))
    {
      if (index->type & DICT_FTS)
        continue;
      for (unsigned i= 0; i < index->n_uniq; i++)
      {
        index->stat_n_diff_key_vals[i]= 0;
        index->stat_n_sample_sizes[i]= 1;
        index->stat_n_non_null_key_vals[i]= 0;
      }
      index->stat_index_size= 1;
      index->stat_n_leaf_pages= 1;
#ifdef STATS_OF_DEFRAGMENTATION
      dict_stats_empty_defrag_stats(index);
      dict_stats_empty_defrag_summary(index);
#endif
    }
    /* read_rows() looks whether this has changed */
    table->stats_last_recalc= 0;
    table->stat= table->stat | dict_table_t::STATS_INITIALIZED;
  }
  table->stats_mutex_unlock();
  return known;
}

/** Read all rows of a table, and set its statistics to their values.
@param table       table
@param table_rows  its row in mysql.innodb_table_stats
@param index_rows  its rows in mysql.innodb_index_stats
@return DB_STATS_DO_NOT_EXIST if no row was usable; otherwise the result of reading the
rows of mysql.innodb_index_stats */
dberr_t read_rows(dict_table_t *table, stats_rows &table_rows,
                  stats_rows &index_rows)
{
  const stats_key key{*table};
  bool found= false;
  uint64_t values[3];

  dberr_t err= table_rows.read(key, [&](const rec_t *rec)
  {
    for (size_t i= 0; i < array_elements(values); i++)
    {
      ulint len;
      const byte *value= table_rows.value(rec, i, &len);
      if (len != 8)
        return DB_CORRUPTION;
      values[i]= mach_read_from_8(value);
    }
    found= true;
    return DB_SUCCESS_LOCKED_REC;
  });
  if (!found)
    return DB_STATS_DO_NOT_EXIST;

  small_vector<index_stat, 32> rows;
  std::string strange;
  found= false;
  err= index_rows.read(key, [&](const rec_t *rec)
  {
    index_stat s;
    ulint len, name_len;
    const byte *value= index_rows.value(rec, 0, &len);
    s.index= find_index(table, rows.empty() ? nullptr : rows[rows.size() - 1].index,
                        value, len);
    if (!s.index)
      return DB_SUCCESS;        /* A user has dropped the index */
    const char *name=
      reinterpret_cast<const char*>(index_rows.value(rec, 1, &name_len));
    value= index_rows.value(rec, 2, &len);
    if (len != 8)
      return DB_CORRUPTION;
    s.value= mach_read_from_8(value);
    value= index_rows.value(rec, 3, &len);
    if (len == UNIV_SQL_NULL)
      s.sample_size= UINT64_MAX;
    else if (len == 8)
      s.sample_size= mach_read_from_8(value);
    else
      return DB_CORRUPTION;
    if (!parse_stat_name(&s, name, name_len))
      return DB_SUCCESS;
    if (s.kind == index_stat::STRANGE)
    {
      s.name= uint32_t(strange.size());
      s.name_len= uint32_t(name_len);
      strange.append(name, name_len);
    }
    else
      found= true;
    rows.emplace_back(s);
    return DB_SUCCESS;
  });

  table->stats_mutex_lock();
  if (table->stats_last_recalc)
  {
    /* Another thread has computed new statistics since begin_reading() */
    table->stats_mutex_unlock();
    return DB_SUCCESS;
  }
  table->stat_n_rows= values[0];
  table->stat_clustered_index_size= std::max(uint32_t(values[1]), 1U);
  table->stat_sum_of_other_index_sizes=
    std::max(uint32_t(values[2]), uint32_t(UT_LIST_GET_LEN(table->indexes) - 1));
  for (const index_stat &s : rows)
    apply(s);
  table->stats_mutex_unlock();

  if (!strange.empty())
    for (const index_stat &s : rows)
      if (s.kind == index_stat::STRANGE)
        report_strange(key, s, strange.data());

  return found ? err : DB_STATS_DO_NOT_EXIST;
}

#ifdef UNIV_DEBUG
/** Read the statistics of a table once more by SQL, and compare.
@param table  table
@param err    the result without SQL */
void compare_with_sql(dict_table_t *table, dberr_t err)
{
  const std::vector<uint64_t> found= all_statistics(table, err);
  const std::vector<uint64_t> sql=
    all_statistics(table, dict_stats_fetch_from_ps(table));
  ut_a(found.size() == sql.size());
  for (size_t i= 0; i < sql.size(); i++)
    if (found[i] != sql[i])
      ib::fatal() << "Statistics of " << table->name << " differ: number " << i
                  << " of " << sql.size() << " is " << found[i]
                  << ", and " << sql[i] << " by SQL";
  ib::info() << "Statistics of " << table->name << " are those of SQL";
}
#endif

} // namespace

bool dict_stats_fetch(dict_table_t *table, dberr_t *err) noexcept
{
  THD *const thd= current_thd;
  if (begin_reading(table))
  {
    *err= DB_SUCCESS;
    return true;
  }
  {
    stats_tables stats{thd};
    if (!stats.locked())
    {
      *err= DB_STATS_DO_NOT_EXIST;
      return true;
    }
    if (!stats.open())
      return false;

    trx_t *const trx= trx_create();
    bool readable;
    {
      stats_rows table_rows{stats.table_stats, trx};
      stats_rows index_rows{stats.index_stats, trx};
      readable=
        table_rows.key_is_as_created() && index_rows.key_is_as_created() &&
        table_rows.add_column("n_rows", 3) &&
        table_rows.add_column("clustered_index_size", 4) &&
        table_rows.add_column("sum_of_other_index_sizes", 5) &&
        index_rows.add_column("index_name", 2) &&
        index_rows.add_column("stat_name", 4) &&
        index_rows.add_column("stat_value", 5) &&
        index_rows.add_column("sample_size", 6);
      if (readable)
      {
        DEBUG_SYNC(thd, "dict_stats_mdl_acquired");
        trx_start_internal_read_only(trx);
        trx->read_view.open(trx);
        DEBUG_SYNC(thd, "dict_stats_view_opened");
        *err= read_rows(table, table_rows, index_rows);
        trx_commit_for_mysql(trx);
      }
    }
    trx->free();
    if (!readable)
      return false;
  }
#ifdef UNIV_DEBUG
  DBUG_EXECUTE_IF("dict_stats_read_compare", compare_with_sql(table, *err););
#endif
  return true;
}
