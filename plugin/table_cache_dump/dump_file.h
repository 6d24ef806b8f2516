#ifndef DUMP_FILE_INCLUDED
#define DUMP_FILE_INCLUDED
/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  The text format of a dump of the table cache.

  A dump has a header, and a line for each table, hottest first:

    MariaDB table cache 1 tables=2 bytes=52 crc32=89abcdef
    1200 0 3 shop orders
    17 3605 1 shop %23old%20orders

  A line has these fields:

  1. number of uses of the table;
  2. seconds since its last use;
  3. number of instances that were open;
  4. its database;
  5. its name.

  The header has the number of tables, the number of bytes in the lines, and
  their checksum. In names, the writer replaces each byte except ASCII letters,
  digits, '_' and '$' by % and two hexadecimal digits.

  The reader accepts a text as a whole or rejects it. It executes nothing that
  is in the text, and checks that names are names (dump_name_is_valid()). This
  file does not depend on the server, and has no state.
*/

#include "my_global.h"
#include "my_sys.h"
#include "m_string.h"
#include "mysql_com.h"

/** A table. */

struct Dump_entry
{
  /** Database and name, each with its end: as in TDC_element::m_key. */
  const char *key;
  uint key_length;
  uint tables;
  ulonglong uses, idle_seconds;

  const char *db() const { return key; }
  const char *name() const { return key + strlen(key) + 1; }

  /** The greater, the hotter. Each hour since the last use halves the uses. */
  double heat() const
  { return (double) uses * exp2(-(double) idle_seconds / 3600); }
};


static const char dump_magic[]= "MariaDB table cache ";
static const char dump_version[]= "1 ";
static const size_t DUMP_HEADER= 128;


static inline bool dump_is_plain(uchar c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}


/**
  Could this be the name of a database or table?

  A name is UTF-8 with at most three bytes per character, is not too long, and
  has no space at the end. It must not begin with #mysql50#, because the server
  would use the rest as a file name unchanged. The server encodes all other
  names before it uses them as file names, so none leads out of the data
  directory.
*/

static inline bool dump_name_is_valid(const char *name, size_t length)
{
  static const char prefix[]= "#mysql50#";
  if (!length || length > NAME_LEN || name[length - 1] == ' ' ||
      (length >= sizeof(prefix) - 1 &&
       !memcmp(name, prefix, sizeof(prefix) - 1)))
    return false;
  size_t characters= 0;
  for (size_t i= 0; i < length; characters++)
  {
    const uchar c= (uchar) name[i++];
    const uint more= c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 :
                     c < 0xf0 ? 2 : 9;
    if (!c || more > length - i)
      return false;
    for (uint j= 0; j < more; j++)
    {
      if (((uchar) name[i] & 0xc0) != 0x80 ||
          (c == 0xe0 && j == 0 && (uchar) name[i] < 0xa0))
        return false;
      i++;
    }
  }
  return characters <= NAME_CHAR_LEN;
}


/** Append a name. @return true if out of memory */

static inline bool dump_add_name(DYNAMIC_STRING *lines, const char *name)
{
  static const char digits[]= "0123456789abcdef";
  char buff[3 * NAME_LEN + 1], *to= buff;
  for (const char *end= name + MY_MIN(strlen(name), (size_t) NAME_LEN);
       name < end; name++)
  {
    const uchar c= (uchar) *name;
    if (dump_is_plain(c))
      *to++= *name;
    else
    {
      *to++= '%';
      *to++= digits[c >> 4];
      *to++= digits[c & 15];
    }
  }
  return dynstr_append_mem(lines, buff, to - buff);
}


/** Append the line of a table. @return true if out of memory */

static inline bool dump_add(DYNAMIC_STRING *lines, const Dump_entry *entry)
{
  char buff[80];
  size_t length= my_snprintf(buff, sizeof(buff), "%llu %llu %u ", entry->uses,
                             entry->idle_seconds, entry->tables);
  return dynstr_append_mem(lines, buff, length) ||
         dump_add_name(lines, entry->db()) ||
         dynstr_append_mem(lines, " ", 1) ||
         dump_add_name(lines, entry->name()) ||
         dynstr_append_mem(lines, "\n", 1);
}


/** Make the header of at most DUMP_HEADER bytes. @return its length */

static inline size_t dump_header(char *buff, const DYNAMIC_STRING *lines,
                                 ulong tables)
{
  return my_snprintf(buff, DUMP_HEADER, "%s%stables=%lu bytes=%lu crc32=%08x\n",
                     dump_magic, dump_version, tables, (ulong) lines->length,
                     (uint) my_checksum(0, lines->str, lines->length));
}


