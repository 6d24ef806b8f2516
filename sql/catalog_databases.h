#ifndef CATALOG_DATABASES_INCLUDED
#define CATALOG_DATABASES_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The directories in the data directory that may be databases, as a sorted list in
  memory that is kept from one statement to the next.

  The first statement makes the list by reading the data directory. From then on the
  kernel (inotify) queues the name of each entry that is created, removed or renamed
  there, whether by CREATE DATABASE, replication, mkdir or rm. An entry is in the queue
  before the system call that made the change returns. A statement that wants the list
  reads the queue first, and asks the file system about each name in it. So it sees what
  it would see if it read the directory.

  A statement reads the directory instead in two cases:

  1. There is no inotify, or the data directory is on a file system whose changes do not
     all pass through this kernel, such as NFS, or where capitals do not matter.
  2. The queue has overflowed, or the directory's modification time differs from the one
     at which the queue was last empty, though the queue is empty. Then the statement
     makes the list anew.

  No thread changes a list: a new list takes its place, and the last statement that uses
  the old one frees it.
*/

#include <atomic>

/** A list of directories, sorted by the names of their databases */
class Known_databases
{
public:
  /** One directory */
  class Entry
  {
  public:
    explicit Entry(const char *data) : m_data(data) { }
    const char *file() const { return m_data + 1; }
    /** The name of the database: what filename_to_tablename() makes of the file's */
    const char *name() const
    { return m_data[0] & ENCODED ? file() + strlen(file()) + 1 : file(); }
    /** May be a link to a directory: only a stat() tells whether it is one now */
    bool is_link() const { return m_data[0] & LINK; }
  private:
    const char *m_data;         // flags, file name, and a database's name if it differs
  };

  size_t count() const { return m_count; }
  Entry at(size_t i) const { return Entry(m_names + m_offsets[i]); }

  /** The entry of a directory, or count() */
  size_t find(const char *file, const char *name) const;

  /**
    Two calls, one of them with `behind`, find the names that begin with `bytes`
    or, if `bytes` includes the final 0, the entries of one name.
    @return the first entry from `low` on whose first bytes are not less than
      `bytes` (if `behind`: are greater)
  */
  size_t first(const char *bytes, size_t length, bool behind, size_t low) const;

  enum { ENCODED= 1, LINK= 2 };

private:
  friend class Known_databases_builder;
  friend class Known_databases_ref;
  uint *m_offsets;              // in m_names, in order
  char *m_names;
  size_t m_count, m_bytes;      // m_bytes: what m_names holds
  /*
    Statements, and one as long as it is the newest. A thread adds under the mutex of
    the newest list, while that one cannot go: relaxed. The thread that takes away
    the last one sees what all others have read: acquire and release.
  */
  std::atomic<uint> m_users;
};


/** A statement's use of the list */
class Known_databases_ref
{
public:
  Known_databases_ref() : m_list(nullptr) { }
  ~Known_databases_ref() { release(m_list); }
  Known_databases_ref(const Known_databases_ref&)= delete;
  void operator=(const Known_databases_ref&)= delete;

  /**
    Get the list, brought up to date with the data directory.
    @param ignored  is a directory in @@ignore_db_dirs?
    @return false if there is none; the caller reads the directory
  */
  bool acquire(bool (*ignored)(const char *directory));

  /** Get the list if nothing has changed, and no other thread works on it */
  bool acquire_unchanged();

  const Known_databases *operator->() const { return m_list; }

  static void release(Known_databases *list);

private:
  Known_databases *m_list;
};

/** Free the list, and stop watching the data directory, at the server's end */
void known_databases_free();

/** Do all changes of the file system that has this directory go through this kernel? */
bool is_local_file_system(const char *directory);

#endif /* CATALOG_DATABASES_INCLUDED */
