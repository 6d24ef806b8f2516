# SPDX-License-Identifier: GPL-2.0-only
"""Tests of documents.py, and that nothing is wrong in the documents."""

import re
import unittest

from support import TOP, WorkTest, put

import documents
import pages

# Names of other programs, and of what an example defines
ELSEWHERE = {
    "core_VERSION_amd64",               # of a package
    "mysql_global_status_", "mysql_global_variables_",  # mysqld_exporter
    "sched_autogroup_enabled",          # sysctl
    "tables_evicted", "used_in_the_last_hour",          # columns of a query
}


TEXTS = {str(path.relative_to(TOP)): path.read_text() for path in pages.documents(TOP)}


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_each_number_is_one_of_the_results(self):
        self.assertEqual(list(documents.unmeasured(
            {name: text for name, text in TEXTS.items()
             if name.startswith(("README", "docs/parts/"))}, TEXTS["docs/PERFORMANCE.md"])), [])

    def test_no_document_is_too_large(self):
        self.assertEqual(list(documents.too_large(TEXTS)), [])

    def test_links_lead_somewhere(self):
        lost = []
        for name, text in TEXTS.items():
            for link, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text):
                path = (TOP / name).parent / link if link else TOP / name
                if not path.exists():
                    lost.append(f"{name}: {link}")
                elif anchor and path.suffix == ".md" and not documents.has_anchor(
                        path.read_text(), anchor):
                    lost.append(f"{name}: {link}#{anchor}")
        self.assertEqual(lost, [])

    def test_the_documents_name_what_there_is(self):
        trees = [path for path in sorted(TOP.glob("out/*/patched/source"))
                 if (path / "sql").is_dir()]
        if not trees:
            self.skipTest("needs the patched source")
        self.assertGreater(len(TEXTS), 15)
        source = documents.Source(TOP, trees[0])
        self.assertEqual(list(documents.problems(source, TEXTS, ELSEWHERE)), [])


class NumbersTest(unittest.TestCase):
    PERFORMANCE = (
        '| <a id="farm"></a>[farm](../results/10.11/farm.json) | cache of 2,000: ms '
        "| 7.92 | 16.4 | 2.08× | 1.75 to 2.26 | 8.45 |\n| farm | p99 | 1,133 | 38 | "
        '29.8× | - | - |\n| <a id="hits"></a>[hits](x) | a | 5 | 5 | 1.00× | - | - |\n'
        "\n## How\n\n77 ms\n")

    def problems(self, text):
        return list(documents.unmeasured({"A.md": text}, self.PERFORMANCE))

    def test_numbers_that_were_measured(self):
        for text in (
                "A page takes [16 ms](PERFORMANCE.md#farm), stock 8 ms.",
                "- 2.1× the pages ([farm](docs/PERFORMANCE.md#farm))\n- 40 tables",
                "| 30 times | 1,133 ms | [x](../PERFORMANCE.md#farm) |",
                "[1.0×](PERFORMANCE.md#hits) and [2.26×](PERFORMANCE.md#farm)",
                "2,000 tables, MariaDB 10.11.18, `50 ms`, 3 GB, version 2",
                "    an example of 50 ms\n\n1. one\n"):
            self.assertEqual(self.problems(text), [], text)

    def test_numbers_that_were_not(self):
        for text, number in (
                ("[17 ms](PERFORMANCE.md#farm)", "17"),
                ("[2.2×](PERFORMANCE.md#farm)", "2.2"),
                ("16 ms", "16"), ("[16 ms](PERFORMANCE.md#hits)", "16"),
                ("[77 ms](PERFORMANCE.md#farm)", "77"),
                ("- [16 ms](PERFORMANCE.md#farm)\n- 38 ms", "38"),
                ("| a [16 ms](PERFORMANCE.md#farm) |\n| 50 % |", "50"),
                ("a\nb 40 KiB, and\nmore", "40")):
            found = self.problems(text)
            self.assertEqual(len(found), 1, (text, found))
            self.assertRegex(found[0], rf"^A.md:[12]: {number} is in no result")
        self.assertEqual(self.problems("[x](PERFORMANCE.md#far)"),
                         ["A.md:1: PERFORMANCE has no section far"])


