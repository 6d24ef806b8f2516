#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of overlay.py and fetch_source.py, on trees made for each test."""

import contextlib
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

import fetch_source                                     # noqa: E402
import hunks                                            # noqa: E402
import overlay                                          # noqa: E402

HEADER = (overlay.LICENSE + "\nDescription: a test\nForwarded: no\n"
          "Last-Update: 2026-01-01\n\n")
STOCK = "".join(f"line {number}\n" for number in range(1, 41))
TOPIC = overlay.LICENSE + "\n\nWhat changes\n\nWhy.\n\nFiles:\n"


def difference(path, old, new, topic="first"):
    """What BUILD/refresh writes for an edit."""
    old, new = hunks.lines_of(old), hunks.lines_of(new)
    edits, _ = hunks.rebase([], old, new, topic)
    return hunks.write_hunks(path, edits, old)


class TreesTest(unittest.TestCase):
    """The base of the tests below."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
        self.top = self.work / "top"
        self.stock = self.work / "stock"
        self.patched = self.work / "patched"
        self.put(self.stock / "version", "1:10.11.99\n")
        self.put(self.stock / "source/sql/a.cc", STOCK)
        self.put(self.stock / "source/sql/other.cc", "int other;\n")
        self.put(self.top / "sql/new.cc", f"// {overlay.LICENSE}\nint a;\n")
        self.put(self.top / "BUILD/topics/10-first", TOPIC + "  sql/n*.cc\n")
        self.put(self.top / "BUILD/topics/20-second", TOPIC)
        subprocess.run(["git", "init", "-q", str(self.top)], check=True)

    @staticmethod
    def put(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def patch(self, new, old=STOCK, path="sql/a.cc"):
        text = difference(path, old, new)
        self.put(self.top / (path + ".patch"), HEADER + text)
        return text

    def run_overlay(self, action, **options):
        with contextlib.redirect_stdout(io.StringIO()):
            target = overlay.Overlay(self.top, self.stock, self.patched)
            return getattr(target, action)(**options)

    def apply(self, discard=False):
        self.run_overlay("apply", discard=discard)

    def tree(self, path="sql/a.cc"):
        return (self.patched / "source" / path).read_text()

    def problems(self):
        target = overlay.Overlay(self.top, self.stock, self.patched)
        return "\n".join(target.check())


class OverlayTest(TreesTest):
    def test_apply_copies_new_files_and_patches_others(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.apply()
        self.assertIn("line twenty", self.tree())
        self.assertIn("int a;", self.tree("sql/new.cc"))
        self.assertEqual(self.problems(), "")

    def test_apply_writes_only_what_changes(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.apply()
        before = {name: os.stat(self.patched / "source" / name).st_mtime_ns
                  for name in ("sql/a.cc", "sql/new.cc", "sql/other.cc")}
        self.put(self.top / "sql/new.cc", f"// {overlay.LICENSE}\nint b;\n")
        self.apply()
        after = {name: os.stat(self.patched / "source" / name).st_mtime_ns
                 for name in before}
        self.assertEqual([name for name in before
                          if before[name] != after[name]], ["sql/new.cc"])

    def test_source_revision_tells_servers_apart_not_tests(self):
        name = "include/source_revision.h"
        self.put(self.stock / "source" / name,
                 '#define SOURCE_REVISION "abc"\n')
        seen = []
        for path, text in (("sql/new.cc", "int b;"), ("sql/new.cc", "int c;"),
                           ("mysql-test/t/a.inc", "# d"), ("sql/e.cc", "")):
            self.put(self.top / path, f"// {overlay.LICENSE}\n{text}\n")
            self.apply()
            self.run_overlay("refresh", topic="first")     # takes it for no edit
            self.assertFalse((self.top / (name + ".patch")).exists())
            seen.append(self.tree(name))
            self.assertRegex(seen[-1], r'^#define SOURCE_REVISION '
                                       r'"abc\+table-cache\.[0-9a-f]{12}"\n$')
        self.assertEqual(seen[1], seen[2])
        self.assertEqual(len(set(seen)), 3)

    def test_patch_that_does_not_apply_leaves_the_tree_alone(self):
        self.apply()
        self.patch("line 1\nline 2\nchanged\n",
                   old="line 1\nline 2\nelsewhere\n")
        self.put(self.top / "sql/new.cc", "// newer\n")
        with self.assertRaises(overlay.OverlayError) as caught:
            self.apply()
        self.assertRegex(str(caught.exception),
                         r"sql/a\.cc\.patch .*1:10\.11\.99: hunk 1 .* is found 0 "
                         "times")
        self.assertEqual(self.tree(), STOCK)
        self.assertIn("int a;", self.tree("sql/new.cc"))

    def test_patch_needs_exact_context(self):
        text = self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.put(self.top / "sql/a.cc.patch",
                 HEADER + text.replace(" line 21", " line 21, edited"))
        with self.assertRaises(overlay.OverlayError):
            self.apply()

    def test_removed_patch_restores_the_original(self):
        self.patch(STOCK + "more\n")
        self.apply()
        (self.top / "sql/a.cc.patch").unlink()
        (self.top / "sql/new.cc").unlink()
        self.apply()
        self.assertEqual(self.tree(), STOCK)
        self.assertFalse((self.patched / "source/sql/new.cc").exists())

    def test_edit_in_the_tree_is_never_overwritten(self):
        self.apply()
        self.put(self.patched / "source/sql/new.cc", "edited\n")
        self.put(self.top / "sql/new.cc", "from the repository\n")
        with self.assertRaises(overlay.OverlayError) as caught:
            self.apply()
        self.assertIn("sql/new.cc", str(caught.exception))
        self.assertEqual(self.tree("sql/new.cc"), "edited\n")
        with self.assertRaises(overlay.OverlayError):
            self.run_overlay("refresh", topic="first")
        self.apply(discard=True)
        self.assertEqual(self.tree("sql/new.cc"), "from the repository\n")

    def test_refresh_takes_over_edits_and_new_files(self):
        self.apply()
        edited = STOCK.replace("line 7\n", "line seven\n")
        self.put(self.patched / "source/sql/a.cc", edited)
        self.put(self.patched / "source/plugin/p/p.cc", "int p;\n")
        self.run_overlay("refresh", topic="first")
        self.assertIn("+line seven",
                      (self.top / "sql/a.cc.patch").read_text())
        self.assertEqual((self.top / "plugin/p/p.cc").read_text(), "int p;\n")
        self.apply()
        self.assertEqual(self.tree(), edited)

    def test_refresh_keeps_a_patch_header(self):
        self.patch(STOCK + "more\n")
        self.apply()
        self.put(self.patched / "source/sql/a.cc", STOCK + "most\n")
        self.run_overlay("refresh", topic="first")
        text = (self.top / "sql/a.cc.patch").read_text()
        self.assertIn("Description: a test", text)
        self.assertIn("+most", text)

    def test_refresh_leaves_to_apply_what_changed_in_the_repository(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.put(self.top / "sql/gone.cc", f"// {overlay.LICENSE}\n")
        self.apply()
        self.put(self.top / "sql/new.cc", f"// {overlay.LICENSE}\nint b;\n")
        self.put(self.top / "sql/newer.cc", f"// {overlay.LICENSE}\n")
        (self.top / "sql/gone.cc").unlink()
        self.put(self.patched / "source/sql/other.cc", "int edited;\n")
        self.run_overlay("refresh", topic="first")
        self.assertTrue((self.top / "sql/other.cc.patch").exists())
        self.apply()
        self.assertIn("int b;", self.tree("sql/new.cc"))
        self.assertTrue((self.patched / "source/sql/newer.cc").exists())
        self.assertFalse((self.patched / "source/sql/gone.cc").exists())

    def test_refresh_drops_a_patch_that_is_undone(self):
        self.patch(STOCK + "more\n")
        self.apply()
        self.put(self.patched / "source/sql/a.cc", STOCK)
        self.run_overlay("refresh", topic="first")
        self.assertFalse((self.top / "sql/a.cc.patch").exists())

    def test_new_stock_version_gets_a_new_tree(self):
        self.apply()
        self.put(self.stock / "version", "1:10.11.100\n")
        self.put(self.stock / "source/sql/a.cc", "int newer;\n")
        self.apply()
        self.assertEqual(self.tree(), "int newer;\n")

    def test_new_source_of_the_same_version_gets_a_new_tree(self):
        self.apply()
        self.put(self.stock / "source/sql/other.cc", "int mended;\n")
        self.put(self.stock / "source/.fetched", "another one\n")
        self.apply()
        self.assertIn("mended", self.tree("sql/other.cc"))
        before = os.stat(self.patched / "source/sql/other.cc").st_ino
        self.apply()
        self.assertEqual(os.stat(self.patched / "source/sql/other.cc").st_ino,
                         before)

    def test_check_finds_a_copy_of_a_file(self):
        self.put(self.top / "sql/copy/other.cc", "int other;\n")
        self.assertIn("is a copy of a file of MariaDB's", self.problems())

    def test_check_finds_a_replaced_file(self):
        self.put(self.top / "sql/a.cc", f"// {overlay.LICENSE}\n")
        self.assertIn("MariaDB has a file of that name", self.problems())

    def test_check_finds_a_patch_of_another_file(self):
        text = self.patch(STOCK + "more\n")
        self.put(self.top / "sql/other.cc.patch", HEADER + text)
        self.assertIn("sql/other.cc.patch: touches", self.problems())

    def test_check_finds_a_feature_that_nothing_defines(self):
        self.put(self.top / "sql/new.cc",
                 f"// {overlay.LICENSE}\n#ifdef HAVE_NEWS\nint a;\n#endif\n")
        self.assertIn("sql/new.cc: tests HAVE_NEWS", self.problems())
        self.put(self.stock / "source/config.h.cmake", "#define HAVE_NEWS 1\n")
        self.assertEqual(self.problems(), "")

    def test_check_finds_an_ambiguous_hunk(self):
        same = "a;\nb;\n" * 3
        self.put(self.stock / "source/sql/a.cc", same)
        self.put(self.top / "sql/a.cc.patch", HEADER + "--- a/sql/a.cc\n"
                 "+++ b/sql/a.cc\n@@ -3,2 +3,3 @@ first\n a;\n+new;\n b;\n")
        self.assertIn("hunk 1 (first) is found 3 times", self.problems())

    def test_check_finds_an_mtr_test_without_result(self):
        test = self.top / "mysql-test/suite/s/t/x.test"
        self.put(test, f"# {overlay.LICENSE}\n")
        self.assertIn("x.test: has no", self.problems())
        self.put(test.parents[1] / "r/x.result", "")
        self.put(self.top / "BUILD/topics/20-second",
                 TOPIC + "  mysql-test/suite/s/*/x.*\n")
        self.assertEqual(self.problems(), "")

    def test_check_finds_a_change_of_code_that_is_disabled(self):
        def disable(stock):
            return (stock.replace("line 10\n", "#ifdef REPLACED_CODE /* moved */\n"
                                  "line 10\n")
                    .replace("line 20\n", "line 20\n#endif\n"))
        stock = STOCK.replace("line 12\n", "#if X\nline 12\n#endif\n")
        self.put(self.stock / "source/sql/a.cc", stock)
        self.apply()
        self.put(self.patched / "source/sql/a.cc", disable(stock))
        self.run_overlay("refresh", topic="first")
        patch = self.top / "sql/a.cc.patch"
        patch.write_text(patch.read_text().replace("TODO", "x"))
        self.assertEqual(self.problems(), "")
        # The lines after the block may change
        for changed, found in (("line 25", False), ("line 12", True),
                               ("line 15", True)):
            self.put(self.stock / "source/sql/a.cc",
                     stock.replace(changed, "MariaDB's " + changed))
            self.assertEqual("that it disables" in self.problems(), found)

    def test_refresh_asks_for_the_topic_of_a_new_hunk(self):
        self.apply()
        self.put(self.patched / "source/sql/a.cc",
                 STOCK.replace("line 7\n", "line 7\nnew\n"))
        with self.assertRaisesRegex(overlay.OverlayError,
                                    "line 8\nBUILD/refresh --topic NAME .* "
                                    "first, second"):
            self.run_overlay("refresh")
        with self.assertRaisesRegex(overlay.OverlayError, "no topic third"):
            self.run_overlay("refresh", topic="third")
        self.run_overlay("refresh", topic="second")
        self.assertRegex((self.top / "sql/a.cc.patch").read_text(),
                         r"(?m)^@@ -7,2 \+7,3 @@ second$")

    def test_refresh_keeps_the_topics_of_hunks(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.apply()
        text = STOCK.replace("line 20\n", "line twenty\nmore\n")
        self.put(self.patched / "source/sql/a.cc", text)
        self.run_overlay("refresh")
        self.put(self.patched / "source/sql/a.cc", "zero\n" + text)
        self.run_overlay("refresh", topic="second")
        self.assertEqual(
            [hunk.topic for hunk in hunks.read_hunks(overlay.split_patch(
                (self.top / "sql/a.cc.patch").read_text())[1])],
            ["second", "first"])

    def test_refresh_lists_a_new_file_in_its_topic(self):
        self.apply()
        self.put(self.patched / "source/plugin/p/p.cc",
                 f"// {overlay.LICENSE}\n")
        self.run_overlay("refresh", topic="second")
        self.assertIn("\n  plugin/p/p.cc\n",
                      (self.top / "BUILD/topics/20-second").read_text())
        self.assertEqual(self.problems(), "")

    def test_refresh_names_hunks_that_have_no_topic(self):
        patch = self.top / "sql/a.cc.patch"
        text = self.patch(STOCK + "more\n")
        self.put(patch, HEADER + text.replace(" first\n", "\n"))
        self.apply()
        self.run_overlay("refresh")
        self.assertNotIn("@@ second\n", patch.read_text())
        self.run_overlay("refresh", topic="second")
        self.assertIn("@@ second\n", patch.read_text())
        self.assertIn("+more\n", patch.read_text())

    def test_check_finds_what_has_no_topic(self):
        text = self.patch(STOCK + "more\n")
        self.put(self.top / "sql/a.cc.patch",
                 HEADER + text.replace(" first\n", "\n"))
        self.put(self.top / "sql/other_new.cc", f"// {overlay.LICENSE}\n")
        found = self.problems()
        self.assertIn("sql/a.cc.patch: hunk 1 names no topic", found)
        self.assertIn("sql/other_new.cc: no file in BUILD/topics", found)

    def test_check_finds_missing_headers(self):
        text = self.patch(STOCK + "more\n")
        self.put(self.top / "sql/a.cc.patch", overlay.LICENSE + "\n" + text)
        self.put(self.top / "sql/new.cc", "int a;\n")
        found = self.problems()
        self.assertIn("no 'Description:'", found)
        self.assertIn("sql/new.cc: no line 'SPDX", found)


class SeriesTest(TreesTest):
    """Two release series; the sources differ in one line."""

    OTHER = STOCK.replace("line 21\n", "line 21, wrapped\n")

    def setUp(self):
        super().setUp()
        self.out = self.work / "out"
        for series, text in (("10.11", STOCK), ("11.8", self.OTHER)):
            stock = self.out / series / "stock"
            self.put(stock / "version", f"1:{series}.99-1\n")
            self.put(stock / "source/sql/a.cc", text)
            self.put(self.top / f"cmake/base-{series}.cmake",
                     f"# {overlay.LICENSE}\n")
        self.stock = self.out / "10.11/stock"
        self.patched = self.out / "10.11/patched"

    def target(self, series="10.11"):
        return overlay.Overlay(self.top, self.out / series / "stock",
                               self.out / series / "patched", self.out)

    def refresh(self):
        """Refresh 10.11; return the warnings."""
        errors = io.StringIO()
        with (contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(errors)):
            self.target().refresh("first")
        return errors.getvalue()

    def edit(self, *replacements):
        with contextlib.redirect_stdout(io.StringIO()):
            self.target().apply(False)
        text = self.tree()
        for old, new in replacements:
            text = text.replace(old, new)
        self.put(self.patched / "source/sql/a.cc", text)

    def applied(self, series):
        return self.target(series).wanted()["sql/a.cc"].decode()

    def test_file_of_a_series_takes_the_place_of_the_shared_one(self):
        own = f"// {overlay.LICENSE}\nint own;\n"
        self.put(self.top / "only-11.8/sql/new.cc", own)
        self.put(self.top / "only-11.8/sql/only.cc", own)
        shared = self.target("10.11").wanted()
        mine = self.target("11.8").wanted()
        self.assertIn(b"int a;", shared["sql/new.cc"])
        self.assertNotIn("sql/only.cc", shared)
        self.assertIn(b"int own;", mine["sql/new.cc"])
        self.assertIn("sql/only.cc", mine)

    def test_empty_file_of_a_series_means_none(self):
        self.put(self.top / "only-11.8/sql/new.cc", "")
        self.assertIn("sql/new.cc", self.target("10.11").wanted())
        self.assertNotIn("sql/new.cc", self.target("11.8").wanted())

    def test_check_finds_what_a_series_has_in_vain(self):
        shared = (self.top / "sql/new.cc").read_text()
        for path, problem in (("only-11.8/sql/new.cc", "is a copy of"),
                              ("only-11.9/sql/new.cc", "is for no series"),
                              ("only-11.8/docs/new.cc", "is for no series")):
            self.put(self.top / path, shared)
            self.assertIn(f"{path}: {problem}", "\n".join(self.target().check()))
            (self.top / path).unlink()

    def test_check_looks_at_each_series_whose_source_is_there(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.assertRegex("\n".join(self.target().check()),
                         r"^11\.8\.99: sql/a\.cc\.patch does not apply")
        (self.out / "11.8/stock/source/sql/a.cc").write_text(STOCK)
        self.assertEqual(list(self.target().check()), [])

    def test_refresh_writes_a_hunk_that_fits_each_series(self):
        self.edit(("line 20\n", "line twenty\n"))
        self.assertEqual(self.refresh(), "")
        for series in ("10.11", "11.8"):
            self.assertIn("line twenty\n", self.applied(series))

    def test_refresh_rewords_a_patch_written_for_one_series(self):
        self.patch(STOCK.replace("line 20\n", "line twenty\n"))
        self.edit()
        self.assertTrue(list(self.target().check()))
        self.assertEqual(self.refresh(), "")
        self.assertEqual(list(self.target().check()), [])

    def test_refresh_leaves_the_hunks_of_other_patches_as_they_are(self):
        self.edit(("line 30\n", "line thirty\n"))
        self.refresh()
        patch = self.top / "sql/a.cc.patch"
        by_hand = (patch.read_text().replace("@@ -29,3 +29,3 @@",
                                             "@@ -29,2 +29,2 @@")
                   .replace("+line thirty\n line 31\n", "+line thirty\n"))
        self.assertNotEqual(by_hand, patch.read_text())
        patch.write_text(by_hand)
        self.target().apply(False)
        (self.out / "10.11/patched/source/sql/new.cc").write_text("new\n")
        self.refresh()
        self.assertTrue((self.top / "sql/new.cc").exists())
        self.assertEqual(patch.read_text(), by_hand)

    def test_refresh_warns_of_a_hunk_that_does_not(self):
        self.edit(("line 21\n", "line 21, mine\n"))
        self.assertIn("warning: 11.8.99: sql/a.cc.patch does not apply",
                      self.refresh())
        self.assertIn("line 21, mine\n", self.applied("10.11"))

    def test_hunk_of_one_series(self):
        self.edit(("line 30\n", "line thirty\n"))
        self.refresh()
        self.edit(("line 21\n", "line 21, mine\n"))
        with (contextlib.redirect_stdout(io.StringIO()),
              contextlib.redirect_stderr(io.StringIO())):
            self.target().refresh("second only 10.11")
        patch = self.top / "sql/a.cc.patch"
        self.assertIn("@@ second only 10.11\n", patch.read_text())
        patch.write_text(patch.read_text().replace("TODO", "x"))
        self.assertEqual(list(self.target().check()), [])
        self.assertIn("line 21, mine\n", self.applied("10.11"))
        self.assertIn("line 21, wrapped\n", self.applied("11.8"))
        self.assertIn("line thirty\n", self.applied("11.8"))
        # A refresh of the other series keeps it
        with contextlib.redirect_stdout(io.StringIO()):
            self.target("11.8").apply(False)
            source = self.out / "11.8/patched/source/sql/a.cc"
            source.write_text(source.read_text() + "more\n")
            self.target("11.8").refresh("first")
        self.assertIn("line 21, mine\n", self.applied("10.11"))
        self.assertIn("more\n", self.applied("10.11"))
        self.assertEqual(list(self.target().check()), [])

    def test_refresh_writes_to_the_file_of_the_series(self):
        text = difference("sql/a.cc", STOCK, STOCK + "more\n")
        own = self.top / "only-10.11/sql/a.cc.patch"
        self.put(own, HEADER + text)
        self.edit(("more\n", "most\n"))
        self.refresh()
        self.assertIn("+most\n", own.read_text())
        self.assertFalse((self.top / "sql/a.cc.patch").exists())

    def test_refresh_writes_to_an_empty_file_of_the_series(self):
        """How an edit is kept for one series."""
        own = self.top / "only-10.11/sql/a.cc.patch"
        self.put(own, "")
        self.edit(("line 21\n", "line 21, mine\n"))
        self.assertEqual(self.refresh(), "")
        self.assertIn("+line 21, mine\n", own.read_text())
        self.assertNotIn("sql/a.cc", self.target("11.8").wanted())

    def test_refresh_writes_what_each_series_has_disabled(self):
        self.put(self.out / "11.8/stock/source/sql/a.cc",
                 STOCK.replace("line 15\n", "line 15 of 11.8\n"))
        self.edit(("line 10\n", "#ifdef REPLACED_CODE\nline 10\n"),
                  ("line 20\n", "#endif\nline 20\n"))
        self.assertNotIn("disables", self.refresh())
        patch = self.top / "sql/a.cc.patch"
        self.assertRegex(patch.read_text(), r"(?m)^Disabled-Code: "
                         r"10\.11=\w{16} 11\.8=\w{16}$")
        patch.write_text(patch.read_text().replace("TODO", "x"))
        self.assertEqual(list(self.target().check()), [])
        # Code that changes is found on the series that changes it
        self.put(self.out / "11.8/stock/source/sql/a.cc",
                 STOCK.replace("line 15\n", "line 15 of 11.8.1\n"))
        problem, = self.target().check()
        self.assertRegex(problem, r"^11\.8\.99: .* that it disables")


class SurveyTest(TreesTest):
    """What is said of a source that was not tested."""

    def setUp(self):
        super().setUp()
        self.patch(STOCK.replace("line 10\n", "line ten\n")
                   .replace("line 30\n", "line thirty\n"))
        self.put(self.top / overlay.REPLACED_SUMS, "")

    def survey(self, source=None, name="sql/a.cc"):
        if source is not None:
            self.put(self.stock / "source" / name, source)
        target = overlay.Overlay(self.top, self.stock, self.patched)
        return list(target.survey())

    def fails(self, source, name="sql/a.cc"):
        """The sentence about what does not apply; nothing is patched then."""
        (_, state, sentence), = self.survey(source, name)
        self.assertEqual(state, overlay.DOES_NOT_APPLY)
        with (contextlib.redirect_stdout(io.StringIO()) as said,
              self.assertRaises(overlay.OverlayError)):
            overlay.print_survey(
                overlay.Overlay(self.top, self.stock, self.patched))
        self.assertIn("0 apply unchanged, 0 moved, 1 not at all",
                      said.getvalue())
        return sentence

    def test_the_patches_fit_the_sources_that_are_there(self):
        top = pathlib.Path(overlay.__file__).resolve().parents[2]
        stocks = [version.parent for version in top.glob("out/*/stock/version")
                  if (version.parent / "source/sql").is_dir()]
        if not stocks:
            self.skipTest("needs the source of MariaDB")
        for stock in stocks:
            target = overlay.Overlay(top, stock, stock.parent / "patched")
            self.assertEqual([each for each in target.survey()
                              if each[1] == overlay.DOES_NOT_APPLY], [])

    def test_source_that_is_as_it_was(self):
        self.assertEqual(self.survey(),
                         [("sql/a.cc.patch", overlay.UNCHANGED, "")])

    def test_hunks_that_moved(self):
        self.assertEqual(
            self.survey("new\nnew\n" + STOCK.replace("line 20\n", "")),
            [("sql/a.cc.patch", overlay.MOVED,
              "2 of 2 hunks, by +1 to +2 lines")])
        self.assertEqual(self.survey(STOCK.replace("line 20\n", ""))[0][2],
                         "1 of 2 hunks, by -1 lines")

    def test_hunk_that_changed(self):
        self.assertEqual(self.fails(STOCK.replace("line 30\n", "line 30;\n")),
                         "hunk 2 (first) is found 0 times")

    def test_hunk_that_is_found_twice(self):
        self.assertEqual(self.fails(STOCK + STOCK),
                         "hunk 1 (first) is found 2 times; "
                         "hunk 2 (first) is found 2 times")

    def test_hunks_in_another_order(self):
        lines = STOCK.splitlines(keepends=True)
        self.assertEqual(self.fails("".join(lines[20:] + lines[:20])),
                         "hunk 2 (first) is found, but before the one that it "
                         "was behind")

    def test_file_that_is_gone(self):
        (self.stock / "source/sql/a.cc").unlink()
        self.assertIn("has no file sql/a.cc", self.fails(None))

    def test_code_that_is_replaced_and_has_changed(self):
        self.patch(STOCK.replace("line 10\n", "#ifdef REPLACED_CODE\nline 10\n")
                   .replace("line 20\n", "#endif\nline 20\n"))
        patch = self.top / "sql/a.cc.patch"
        target = overlay.Overlay(self.top, self.stock, self.patched)
        self.assertIn("disables", "\n".join(target.check()))
        was = overlay.disabled_code(
            overlay.split_patch(patch.read_text())[1], STOCK.encode(), "10.11")
        patch.write_text(patch.read_text().replace(
            "\n\n", f"\nDisabled-Code: {was}\n\n", 1))
        self.assertEqual(self.survey()[0][1], overlay.UNCHANGED)
        self.assertIn("MariaDB has changed code that the patch set replaces",
                      self.fails(STOCK.replace("line 15\n", "a correction\n")))

    def test_file_that_is_replaced_and_has_changed(self):
        (self.top / "sql/a.cc.patch").unlink()
        name = "sql/table_cache.cc"
        text = "int cache;\n"
        self.put(self.top / name, f"// {overlay.LICENSE}\n")
        self.put(self.top / overlay.REPLACED_SUMS,
                 f"# a comment\n{overlay.digest(text.encode())}  {name}\n")
        self.assertEqual(self.survey(text, name), [])
        self.assertIn("MariaDB has changed this file",
                      self.fails("int correction;\n", name))

    def test_new_file_that_mariadb_has_now(self):
        (self.top / "sql/a.cc.patch").unlink()
        self.assertEqual(self.fails("int theirs;\n", "sql/new.cc"),
                         "MariaDB has a file of that name")

    def test_patch_of_debian_s_is_left_out_elsewhere(self):
        text = (self.top / "sql/a.cc.patch").read_text()
        self.put(self.top / "only-10.11/sql/a.cc.patch", text.replace(
            "\n\n", f"\n{overlay.ONLY_DEBIAN}\n\n", 1))
        (self.top / "sql/a.cc.patch").unlink()
        changed = STOCK.replace("line 30\n", "not Debian's\n")
        self.put(self.stock / "version", "10.11.99\n")
        self.assertEqual(self.survey(changed), [])
        self.apply()
        self.assertEqual(self.tree(), changed)
        self.put(self.stock / "version", "1:10.11.99-0+deb12u1\n")
        self.assertEqual(self.survey()[0][1], overlay.DOES_NOT_APPLY)


class FetchTest(unittest.TestCase):
    def test_entries_of_the_machine_become_those_of_another_release(self):
        entries = fetch_source.for_release({
            "sources.list": "deb-src [arch=amd64] http://m.invalid/d bookworm "
                            "main\ndeb-src http://m.invalid/d "
                            "bookworm-updates main\n"
                            "deb-src http://vendor.invalid/ sdk-bookworm main\n",
            "d.sources":
                "Types: deb-src\nURIs: http://m.invalid/d\n"
                "Suites: bookworm stable-security\nSigned-By: /key\n\n"
                "Types: deb-src\nURIs: http://vendor.invalid/\n"
                "Suites: nodistro\n",
            "vendor.list": "deb-src http://vendor.invalid/ any main\n"},
            "bookworm", "trixie")
        self.assertEqual(entries, {
            "sources.list": "deb-src [arch=amd64] http://m.invalid/d trixie "
                            "main\ndeb-src http://m.invalid/d "
                            "trixie-updates main\n",
            "d.sources": "Types: deb-src\nURIs: http://m.invalid/d\n"
                         "Suites: trixie trixie-security\n"
                         "Signed-By: /key\n\n"})

    def test_release_of_the_machine_is_known_on_debian_only(self):
        with tempfile.TemporaryDirectory() as work:
            file = pathlib.Path(work, "os-release")
            for text, release in (
                    ('ID=debian\nVERSION_CODENAME="trixie"\n', "trixie"),
                    ("ID=ubuntu\nVERSION_CODENAME=noble\n", None),
                    ("ID=debian\n", None)):
                file.write_text(text)
                self.assertEqual(fetch_source.machine_release(file), release)
            file.unlink()
            self.assertIsNone(fetch_source.machine_release(file))

    def test_source_entries_are_made_of_both_formats(self):
        with tempfile.TemporaryDirectory() as work:
            etc = pathlib.Path(work)
            (etc / "sources.list.d").mkdir()
            (etc / "sources.list").write_text(
                "# comment\ndeb [arch=amd64] http://mirror.invalid/d x main\n"
                "deb-src http://mirror.invalid/d x main\n")
            (etc / "sources.list.d/d.sources").write_text(
                "Types: deb\nURIs: http://mirror.invalid/d\nSuites: x\n")
            (etc / "sources.list.d/off.list.disabled").write_text(
                "deb http://off.invalid/d x main\n")
            entries = fetch_source.source_entries(etc)
        self.assertEqual(entries["sources.list"],
                         "deb-src [arch=amd64] http://mirror.invalid/d x main\n"
                         "deb-src http://mirror.invalid/d x main\n")
        self.assertIn("Types: deb-src\n", entries["d.sources"])
        self.assertEqual(len(entries), 2)

    def test_versions_are_tried_from_the_newest(self):
        self.assertEqual(
            fetch_source.newer_first(["1:10.11.9-0", "1:10.11.18-0",
                                      "1:10.11.18-0+deb12u1"]),
            ["1:10.11.18-0+deb12u1", "1:10.11.18-0", "1:10.11.9-0"])

    def pinned_package(self, mirror, damage=None):
        """Make a package on a mirror; return its version and checksum."""
        folder = mirror / "pool/main/m/mariadb"
        folder.mkdir(parents=True)
        files = {"mariadb_1.0.orig.tar.gz": b"orig",
                 "mariadb_1.0-1+deb1.debian.tar.xz": b"debian"}
        description = ("Format: 3.0 (quilt)\nChecksums-Sha256:\n"
                       + "".join(f" {hashlib.sha256(text).hexdigest()} "
                                 f"{len(text)} {name}\n"
                                 for name, text in files.items())
                       + "Files:\n").encode()
        files["mariadb_1.0-1+deb1.dsc"] = description
        for name, text in files.items():
            (folder / name).write_bytes(
                text[::-1] if name == damage else text)
        return "1:1.0-1+deb1", hashlib.sha256(description).hexdigest()

    def fetch_pinned(self, mirrors, version, checksum, directory):
        directory.mkdir()
        return fetch_source.fetch_pinned(
            "mariadb", version, checksum,
            [f"copy:{mirror}" for mirror in mirrors], None, directory)

    def test_version_that_the_lists_lack_comes_from_the_mirror_that_has_it(self):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            version, checksum = self.pinned_package(work / "mirror")
            self.assertIsNone(self.fetch_pinned(
                [work / "empty", work / "mirror"], version, checksum,
                work / "got"))
            self.assertEqual(
                sorted(path.name for path in (work / "got").iterdir()),
                ["mariadb_1.0-1+deb1.debian.tar.xz", "mariadb_1.0-1+deb1.dsc",
                 "mariadb_1.0.orig.tar.gz"])

    def test_version_that_the_lists_lack_must_have_its_checksums(self):
        for damaged in ("mariadb_1.0-1+deb1.dsc", "mariadb_1.0.orig.tar.gz"):
            with tempfile.TemporaryDirectory() as work:
                work = pathlib.Path(work)
                pin = self.pinned_package(work / "mirror", damaged)
                reason = self.fetch_pinned([work / "mirror"], *pin,
                                           work / "got")
                self.assertIn("Hash Sum mismatch", reason)
                self.assertIn(damaged, reason)
                self.assertFalse((work / "got" / damaged).exists())

    def test_mirrors_are_found_in_both_formats(self):
        self.assertEqual(fetch_source.mirrors({
            "a.list": "deb-src [arch=amd64] http://a.invalid/d/ x main\n",
            "b.sources": "Types: deb-src\nURIs: http://b.invalid/d "
                         "http://a.invalid/d\nSuites: x\n"}),
            ["http://a.invalid/d", "http://b.invalid/d"])

    def test_what_was_built_of_the_former_source_is_out_of_date(self):
        """ninja compares times, and those of an archive are long ago."""
        with tempfile.TemporaryDirectory() as work:
            given = pathlib.Path(work, "given")
            given.mkdir()
            (given / "VERSION").write_text(
                "MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=11\n"
                "MYSQL_VERSION_PATCH=1\n")
            target = pathlib.Path(work, "target")
            identities = []
            for patch in ("1", "2"):
                (given / "a.c").write_text(f"int a{patch};\n")
                os.utime(given / "a.c", (1, 1))
                (target / "origin").unlink(missing_ok=True)
                built = pathlib.Path(work, "a.o")
                built.touch()
                with contextlib.redirect_stdout(io.StringIO()):
                    fetch_source.fetch("", "10.11", "", str(given), target)
                self.assertGreaterEqual(
                    os.stat(target / "source/a.c").st_mtime_ns,
                    os.stat(built).st_mtime_ns)
                identities.append((target / "source/.fetched").read_text())
            self.assertNotEqual(*identities)
            self.assertEqual(sorted(path.name for path in target.iterdir()),
                             ["origin", "source", "version"])

    def given_source(self, work):
        given = pathlib.Path(work, "given")
        given.mkdir()
        (given / "VERSION").write_text(
            "MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=11\n"
            "MYSQL_VERSION_PATCH=1\n")
        return given

    def take(self, given, target):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            fetch_source.fetch("", "10.11", "", str(given), target)
        return (target / "version").read_text(), said.getvalue()

    def test_given_source_is_taken_again_when_it_has_changed(self):
        with tempfile.TemporaryDirectory() as work:
            given, target = self.given_source(work), pathlib.Path(work, "target")
            version, said = self.take(given, target)
            self.assertEqual(version, "10.11.1\n")
            self.assertIn("copying", said)
            self.assertEqual(self.take(given, target)[1], "")
            (given / "a.c").write_text("int a;\n")
            self.take(given, target)
            self.assertEqual((target / "source/a.c").read_text(), "int a;\n")

    def test_given_source_with_debian_s_patches_has_debian_s_version(self):
        with tempfile.TemporaryDirectory() as work:
            given, target = self.given_source(work), pathlib.Path(work, "target")
            (given / "debian").mkdir()
            (given / "debian/changelog").write_text(
                "mariadb (1:10.11.1-0+deb12u1) bookworm; urgency=medium\n")
            self.assertEqual(self.take(given, target)[0], "10.11.1\n")
            (given / ".pc").mkdir()
            (given / ".pc/applied-patches").write_text("one.patch\n")
            self.assertEqual(self.take(given, target)[0],
                             "1:10.11.1-0+deb12u1\n")

    def test_given_source_package_is_unpacked_with_its_patches(self):
        with tempfile.TemporaryDirectory() as work:
            given, target = self.given_source(work), pathlib.Path(work, "target")
            (given / "debian/source").mkdir(parents=True)
            (given / "debian/source/format").write_text("3.0 (native)\n")
            (given / "debian/control").write_text(
                "Source: mariadb\nMaintainer: a <a@b>\n\nPackage: m\n"
                "Architecture: all\nDescription: m\n")
            (given / "debian/changelog").write_text(
                "mariadb (10.11.1) bookworm; urgency=medium\n\n  * one\n\n"
                " -- a <a@b>  Mon, 01 Jan 2024 00:00:00 +0000\n")
            subprocess.run(["dpkg-source", "--build", given], cwd=work,
                           check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            version, said = self.take(
                pathlib.Path(work, "mariadb_10.11.1.dsc"), target)
            self.assertIn("unpacking with Debian's patches", said)
            self.assertEqual(version, "10.11.1\n")

    def test_given_checkout_needs_its_submodules(self):
        with tempfile.TemporaryDirectory() as work:
            given, target = self.given_source(work), pathlib.Path(work, "target")
            (given / "libmariadb").mkdir()
            with self.assertRaisesRegex(fetch_source.FetchError,
                                        "git submodule update"):
                self.take(given, target)
            self.assertEqual(list(target.iterdir()), [])

    def test_given_source_must_be_of_the_series(self):
        with tempfile.TemporaryDirectory() as work:
            given = pathlib.Path(work, "given")
            given.mkdir()
            (given / "VERSION").write_text(
                "MYSQL_VERSION_MAJOR=10\nMYSQL_VERSION_MINOR=6\n"
                "MYSQL_VERSION_PATCH=1\n")
            target = pathlib.Path(work, "target")
            done = subprocess.run(
                [sys.executable, fetch_source.__file__, "--series", "10.11",
                 "--from", str(given), "--destination", str(target)],
                stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("this is MariaDB 10.6.1", done.stderr)
            self.assertEqual(list(target.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
