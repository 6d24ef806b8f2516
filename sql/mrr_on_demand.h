#ifndef MRR_ON_DEMAND_INCLUDED
#define MRR_ON_DEMAND_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A handler allocates its DsMrr_impl only while it runs a multi-range read.

  A DsMrr_impl has 664 bytes of buffer pointers and readers for a scan of
  several ranges. A handler needs them only during such a scan, that is, hardly
  ever. So it has a DsMrr_on_demand instead, which creates the DsMrr_impl in
  dsmrr_init() and deletes it in dsmrr_close().
*/

#include "handler.h"

class DsMrr_on_demand
{
  DsMrr_impl *scan= nullptr;    /* From dsmrr_init() to dsmrr_close() */
  bool busy= false;             /* A function of 'scan' is on the stack */
  handler *file= nullptr;
  TABLE *table= nullptr;

public:
  DsMrr_on_demand()= default;
  DsMrr_on_demand(const DsMrr_on_demand &)= delete;
  void operator=(const DsMrr_on_demand &)= delete;
  ~DsMrr_on_demand() { dsmrr_close(); }

  void init(handler *file_arg, TABLE *table_arg)
  {
    file= file_arg;
    table= table_arg;
  }

  int dsmrr_init(handler *file_arg, RANGE_SEQ_IF *seq_funcs,
                 void *seq_init_param, uint n_ranges, uint mode,
                 HANDLER_BUFFER *buf)
  {
    DBUG_EXECUTE_IF("mrr_out_of_memory", return HA_ERR_OUT_OF_MEM;);
    /* A scan that no one has closed keeps its object */
    if (!scan && !(scan= new (std::nothrow) DsMrr_impl))
      return HA_ERR_OUT_OF_MEM;
    scan->init(file_arg, file_arg->get_table());
    busy= true;
    int res= scan->dsmrr_init(file_arg, seq_funcs, seq_init_param, n_ranges,
                              mode, buf);
    busy= false;
    return res;
  }

  int dsmrr_next(range_id_t *range_info)
  {
    busy= true;
    int res= scan->dsmrr_next(range_info);
    busy= false;
    return res;
  }

  void dsmrr_close()
  {
    if (!scan)
      return;
    scan->dsmrr_close();
    /* scan->dsmrr_init() ends its handler's index scan, which calls this */
    if (busy)
      return;
    delete scan;
    scan= nullptr;
  }

  /* The optimizer's questions need an object only for the time of the call */

  template<typename... Args> ha_rows dsmrr_info(Args... args)
  {
    DsMrr_impl impl;
    impl.init(file, table);
    return impl.dsmrr_info(args...);
  }

  template<typename... Args> ha_rows dsmrr_info_const(Args... args)
  {
    DsMrr_impl impl;
    impl.init(file, table);
    return impl.dsmrr_info_const(args...);
  }

  int dsmrr_explain_info(uint mrr_mode, char *str, size_t size)
  {
    DsMrr_impl impl;
    return impl.dsmrr_explain_info(mrr_mode, str, size);
  }
};

#endif /* MRR_ON_DEMAND_INCLUDED */
