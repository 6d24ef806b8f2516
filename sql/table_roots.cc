/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Size the MEM_ROOTs of TABLE_SHARE and TABLE to their contents.

  A MEM_ROOT that grows by blocks of 8 and 4 KiB wastes half of the last block,
  and for a table with one column three quarters of the first. The server can
  compute the size in advance: the .frm has the numbers and types of columns and
  keys, and the share has the sizes of its Field objects. So each root gets one
  block for nearly all of its contents.

  The sizes are estimates. If one is too small, the root gets a further block;
  if it is too large, some bytes stay unused. Nothing else depends on it. If a
  table has expressions, which the server has to parse first, it cannot compute
  the size, and the root grows as in MariaDB.
*/

#include "mariadb.h"
#include "sql_priv.h"
#include "sql_class.h"
#include "table.h"
#include "field.h"
#include "sql_type_geom.h"
#include "unireg.h"
#include "partition_info.h"
#include "table_roots.h"
#include "default_rows.h"
#include <atomic>


/** Adds up what alloc_root() will take from a block. */

class Root_size
{
  size_t sum;
public:
  Root_size(): sum(0) {}
  void add(size_t length, size_t times= 1)
  {
    sum+= (ALIGN_SIZE(length) + REDZONE_SIZE) * times;
  }
  /** What alloc_root() will take; measured in another root. */
  void add_block(size_t bytes) { sum+= bytes; }
  void reserve(MEM_ROOT *root) const;
};


/**
  Give a root a free block of the computed size.

  If there is no memory, the function does nothing: one of the later allocations
  from the root will fail and report the error.
*/

void Root_size::reserve(MEM_ROOT *root) const
{
#if !(defined(HAVE_valgrind) && defined(EXTRA_DEBUG))
  /* alloc_root() gives up a block that has less left than min_malloc */
  const size_t left= sum + root->min_malloc;
  const size_t size= left + ALIGN_SIZE(sizeof(USED_MEM));
  DBUG_ASSERT(!(root->flags & ROOT_FLAG_READ_ONLY));
  DBUG_EXECUTE_IF("table_roots_out_of_memory", return;);
  USED_MEM *block= (USED_MEM*) my_malloc(root->psi_key, size, MYF(0));
  if (!block)
    return;
  block->size= size;
  block->left= left;
  block->next= root->free;
  root->free= block;
  root->first_block_usage= 0;
  /* alloc_root() makes each object accessible, but not what lies between two */
  TRASH_FREE((char*) block + (size - left), left);
#endif
}


/** Let a root grow by blocks of the usual size. */

static void grow_as_usual(MEM_ROOT *root)
{
  root->block_size= TABLE_ALLOC_BLOCK_SIZE - MALLOC_OVERHEAD;
}


/** Size of the Field object of a column; see Type_handler::make_table_field. */

static size_t field_object_size(uint real_type)
{
  switch (real_type) {
  case MYSQL_TYPE_TINY:
  case MYSQL_TYPE_YEAR:
  case MYSQL_TYPE_SHORT:
  case MYSQL_TYPE_INT24:
  case MYSQL_TYPE_LONG:
  case MYSQL_TYPE_LONGLONG:
    return sizeof(Field_longlong);
  case MYSQL_TYPE_NEWDECIMAL:
    return sizeof(Field_new_decimal);
  case MYSQL_TYPE_FLOAT:
  case MYSQL_TYPE_DOUBLE:
    return sizeof(Field_double);
  case MYSQL_TYPE_NEWDATE:
    return sizeof(Field_newdate);
  case MYSQL_TYPE_TIME2:
    return sizeof(Field_timef);
  case MYSQL_TYPE_TIMESTAMP2:
    return sizeof(Field_timestampf);
  case MYSQL_TYPE_DATETIME2:
    return sizeof(Field_datetimef);
  case MYSQL_TYPE_ENUM:
  case MYSQL_TYPE_SET:
    return sizeof(Field_enum);
  case MYSQL_TYPE_STRING:
    return sizeof(Field_string);
  case MYSQL_TYPE_VARCHAR:
    return sizeof(Field_varstring);
  case MYSQL_TYPE_BIT:
    return sizeof(Field_bit);
  case MYSQL_TYPE_GEOMETRY:
    return sizeof(Field_geom);
  default:
    return sizeof(Field_blob);
  }
}


