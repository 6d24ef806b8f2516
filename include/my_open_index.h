/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MY_OPEN_INDEX_INCLUDED
#define MY_OPEN_INDEX_INCLUDED

/*
  Index from unique file name to open share, for MyISAM and Aria

  An engine opens the files of a table once. All open instances of the table use
  one 'share'. A thread that opens or creates a table first looks for an
  existing share of its file. The index finds it in a constant number of steps,
  however many tables are open.

  - A share is in the index from the time when a thread opens it to the time
    when a thread closes its last instance. The index does not have the shares
    of internal temporary tables, or of the private copy that Aria's repair
    makes.

  - A share is 'current' or 'retired'. A thread retires it (last_version= 0)
    before it drops, renames or rebuilds the table. No thread finds a retired
    share again, although it stays in the index until it is closed. In the
    meantime a new file and a new share may get its file name, so the same name
    can be in the index several times. At most one of the shares of a name is
    current.

  - Retired shares stay in the index so that a thread needs no lock on the index
    to retire one: Aria does that while it holds other locks, which come after
    the index's in the order of locks.

  The index keeps the shares in a HASH, which stores a pointer and a hash value
  for each share, 16 bytes, and grows by one bucket at a time, so no insert has
  to move all entries. The key is the share's own copy of its file name. A HASH
  needs memory when it grows, so open_index_insert() can fail. No other function
  can.

  The index needs no initialization and no cleanup: it frees its memory when the
  last share leaves. So stand-alone tools, which link the engine's library but
  don't call the server's initialization, need to do nothing.

  Name locks: one thread at a time works on a file
  ------------------------------------------------

  A thread holds the mutex of the index (THR_LOCK_myisam, THR_LOCK_maria) only
  to look up, insert and remove, never across file I/O. A lock on the name of
  the file keeps two threads from opening, closing or creating it at once:

  1. open_index_begin() makes the calling thread the owner of a name. If another
     thread owns the name, the caller waits. It does not disturb threads that
     work on other names. Threads get the name in the order in which they came.

  2. The owner opens, closes or creates the file, and inserts or removes the
     share. A thread can own a name while no share of it exists (the thread
     opens the file first, or creates it), while the current share is open (the
     thread opens or closes another instance of the table), or while only
     retired shares are open.

  3. open_index_end() gives the name to the next thread.

  What another thread can see, between any two steps of the owner:

  1. By name: nothing. open_index_find() is for the owner of the name only, so
     no other thread finds a share that is not complete yet or is being closed.

  2. By walking the engine's list of open instances (checkpoint, key caches,
     panic): only instances that are complete. The owner adds an instance as
     the last step of opening, and removes it as the first step of closing,
     both with the mutex held. Aria's last instance of a share stays in the list
     until the files are synced, because checkpoints have to know them until
     then. A checkpoint waits for close_lock before it touches more than the
     constant fields.

  If the owner fails to open the file, there are two cases:

  1. The error is a fact about the file (it is missing, or damaged). The threads
     that were waiting to open the file in the same way get the same error,
     without doing the I/O again. Other threads go on as usual: those that come
     later, and those that wait to open the file in another way, to create it or
     to close it.

  2. The owner could not get something, such as memory or a descriptor. All
     threads go on as usual, because the next thread may get it.

  The entry of an owned name is on the stack of its owner, so a thread needs no
  memory to own a name, and cannot fail to. A thread owns one name at a time:
  while it opens, closes or creates one table, it does not do so with another
  one.

  Each owned name is in a chain, by its hash value. Each chain has a mutex of
  its own, so a thread that takes or gives back a name writes no memory that the
  names of other chains use.

  Order of locks: name, Aria's close_lock, mutex of the index, intern_lock.
  No thread waits for a name while it holds any of the others. A thread that
  holds the mutex of a chain takes no other lock, except those that it needs to
  enter a stage. The performance schema has no instrument for these mutexes: a
  wait for a name shows as the stage.
*/

#include <my_pthread.h>
#include <mysql/psi/mysql_thread.h>
#include <mysql/psi/mysql_stage.h>
#include <hash.h>

C_MODE_START

/* Number of chains of owned names. Each thread that opens tables owns a name */
#define OPEN_INDEX_NAME_CHAINS 64

struct st_my_thread_var;

/*
  A thread that owns a name, or waits for it. The mutex of the chain protects
  all members: open_index_name_locks[hash_value % OPEN_INDEX_NAME_CHAINS]
*/
typedef struct st_open_index_name
{
  /* Owner: the current share of the name. NULL if none, or if closing */
  void *share;
  /* Constant. The caller keeps the string until open_index_end() */
  const char *name;
  size_t length;
  /* Constant: OPEN_INDEX_HOW(), OPEN_INDEX_CREATE or OPEN_INDEX_CLOSE */
  uint how;
  uint32 hash_value;                            /* Constant. Of the name */
  /* Owner: next owner in the chain. Waiting: next in the queue */
  struct st_open_index_name *next;
  /* Owner: the threads that wait, in order of arrival. NULL if none */
  struct st_open_index_name *first_waiting, *last_waiting;
  /* Waiting: the thread to wake up. Sleeps until waiting is set to FALSE */
  struct st_my_thread_var *thread;
  my_bool waiting;
  /* Waiting: the owner's error, if the thread gets that instead of the name */
  int error;
} OPEN_INDEX_NAME;

typedef struct st_open_index
{
  /* Constant: protects shares */
  mysql_mutex_t *lock;
  /* Constant: the unique file name of a share */
  my_hash_get_key get_name;
  /*
    Constant: returns FALSE for a retired share. A thread may retire a share
    without the lock and without owning the name. But then no other thread wants
    to open it (the server has an exclusive metadata lock on its table).
  */
  my_bool (*is_current)(const void *share);
  /* Protected by lock. Uninitialized (all zero) while there is no share */
  HASH shares;
  /* Owned names. Each chain is protected by its open_index_name_locks[] */
  OPEN_INDEX_NAME *names[OPEN_INDEX_NAME_CHAINS];
} OPEN_INDEX;

#define OPEN_INDEX_INIT(lock, get_name, is_current) \
  { (lock), (get_name), (is_current), \
    { 0, 0, 0, 0, 0, { 0, 0, 0, 0, 0, 0, 0 }, 0, 0, 0, 0 }, { 0 } }

/*
  The stage that SHOW PROCESSLIST shows for a thread that waits for a name. The
  server sets the function, which enters a stage and saves the former one in
  old_stage if that is not NULL. A thread that closes tables may have no THD
  (SIGHUP, flush_time).
*/
extern PSI_stage_info stage_waiting_for_table_file;
extern void (*open_index_enter_stage)(const PSI_stage_info *stage,
                                      PSI_stage_info *old_stage);

/*
  Number i protects chain i of every index. mysys creates and destroys these
  mutexes with its other ones
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
  The 'how' of open_index_begin(): the caller wants to close the file (it does
  not look into the index then); to create it; or to open it, with a mode of
  open() and HA_OPEN_ flags
*/
#define OPEN_INDEX_CLOSE 0U
#define OPEN_INDEX_CREATE 2U
#define OPEN_INDEX_HOW(mode, open_flags) \
  (1U | ((uint) (mode) & 3) << 1 | (uint) (open_flags) << 3)

/*
  For tests, in debug builds: TRUE, with my_errno set, if a user has set the
  debug keyword that makes the next allocation fail
*/
#ifdef DBUG_OFF
#define open_index_no_memory(keyword) 0
#else
my_bool open_index_no_memory(const char *keyword);
#endif

C_MODE_END

#endif /* MY_OPEN_INDEX_INCLUDED */
