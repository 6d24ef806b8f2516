#ifndef TABLE_ROOTS_INCLUDED
#define TABLE_ROOTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  MEM_ROOTs of TABLE_SHARE and TABLE as large as what they hold; see
  table_roots.cc.
*/

struct TABLE;
struct TABLE_SHARE;

/**
  Block size of such a root. What does not fit into the reserved block gets one
  of its own, as large as it is, and small objects share blocks of this size.
*/
#define TABLE_ROOT_BLOCK_SIZE 256

void reserve_share_root(TABLE_SHARE *share, const uchar *frm,
                        const uchar *frm_end, const uchar *forminfo);
void reserve_table_root(TABLE *table, uint records);


/**
  A root for what is needed only while a share is read: the handler object that
  answers what its engine can do with the keys. It took 2 KiB of the share's
  root.
*/

class Probe_root: public MEM_ROOT
{
public:
  Probe_root()
  {
    init_alloc_root(key_memory_table_share, this, TABLE_ALLOC_BLOCK_SIZE, 0,
                    MYF(0));
  }
  ~Probe_root() { free_root(this, MYF(0)); }
  Probe_root(const Probe_root &)= delete;
  void operator=(const Probe_root &)= delete;
};

#endif /* TABLE_ROOTS_INCLUDED */
