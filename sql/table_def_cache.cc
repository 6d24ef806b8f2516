/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of this file come from MariaDB's sql/table_cache.cc:
   Copyright (c) 2000, 2012, Oracle and/or its affiliates.
   Copyright (c) 2010, 2022, MariaDB Corporation.
   Copyright (C) 2013 Sergey Vojtovich and MariaDB Foundation */

/**
  @file
  The table definition cache (tdc_*): the TABLE_SHAREs.

  The cache has one TDC_element for every table that it knows: a TABLE_SHARE,
  and the fields that are needed to find, count and flush it. The elements are
  in tdc_hash. The table cache (table_cache.cc) has the TABLEs that are open on
  these shares.

  The life of a share
  -------------------
  1. Opened. The thread that opens the share puts an element without a share
     into tdc_hash. Other threads that find the element look again and again
     until the share is there, or the element is gone (tdc_acquire_share()).
  2. Used. Each TABLE holds a reference, and so does each thread that needs the
     share for a moment. The share stays while there is a reference.
  3. Unused. When the last reference goes, the element joins unused_shares at
     the end. If the share is used again, the element stays in the list and
     used_again is set. So acquiring and releasing a listed share does not lock
     LOCK_unused_shares, while the cache is within its limit. A share that was
     flushed is not kept.
  4. Unused, and only scans have used it (see tc_is_scan()). The element joins
     scanned_shares instead.
  5. Freed. While there are more shares than table_definition_cache, tdc_purge()
     frees shares from the front of scanned_shares, and then from the front of
     unused_shares. It works like the hand of a clock:
     - It takes a share that is in use out of its list.
     - It sends a share in unused_shares that was used again to the end, once.
     - It moves a share in scanned_shares that another statement than a scan
       has used to unused_shares.
  6. Gone. tdc_delete_share() first detaches the share from its element
     (element->share= NULL), so no thread gets it any more. Then it wakes the
     threads that wait for the share to go, and removes the element from the
     hash.

  Locks, in the order in which they may be taken:

    LOCK_unused_shares                  unused_shares, scanned_shares, links
    TDC_element::LOCK_table_share       see TDC_element
    LOCK_table_cache                    the order of eviction, the count; it is
                                        order_mutex in table_cache_core.h
    LOCK_free_tables                    a share's free TABLEs; it is
                                        Table_cache_share::mutex

  One function takes a lock against this order, but does not wait for it:
  tdc_release_share() tries LOCK_unused_shares while it holds LOCK_table_share.
*/

#include "mariadb.h"
#include "lf.h"
#include "sql_base.h"
#include "table_cache_tables.h"
#include "my_return_memory.h"
#include "unireg.h"


/** @@table_definition_cache: how many shares may be cached. */
ulong tdc_size;

static bool tdc_inited;

/** All elements, by database and table name. */
static LF_HASH tdc_hash;

/** Protects unused_shares, scanned_shares, TDC_element::next and ::prev. */
static mysql_mutex_t LOCK_unused_shares;

/**
  Elements whose ref_count has come down to 0, and some that are used again.
  Front: the next one that tdc_purge() examines. It begins with scanned_shares.
  An element is in at most one of the two lists.
*/
typedef I_P_List<TDC_element,
                 I_P_List_adapter<TDC_element, &TDC_element::next,
                                  &TDC_element::prev>,
                 I_P_List_null_counter,
                 I_P_List_fast_push_back<TDC_element> > Unused_list;
static Unused_list unused_shares, scanned_shares;

/* The mutexes of both caches */
static PSI_mutex_key key_LOCK_table_cache, key_LOCK_free_tables;
#ifdef HAVE_PSI_INTERFACE
static PSI_mutex_key key_LOCK_unused_shares, key_LOCK_table_share;
static PSI_mutex_info tdc_mutexes[]=
{
  { &key_LOCK_unused_shares, "LOCK_unused_shares", PSI_FLAG_GLOBAL },
  { &key_LOCK_table_share, "TABLE_SHARE::tdc.LOCK_table_share", 0 },
  { &key_LOCK_table_cache, "LOCK_table_cache", PSI_FLAG_GLOBAL },
  { &key_LOCK_free_tables, "TABLE_SHARE::tdc.LOCK_free_tables", 0 }
};
static PSI_cond_key key_COND_release;
static PSI_cond_info tdc_conds[]=
{
  { &key_COND_release, "TABLE_SHARE::tdc.COND_release", 0 }
};
#endif


/* ------------------------------------------------------------- the hash */

/**
  Get pins for tdc_hash: those of the caller's connection, which keeps them, or,
  if the caller has no THD, some for the lifetime of this object.
*/

