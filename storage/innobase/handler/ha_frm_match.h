/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  ha_innobase::open() does not repeat comparisons that give the same result each
  time.

  In MariaDB, each open of a handler compares all indexes of the .frm file, and
  their columns, with those of InnoDB's dictionary. Then it looks up every index
  by name again for its statistics.

  Frm_match remembers in dict_table_t the TABLE_SHARE that matches. The result
  stays correct, because

  1. a share has an identifier (table_map_id) that no other base table's share
     has had since the server started;
  2. DDL that changes indexes or columns holds an exclusive metadata lock and
     gives the table a new share;
  3. when InnoDB evicts a dict_table_t, the note goes with it;
  4. Frm_match does not remember a share that does not match: each open reports
     it. Nor does it remember shares of temporary tables, whose identifiers are
     not unique.

  Frm_index_walk finds the indexes of a table one by one, in the order of the
  .frm file. That is nearly always InnoDB's order, too, and then it compares each
  name only once.
*/

#ifndef HA_FRM_MATCH_INCLUDED
#define HA_FRM_MATCH_INCLUDED

/** The TABLE_SHARE that matches a dict_table_t, in dict_table_t::frm_match */

class Frm_match
{
  /** Twice the table_map_id of the matching share, plus 1 for
  HA_DUPLICATE_KEY_NOT_IN_ORDER; 0 if none is known. Any thread that opens a
  handler reads and writes it without a lock. Relaxed, because the number says
  all: the thread reads nothing that the one that has compared wrote. */
  Atomic_relaxed<uint64_t> &match;
  /** The value for this share, without the flag; 0: do not remember this share */
  const uint64_t mine;

public:
  Frm_match(const dict_table_t *table, const TABLE_SHARE &share)
    : match(table->frm_match),
      mine(share.tmp_table == NO_TMP_TABLE ? share.table_map_id << 1 : 0)
  {}

  /** @return whether this share is known to match
  @param[in,out] flags  this adds HA_DUPLICATE_KEY_NOT_IN_ORDER if it holds */
  bool is_known(handler::Table_flags *flags) const
  {
    const uint64_t m= match;
    if (!mine || (m & ~1ULL) != mine)
      return false;
    if (m & 1)
      *flags|= HA_DUPLICATE_KEY_NOT_IN_ORDER;
    return true;
  }

  /** Remember the share: the caller has compared it, and it matches. */
  void remember(handler::Table_flags flags)
  {
    if (mine)
      match= mine | !!(flags & HA_DUPLICATE_KEY_NOT_IN_ORDER);
  }
};


/** Finds indexes by name; fastest if the names come in InnoDB's order */

class Frm_index_walk
{
  dict_table_t *const table;
  /** The index that find() has found last. It is committed, so the caller's metadata
  lock protects it. Do not keep a pointer to the next index: that may be a FULLTEXT
  INDEX that another thread is still creating and may free. */
  dict_index_t *found= nullptr;

public:
  explicit Frm_index_walk(dict_table_t *table) : table(table) {}

  /** @return the committed index of that name, or nullptr
  @param name  of the index */
  dict_index_t *find(const char *name)
  {
    dict_index_t *index= found ? dict_table_get_next_index(found)
                               : dict_table_get_first_index(table);
    if (!index || !index->is_committed() || strcmp(index->name, name))
      index= dict_table_get_index_on_name(table, name);
    if (index)
      found= index;
    return index;
  }
};

#endif /* HA_FRM_MATCH_INCLUDED */