static bool is_blob(uint real_type)
{
  return (real_type >= MYSQL_TYPE_TINY_BLOB && real_type <= MYSQL_TYPE_BLOB) ||
         real_type == MYSQL_TYPE_GEOMETRY;
}


/**
  Reserve memory for the objects that init_from_binary_frm_image() makes from a
  .frm.

  @param frm       the .frm
  @param frm_end   its end
  @param forminfo  the part that describes the columns; the caller has checked
                   that all of it lies before frm_end

  The function reads nothing after the end, however damaged the .frm is. A .frm
  that is older than MySQL 4.1 has shorter entries: its share's root grows as in
  MariaDB.
*/

void reserve_share_root(TABLE_SHARE *share, const uchar *frm,
                        const uchar *frm_end, const uchar *forminfo)
{
  static const uint
    ENTRY= 17, TYPE= 13,        /* Bytes of a column's entry; its type in that */
    UUID= 16, FEW= 8;           /* Bytes of tabledef_version; of short strings */
  /* The numbers that mysql_create_frm_image() has written into the header */
  const uint fields= uint2korr(forminfo + 258);
  const uint screens= uint2korr(forminfo + 260);
  const uint names= uint2korr(forminfo + 268);
  const uint intervals= uint2korr(forminfo + 270);
  const uint interval_parts= uint2korr(forminfo + 272);
  const uint interval_names= uint2korr(forminfo + 274);
  const uint comments= uint2korr(forminfo + 284);
  const uint expressions= uint2korr(forminfo + 286);
  const uint constraints= uint2korr(frm + 45);
  const uint reclength= uint2korr(frm + 16);
  const uchar *key= frm + uint2korr(frm + 6);
  const uchar *field= forminfo + FRM_FORMINFO_SIZE + screens;
  uint keys, key_parts;
  Root_size size;

  if (share->tmp_table != NO_TMP_TABLE)
    return;                                     /* Short-lived and private */
  if (frm[2] < FRM_VER + 3 || key + 6 + 5 > frm_end ||
      field > frm_end || (size_t) (frm_end - field) < (size_t) fields * ENTRY ||
      expressions)
  {
    grow_as_usual(&share->mem_root);
    return;
  }

  if (key[0] & 0x80)
  {
    keys= (key[1] << 7) | (key[0] & 0x7f);
    key_parts= uint2korr(key + 2);
  }
  else
  {
    keys= key[0];
    key_parts= key[1];
  }
  /* Engines with a clustered primary key append it to the other keys. */
  if (keys > 1 && frm[3] == DB_TYPE_INNODB)
    key_parts+= key[6 + 4] * (keys - 1);

  size.add(UUID);
  size.add(FEW, 2);                             /* CONNECTION=, COMMENT= */
  size.add(keys * sizeof(KEY) + key_parts * sizeof(KEY_PART_INFO) +
           uint2korr(key + 4));
  size.add(key_parts * sizeof(ulong));
  if (!shares_default_row(share, frm, forminfo))
    size.add(ALIGN_SIZE(reclength + 1));
  size.add((fields + 1) * sizeof(Field*));
  size.add(intervals * sizeof(TYPELIB));
  size.add(constraints * sizeof(Virtual_column_info*));
  size.add((fields + interval_parts + keys + 3) * sizeof(char*));
  size.add((fields + 1 + interval_parts + intervals + keys + 1) *
           sizeof(uint*));
  size.add(names + interval_names);
  size.add(comments);
  uint blobs= 0;
  for (uint i= 0; i < fields; i++, field+= ENTRY)
  {
    size.add(field_object_size(field[TYPE]));
    blobs+= is_blob(field[TYPE]);
  }
  if (blobs)
    size.add(blobs * sizeof(uint));
  size.add(bitmap_buffer_size(fields));
  size.reserve(&share->mem_root);
}


/**
  For each engine, by its slot number: twice the number of bytes that its
  handler object takes from the TABLE's root, plus 1 if handler::ref holds the
  primary key. 0: not known yet. Any thread may read and write these. Relaxed: the
  value only says how much memory to reserve.
*/
static std::atomic<uint32> handler_sizes[MAX_HA];