class SizeTest(unittest.TestCase):
    def test_documents_have_limits(self):
        line = "word\n"
        self.assertEqual(list(documents.too_large({
            "README.md": 90 * line, "docs/parts/a.md": 150 * line,
            "docs/A.md": 250 * line, "CHANGELOG.md": line})), [])
        for name, text in (("README.md", 91 * line), ("README.md", "a " * 901),
                           ("docs/parts/a.md", 151 * line),
                           ("docs/A.md", 251 * line), ("docs/A.md", "a" * 180_001)):
            found = list(documents.too_large({name: text}))
            self.assertEqual(len(found), 1, found)
            self.assertIn("more than", found[0])

    def test_anchors(self):
        text = ("# The `table_cache`, and more\n\n## Twice\n## Twice\n"
                '<a id="own"></a>\n')
        for anchor in ("the-table_cache-and-more", "twice", "twice-1", "own"):
            self.assertTrue(documents.has_anchor(text, anchor), anchor)
        for anchor in ("the", "twice-2", "table_cache"):
            self.assertFalse(documents.has_anchor(text, anchor), anchor)


class NamesTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.top, self.tree = self.work / "top", self.work / "tree"
        for file, text in (
                (self.top / "sql/new.cc", "int take_it() { return 0; }\n"),
                (self.top / "sql/old.cc.patch", "+  {\"files_kept\", 0},\n"),
                (self.top / "docs/A.md", "only_here\n"),
                (self.top / "out/made.cc", "made_here\n"),
                (self.tree / "sql/old.cc", "void THR_LOCK_all();\n"),
                (self.tree / "storage/tokudb/far.cc", "too_far\n")):
            put(file, text)
        self.source = documents.Source(self.top, self.tree)

    def problems(self, text, elsewhere=()):
        return list(documents.problems(self.source, {"A.md": text}, elsewhere))

    def test_known_names(self):
        for text in ("`take_it()` and `Take_IT`", "`THR_LOCK_*`, `_all`",
                     "`THR_LOCK_all()`", "`sql/new.cc`, `old.cc`",
                     "`sql/old.cc.patch`", "`Innodb_files_kept`",
                     "`sql/new.cc:take_it()`", "`sql/old.cc:THR_LOCK_all()`",
                     "plain_text, `words` without a mark",
                     "an example:\n\n    `no_such()`\n\nends",
                     "```\n`no_such()`\n\n`nor_this()`\n```\n"):
            self.assertEqual(self.problems(text), [], text)

    def test_names_that_nothing_has(self):
        for text, word in (("a\n\nb `next_it()` c", "next_it"),
                           ("a\n\n`A::gone()`, `take_it`", "gone"),
                           ("\n\n`only_here`", "only_here"),
                           ("\n\n`made_here`", "made_here"),
                           ("\n\n`too_far`", "too_far"),
                           ("\n\n`GONE_*`", "GONE_"),
                           ("x\n\n`take_it and\ntake_us`", "take_us")):
            found = self.problems(text)
            self.assertIn(f"A.md:3: nothing has the name {word}", found, text)
        self.assertEqual(self.problems("`next_it()`", {"next_it"}), [])

    def test_files_that_are_not_there(self):
        for file in ("sql/gone.cc", "storage/new.cc", "gone.h", "new.cc.patch"):
            self.assertEqual(self.problems(f"see `{file}`."),
                             [f"A.md:1: no file {file}"])
        for text in ("`sql/gone*.cc`, `{a,b}.cc`", "`/etc/gone.inc`",
                     "`base-SERIES.cmake`, `sql/foo.cc`"):
            self.assertEqual(self.problems(text), [])

    def test_a_function_is_in_the_file_that_is_named_with_it(self):
        self.assertEqual(self.problems("`old.cc:take_it()`"),
                         ["A.md:1: old.cc has no take_it()"])
        self.assertEqual(self.problems("`new.cc:New::take()`")[0],
                         "A.md:1: new.cc has no take()")

    def test_without_the_source_the_repository_is_known(self):
        source = documents.Source(self.top)
        self.assertEqual(source.unknown({"take_it", "THR_LOCK_all"}),
                         {"THR_LOCK_all"})
