/* SPDX-License-Identifier: GPL-2.0-only */

/** @file include/dict0size.h
Size the heaps of a dict_table_t and of a dict_index_t to their contents.
The results are estimates: if one is too small, the heap gets another block. */

#ifndef dict0size_h
#define dict0size_h

#include "mem0reserve.h"
#include "dict0mem.h"
#include "lock0types.h"
#include "btr0sea.h"
#include <type_traits>

/** @return size of the heap of a table; the arguments are those of
dict_table_t::create(), which allocates everything except the names
@param n_cols    number of columns that users have defined
@param n_v_cols  number of virtual ones among them */
inline ulint dict_table_heap_size(ulint n_cols, ulint n_v_cols)
{
  /* The heap has NAME bytes for each name with its 0: "meta_value" takes 11,
  "comment_author_email" 21. The names of the system columns take 30 bytes. */
  static constexpr ulint NAME= 14, SYSTEM_NAMES= 30;
  return mem_heap_size_t().add(sizeof(dict_table_t))
    .add((n_cols - n_v_cols + DATA_N_SYS_COLS) * sizeof(dict_col_t))
    .add(n_v_cols * sizeof(dict_v_col_t)).add(sizeof(ib_lock_t))
    .add(n_cols * NAME + SYSTEM_NAMES);
}

/** Make sure that the names of all columns fit into the heap of a table.
@param table  table; it has the names of all columns except the last one
@param name   name of the last column */
inline void dict_table_reserve_names(dict_table_t *table, const char *name)
{
  ulint len= strlen(name) + 1;
  if (const char *s= table->col_names)
    for (ulint i= 1; i < table->n_def; i++)
    {
      const ulint l= strlen(s) + 1;
      len+= l;
      s+= l;
    }
  mem_heap_reserve(table->heap, mem_heap_size_t().add(len));
}

/** @return size of the heap of an index; the arguments are those of
dict_mem_index_create()
dict_index_add_to_cache() allocates the statistics and the search info. */
inline ulint dict_index_heap_size(const dict_table_t *table, const char *name,
                                  ulint type, ulint n_fields)
{
  ulint n_uniq= n_fields;
  /* The number that dict_index_build_internal_clust() asks for */
  if (type & DICT_CLUSTERED && table && n_fields > table->n_cols)
    n_uniq= n_fields - table->n_cols + 1;
  return mem_heap_size_t().add(sizeof(dict_index_t)).add(strlen(name) + 1)
    .add(1 + n_fields * sizeof(dict_field_t))
    .add(n_uniq * sizeof(ib_uint64_t), 3)
#ifdef BTR_CUR_ADAPT
    /* 11.8 has it in the index */
    .add(std::is_pointer<decltype(dict_index_t::search_info)>::value
         ? sizeof(std::remove_pointer<decltype(dict_index_t::search_info)>::type)
         : 0)
#endif
    .add(type & DICT_SPATIAL ? sizeof(rtr_info_track_t) : 0);
}

#endif /* dict0size_h */