/** The entry for a share's engine, NULL if there is more than one handler. */

static std::atomic<uint32> *handler_size(const TABLE_SHARE *share)
{
  const uint slot= share->db_type()->slot;
  return share->partition_info_str_len || share->sequence || slot >= MAX_HA ?
         NULL : handler_sizes + slot;
}


/** Bytes that a root has given away. */

static size_t used_bytes(const MEM_ROOT *root)
{
  size_t sum= 0;
  for (const USED_MEM *list : { root->used, root->free })
  {
    for (; list; list= list->next)
      sum+= list->size - list->left - ALIGN_SIZE(sizeof(USED_MEM));
  }
  return sum;
}


/**
  Reserve memory for the objects that open_table_from_share() makes.

  open_table_from_share() calls this before it creates anything in the root. If
  the function does not know the size of the engine's handler object, it
  reserves nothing. Then open_table_from_share() calls it again when it has
  created the handler, but not opened it yet. This second call also notes the
  size for the next TABLE, except for partitioned tables and sequences, which
  have several handlers. For a TABLE without a handler, open_table_from_share()
  makes only the second call.

  @param table           the TABLE
  @param alias_length    length of its alias
  @param db_stat, prgflag  arguments of open_table_from_share()
  @param before_handler  is the root empty? Otherwise it has the alias, and the
                         handlers if there are any

  @return has it reserved any?
*/

bool reserve_table_root(TABLE *table, size_t alias_length, uint db_stat,
                        uint prgflag, bool before_handler)
{
  const TABLE_SHARE *share= table->s;
  std::atomic<uint32> *known= handler_size(share);
  const size_t alias_bytes= ALIGN_SIZE(alias_length + 1) + REDZONE_SIZE;
  uint records= (db_stat & HA_OPEN_KEYFILE) || (prgflag & DELAYED_OPEN);
  bool key_in_ref= false;
  Root_size size;

  if (before_handler)
  {
    const uint32 handler= known ? known->load(std::memory_order_relaxed) : 0;
    if (!handler)
      return false;
    key_in_ref= handler & 1;
    size.add_block(handler / 2 + alias_bytes);
  }
  else if (table->file)
  {
    key_in_ref= table->file->ha_table_flags() &
                HA_PRIMARY_KEY_REQUIRED_FOR_POSITION;
    if (known)
      known->store((uint32) (used_bytes(&table->mem_root) - alias_bytes) * 2 +
                   key_in_ref, std::memory_order_relaxed);
  }

  if (prgflag & (READ_ALL | EXTRA_RECORD))
    records+= share->versioned || share->period.name ? 2 : 1;
  size.add(share->rec_buff_length * records);
  size.add((share->fields + 1) * sizeof(Field*));
  size.add(share->keys * (sizeof(TABLE::OPT_RANGE) + sizeof(key_part_map)));
  for (Field **field= share->field; *field; field++)
    size.add((*field)->size_of());
  if (share->key_parts)
  {
    size.add(share->keys * sizeof(KEY) +
             share->ext_key_parts * sizeof(KEY_PART_INFO));
    /* A key on a prefix of a column has a Field of its own. */
    for (uint i= 0; i < share->keys; i++)
    {
      const KEY *key= share->key_info + i;
      for (uint part= 0; part < key->ext_key_parts; part++)
      {
        Field *field= key->key_part[part].field;
        if (field->key_length() != key->key_part[part].length &&
            !(field->flags & BLOB_FLAG))
          size.add(field->size_of());
      }
    }
  }
  /* open_table_from_share() allocates seven bitmaps in one piece */
  size.add(share->column_bitmap_size * 7);
  /* handler::ref and dup_ref hold the primary key if that locates a row. */
  if (key_in_ref && share->primary_key < MAX_KEY)
    size.add(2 * ALIGN_SIZE(share->key_info[share->primary_key].key_length));
  else
    size.add(2 * ALIGN_SIZE(sizeof(my_off_t)));
  size.reserve(&table->mem_root);

  if (share->virtual_fields || share->default_fields ||
      share->default_expressions || share->table_check_constraints ||
      share->partition_info_str_len || share->long_unique_table)
    grow_as_usual(&table->mem_root);
  return true;
}