class Pins
{
  LF_PINS *pins;
  bool borrowed;
public:
  explicit Pins(THD *thd): borrowed(!thd)
  {
    if (borrowed)
      pins= lf_hash_get_pins(&tdc_hash);
    else
    {
      if (!thd->tdc_hash_pins)
        thd->tdc_hash_pins= lf_hash_get_pins(&tdc_hash);
      pins= thd->tdc_hash_pins;
    }
  }
  ~Pins()
  {
    if (borrowed && pins)
      lf_hash_put_pins(pins);
  }
  Pins(const Pins &)= delete;
  void operator=(const Pins &)= delete;

  /** False if out of memory. */
  explicit operator bool() const { return pins != NULL; }
  operator LF_PINS*() const { return pins; }
};


/** The key of an element that is to be inserted. */

struct New_key
{
  const char *str;
  size_t length;
  /*
    Buffer for a key longer than short_key, else NULL. The element becomes its
    owner.
  */
  uchar *memory;

  /** @return true if out of memory (reported) */
  bool init(const char *key, size_t key_length)
  {
    str= key;
    length= key_length;
    memory= NULL;
    if (length <= sizeof(TDC_element::short_key))
      return false;
    DBUG_EXECUTE_IF("tdc_key_out_of_memory",
                    my_error(ER_OUTOFMEMORY, MYF(0), (int) length);
                    return true;);
    return !(memory= (uchar*) my_malloc(PSI_INSTRUMENT_ME, length,
                                        MYF(MY_WME)));
  }
};


static void free_long_key(TDC_element *element)
{
  if (element->m_key != element->short_key)
    my_free(const_cast<uchar*>(element->m_key));
  element->m_key= element->short_key;
}


/** Assert that an element keeps nothing of the share that it had before. */

static void assert_clean(TDC_element *element __attribute__((unused)))
{
  DBUG_ASSERT(!element->share);
  DBUG_ASSERT(!element->ref_count);
  DBUG_ASSERT(!element->all_tables_refs);
  DBUG_ASSERT(!element->open_tables);
  DBUG_ASSERT(element->all_tables.is_empty());
  DBUG_ASSERT(element->m_flush_tickets.is_empty());
  DBUG_ASSERT(!element->unused);
  DBUG_ASSERT(!element->scanned);
  DBUG_ASSERT(!element->bytes);
  DBUG_ASSERT(!free_lists(element)->elements);
}


/** The beginning of MariaDB's TDC_element; see table_cache.h. */
struct Mariadb_element
{
  uchar m_key[2 * (NAME_LEN + 1)];
  uint m_key_length;
  bool flushed;
  TABLE_SHARE *share;
  mysql_mutex_t LOCK_table_share;
  mysql_cond_t COND_release;
};

/* No distribution's engine is for a debug build, where mutexes are larger. */
#if SIZEOF_CHARP == 8 && !defined(SAFE_MUTEX)
static_assert(offsetof(TDC_element, LOCK_table_share) ==
              offsetof(Mariadb_element, LOCK_table_share) &&
              offsetof(TDC_element, COND_release) ==
              offsetof(Mariadb_element, COND_release), "");
#endif


/** Initialize an element in memory that tdc_hash will use many times. */

static void element_constructor(uchar *memory)
{
  TDC_element *element= reinterpret_cast<TDC_element*>(memory +
                                                       LF_HASH_OVERHEAD);
  mysql_mutex_init(key_LOCK_table_share, &element->LOCK_table_share,
                   MY_MUTEX_INIT_FAST);
  mysql_cond_init(key_COND_release, &element->COND_release, 0);
  element->m_key= element->short_key;
  element->flushed= element->no_triggers= element->only_scanned= false;
  element->share= NULL;
  element->unused= element->scanned= element->used_again= false;
  element->ref_count= element->all_tables_refs= element->open_tables= 0;
  element->misses= element->scan_opens= element->evictions= 0;
  element->default_row= NULL;
  element->root_bytes= 0;
  element->bytes= 0;
  element->m_flush_tickets.empty();
  element->all_tables.empty();
  new (free_lists(element)) TABLE_cache_share(key_LOCK_free_tables);
}


static void element_destructor(uchar *memory)
{
  TDC_element *element= reinterpret_cast<TDC_element*>(memory +
                                                       LF_HASH_OVERHEAD);
  assert_clean(element);
  free_long_key(element);
  free_lists(element)->~TABLE_cache_share();
  mysql_cond_destroy(&element->COND_release);
  mysql_mutex_destroy(&element->LOCK_table_share);
}


/**
  Prepare an element for another share, with a new key. No thread can have
  pinned the element, so no thread reads the old key.
*/

