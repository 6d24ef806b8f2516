#ifndef MRR_ON_DEMAND_INCLUDED
#define MRR_ON_DEMAND_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  A handler allocates its DsMrr_impl only while it sorts keys or rows.

  A DsMrr_impl has 664 bytes of buffer pointers and readers for a scan that sorts
  keys or rows. A handler needs them only during such a scan, that is, hardly
  ever. So it has a DsMrr_on_demand instead, which creates the DsMrr_impl in
  dsmrr_init() and deletes it in dsmrr_close().

  Nearly all scans read one range after another, as they come. These need no
  DsMrr_impl. For them, dsmrr_init() and dsmrr_next() do what DsMrr_impl does with
  its Mrr_simple_index_reader.
*/

#include "handler.h"

class DsMrr_on_demand
{
  /* From dsmrr_init() to dsmrr_close(), if there may be something to sort */
  DsMrr_impl *scan= nullptr;
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
    file= file_arg;
    /* After a scan that no one has closed, the handler may be in another state */
    if (likely(!scan && (mode & (HA_MRR_USE_DEFAULT_IMPL | HA_MRR_SORTED)) &&
               file->inited == handler::INDEX))
    {
      HANDLER_BUFFER no_buffer= { NULL, NULL, NULL };
      return file->handler::multi_range_read_init(seq_funcs, seq_init_param,
                                                  n_ranges, mode, &no_buffer);
    }
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
    int res;
    if (likely(!scan))
    {
      while (!(res= file->handler::multi_range_read_next(range_info)) &&
             file->mrr_funcs.skip_index_tuple &&
             file->mrr_funcs.skip_index_tuple(file->mrr_iter,
                                              file->mrr_cur_range.ptr))
      {}
      if (unlikely(res) && res != HA_ERR_END_OF_FILE &&
          res != HA_ERR_KEY_NOT_FOUND)
        file->print_error(res, MYF(0));
      return res;
    }
    busy= true;
    res= scan->dsmrr_next(range_info);
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
