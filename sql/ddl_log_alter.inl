/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Steps of the recovery of RENAME and ALTER TABLE. ddl_log.cc includes this file.

  Recovery gives the old table a temporary name, the new one the final name, and drops the
  old one, as the statement does. If an engine cannot rename a table, recovery takes the
  statement back. If it cannot do that either, it leaves both tables, and says so in the
  error log.
*/

#if MYSQL_VERSION_ID < 110800
/* quick_rm_table() removes the .frm file and the engine's files if no flag forbids it */
static constexpr uint QRMT_DEFAULT= 0;
#endif


static bool frm_exists(const LEX_CSTRING &db, const LEX_CSTRING &table)
{
  char path[FN_REFLEN + 1];
  build_table_filename(path, sizeof(path) - 1, db.str, table.str, reg_ext, 0);
  return !access(path, F_OK);
}


/*
  Recovery of ALTER TABLE drops the old table. A FOREIGN KEY that refers to it
  refers to the new one: while this object exists, the key forbids no DROP.
*/
class Ignore_foreign_keys
{
  THD *const thd;
  const ulonglong option_bits;
public:
  explicit Ignore_foreign_keys(THD *thd):
    thd(thd), option_bits(thd->variables.option_bits)
  {
    thd->variables.option_bits|= OPTION_NO_FOREIGN_KEY_CHECKS;
  }
  ~Ignore_foreign_keys() { thd->variables.option_bits= option_bits; }
};


static void rename_stays(const DDL_LOG_ENTRY *entry)
{
  sql_print_error("DDL_LOG: Could not rename %s.%s back to %s.%s. The binary log "
                  "lacks this RENAME", entry->db.str, entry->name.str,
                  entry->from_db.str, entry->from_name.str);
}


/* @return whether another table has the old name, so that a step of RENAME must stay */
static bool undo_would_overwrite(const DDL_LOG_ENTRY *entry)
{
  if (!frm_exists(entry->db, entry->name) ||
      !frm_exists(entry->from_db, entry->from_name))
    return false;
  rename_stays(entry);
  return true;
}


/* @return whether a step of RENAME, whose table has kept its name, had been done */
static bool is_not_undone(const DDL_LOG_ENTRY *entry)
{
  if (frm_exists(entry->from_db, entry->from_name))
    return false;
  rename_stays(entry);
  return true;
}


static void not_renamed(const DDL_LOG_ENTRY *entry)
{
  sql_print_error("DDL_LOG: ALTER TABLE could not rename %s.%s to %s. The "
                  "binary log lacks the statement",
                  entry->db.str, entry->name.str, entry->extra_name.str);
}


/*
  Recovery cannot give an altered table its name: take ALTER TABLE back, if the
  old table has its name, or gets it back. Otherwise leave both tables.

  @param old_file  handler of the old table's engine
  @param hton      engine of the new table
*/
static void take_alter_back(THD *thd, DDL_LOG_ENTRY *entry, handler *old_file,
                            handlerton *hton)
{
  char from_path[FN_REFLEN + 1], to_path[FN_REFLEN + 1];
  if (!(entry->flags & DDL_LOG_FLAG_ALTER_RENAME))
  {
#if MYSQL_VERSION_ID < 110800
    execute_rename_table(entry, old_file,
#else
    execute_rename_table(thd, entry, old_file,
#endif
                         &entry->from_db, &entry->extra_name,
                         &entry->from_db, &entry->from_name,
                         FN_FROM_IS_TMP, from_path, to_path);
  }
  const bool taken_back= frm_exists(entry->from_db, entry->from_name);
  sql_print_error("DDL_LOG: %s ALTER TABLE %s.%s; the old table is %s, the new "
                  "one is %s", taken_back ? "Took back" : "Could not complete",
                  entry->from_db.str, entry->from_name.str,
                  taken_back ? entry->from_name.str : entry->extra_name.str,
                  taken_back ? "dropped" : entry->name.str);
  if (!taken_back)
    return;
  /* After another crash, recovery must not go on as if there were a new table */
  (void) update_phase(entry->entry_pos, DDL_ALTER_TABLE_PHASE_CREATED);
  quick_rm_table(thd, hton, &entry->db, &entry->name, QRMT_DEFAULT | FN_IS_TMP);
  (void) update_phase(entry->entry_pos, DDL_LOG_FINAL_PHASE);
}


/*
  ALTER TABLE has logged that the new table is ready: give the old table its
  temporary name, as the statement would have done. To drop the old table would
  drop its FOREIGN KEYs, too. They keep its name, and the new table gets them.

  @return whether this has taken ALTER TABLE back
*/
static bool rename_replaced_table(THD *thd, DDL_LOG_ENTRY *entry,
                                  handler *old_file, handlerton *hton)
{
  char from_path[FN_REFLEN + 1], to_path[FN_REFLEN + 1];
  const CSET_STRING query= thd->query_string;
  /* InnoDB looks for DROP FOREIGN KEY */
  thd->set_query_inner(const_cast<char*>(recovery_state.query.ptr()),
                       recovery_state.query.length(), thd->charset());
#if MYSQL_VERSION_ID < 110800
  execute_rename_table(entry, old_file,
#else
  execute_rename_table(thd, entry, old_file,
#endif
                       &entry->from_db, &entry->from_name,
                       &entry->from_db, &entry->extra_name, FN_TO_IS_TMP,
                       from_path, to_path);
  thd->set_query_inner(query);
  const bool failed= table_kept_name;
  if (failed)
    take_alter_back(thd, entry, old_file, hton);
  else
    (void) update_phase(entry->entry_pos, DDL_ALTER_TABLE_PHASE_OLD_RENAMED);
  return failed;
}
