/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OPEN_INDEX_STAGE_INCLUDED
#define OPEN_INDEX_STAGE_INCLUDED

/** Let SHOW PROCESSLIST show that a thread waits for a table file. */
void open_index_stage_init();

#endif