/**
  Reads a text from front to end. After an error it reads 0 for each number.
*/

struct Dump_reader
{
  char *at, *end;
  bool wrong;

  /** Skip this text. If it is not there, set 'wrong'. */
  void skip(const char *what)
  {
    const size_t n= strlen(what);
    if (wrong || (size_t) (end - at) < n || memcmp(at, what, n))
      wrong= true;
    else
      at+= n;
  }

  /** Read a decimal number and the text after it. */
  ulonglong number(const char *behind)
  {
    ulonglong n= 0;
    uint digits= 0;
    for (; !wrong && at < end && *at >= '0' && *at <= '9'; at++, digits++)
      n= n * 10 + (uint) (*at - '0');
    if (!digits || digits > 18)
      wrong= true;
    skip(behind);
    return wrong ? 0 : n;
  }

  static int hex(char c)
  {
    return c >= '0' && c <= '9' ? c - '0' :
           c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  /** Decode a name to *to and append a 0. *to then points after that. */
  void name(char **to, char behind)
  {
    char *begin= *to;
    while (!wrong && at < end && *at != behind)
    {
      char c= *at++;
      if (c == '%')
      {
        const int high= end - at >= 2 ? hex(at[0]) : -1;
        const int low= high >= 0 ? hex(at[1]) : -1;
        if (low < 0)
        {
          wrong= true;
          return;
        }
        c= (char) (high * 16 + low);
        at+= 2;
      }
      else if (!dump_is_plain((uchar) c))
      {
        wrong= true;
        return;
      }
      *(*to)++= c;
    }
    if (wrong || at == end || !dump_name_is_valid(begin, *to - begin))
    {
      wrong= true;
      return;
    }
    at++;                               /* The 0 may overwrite this byte */
    *(*to)++= 0;
  }
};


/**
  Read a text.

  @param text          the function changes it: the entries' names are in it
  @param[out] entries  the caller frees them with my_free(), unless this returns
                       an error
  @param[out] n        number of entries

  @return NULL, or what is wrong
*/

static inline const char *dump_parse(char *text, size_t length,
                                     Dump_entry **entries, size_t *n)
{
  Dump_reader reader= { text, text + length, false };
  *entries= NULL;
  *n= 0;
  reader.skip(dump_magic);
  if (reader.wrong)
    return "is not a dump of the table cache";
  reader.skip(dump_version);
  if (reader.wrong)
    return "was written by another version of the server";
  reader.skip("tables=");
  const ulonglong tables= reader.number(" bytes=");
  const ulonglong bytes= reader.number(" crc32=");
  uint32 crc= 0;
  for (uint i= 0; i < 8 && !reader.wrong; i++)
  {
    const int digit= reader.at < reader.end ? Dump_reader::hex(*reader.at++) :
                                              -1;
    if (digit < 0)
      reader.wrong= true;
    else
      crc= crc << 4 | (uint) digit;
  }
  reader.skip("\n");
  /*
    The shortest line has ten bytes. So a wrong number of tables does not make
    this allocate more memory than a file of that size can need.
  */
  if (reader.wrong || bytes != (ulonglong) (reader.end - reader.at) ||
      tables > bytes / 10 ||
      crc != (uint32) my_checksum(0, reader.at, (size_t) bytes))
    return "is damaged";
  if (!tables)
    return bytes ? "is damaged" : NULL;

  Dump_entry *entry= static_cast<Dump_entry*>
    (my_malloc(PSI_NOT_INSTRUMENTED, (size_t) tables * sizeof(*entry),
               MYF(0)));
  if (!entry)
    return "does not fit into memory";
  *entries= entry;
  for (; reader.at < reader.end && !reader.wrong && *n < tables; entry++)
  {
    char *to= reader.at;
    entry->uses= reader.number(" ");
    entry->idle_seconds= reader.number(" ");
    const ulonglong open= reader.number(" ");
    entry->tables= (uint) MY_MIN(open, 1000000ULL);
    /* Decode the names in place: 'to' never passes the text already read. */
    entry->key= to;
    reader.name(&to, ' ');
    reader.name(&to, '\n');
    entry->key_length= (uint) (to - entry->key);
    ++*n;
  }
  if (!reader.wrong && reader.at == reader.end && *n == tables)
    return NULL;
  my_free(*entries);
  *entries= NULL;
  *n= 0;
  return "is damaged";
}

#endif /* DUMP_FILE_INCLUDED */
