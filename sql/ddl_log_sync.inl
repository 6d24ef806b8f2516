/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The DDL log with fewer syncs, most of them without LOCK_gdl. ddl_log.cc includes this
  file.

  One sync for several statements
  ===============================
  A thread that wants its writes to be durable waits for a sync that began after them,
  and syncs itself if no thread is doing so: see ddl_log_group_sync(). Statements that
  only add entries, or only complete, wait for the sync without LOCK_gdl.

  One sync for an entry and what refers to it
  ===========================================
  MariaDB writes an entry, syncs, writes the execute entry that refers to it, and syncs.
  Otherwise a power loss could leave the execute entry on the disk, and in the entry's
  block its old contents: maybe the DROP TABLE of an earlier statement, which recovery
  would execute. Here each entry carries the mark of its statement, a number that no other
  statement has, and a checksum; the execute entry carries the same mark. Recovery uses an
  entry only if its mark is that of the execute entry and its checksum is right. Otherwise
  the entry was not synced, so the statement had not begun to do what the entry describes,
  and recovery does as if nothing referred to it. So one sync covers both writes.

  The same holds for the entries of DROP TABLE: each refers to the next one. MariaDB does
  not sync that reference before it drops the table. A DROP of many tables syncs the entries
  of several tables together: see ddl_log_drops.cc.

  Two kinds of statements sync twice, as in unpatched MariaDB:

  1. A statement that has begun its work already, and then lets its execute entry refer to
     another first entry: recovery may need the earlier entries.
  2. Partitioning, which writes its entries itself. Such entries may have the mark 0, which
     means that recovery checks nothing.

  The mark and the checksum are in bytes of the block that MariaDB leaves 0, so unpatched
  MariaDB can read the log, too.

  DROP TABLE and DROP DATABASE without phases
  ===========================================
  After DROP TABLE has dropped a table in the engine, and after it has dropped the triggers,
  MariaDB notes that phase in the entry, and syncs each time. Recovery does not need these
  notes. Without them it drops the table again, and finds that there is none, or deletes the
  files that are left; then it does the same with the triggers. No other table can have that
  name: the statement disables its entries, and syncs, before it releases its metadata
  locks. So DROP leaves the notes out, with two exceptions:

  1. After an error recovery must not try again.
  2. CREATE OR REPLACE TABLE uses the name again.
*/

#include "ddl_log_drops.h"
#include <condition_variable>
#include <mutex>

/* Behind DDL_LOG_END_POS, before the names: see DDL_LOG_TMP_NAME_POS */
static constexpr unsigned DDL_LOG_MARK_POS= DDL_LOG_END_POS;
static constexpr unsigned DDL_LOG_CHECKSUM_POS= DDL_LOG_MARK_POS + 8;
static_assert(DDL_LOG_CHECKSUM_POS + 4 <= DDL_LOG_TMP_NAME_POS, "no room");

/* Protects the four variables below */
static std::mutex ddl_sync_mutex;
/* Woken up when a sync has ended */
static std::condition_variable ddl_sync_ended;
/* How many requests for a sync there were, and how many of these are done */
static ulonglong ddl_syncs_wanted, ddl_syncs_done;
/* Whether a thread is syncing */
static bool ddl_sync_running;

/* Every DDL_LOG_MEMORY_ENTRY is allocated as this type */
struct ddl_log_marked_entry: public DDL_LOG_MEMORY_ENTRY
{
  /* Of an execute entry: the mark that its chain has, or 0 */
  ulonglong mark;
};

static ulonglong &ddl_log_mark_of(DDL_LOG_MEMORY_ENTRY *execute_entry)
{
  return static_cast<ddl_log_marked_entry*>(execute_entry)->mark;
}

/* The mark of the entries that a thread is writing, or 0; protected by LOCK_gdl */
static ulonglong ddl_log_mark;
/* The last mark that was given to a statement; protected by LOCK_gdl */
static ulonglong ddl_log_last_mark;
/* Whether the thread that writes an execute entry syncs when it has released LOCK_gdl;
   protected by LOCK_gdl */
static bool ddl_log_sync_later;
/* The mark that the entries of a chain must have, or 0; used in recovery only */
static ulonglong ddl_log_expected_mark;


