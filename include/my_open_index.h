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

  Who may work on a file: name locks
  ----------------------------------

  The mutex of the index (THR_LOCK_myisam, THR_LOCK_maria) is held only to
  look up, insert and remove, never across file I/O. A lock on the name of a file
  keeps an open, a close or a create of it from meeting another one:

  - open_index_begin() makes the calling thread the owner of a name. If
    another thread owns the name, it waits; threads that wait for one name
    don't disturb those that work on other names. The owners follow each
    other in the order in which they came.

  - The owner opens, closes or creates the file, and inserts or removes the
    share. A name can be owned while no share of it exists (the file is being
    opened first, or created), while the current share is open (another
    instance of the table is opened or closed), or while only retired ones
    are.

  - open_index_end() gives the name to the next thread.

  What another thread can see, between any two steps of the owner:

  - By name: nothing. open_index_find() is for the owner of the name only, so
    nobody finds a share which is not complete yet or is being closed.

  - By walking the engine's list of open instances (checkpoint, key caches,
    panic): only instances that are complete. The owner adds an instance as
    the last step of opening, and removes it as the first step of closing,
    both with the mutex held. Aria's last instance of a share stays in the list
    until the files are synced, for checkpoints have to know them until then;
    they wait for close_lock before they touch more than the constant fields.

  - If the owner fails to open the file, and the error is a fact about the
    file (it is missing, or damaged), the threads that were waiting to open it
    in the same way get the same error, without doing the I/O again. Threads
    that come later, want to open it in another way, or don't want to open it,
    go on with it as usual. So do all if the owner lacked something, such as
    memory or a descriptor, for the next thread may get it.

  The entry of an owned name is on the stack of its owner, so owning a name
  needs no memory and cannot fail. A thread owns one name at a time: it does
  not open, close or create a registered table while it does so with another.

  Owned names are in chains, by hash value. Each chain has a mutex of its own,
  so to own a name and to give it back costs nothing that other names share.

  Order of locks: name, Aria's close_lock, mutex of the index, intern_lock.
  Nobody waits for a name while holding any of the others. A thread that has the
  mutex of a chain locks nothing else but what entering a stage takes. These
  mutexes have no instrument of the performance schema: a wait for a name shows
  as the stage.
*/

#include <my_pthread.h>
#include <mysql/psi/mysql_thread.h>
#include <mysql/psi/mysql_stage.h>
#include <hash.h>

C_MODE_START

/* Number of chains of owned names. There are as many as threads that open */
#define OPEN_INDEX_NAME_CHAINS 64

struct st_my_thread_var;

/*
  A thread that owns a name, or waits for it. All is protected by the mutex of
  the chain, open_index_name_locks[hash_value % OPEN_INDEX_NAME_CHAINS]
*/
typedef struct st_open_index_name
{
  /* Of the owner. The current share of the name, NULL if not looked for */
  void *share;
  /* Constant. The caller keeps the name until it gives it back */
  const char *name;
  size_t length;
  /* Constant: OPEN_INDEX_HOW(), OPEN_INDEX_CREATE or OPEN_INDEX_CLOSE */
  uint how;
  uint32 hash_value;                            /* Constant. Of the name */
  /* Owner: next owner in the chain. Waiting: next in the queue */
  struct st_open_index_name *next;
  /* Owner: those who wait for the name, in order of arrival. NULL if none */
  struct st_open_index_name *first_waiting, *last_waiting;
  /* Waiting: whom to wake up. Sleeps until waiting is set to FALSE */
  struct st_my_thread_var *thread;
  my_bool waiting;
  /* Waiting: set when it gets the error of the owner instead of the name */
  int error;
} OPEN_INDEX_NAME;

typedef struct st_open_index
{
  /* Constant: protects shares */
  mysql_mutex_t *lock;
  /* Constant: the unique file name of a share */
  my_hash_get_key get_name;
  /*
    Constant: FALSE if the share is retired. A share may get retired while
    neither the lock is held nor its name owned, but then no other thread
    wants to open it (the server has an exclusive metadata lock on its table).
  */
  my_bool (*is_current)(const void *share);
  /* Protected by lock. Uninitialized (all zero) when there are no shares */
  HASH shares;
  /* Owned names. Each chain is protected by its open_index_name_locks[] */
  OPEN_INDEX_NAME *names[OPEN_INDEX_NAME_CHAINS];
} OPEN_INDEX;

#define OPEN_INDEX_INIT(lock, get_name, is_current) \
  { (lock), (get_name), (is_current), \
    { 0, 0, 0, 0, 0, { 0, 0, 0, 0, 0, 0, 0 }, 0, 0, 0, 0 }, { 0 } }

/*
  What SHOW PROCESSLIST shows of a thread that waits for a name. The server sets
  the function, which enters a stage and saves the former one in old_stage if that
  is not NULL. A thread that closes tables may have no THD (SIGHUP, flush_time).
*/
extern PSI_stage_info stage_waiting_for_table_file;
extern void (*open_index_enter_stage)(const PSI_stage_info *stage,
                                      PSI_stage_info *old_stage);

/*
  For the chains of that number of all indexes. mysys creates and destroys them
  with its other mutexes
*/
extern mysql_mutex_t open_index_name_locks[OPEN_INDEX_NAME_CHAINS];
void open_index_init_locks(void);
void open_index_destroy_locks(void);

/* The caller holds neither the mutex of the index nor a later lock */
int open_index_begin(OPEN_INDEX *index, OPEN_INDEX_NAME *owner,
                     const char *name, size_t length, uint how);
void open_index_end(OPEN_INDEX *index, OPEN_INDEX_NAME *owner, int error);

/* For these the caller holds the mutex (and, in an engine, owns the name) */
void *open_index_find(const OPEN_INDEX *index, const char *name,
                      size_t length);
my_bool open_index_insert(OPEN_INDEX *index, void *share);
void open_index_delete(OPEN_INDEX *index, void *share);

/*
  The 'how' of open_index_begin(): to close the file, which needs no look at the
  index; to create it; to open it, by a mode of open() and HA_OPEN_ flags
*/
#define OPEN_INDEX_CLOSE 0U
#define OPEN_INDEX_CREATE 2U
#define OPEN_INDEX_HOW(mode, open_flags) \
  (1U | ((uint) (mode) & 3) << 1 | (uint) (open_flags) << 3)

/*
  Before an allocation: TRUE, with my_errno set, if the keyword is set to make
  it fail (debug builds)
*/
#ifdef DBUG_OFF
#define open_index_no_memory(keyword) 0
#else
my_bool open_index_no_memory(const char *keyword);
#endif

C_MODE_END

#endif /* MY_OPEN_INDEX_INCLUDED */
