/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DROP_BATCH_INCLUDED
#define DROP_BATCH_INCLUDED

/**
  @file
  A statement that drops several tables in an engine that wants to do some of the work for
  all of them together, as InnoDB does with deleting their files.
*/

class Drop_batch
{
public:
  typedef void (*Hook)();

  /* The engine sets both when it starts. They are called in the thread of the statement. */
  static Hook &begin_hook()
  {
    static Hook hook;
    return hook;
  }
  static Hook &end_hook()
  {
    static Hook hook;
    return hook;
  }

  Drop_batch()
  {
    if (begin_hook())
      begin_hook()();
  }
  ~Drop_batch() { end(); }

  /* When this returns, all tables that were dropped are gone for good */
  void end()
  {
    if (end_hook() && !ended)
      end_hook()();
    ended= true;
  }

private:
  bool ended= false;
};

#endif
