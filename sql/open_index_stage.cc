/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The server's part of my_open_index.h: a thread that waits for a file shows a
  stage. mysys knows no THD.
*/

#include "mariadb.h"
#include "sql_class.h"
#include "open_index_stage.h"
#include <my_open_index.h>

/** Show that this thread waits for a file, if the thread has a THD. */

static void enter_stage(const PSI_stage_info *stage, PSI_stage_info *old_stage)
{
  if (current_thd)
    set_thd_stage_info(NULL, stage, old_stage, __func__, __FILE__, __LINE__);
}


void open_index_stage_init()
{
  open_index_enter_stage= enter_stage;
#ifdef HAVE_PSI_STAGE_INTERFACE
  PSI_stage_info *stage= &stage_waiting_for_table_file;
  mysql_stage_register("mysys", &stage, 1);
#endif
}
