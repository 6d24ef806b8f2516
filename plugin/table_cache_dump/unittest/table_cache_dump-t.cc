/* SPDX-License-Identifier: GPL-2.0-only */

/**
  @file
  Tests of the text format of a table cache dump: the reader accepts each text
  that the writer writes, and rejects all others.

    table_cache_dump-t [SEED]
*/

#include "../dump_file.h"
#include <tap.h>
#include <string>
#include <vector>

static ulonglong state;

static uint chance(uint n)
{
  state^= state >> 12;
  state^= state << 25;
  state^= state >> 27;
  return (uint) ((state * 2685821657736338717ULL) >> 33) % n;
}


struct Table
{
  std::string db, name;
  ulonglong uses, idle;
  uint tables;
};


/** Write the text of a dump of these entries. */

static std::string text_of(const std::vector<Table> &tables)
{
  DYNAMIC_STRING lines;
  char header[DUMP_HEADER];
  init_dynamic_string(&lines, "", 100, 100);
  for (const Table &table : tables)
  {
    std::string key= table.db + '\0' + table.name + '\0';
    Dump_entry entry;
    entry.key= key.data();
    entry.key_length= (uint) key.length();
    entry.tables= table.tables;
    entry.uses= table.uses;
    entry.idle_seconds= table.idle;
    dump_add(&lines, &entry);
  }
  size_t length= dump_header(header, &lines, (ulong) tables.size());
  std::string text(header, length);
  text.append(lines.str, lines.length);
  dynstr_free(&lines);
  return text;
}


/** Put a header that matches these lines before them. */

static std::string with_header(const std::string &lines, ulong tables)
{
  DYNAMIC_STRING copy;
  char header[DUMP_HEADER];
  init_dynamic_string(&copy, "", lines.length() + 1, 100);
  dynstr_append_mem(&copy, lines.data(), lines.length());
  size_t length= dump_header(header, &copy, tables);
  dynstr_free(&copy);
  return std::string(header, length) + lines;
}


/**
  Read a text from memory of exactly its size. @return what is wrong, or NULL
*/

static const char *parse(const std::string &text, std::vector<Table> *out= NULL)
{
  char *copy= (char*) malloc(text.length());
  memcpy(copy, text.data(), text.length());
  Dump_entry *entries;
  size_t n;
  const char *error= dump_parse(copy, text.length(), &entries, &n);
  for (size_t i= 0; out && i < n; i++)
    out->push_back({ entries[i].db(), entries[i].name(), entries[i].uses,
                     entries[i].idle_seconds, entries[i].tables });
  my_free(entries);
  free(copy);
  return error;
}


static void what_is_written_is_read()
{
  static const char *names[]=
  { "t1", "a b", "%25", "/../", "..", "\xc3\xa4\xe2\x82\xac", "x.frm", "\n",
    "#mysql51#a", "\x7f\x01", "A$_9" };
  std::vector<Table> tables, found;
  for (uint i= 0; i < 500; i++)
    tables.push_back({ names[chance(array_elements(names))],
                       names[chance(array_elements(names))],
                       chance(1000000), chance(1000000), 1 + chance(100) });
  tables.push_back({ std::string(64, 'd'), "", 0, 0, 1 });
  for (uint i= 0; i < 64; i++)
    tables.back().name+= "\xe2\x82\xac";
  ok(!parse(text_of(tables), &found), "a text is read");
  bool same= found.size() == tables.size();
  for (size_t i= 0; same && i < found.size(); i++)
    same= found[i].db == tables[i].db && found[i].name == tables[i].name &&
          found[i].uses == tables[i].uses && found[i].idle == tables[i].idle &&
          found[i].tables == tables[i].tables;
  ok(same, "it has all tables as they were, in their order");
  found.clear();
  ok(!parse(text_of({}), &found) && found.empty(), "so is that of no table");
}