/**
  Wait until everything is durable that this thread has written.

  @return whether there was an error, which was reported
*/

static bool ddl_log_group_sync()
{
  std::unique_lock<std::mutex> lock(ddl_sync_mutex);
  const ulonglong ticket= ++ddl_syncs_wanted;
  while (ddl_syncs_done < ticket)
  {
    if (ddl_sync_running)
    {
      ddl_sync_ended.wait(lock);
      continue;
    }
    ddl_sync_running= true;
    const ulonglong wanted= ddl_syncs_wanted;
    lock.unlock();
    const bool error= mysql_file_sync(global_ddl_log.file_id, MYF(MY_WME));
    lock.lock();
    ddl_sync_running= false;
    if (!error)
      ddl_syncs_done= wanted;
    ddl_sync_ended.notify_all();
    if (error)
      return true;                              // The others try again
  }
  return false;
}


void ddl_log_sync_drops()
{
  (void) ddl_log_group_sync();
}


/** @return the checksum of what does not change in an entry */

static uint32 ddl_log_checksum(const uchar *block)
{
  ha_checksum sum= my_checksum(0, block + DDL_LOG_ACTION_TYPE_POS, 1);
  sum= my_checksum(sum, block + DDL_LOG_UUID_POS, MY_UUID_SIZE);
  sum= my_checksum(sum, block + DDL_LOG_MARK_POS, 8);
  return (uint32) my_checksum(sum, block + global_ddl_log.name_pos,
                              global_ddl_log.io_size - global_ddl_log.name_pos);
}


/** Put the mark into the entry in the buffer, which is about to be written. */

static void ddl_log_mark_entry()
{
  uchar *block= global_ddl_log.file_entry_buf;
  mysql_mutex_assert_owner(&LOCK_gdl);
  if (!ddl_log_mark)
    return;
  int8store(block + DDL_LOG_MARK_POS, ddl_log_mark);
  int4store(block + DDL_LOG_CHECKSUM_POS, ddl_log_checksum(block));
}


/**
  Begin to write an entry that carries a mark.

  @param execute_entry  that of the statement, or nullptr if this is the first entry
  @return whether the caller shall sync when it has released LOCK_gdl
*/

static bool ddl_log_begin_marked(DDL_LOG_MEMORY_ENTRY *execute_entry)
{
  mysql_mutex_assert_owner(&LOCK_gdl);
  DBUG_ASSERT(!ddl_log_mark);
  if (execute_entry)
  {
    ddl_log_mark= ddl_log_mark_of(execute_entry);
    return false;
  }
  /* An earlier run of the server has used lower marks, unless the clock was set back */
  const ulonglong now= my_hrtime().val;
  ddl_log_mark= ddl_log_last_mark= MY_MAX(ddl_log_last_mark + 1, now);
  return ddl_log_sync_later= true;
}


static void ddl_log_end_marked()
{
  mysql_mutex_assert_owner(&LOCK_gdl);
  ddl_log_mark= 0;
  ddl_log_sync_later= false;
}


/**
  Whether recovery may use an entry.

  @param entry_pos  its number
  @return false if the entry was not synced before the server ended
*/

static bool ddl_log_entry_is_whole(uint entry_pos)
{
  if (!ddl_log_expected_mark)
    return true;
  const size_t size= global_ddl_log.io_size;
  uchar *block= (uchar*) my_malloc(key_memory_DDL_LOG_MEMORY_ENTRY, size,
                                   MYF(MY_WME));
  const bool whole= block &&
    !mysql_file_pread(global_ddl_log.file_id, block, size,
                      (my_off_t) size * entry_pos, MYF(MY_NABP)) &&
    uint8korr(block + DDL_LOG_MARK_POS) == ddl_log_expected_mark &&
    uint4korr(block + DDL_LOG_CHECKSUM_POS) == ddl_log_checksum(block);
  my_free(block);
  return whole;
}


/** In recovery: the execute entry in the buffer says what mark its chain has. */

static void ddl_log_expect_mark()
{
  mysql_mutex_assert_owner(&LOCK_gdl);
  ddl_log_expected_mark=
    uint8korr(global_ddl_log.file_entry_buf + DDL_LOG_MARK_POS);
}