static void element_initializer(LF_HASH *, void *dst, const void *src)
{
  TDC_element *element= static_cast<TDC_element*>(dst);
  New_key *key= static_cast<New_key*>(const_cast<void*>(src));
  assert_clean(element);
  free_long_key(element);
  uchar *memory= key->memory ? key->memory : element->short_key;
  key->memory= NULL;
  memcpy(memory, key->str, key->length);
  element->m_key= memory;
  element->m_key_length= (uint) key->length;
  element->misses= element->scan_opens= element->evictions= 0;
  free_lists(element)->hits= free_lists(element)->last_release= 0;
}


static const uchar *element_key(const void *arg, size_t *length, my_bool)
{
  const TDC_element *element= static_cast<const TDC_element*>(arg);
  *length= element->m_key_length;
  return element->m_key;
}


/* ------------------------------------------------------------ the shares */

/** Number of elements: shares that are cached or being opened. */

ulong tdc_records()
{
  return lf_hash_size(&tdc_hash);
}


/**
  Free a share to which there is no reference, and its element.

  @pre The caller holds LOCK_table_share, and the element is in no Unused_list.
  The function unlocks.

  @return how many bytes the share has taken
*/

static size_t tdc_delete_share(TDC_element *element)
{
  DBUG_ENTER("tdc_delete_share");
  mysql_mutex_assert_owner(&element->LOCK_table_share);

  /* From now on no thread gets the share. */
  TABLE_SHARE *share= element->share;
  DBUG_ASSERT(share);
  element->share= NULL;
  PSI_CALL_release_table_share(share->m_psi);
  share->m_psi= NULL;

  /* Each thread that waits for the share has a ticket. Let all of them go. */
  if (!element->m_flush_tickets.is_empty())
  {
    Wait_for_flush_list::Iterator it(element->m_flush_tickets);
    while (Wait_for_flush *ticket= it++)
      (void) ticket->get_ctx()->m_wait.set_status(MDL_wait::GRANTED);
    while (!element->m_flush_tickets.is_empty())
      mysql_cond_wait(&element->COND_release, &element->LOCK_table_share);
  }
  const size_t bytes= tdc_forget_weight(element);
  Default_row *default_row= element->default_row;
  element->default_row= NULL;
  mysql_mutex_unlock(&element->LOCK_table_share);

  Pins pins(current_thd);
  DBUG_ASSERT(pins);
  assert_clean(element);
  /*
    lf_hash_delete() may compare the key after another thread has reused the
    element. Pass a copy.
  */
  uchar key[MAX_DBKEY_LENGTH];
  const uint key_length= element->m_key_length;
  DBUG_ASSERT(key_length <= sizeof(key));
  memcpy(key, element->m_key, key_length);
  lf_hash_delete(&tdc_hash, pins, key, key_length);
  free_table_share(share);
  release_default_row(default_row);
  DBUG_RETURN(bytes);
}


/** Take an element out of the Unused_list that it is in, if any. */

static void tdc_unlink_unused(TDC_element *element)
{
  mysql_mutex_assert_owner(&LOCK_unused_shares);
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  if (element->unused)
    unused_shares.remove(element);
  else if (element->scanned)
    scanned_shares.remove(element);
  element->unused= element->scanned= false;
}


/** Put an element into an Unused_list. It is in none of them. */

static void tdc_link_unused(TDC_element *element)
{
  mysql_mutex_assert_owner(&LOCK_unused_shares);
  mysql_mutex_assert_owner(&element->LOCK_table_share);
  DBUG_ASSERT(!element->unused && !element->scanned);
  if (element->only_scanned)
  {
    scanned_shares.push_back(element);
    element->scanned= true;
  }
  else
  {
    unused_shares.push_back(element);
    element->unused= true;
  }
  element->used_again= false;
}


/**
  Free a share that nobody uses.

  @param[in,out] steps  how many shares the function may skip because they are
                        in use or were used again. NULL: it skips all that are
                        in use, and frees one even if it was used again.

  @return how many bytes the share has taken; 0 if the function found none to
          free within these steps
*/

static size_t tdc_purge_one(uint *steps)
{
  for (;;)
  {
    mysql_mutex_lock(&LOCK_unused_shares);
    TDC_element *element= scanned_shares.front();
    if (!element)
      element= unused_shares.front();
    if (!element || (steps && !*steps))
    {
      mysql_mutex_unlock(&LOCK_unused_shares);
      return 0;
    }
    mysql_mutex_lock(&element->LOCK_table_share);
    tdc_unlink_unused(element);
    const bool in_use= element->ref_count != 0;
    if (!in_use &&
        !(steps && element->used_again && !element->only_scanned &&
          !element->flushed))
    {
      mysql_mutex_unlock(&LOCK_unused_shares);
      return tdc_delete_share(element);
    }
    /* A share that is in use comes back when its last reference goes. */
    if (!in_use)
      tdc_link_unused(element);
    mysql_mutex_unlock(&element->LOCK_table_share);
    mysql_mutex_unlock(&LOCK_unused_shares);
    if (steps)
      --*steps;
  }
}


