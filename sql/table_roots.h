#ifndef TABLE_ROOTS_INCLUDED
#define TABLE_ROOTS_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Size the MEM_ROOTs of TABLE_SHARE and TABLE to their contents; see
  table_roots.cc.
*/

struct TABLE;
struct TABLE_SHARE;

/**
  Block size of such a root, in bytes, for objects that do not fit into the
  reserved block: a large object gets a block of its own size, and small ones
  share blocks of this size.
*/
#define TABLE_ROOT_BLOCK_SIZE 256

void reserve_share_root(TABLE_SHARE *share, const uchar *frm,
                        const uchar *frm_end, const uchar *forminfo);
bool reserve_table_root(TABLE *table, size_t alias_length, uint db_stat,
                        uint prgflag, bool before_handler);


/**
  A root for the handler object that init_from_binary_frm_image() asks what the
  engine can do with the keys. It frees the object's 2 KiB as soon as the share
  has been read; in MariaDB they stay in the share's root.
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