static void what_is_changed_is_refused()
{
  const std::string text= text_of({ { "shop", "orders", 12, 0, 3 },
                                    { "a b", "c", 7, 3600, 1 } });
  bool refused= true;
  for (size_t length= 0; length < text.length(); length++)
    refused&= parse(text.substr(0, length)) != NULL;
  ok(refused, "a text that was cut anywhere");
  ok(parse(text + "\n") && parse(text + text), "one with more behind it");
  for (size_t at= 0; at < text.length(); at++)
  {
    for (uint bit= 0; bit < 8; bit++)
    {
      std::string changed= text;
      changed[at]= (char) (changed[at] ^ 1 << bit);
      refused&= parse(changed) != NULL;
    }
  }
  ok(refused, "one of which a bit was changed");
  for (uint i= 0; i < 20000; i++)
  {
    std::string noise;
    for (uint n= chance(200); n; n--)
      noise+= (char) chance(256);
    refused&= parse(noise) != NULL;
  }
  ok(refused, "noise");
}


static void lines_are_checked_besides()
{
  static const char *wrong[]=
  {
    "9 0 1 a\n", "9 0 1 a \n", "9 0 1  b\n", "9 0 1 a b", "9 0 1 a b c\n",
    "9 0 a b\n", "x 0 1 a b\n", "9 0 -1 a b\n", " 9 0 1 a b\n",
    "9999999999999999999 0 1 a b\n", "9 0 1 a .\n", "9 0 1 a b%\n",
    "9 0 1 a b%2\n", "9 0 1 a b%2G\n", "9 0 1 a b%2F\n", "9 0 1 a %00\n",
    "9 0 1 a b%20\n", "9 0 1 a %ff\n", "9 0 1 a %c3\n", "9 0 1 a %c0%80\n",
    "9 0 1 a %e0%80%80\n", "9 0 1 a %23mysql50%23b\n",
    "9 0 1 %23mysql50%23a b\n", "\n", "9 0 1 a b\n\n"
  };
  for (const char *lines : wrong)
  {
    bool refused= true;
    for (ulong tables= 0; tables < 4; tables++)
      refused&= parse(with_header(lines, tables)) != NULL;
    ok(refused, "refused: %.*s", (int) strcspn(lines, "\n"), lines);
  }
  ok(parse(with_header("9 0 1 a " + std::string(65, 'b') + "\n", 1)) &&
     !parse(with_header("9 0 1 a " + std::string(64, 'b') + "\n", 1)),
     "a name has 64 characters at the most");
  ok(!parse(with_header("9 0 1 a b\n", 1)) && parse(with_header("9 0 1 a b\n",
     2)), "and there are as many tables as the header says");

  /* Lines made of their own letters reach every state of the reader. */
  static const char letters[]= "0129 \n%abf$_";
  uint taken= 0, n= 0;
  for (; n < 200000; n++)
  {
    std::string lines= chance(2) ? "9 0 1 a b" : "";
    for (uint i= chance(12); i; i--)
      lines+= letters[chance(sizeof(letters) - 1)];
    taken+= !parse(with_header(lines + "\n", 1));
  }
  ok(taken && taken < n, "lines of chance: %u of %u are taken", taken, n);
}


static void the_hotter_is_first()
{
  Dump_entry often= { "", 0, 1, 1000, 0 }, long_ago= { "", 0, 1, 1000, 36000 },
             seldom= { "", 0, 1, 10, 0 };
  ok(often.heat() > seldom.heat() && seldom.heat() > long_ago.heat(),
     "of two tables that one is hotter that was used more often, and not "
     "long ago");
}


int main(int argc, char **argv)
{
  MY_INIT(argv[0]);
  state= argc > 1 ? strtoull(argv[1], NULL, 10) : my_interval_timer() | 1;
  plan(NO_PLAN);
  diag("seed %llu", state);
  what_is_written_is_read();
  what_is_changed_is_refused();
  lines_are_checked_besides();
  the_hotter_is_first();
  my_end(0);
  return exit_status();
}
