/* SPDX-License-Identifier: GPL-2.0-only */

#ifndef DDL_DROP_BATCH_INCLUDED
#define DDL_DROP_BATCH_INCLUDED

/**
  @file
  Lets engines do a part of the work of DROP for all tables of a statement together:
  InnoDB deletes their files in this way (fil0ddl.cc), Aria syncs their directory
  (ma_ddl_drop_batch.cc).
*/

class Drop_batch
{
public:
  /** A hook runs in the thread of the statement. */
  typedef void (*Hook)();

  /**
    Let these two run for each statement that drops tables, whatever their engines
    are. An engine calls this when it starts; no thread runs statements then. In the
    embedded library it may start several times.
  */
  static void add_engine(Hook begin, Hook end)
  {
    for (uint i= 0; i < engines().n; i++)
      if (engines().hooks[i].begin == begin)
        return;
    DBUG_ASSERT(engines().n < MAX_ENGINES);
    engines().hooks[engines().n++]= { begin, end };
  }

  Drop_batch()
  {
    for (uint i= 0; i < engines().n; i++)
      engines().hooks[i].begin();
  }
  ~Drop_batch() { end(); }

  /** When this returns, the engines have finished all drops, files included. */
  void end()
  {
    for (uint i= 0; i < engines().n && !ended; i++)
      engines().hooks[i].end();
    ended= true;
  }

private:
  static constexpr uint MAX_ENGINES= 2;

  struct Engines
  {
    struct { Hook begin, end; } hooks[MAX_ENGINES];
    uint n;
  };

  static Engines &engines()
  {
    static Engines all;
    return all;
  }

  bool ended= false;
};

#endif