/**
  Free shares that nobody uses: first those that only scans have used, then
  those that have not been used for longest.

  @param all  true: all of them; false: some of those by which
              table_definition_cache is exceeded

  A statement that has read a definition frees at most two other shares, and
  skips at most 32. When an administrator lowers table_definition_cache,
  tdc_trim() cannot free the shares that TABLEs keep in use at that time. Later
  statements free shares, at most two at a time, until the cache is within the
  limit. So no single statement pays for all of them.

  If shares take more than their part of table_cache_memory, the function frees
  some more: a statement that opens only views makes room nowhere else.
*/

void tdc_purge(bool all)
{
  DBUG_ENTER("tdc_purge");
  if (all)
  {
    while (tdc_purge_one(NULL)) {}
    DBUG_VOID_RETURN;
  }
  uint steps= 32;
  for (uint shares= 2; shares && tdc_records() > tdc_size; shares--)
  {
    if (!tdc_purge_one(&steps))
      break;
  }
  if (const size_t bytes= tdc_bytes_to_free())
    tdc_evict_bytes(bytes, TDC_EVICT_STEPS);
  DBUG_VOID_RETURN;
}


/**
  Free unused shares, in the order of tdc_purge(), until that has freed so many
  bytes.

  @param steps  how many shares the function may skip because they are in use or
                were used again. It skips each share once at most, unless other
                threads use it again meanwhile

  @return how many bytes it has freed
*/

size_t tdc_evict_bytes(size_t bytes, uint steps)
{
  size_t freed= 0;
  while (freed < bytes)
  {
    const size_t got= tdc_purge_one(&steps);
    if (!got)
      break;
    freed+= got;
  }
  return freed;
}


/**
  A statement has set @@table_definition_cache: free unused shares until the
  cache is within the new limit, or no share is left to free. If a user kills
  the statement, tdc_purge() frees the rest later.

  Statements have used most shares again, so the function skips each of them
  once. It leaves the shares of open TABLEs. A thread that closes the last TABLE
  of a share frees a share if the limit is exceeded.
*/

void tdc_trim(THD *thd)
{
  uint steps= 2 * (uint) tdc_records();
  while (tdc_records() > tdc_size && !thd->killed)
  {
    const size_t bytes= tdc_purge_one(&steps);
    if (!bytes)
      break;
    my_return_slice(bytes, TRUE);
  }
  my_return_memory();
}


/**
  Find a share, and lock its element.

  While the element is locked, the share stays, and no reference comes or goes.
  The caller unlocks with tdc_unlock_share().

  @return NULL if there is none; MY_ERRPTR if out of memory
*/

TDC_element *tdc_lock_share(THD *thd, const char *db, const char *table_name)
{
  char key[MAX_DBKEY_LENGTH];
  DBUG_ENTER("tdc_lock_share");

  Pins pins(thd);
  if (unlikely(!pins))
    DBUG_RETURN((TDC_element*) MY_ERRPTR);

  uint length= tdc_create_key(key, db, table_name);
  TDC_element *element= static_cast<TDC_element*>
    (lf_hash_search(&tdc_hash, pins, key, length));
  if (!element)
    DBUG_RETURN(NULL);

  mysql_mutex_lock(&element->LOCK_table_share);
  bool there= element->share && !element->share->error;
  if (unlikely(!there))
    mysql_mutex_unlock(&element->LOCK_table_share);
  lf_hash_search_unpin((LF_PINS*) pins);
  DBUG_RETURN(there ? element : NULL);
}


void tdc_unlock_share(TDC_element *element)
{
  mysql_mutex_unlock(&element->LOCK_table_share);
}


/** @return 1 if the table definition cache knows this table, 0 if not, -1 if
            out of memory */

int tdc_share_is_cached(THD *thd, const char *db, const char *table_name)
{
  char key[MAX_DBKEY_LENGTH];
  Pins pins(thd);
  if (unlikely(!pins))
    return -1;
  uint length= tdc_create_key(key, db, table_name);
  if (!lf_hash_search(&tdc_hash, pins, key, length))
    return 0;
  lf_hash_search_unpin((LF_PINS*) pins);
  return 1;
}


/**
  Read a table's definition into an element that is in the hash already. Other
  threads do not use the element, because it has no share yet.

  @return the share, with one reference; NULL if that failed (reported)
*/

