# SPDX-License-Identifier: GPL-2.0-only
"""Tests of documents.py, and that the documents name only what there is."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import documents  # noqa: E402

# Names of other programs, and of what an example defines
ELSEWHERE = {
    "core_VERSION_amd64",               # of a package
    "mysql_global_status_", "mysql_global_variables_",  # mysqld_exporter
    "sched_autogroup_enabled",          # sysctl
    "tables_evicted", "used_in_the_last_hour",          # columns of a query
}


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_the_documents_name_what_there_is(self):
        trees = [path for path in sorted(TOP.glob("out/*/patched/source"))
                 if (path / "sql").is_dir()]
        if not trees:
            self.skipTest("needs the patched source")
        texts = {str(path.relative_to(TOP)): path.read_text()
                 for path in [*TOP.glob("*.md"), *TOP.glob("docs/*.md")]}
        self.assertGreater(len(texts), 15)
        source = documents.Source(TOP, trees[0])
        self.assertEqual(list(documents.problems(source, texts, ELSEWHERE)), [])


class NamesTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.top = pathlib.Path(work.name, "top")
        self.tree = pathlib.Path(work.name, "tree")
        for file, text in (
                (self.top / "sql/new.cc", "int take_it() { return 0; }\n"),
                (self.top / "sql/old.cc.patch", "+  {\"files_kept\", 0},\n"),
                (self.top / "docs/A.md", "only_here\n"),
                (self.top / "out/made.cc", "made_here\n"),
                (self.tree / "sql/old.cc", "void THR_LOCK_all();\n"),
                (self.tree / "storage/tokudb/far.cc", "too_far\n")):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
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


if __name__ == "__main__":
    unittest.main()
