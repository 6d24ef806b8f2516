/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef MA_DDL_DROP_BATCH_INCLUDED
#define MA_DDL_DROP_BATCH_INCLUDED

/** DROP of many tables syncs their directory once: see ma_ddl_drop_batch.cc */
void ma_drop_batch_init();

#endif
