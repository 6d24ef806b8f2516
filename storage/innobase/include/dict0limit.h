/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/dict0limit.h
InnoDB's part in table_cache_memory: the bytes of table definitions and handlers.
See sql/table_cache_memory_limit.h for the limit, and dict0limit.cc.
*******************************************************/

#ifndef dict0limit_h
#define dict0limit_h

struct dict_table_t;
struct row_prebuilt_t;

/** Let the server ask for the bytes of handlers, and evict definitions. */
void dict_memory_init() noexcept;

/* The caller of these three holds dict_sys.latch exclusively; but any thread may
call dict_memory_note() for a table that no other thread can see. */

/** A table joins the cache. */
void dict_memory_add(dict_table_t *table) noexcept;

/** A table may have got or lost indexes or foreign keys.  One that is not in the
cache is ignored. */
void dict_memory_note(dict_table_t *table) noexcept;

/** A table leaves the cache. */
void dict_memory_forget(dict_table_t *table) noexcept;

/** A handler has allocated memory that it keeps after the statement. */
void innobase_has_grown(const row_prebuilt_t *prebuilt) noexcept;

/** A handler has allocated its fetch cache, which it keeps if that is small. */
void innobase_has_fetch_cache(const row_prebuilt_t *prebuilt) noexcept;

#endif
