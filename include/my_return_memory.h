#ifndef MY_RETURN_MEMORY_INCLUDED
#define MY_RETURN_MEMORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Give the heap's free memory back to the system. my_return_memory.c explains
  when, and has the functions. Any thread may call them. They report no error, and
  only my_return_slice() may wait.

    my_return_memory()        an administrator's statement has closed tables
    my_return_slice()         the same, while the statement continues
    my_return_more_memory()   a background thread has freed memory
    my_return_freed_memory()  table_cache_memory has evicted tables
*/

#include <my_global.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef EMBEDDED_LIBRARY
/* The program that has the library may unload it while the thread runs */
#define my_return_memory() do { } while (0)
#define my_return_more_memory(bytes) ((void) (bytes))
#define my_return_slice(bytes, wait) ((void) (bytes))
#define my_return_freed_memory(bytes) ((void) (bytes))
#else
void my_return_memory(void);
void my_return_more_memory(size_t bytes);
void my_return_slice(size_t bytes, my_bool wait);
void my_return_freed_memory(size_t bytes);
#endif

#ifdef __cplusplus
}
#endif

#endif /* MY_RETURN_MEMORY_INCLUDED */
