# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what docs/ARCHITECTURE.md has to name."""

import pathlib
import re
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import overlay  # noqa: E402
import topics  # noqa: E402

TEXT = (TOP / "docs/ARCHITECTURE.md").read_text()
OF_TESTS = re.compile(r"(^|/)(mysql-test|unittest)/")


def source_files():
    """Paths in MariaDB's tree of new and of patched source files."""
    found = set()
    for base in TOP.glob("cmake/base-*.*.cmake"):
        found |= set(overlay.sources(TOP, base.stem[len("base-"):]))
    return {name for name in found if not OF_TESTS.search(name)
            and not name.removesuffix(".patch").endswith("CMakeLists.txt")}


def names(path, text):
    """Whether a text names a file, with or without its directory."""
    return re.search(rf"(?<![\w.-]){re.escape(pathlib.PurePath(path).name)}"
                     r"(?![\w-]|\.\w)", text)


class ArchitectureTest(unittest.TestCase):
    def test_source_files_are_found(self):
        found = source_files()
        self.assertGreater(len(found), 70)
        for path in ("sql/table_cache.cc", "sql/sql_base.cc.patch",
                     "mysys/my_init.c.patch"):
            self.assertIn(path, found)

    def test_each_new_file_is_named(self):
        self.assertEqual([path for path in sorted(source_files())
                          if not path.endswith(".patch")
                          and not names(path, TEXT)], [])

    def test_each_patched_file_is_in_the_table(self):
        table = TEXT.partition("## The patched files")[2].partition("\n## ")[0]
        self.assertEqual([path for path in sorted(source_files())
                          if path.endswith(".patch")
                          and not names(path.removesuffix(".patch"), table)],
                         [])

    def test_table_names_no_file_that_is_not_patched(self):
        table = TEXT.partition("## The patched files")[2].partition("\n## ")[0]
        known = {pathlib.PurePath(path.removesuffix(".patch")).name
                 for path in source_files()} | {"CMakeLists.txt"}
        self.assertEqual({name for name in re.findall(
            r"([\w-]+\.(?:cc?|h))\b", table)} - known, set())

    def test_each_topic_is_in_the_table(self):
        table = TEXT.partition("## The topics")[2].partition("\n## ")[0]
        self.assertEqual(
            sorted(re.findall(r"`(\d\d-[a-z0-9-]+)`", table)),
            [topic.path.name for topic in topics.read_topics(TOP)])

    def test_a_name_is_a_word(self):
        self.assertTrue(names("sql/a.c", "see `sql/a.c`."))
        self.assertTrue(names("sql/a.c", "a.c is"))
        for text in ("a.cc", "ba.c", "x-a.c", "a.c.patch", ""):
            self.assertFalse(names("sql/a.c", text), text)

class EmbeddedTest(unittest.TestCase):
    def test_the_embedded_library_has_each_new_file_of_the_server(self):
        new = {path for path in source_files()
               if re.fullmatch(r"sql/[\w-]+\.cc?", path)}
        self.assertIn("sql/table_cache.cc", new)
        added = "".join(
            line for line in (TOP / "libmysqld/CMakeLists.txt.patch"
                              ).read_text().splitlines(True) if line[0] == "+")
        self.assertEqual(
            new - set(re.findall(r"\.\./(sql/[\w-]+\.cc?)", added)), set())


if __name__ == "__main__":
    unittest.main()
