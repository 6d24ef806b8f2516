#ifndef MY_RETURN_MEMORY_INCLUDED
#define MY_RETURN_MEMORY_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

#include <my_global.h>

#ifdef __cplusplus
extern "C" {
#endif

void my_return_memory(void);
void my_return_more_memory(void);
void my_return_freed_memory(size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* MY_RETURN_MEMORY_INCLUDED */