static TABLE_SHARE *tdc_open_share(THD *thd, TABLE_LIST *tl, uint flags,
                                   const char *key, uint key_length)
{
  Pins pins(thd);
  TDC_element *element= static_cast<TDC_element*>
    (lf_hash_search(&tdc_hash, pins, key, key_length));
  /* No other thread deletes an element that has no share. */
  lf_hash_search_unpin((LF_PINS*) pins);
  DBUG_ASSERT(element);

  TABLE_SHARE *share= alloc_table_share(tl->db.str, tl->table_name.str, key,
                                        key_length);
  if (share)
  {
    share->tdc= element;
    /* A thread that asks for a share wants it discovered where necessary. */
    open_table_def(thd, share, flags | GTS_USE_DISCOVERY);
    if (checked_unlikely(share->error))
    {
      free_table_share(share);
      share= NULL;
      release_default_row(element->default_row);
      element->default_row= NULL;
    }
  }
  if (!share)
  {
    lf_hash_delete(&tdc_hash, pins, key, key_length);
    return NULL;
  }

  tdc_weigh_share(element, share, true);
  mysql_mutex_lock(&element->LOCK_table_share);
  element->share= share;
  element->flushed= element->no_triggers= false;
  element->only_scanned= tc_is_scan(thd, tl);
  element->ref_count++;
  mysql_mutex_unlock(&element->LOCK_table_share);
  return share;
}


/**
  Count a miss: a statement asks for a TABLE of this share, and gets none from
  the cache. element is NULL if there is no share either.
*/

static void count_miss(THD *thd, TDC_element *element)
{
  status_var_increment(thd->status_var.table_open_cache_misses);
  if (element)
  {
    mysql_mutex_assert_owner(&element->LOCK_table_share);
    element->misses++;
  }
}


/**
  Get the share of a table or view, and if possible a free TABLE of it.

  @param flags           whether a table, a view or both will do, and how to
                         look for it (GTS_*)
  @param[out] out_table  if given: a TABLE, which holds the reference to the
                         share; or NULL: the caller has got a reference

  Reads the definition if the cache does not have it.

  @return NULL if there is no such table or view, or another error occurred
          (reported)
*/

TABLE_SHARE *tdc_acquire_share(THD *thd, TABLE_LIST *tl, uint flags,
                               TABLE **out_table)
{
  TABLE_SHARE *share;
  TDC_element *element;
  const char *key;
  const uint key_length= get_table_def_key(tl, &key);
  const my_hash_value_type hash_value= tl->mdl_request.key.tc_hash_value();
  const Tc_scan scan= tc_is_scan(thd, tl);
  DBUG_ENTER("tdc_acquire_share");

  Pins pins(thd);
  if (unlikely(!pins))
    DBUG_RETURN(NULL);

  for (;;)
  {
    element= static_cast<TDC_element*>
      (lf_hash_search_using_hash_value(&tdc_hash, pins, hash_value, key,
                                       key_length));
    if (!element)
    {
      New_key new_key;
      if (new_key.init(key, key_length))
        DBUG_RETURN(NULL);
      int res= lf_hash_insert(&tdc_hash, pins, &new_key);
      my_free(new_key.memory);          /* If no element has taken it */
      if (res < 0)
        DBUG_RETURN(NULL);
      if (res > 0)
        continue;                       /* Somebody was faster. */
      if (!(share= tdc_open_share(thd, tl, flags, key, key_length)))
        DBUG_RETURN(NULL);

      tdc_purge(false);
      if (out_table)
      {
        mysql_mutex_lock(&share->tdc->LOCK_table_share);
        count_miss(thd, share->tdc);
        mysql_mutex_unlock(&share->tdc->LOCK_table_share);
        *out_table= NULL;
      }
      share->m_psi= PSI_CALL_get_table_share(false, share);
      break;
    }

    /* A share that is in the cache is not discovered again. */
    DBUG_ASSERT(!(flags & GTS_FORCE_DISCOVERY));

    const bool wants_table= out_table && (flags & GTS_TABLE);
    if (wants_table &&
        (*out_table= tc_acquire_table(thd, element, scan)))
    {
      lf_hash_search_unpin((LF_PINS*) pins);
      DBUG_ASSERT(!(flags & GTS_NOLOCK));
      DBUG_ASSERT(element->share);
      DBUG_ASSERT(!element->share->error);
      DBUG_ASSERT(!element->share->is_view);
      status_var_increment(thd->status_var.table_open_cache_hits);
      DBUG_RETURN(element->share);
    }

    mysql_mutex_lock(&element->LOCK_table_share);
    share= element->share;
    if (wants_table)
      count_miss(thd, share ? element : NULL);
    /* The element is locked, or will be looked up again: the pin may go. */
    lf_hash_search_unpin((LF_PINS*) pins);
    if (!share)
    {
      mysql_mutex_unlock(&element->LOCK_table_share);
      std::this_thread::yield();
      continue;
    }

    if (unlikely(share->error))
      open_table_error(share, share->error, share->open_errno);
    else if (share->is_view && !(flags & GTS_VIEW))
      open_table_error(share, OPEN_FRM_NOT_A_TABLE, ENOENT);
    else if (!share->is_view && !(flags & GTS_TABLE))
      open_table_error(share, OPEN_FRM_NOT_A_VIEW, ENOENT);
    else
    {
      element->ref_count++;
      if (!scan)
        element->only_scanned= false;
      mysql_mutex_unlock(&element->LOCK_table_share);
      break;
    }
    mysql_mutex_unlock(&element->LOCK_table_share);
    DBUG_RETURN(NULL);
  }

  DBUG_PRINT("exit", ("share: %p  ref_count: %u",
                      share, share->tdc->ref_count));
  if (flags & GTS_NOLOCK)
  {
    /* The caller only asks whether there is a share, and needs no reference. */
    tdc_release_share(share);
    share= UNUSABLE_TABLE_SHARE;
  }
  DBUG_RETURN(share);
}


