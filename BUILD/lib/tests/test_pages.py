# SPDX-License-Identifier: GPL-2.0-only
"""Tests of pages.py, and that the documents are as it writes them."""

import re
import unittest

from support import TOP, WorkTest, put

import overlay
import pages


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_the_documents_are_current(self):
        here = pages.Pages(TOP)
        for path in pages.documents(TOP):
            self.assertEqual(path.read_text(), here.text(path),
                             f"{path.name}: run BUILD/lib/pages.py")

    def test_each_part_has_a_page_with_its_topics(self):
        for part in pages.Pages(TOP).parts:
            self.assertIn(f"<!-- pages.py: topics {part} -->",
                          (TOP / f"docs/parts/{part}.md").read_text())

    def test_architecture_has_each_file_of_the_server(self):
        text = (TOP / "docs/ARCHITECTURE.md").read_text()
        found = [name.removesuffix(".patch") for base in ("10.11", "11.8")
                 for name in overlay.sources(TOP, base) if not pages.OF_TESTS.search(name)]
        self.assertGreater(len(found), 150)
        self.assertEqual(
            [name for name in found if not name.endswith("CMakeLists.txt")
             # Corrections of Debian's patches of 11.8
             and not (TOP / "only-11.8" / f"{name}.patch").exists()
             and f"`{name}`" not in text and f"`{name.rpartition('/')[2]}`" not in text], [])


    def test_the_embedded_library_has_each_new_file_of_the_server(self):
        new = {name for base in ("10.11", "11.8")
               for name in overlay.sources(TOP, base) if re.fullmatch(r"sql/[\w-]+\.cc?", name)}
        self.assertIn("sql/table_cache.cc", new)
        added = "".join(
            line for line in (TOP / "libmysqld/CMakeLists.txt.patch"
                              ).read_text().splitlines(True) if line[0] == "+")
        self.assertEqual(new - set(re.findall(r"\.\./(sql/[\w-]+\.cc?)", added)), set())


class PagesTest(WorkTest):
    def test_first_sentence(self):
        for text, wanted in (
                ("/* SPDX-License-Identifier: X */\n/* What. Why. */", "What"),
                ("#ifndef A\n/* Parts of this file come from B. */\n/**\n  @file\n"
                 "  Query cache: long work.\n\n  More. */", "Query cache: long work"),
                ("/**\n@file dict/dict0x.cc\nLoad it\n\nThe idea */", "Load it"),
                ("/*****//**\n@file a/b.h\nThe\n clock; see b.cc */", "The clock"),
                ("/* See a.h */\n\n/* Hash */", "Hash"), ("int x;", ""),
                ("/* " + "word " * 50 + "*/", ("word " * 32).strip() + " ...")):
            self.assertEqual(pages.first_sentence(text), wanted)

    def test_blocks_are_written_anew(self):
        top = self.work
        for name, text in (
                ("BUILD/parts", "# x\nfast  it is fast\nsmall  it is small\n"),
                ("BUILD/topics/30-one", "Part: fast\n\nOne thing\n\nFiles:\n"
                 "  sql/one.cc\n  sql/one.h\n"),
                ("BUILD/topics/40-two", "Part: small\nNeeds: one\n"
                 "Upstream: MDEV-1\n\nTwo things\n\nFiles:\n"),
                ("sql/one.cc", "/* It counts.\n*/\n" + "\n" * 160),
                ("sql/one.h", "/* See one.cc */\n"),
                ("sql/old.cc.patch", "Description: x\n\n--- a\n+++ b\n"
                 "@@ -1 +1,2 @@ two\n a\n+b\n"),
                ("docs/parts/small.md", "Hello\n"
                 "<!-- pages.py: topics small -->\nold\n<!-- end -->\nBye\n"
                 "<!-- pages.py: files fast -->\n<!-- end -->\n"
                 "<!-- pages.py: files small -->\n<!-- end -->\n"),
                ("README.md", "<!-- pages.py: parts -->\n<!-- end -->\n")):
            put(top / name, text)
        here = pages.Pages(top)
        text = here.text(top / "docs/parts/small.md")
        readme = here.text(top / "README.md")
        self.assertEqual(pages.documents(top),
                         [top / "README.md", top / "docs/parts/small.md"])
        self.assertTrue(text.startswith(
            "Hello\n<!-- pages.py: topics small -->\n1 topic, 100 lines of the "
            "server's source, edits in 1 of MariaDB's files. It takes with it "
            "`one`: 200 lines.\n"))
        self.assertIn("| [40-two](../../BUILD/topics/40-two) | Two things |", text)
        self.assertIn("\n- two: MDEV-1.\n<!-- end -->\nBye\n", text)
        self.assertIn("- `sql/one.cc`, `one.h`: It counts.\n", text)
        self.assertIn("- Edited: `sql` `old.cc`.\n", text)
        self.assertIn("| [small](docs/parts/small.md) | it is small | 100 + 200 |", readme)
