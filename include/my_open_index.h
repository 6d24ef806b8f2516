/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MY_OPEN_INDEX_INCLUDED
#define MY_OPEN_INDEX_INCLUDED

/*
  Index from unique file name to open share, for MyISAM and Aria

  An engine opens the files of a table once and keeps what all instances of
  the table have in common in a 'share'. Whoever opens or creates a table asks
  first whether a share of its file is there already. The index answers this
  in a constant number of steps, however many tables are open.

  - In the index is every share that is not of an internal temporary table
    (or of the private copy that Aria's repair makes), from the time when it
    is opened to the time when its last instance is closed.

  - A share is 'current' or 'retired'. It gets retired (last_version= 0) when
    its table is about to be dropped, renamed or rebuilt. A retired share is
    never found again, though it stays in the index until it is closed. In
    the meantime its file name may be given to a new file and a new share, so
    the same name can be in the index several times. At most one of the
    shares of a name is current.

  - Retired shares stay in the index so that retiring needs no lock on it:
    Aria does it while it has other locks, which rank after the index's.

  The shares are kept in a HASH. It stores a pointer and a hash value for each
  share, 16 bytes, and grows a bucket at a time, so no insert has to move all
  that is there. The key is the share's own copy of its file name. A HASH
  needs memory when it grows: only open_index_insert() can fail.

  The index needs no call to start it or to end it. Its memory is given back
  when the last share leaves. Thus stand-alone tools, which link the engine's
  library but don't call the server's initialization, need to do nothing.
*/

#include <my_pthread.h>
#include <mysql/psi/mysql_thread.h>
#include <hash.h>

C_MODE_START

typedef struct st_open_index
{
  /* Constant: protects the rest. Owned by the caller of every function */
  mysql_mutex_t *lock;
  /* Constant: the unique file name of a share */
  my_hash_get_key get_name;
  /*
    Constant: FALSE if the share is retired. A share may get retired while
    the lock is not held, but then no other thread wants to open it (the
    server has an exclusive metadata lock on its table).
  */
  my_bool (*is_current)(const void *share);
  /* Protected by lock. Uninitialized (all zero) when there are no shares */
  HASH shares;
} OPEN_INDEX;

#define OPEN_INDEX_INIT(lock, get_name, is_current) \
  { (lock), (get_name), (is_current), \
    { 0, 0, 0, 0, 0, { 0, 0, 0, 0, 0, 0, 0 }, 0, 0, 0, 0 } }

void *open_index_find(const OPEN_INDEX *index, const char *name,
                      size_t length);
my_bool open_index_insert(OPEN_INDEX *index, void *share);
void open_index_delete(OPEN_INDEX *index, void *share);

C_MODE_END

#endif /* MY_OPEN_INDEX_INCLUDED */