/** Give back a reference to a share. */

void tdc_release_share(TABLE_SHARE *share)
{
  TDC_element *element= share->tdc;
  DBUG_ENTER("tdc_release_share");
  DBUG_PRINT("enter", ("share: %p  table: %s.%s", share, share->db.str,
                       share->table_name.str));

  mysql_mutex_lock(&element->LOCK_table_share);
  DBUG_ASSERT(element->ref_count);
  if (element->ref_count > 1)
  {
    element->ref_count--;
    mysql_cond_broadcast(&element->COND_release);
    mysql_mutex_unlock(&element->LOCK_table_share);
    DBUG_VOID_RETURN;
  }
  if ((element->unused || element->scanned) && !element->flushed &&
      tdc_records() <= tdc_size)
  {
    element->ref_count= 0;
    element->used_again= true;
    mysql_mutex_unlock(&element->LOCK_table_share);
    DBUG_VOID_RETURN;
  }
  /* This is the last reference: take both locks. */
  if (DBUG_IF("tdc_release_waits") ||
      mysql_mutex_trylock(&LOCK_unused_shares))
  {
    /* In their order. Meanwhile another thread may get a reference. */
    mysql_mutex_unlock(&element->LOCK_table_share);
    DEBUG_SYNC_C("tdc_release_unlocked");
    mysql_mutex_lock(&LOCK_unused_shares);
    mysql_mutex_lock(&element->LOCK_table_share);
  }
  const bool over= tdc_records() > tdc_size;
  if (--element->ref_count)
    mysql_cond_broadcast(&element->COND_release);
  else if (element->flushed ||
           (over && (element->only_scanned || scanned_shares.is_empty())))
  {
    tdc_unlink_unused(element);
    mysql_mutex_unlock(&LOCK_unused_shares);
    tdc_delete_share(element);
    DBUG_VOID_RETURN;
  }
  else if (element->unused || element->scanned)
    element->used_again= true;
  else
    tdc_link_unused(element);
  mysql_mutex_unlock(&element->LOCK_table_share);
  mysql_mutex_unlock(&LOCK_unused_shares);
  /* Instead of this share, free one that only scans have used. */
  if (over)
    tdc_purge(false);
  DBUG_VOID_RETURN;
}


/**
  Remove a share to which the caller has a reference.

  @pre exclusive metadata lock, so that no other thread uses a TABLE of it
*/

void tdc_remove_referenced_share(THD *thd, TABLE_SHARE *share)
{
  TDC_element *element= share->tdc;
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, share->db.str,
                                             share->table_name.str,
                                             MDL_EXCLUSIVE));
  /* The element joins no list again while the caller has a reference. */
  mysql_mutex_lock(&LOCK_unused_shares);
  mysql_mutex_lock(&element->LOCK_table_share);
  tdc_unlink_unused(element);
  mysql_mutex_unlock(&element->LOCK_table_share);
  mysql_mutex_unlock(&LOCK_unused_shares);

  element->flush_unused(true);
  mysql_mutex_lock(&element->LOCK_table_share);
  DEBUG_SYNC(thd, "before_wait_for_refs");
  element->wait_for_refs(1);
  DBUG_ASSERT(element->all_tables.is_empty());
  element->ref_count--;
  tdc_delete_share(element);
}


/**
  Remove the share of a table, and all its TABLEs.

  @pre exclusive metadata lock, so that no other thread uses a TABLE of it
*/

