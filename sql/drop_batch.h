/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DROP_BATCH_INCLUDED
#define DROP_BATCH_INCLUDED

/**
  @file
  Lets an engine do a part of the work of DROP for all tables of a statement together.
  InnoDB deletes their files in this way (fil0delete.cc).
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

  /* When this returns, the engine has finished all drops, files included */
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
