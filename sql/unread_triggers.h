#ifndef UNREAD_TRIGGERS_INCLUDED
#define UNREAD_TRIGGERS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A TABLE reads its table's triggers when a statement that writes opens it.

  Each TABLE parses its own copy of the triggers, which takes 30 KiB for a short
  one. Only statements that change rows need them. So a TABLE that is opened, for
  whatever statement, only notes that there is a file with triggers: they are
  unread. open_table() reads them when it has a TABLE, new, from the table cache
  or locked by LOCK TABLES, for a statement that wants to lock the table for
  writing. The TABLE keeps them until it is closed. So this patch set's table
  cache exchanges a TABLE for a free one that has them: see
  tc_exchange_for_triggers().

  These need the triggers and do not lock for writing: CREATE and DROP TRIGGER,
  SHOW CREATE TRIGGER, and SHOW TRIGGERS if it has opened the TABLE. They call
  read_triggers(). Those that need only names, or have no TABLE of the table
  cache, read the file themselves, as before: RENAME and DROP TABLE, ALTER TABLE
  ... RENAME, and usually SHOW TRIGGERS.

  TABLE has no room for a member, so the note is a bit of TABLE::db_stat that
  MariaDB does not use. Only the thread that uses the TABLE reads and writes it.
*/

#include "table.h"

/** In TABLE::db_stat: there is a file with triggers, but TABLE::triggers is NULL. */
static constexpr uint TRIGGERS_UNREAD= 1U << 30;

static inline bool has_unread_triggers(const TABLE *table)
{
  return table->db_stat & TRIGGERS_UNREAD;
}

bool read_unread_triggers(THD *thd, TABLE *table);
bool get_unread_triggers(THD *thd, TABLE **table);

/**
  Make sure that the TABLE has its triggers.

  @pre The thread uses the TABLE
  @return true: they cannot be read (reported)
*/

static inline bool read_triggers(THD *thd, TABLE *table)
{
  return unlikely(has_unread_triggers(table)) &&
         read_unread_triggers(thd, table);
}

/** Make sure that the TABLE has its triggers if lock_type is one for writing. */

static inline bool read_triggers_to_write(THD *thd, TABLE *table,
                                          thr_lock_type lock_type)
{
  return unlikely(has_unread_triggers(table)) && lock_type >= TL_FIRST_WRITE &&
         read_unread_triggers(thd, table);
}

/** The same for a TABLE from the table cache, which may be exchanged for another. */

static inline bool get_triggers_to_write(THD *thd, TABLE **table,
                                         thr_lock_type lock_type)
{
  return unlikely(has_unread_triggers(*table)) && lock_type >= TL_FIRST_WRITE &&
         get_unread_triggers(thd, table);
}

#endif /* UNREAD_TRIGGERS_INCLUDED */