void tdc_remove_table(THD *thd, const char *db, const char *table_name)
{
  DBUG_ENTER("tdc_remove_table");
  DBUG_PRINT("enter", ("name: %s.%s", db, table_name));
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, db, table_name,
                                             MDL_EXCLUSIVE));

  mysql_mutex_lock(&LOCK_unused_shares);
  TDC_element *element= tdc_lock_share(thd, db, table_name);
  if (!element)
  {
    mysql_mutex_unlock(&LOCK_unused_shares);
    DBUG_VOID_RETURN;
  }
  /*
    The function cannot report that there is no memory for pins. Nearly all
    callers got theirs when they looked the table up before; DROP VIEW may not,
    as in MariaDB.
  */
  DBUG_ASSERT(element != MY_ERRPTR);

  if (!element->ref_count)
  {
    tdc_unlink_unused(element);
    mysql_mutex_unlock(&LOCK_unused_shares);
    tdc_delete_share(element);
    DBUG_VOID_RETURN;
  }
  mysql_mutex_unlock(&LOCK_unused_shares);

  TABLE_SHARE *share= element->share;
  element->ref_count++;
  mysql_mutex_unlock(&element->LOCK_table_share);
  tdc_remove_referenced_share(thd, share);
  DBUG_VOID_RETURN;
}


/**
  If the share of a table has been flushed, wait until it is gone.

  @param wait_timeout     in seconds
  @param deadlock_weight  of this wait, for the deadlock detector

  @return true if the wait failed: killed, timeout, deadlock, out of memory
          (reported)
*/

int tdc_wait_for_old_version(THD *thd, const char *db, const char *table_name,
                             ulong wait_timeout, uint deadlock_weight)
{
  TDC_element *element= tdc_lock_share(thd, db, table_name);
  if (!element)
    return FALSE;
  if (element == MY_ERRPTR)
    return TRUE;
  if (!element->flushed)
  {
    tdc_unlock_share(element);
    return FALSE;
  }
  struct timespec abstime;
  set_timespec(abstime, wait_timeout);
  /* Unlocks. */
  return element->share->wait_for_old_version(thd, &abstime, deadlock_weight);
}


/**
  Wait until nobody else has a reference.

  @param my_refs  number of the caller's own references, 1 at least

  @pre The caller holds LOCK_table_share; an exclusive metadata lock keeps other
  threads from getting new references.

  Other threads may still be closing TABLEs that they evicted or flushed. Each
  gives back its reference and signals COND_release at the end.
  TABLE_SHARE::wait_for_old_version() would also wait for the TABLEs that the
  caller uses itself.
*/

void TDC_element::wait_for_refs(uint my_refs)
{
  /* The thread that gives back the last reference signals nobody. */
  DBUG_ASSERT(my_refs);
  while (ref_count > my_refs)
    mysql_cond_wait(&COND_release, &LOCK_table_share);
}


/**
  Close all TABLEs of a share but those that the caller uses.

  @param mark_flushed  remove the share, too, when its last reference goes

  @pre exclusive metadata lock
*/

void TDC_element::flush(THD *thd, bool mark_flushed)
{
  DBUG_ASSERT(thd->mdl_context.is_lock_owner(MDL_key::TABLE, share->db.str,
                                             share->table_name.str,
                                             MDL_EXCLUSIVE));
  flush_unused(mark_flushed);

  mysql_mutex_lock(&LOCK_table_share);
  uint my_refs= 0;
  All_share_tables_list::Iterator it(all_tables);
  while (TABLE *table= it++)
    my_refs+= table->in_use == thd;
  wait_for_refs(my_refs);
#ifndef DBUG_OFF
  it.rewind();
  while (TABLE *table= it++)
    DBUG_ASSERT(table->in_use == thd);
#endif
  mysql_mutex_unlock(&LOCK_table_share);
}


/**
  Close all free TABLEs of a share; see flush().

  Most callers have an exclusive metadata lock. OPTIMIZE and REPAIR, CHECK that
  has found an error, ALTER of an S3 table, and the error path of online ALTER in
  11.8 have none. Then other threads may go on to use TABLEs of the share. When
  they release these, they find 'flushed' set, and close them.
*/

void TDC_element::flush_unused(bool mark_flushed)
{
  Table_list list;

  mysql_mutex_lock(&LOCK_table_share);
  /* A detector must not see a flushed share that has free TABLEs. */
  tc_wait_for_detectors(this);
  if (mark_flushed)
    flushed= true;
  tc_take_free_tables(this, &list);
  mysql_mutex_unlock(&LOCK_table_share);

  tc_close_tables(&list);
}


/* -------------------------------------------- visiting all elements */

/** The elements that tdc_iterate() has visited already. */

