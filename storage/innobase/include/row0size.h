/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/row0size.h
Size the heap of a row_prebuilt_t to its contents.

row_create_prebuilt() reserves memory for what every use of a table needs: the
objects of a search. The graph for INSERT, and that for UPDATE and DELETE, get one
block of the right size when a thread first writes to the table with this handle.
At the end of a statement, the handle frees what is large and only that statement
needed. */

#ifndef row0size_h
#define row0size_h

#include "mem0reserve.h"
#include "dict0dict.h"
#include "fts0fts.h"
#include "que0que.h"
#include "row0ins.h"
#include "row0mysql.h"
#include "row0sel.h"
#include "row0upd.h"

/** @return size of the query graph around a node,
see pars_complete_graph_for_exec() */
inline ulint row_graph_size()
{
  return mem_heap_size_t().add(sizeof(que_fork_t)).add(sizeof(que_thr_t));
}

/** @return number of fields of a tuple that can search any index of a table; see
dict_index_get_n_unique_in_tree().  A FULLTEXT search sets all fields of
FTS_DOC_ID_INDEX, also if that is the clustered index.
It stays valid: a statement that adds an index closes all handles of the table. */
inline ulint row_search_tuple_n_fields(dict_table_t *table)
{
  ulint n= 1;
  for (const dict_index_t *index= dict_table_get_first_index(table); index;
       index= dict_table_get_next_index(index))
    n= std::max<ulint>(n, index->is_clust() && index != table->fts_doc_id_index
                       ? index->n_uniq : index->n_fields);
  return n;
}

/** @return size of the heap of a row_prebuilt_t that only reads; the arguments
are the numbers that row_create_prebuilt() has computed */
inline ulint row_prebuilt_heap_size(ulint search_tuple_n_fields, ulint ref_len,
                                    ulint srch_key_len)
{
  return mem_heap_size_t().add(sizeof(row_prebuilt_t))
    .add(2 * srch_key_len).add(sizeof(btr_pcur_t), 2)
    .add(DTUPLE_EST_ALLOC(search_tuple_n_fields)).add(DTUPLE_EST_ALLOC(ref_len))
    .add(sizeof(sel_node_t)) + row_graph_size();
}

/** Reserve memory for the objects that row_get_prebuilt_insert_row() creates. */
inline void row_reserve_insert(row_prebuilt_t *prebuilt)
{
  const dict_table_t *table= prebuilt->table;
  mem_heap_size_t size;
  size.add(sizeof(ins_node_t))
    .add(DTUPLE_EST_ALLOC(table->n_cols))
    .add(table->n_v_cols ? DTUPLE_EST_ALLOC(table->n_v_cols) : 0);
  if (!prebuilt->ins_upd_rec_buff)
    size.add(prebuilt->mysql_row_len + FTS_DOC_ID_LEN);
  mem_heap_reserve(prebuilt->heap, size + row_graph_size());
}

/** Reserve memory for the objects that row_get_prebuilt_update_vector() creates. */
inline void row_reserve_update(row_prebuilt_t *prebuilt)
{
  const dict_table_t *table= prebuilt->table;
  mem_heap_reserve(prebuilt->heap,
                   mem_heap_size_t().add(sizeof(upd_node_t))
                   .add(sizeof(btr_pcur_t)).add(sizeof(upd_t))
                   .add((table->n_cols + table->n_v_cols) *
                        sizeof(upd_field_t)) + row_graph_size());
}

/** How many bytes of a fetch cache, or of a template, stay with the handle */
static constexpr ulint ROW_SMALL_BYTES= 2048;

/** Allocate a template, without contents.
@param n_fields  for how many columns
@param stays     whether the handle will probably keep it when the statement ends */
mysql_row_templ_t *row_template_create(ulint n_fields, bool stays) noexcept;

/** @return whether a template's memory belongs to the pool of spare buffers, so that
it must not stay with the handle */
bool row_template_is_spare(mysql_row_templ_t *templ) noexcept;

/** Free a template, or give its memory back to the pool.
@param templ  may be nullptr */
void row_template_free(mysql_row_templ_t *templ) noexcept;

/** Free the pool when InnoDB shuts down and all handles are closed. */
void row_template_close() noexcept;

/** @return whether the template of a search is small enough to stay with the handle */
inline bool row_template_is_small(const dict_table_t *table)
{
  return (table->n_cols + table->n_v_cols) * sizeof(mysql_row_templ_t) <=
    ROW_SMALL_BYTES;
}

/** @return whether the fetch cache of a handle stays when the statement ends */
inline bool row_fetch_cache_stays(const row_prebuilt_t *prebuilt)
{
  return prebuilt->mysql_row_len * UT_ARR_SIZE(prebuilt->fetch_cache) <=
    ROW_SMALL_BYTES;
}

/** At the end of a statement, free the fetch cache and the template if they are large.
A fetch cache has eight rows, and a row of a table like wp_posts takes 5 KiB there.  If
they are small, they stay: to allocate them again for each statement would cost more than
the memory is worth.  If the function freed both, a short SELECT of rows as small as
sysbench's would execute 1 % more instructions.

The template of whole rows stays, because INSERT uses it again as it is.  But if it is in
a spare buffer, which a search took earlier in this statement, the function frees it. */
inline void row_prebuilt_end_statement(row_prebuilt_t *prebuilt)
{
  if (byte *row= prebuilt->fetch_cache[0])
  {
    ut_ad(mach_read_from_4(row - 4) == ROW_PREBUILT_FETCH_MAGIC_N);
    prebuilt->n_fetch_cached= prebuilt->fetch_cache_first= 0;
    if (!row_fetch_cache_stays(prebuilt))
    {
      ut_free(row - 4);
      prebuilt->fetch_cache[0]= nullptr;
    }
  }
  if (!prebuilt->mysql_template)
    return;
  if (row_template_is_spare(prebuilt->mysql_template) ||
      (prebuilt->template_type != ROW_MYSQL_WHOLE_ROW &&
       !row_template_is_small(prebuilt->table)))
  {
    row_template_free(prebuilt->mysql_template);
    prebuilt->mysql_template= nullptr;
    prebuilt->n_template= 0;
    prebuilt->template_type= ROW_MYSQL_NO_TEMPLATE;
  }
}

#endif /* row0size_h */
