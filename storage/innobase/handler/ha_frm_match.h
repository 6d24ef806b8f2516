/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Less work in ha_innobase::open(): do not repeat comparisons whose result is the
  same each time.

  In MariaDB, each open of a handler compares all indexes of the .frm file, and
  their columns, with those of InnoDB's dictionary. Then it looks up every index
  by name again for its statistics.

  Frm_match remembers in dict_table_t which TABLE_SHARE matches:

  1. A share has an identifier that no other base table's share of this server
     has had (table_map_id).
  2. DDL that changes indexes or columns has an exclusive metadata lock and gives
     the table a new share.
  3. A dict_table_t that leaves the dictionary's cache takes its note along.
  4. Frm_match does not remember a share that does not match: each open reports
     it. Nor does it remember shares of temporary tables, whose identifiers are
     not unique.

  Frm_index_walk finds the indexes of a table one by one, in the order of the
  .frm file. That is nearly always InnoDB's order, too. Then it compares each
  name once.
*/

#ifndef HA_FRM_MATCH_INCLUDED
#define HA_FRM_MATCH_INCLUDED

/** The TABLE_SHARE that matches a dict_table_t, in dict_table_t::frm_match */

class Frm_match
{
  /** Twice its table_map_id, plus 1 for HA_DUPLICATE_KEY_NOT_IN_ORDER; or 0.
  Any thread that opens a handler reads and writes it, with no lock. */
  Atomic_relaxed<uint64_t> &match;
  /** The value without the flag; 0 if this must not remember the share */
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


/** Finds indexes by name, best in their order */

class Frm_index_walk
{
  dict_table_t *const table;
  /** The index that was found last. It is committed, so the caller's metadata lock
  protects it. This keeps no pointer to the index behind it: that may be a FULLTEXT
  INDEX that is being created, and that another thread frees. */
  dict_index_t *found= nullptr;

public:
  explicit Frm_index_walk(dict_table_t *table) : table(table) {}

  /** @return an index that is not being created, or nullptr
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