struct Visited
{
  HASH keys;
  MEM_ROOT root;
  my_hash_walk_action action;
  void *argument;
};


static const uchar *visited_key(const void *arg, size_t *length, my_bool)
{
  const LEX_CUSTRING *key= static_cast<const LEX_CUSTRING*>(arg);
  *length= key->length;
  return key->str;
}


static my_bool visit_once(void *arg, void *visited_arg)
{
  TDC_element *element= static_cast<TDC_element*>(arg);
  Visited *visited= static_cast<Visited*>(visited_arg);
  uchar *bytes;
  LEX_CUSTRING *key;

  if (!multi_alloc_root(&visited->root, &key, sizeof(*key),
                        &bytes, (size_t) element->m_key_length, NullS))
    return TRUE;
  key->length= element->m_key_length;
  key->str= bytes;
  memcpy(bytes, element->m_key, key->length);
  if (my_hash_insert(&visited->keys, reinterpret_cast<uchar*>(key)))
    return FALSE;
  return visited->action(element, visited->argument);
}


/**
  Call action(element, argument) for each element, until one returns true.

  @param thd      the caller's, NULL if it has none
  @param no_dups  visit no element twice. While elements come and go, the walk
                  through the hash may begin anew.

  The element does not go away during the call, but it may have no share:
  another thread may be opening or freeing the share. To find out, lock
  LOCK_table_share.

  @return what action returned; an error number if out of memory
*/

int tdc_iterate(THD *thd, my_hash_walk_action action, void *argument,
                bool no_dups)
{
  Pins pins(thd);
  if (!pins)
    return ER_OUTOFMEMORY;
  if (!no_dups)
    return lf_hash_iterate(&tdc_hash, pins, action, argument);

  Visited visited;
  init_alloc_root(PSI_INSTRUMENT_ME, &visited.root, 4096, 4096,
                  MYF(thd ? MY_THREAD_SPECIFIC : 0));
  my_hash_init(PSI_INSTRUMENT_ME, &visited.keys, &my_charset_bin,
               tdc_records(), 0, 0, visited_key, 0,
               HASH_UNIQUE | (thd ? HASH_THREAD_SPECIFIC : 0));
  visited.action= action;
  visited.argument= argument;
  int res= lf_hash_iterate(&tdc_hash, pins, visit_once, &visited);
  my_hash_free(&visited.keys);
  free_root(&visited.root, MYF(0));
  return res;
}


/* ------------------------------------------------------- start and end */

bool tdc_init()
{
  DBUG_ENTER("tdc_init");
#ifdef HAVE_PSI_INTERFACE
  mysql_mutex_register("sql", tdc_mutexes, array_elements(tdc_mutexes));
  mysql_cond_register("sql", tdc_conds, array_elements(tdc_conds));
#endif
  tc_init(key_LOCK_table_cache);
  default_rows_init();
  mysql_mutex_init(key_LOCK_unused_shares, &LOCK_unused_shares,
                   MY_MUTEX_INIT_FAST);
  lf_hash_init(&tdc_hash, sizeof(TDC_element), LF_HASH_UNIQUE, 0, 0, element_key,
               &my_charset_bin);
  tdc_hash.alloc.constructor= element_constructor;
  tdc_hash.alloc.destructor= element_destructor;
  tdc_hash.initializer= element_initializer;
  tdc_inited= true;
  DBUG_RETURN(false);
}


/**
  The server begins to shut down: cache nothing from now on.

  Plugins may still open tables while the server ends them. The server closes
  these tables at once, so that they hold no reference to an engine for long.

  @param use_dummy_thd  11.8.9 and later: what closes a table may need a THD, and
                        this thread has none
*/

void tdc_start_shutdown(bool use_dummy_thd)
{
  THD *dummy= NULL;
  DBUG_ENTER("tdc_start_shutdown");
  if (tdc_inited)
  {
    if (use_dummy_thd && !current_thd)
    {
      dummy= new THD(0);
      dummy->thread_stack= (char*) &dummy;
      dummy->store_globals();
    }
    tc_size= 0;
    tdc_size= 0;
    purge_tables();
    /* Takes the TABLEs in use out of the order: their release closes one each */
    tc_trim();
    if (dummy)
    {
      dummy->reset_globals();
      delete dummy;
    }
  }
  DBUG_VOID_RETURN;
}


void tdc_deinit()
{
  DBUG_ENTER("tdc_deinit");
  if (tdc_inited)
  {
    tdc_inited= false;
    lf_hash_destroy(&tdc_hash);
    mysql_mutex_destroy(&LOCK_unused_shares);
    default_rows_deinit();
    tc_deinit();
  }
  DBUG_VOID_RETURN;
}
