#ifndef NO_DESCRIPTOR_INCLUDED
#define NO_DESCRIPTOR_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Without a descriptor, unused tables make room: see no_descriptor.cc
*/

#include "sql_class.h"                          // Internal_error_handler

void tc_init_descriptors();
void tc_end_descriptors();
void tc_deinit_descriptors();

/**
  The engine's open() of a table, in handler::ha_open(), or create(), in
  handler::ha_create().

  The engine may hold locks there that another thread needs to close a table of
  the same engine. So a thread that gets no descriptor does not wait, and the
  call fails. When the engine has released its locks, again() closes unused
  tables, or waits, and the caller repeats the call.
*/

class Open_of_engine: public Internal_error_handler
{
  THD *const m_thd;
  /** Is this a base table, so that tc_add_table() comes next? */
  const bool m_may_evict;
  /** A table may consist of others, which ha_open() opens, too. */
  Open_of_engine *const m_outer;
  /** May the engine's create() be repeated? open() may. */
  const bool m_may_repeat;
  bool m_no_descriptor;
  /** The error that the engine has raised, or 0. */
  uint m_error;
  uint m_tries;
  char m_message[MYSQL_ERRMSG_SIZE];

public:
  Open_of_engine(THD *thd, const TABLE *table, uint open_flags);
  Open_of_engine(THD *thd, const handler *creates, const HA_CREATE_INFO *info);
  ~Open_of_engine();
  void no_descriptor() { m_no_descriptor= true; }
  bool again();
  bool handle_condition(THD *thd, uint sql_errno, const char *sqlstate,
                        Sql_condition::enum_warning_level *level,
                        const char *message, Sql_condition **) override;
};

#endif /* NO_DESCRIPTOR_INCLUDED */
