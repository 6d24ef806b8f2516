# SPDX-License-Identifier: GPL-2.0-only
"""Tests of overlay.py, on trees made for each test."""

import contextlib
import io
import os

from support import WorkTest, git, put, quiet

import hunks
import overlay
from common import Problem

HEADER = (overlay.LICENSE + "\nDescription: a test\nForwarded: no\n"
          "Last-Update: 2026-01-01\n\n")
STOCK = "".join(f"line {number}\n" for number in range(1, 41))
TOPIC = overlay.LICENSE + "\n\nWhat changes\n\nWhy.\n\nFiles:\n"
NEW = f"// {overlay.LICENSE}\n"


def changed(*replacements, text=STOCK):
    """Lines of a text replaced: {line: by}."""
    for old, new in replacements:
        text = text.replace(old + "\n", new + "\n")
    return text


def difference(path, old, new, topic="first"):
    """What BUILD/refresh writes for an edit."""
    old, new = hunks.lines_of(old), hunks.lines_of(new)
    edits, _ = hunks.rebase([], old, new, topic)
    return hunks.write_hunks(path, edits, old)


class TreesTest(WorkTest):
    """The base of the tests below: a patch set and MariaDB's source."""

    def setUp(self):
        super().setUp()
        self.top = self.work / "top"
        self.stock = self.work / "stock"
        self.patched = self.work / "patched"
        put(self.stock / "version", "1:10.11.99\n")
        self.source = self.stock / "source/sql/a.cc"
        put(self.source, STOCK)
        put(self.stock / "source/sql/other.cc", "int other;\n")
        put(self.top / "sql/new.cc", NEW + "int a;\n")
        put(self.top / "BUILD/topics/10-first", TOPIC + "  sql/n*.cc\n")
        put(self.top / "BUILD/topics/20-second", TOPIC)
        self.patch_file = self.top / "sql/a.cc.patch"
        git(self.work, "init", "-q", str(self.top))

    def patch(self, new, header=HEADER):
        """Make the patch of sql/a.cc."""
        text = difference("sql/a.cc", STOCK, new)
        put(self.patch_file, header + text)
        return text

    def target(self):
        return overlay.Overlay(self.top, self.stock, self.patched)

    def apply(self, discard=False):
        with quiet():
            self.target().apply(discard)

    def refresh(self, topic="first"):
        with quiet():
            self.target().refresh(topic)

    def tree(self, path="sql/a.cc"):
        return (self.patched / "source" / path).read_text()

    def edit(self, text, path="sql/a.cc"):
        """Edit the patched tree."""
        put(self.patched / "source" / path, text)

    def problems(self):
        return "\n".join(self.target().check())


class ApplyTest(TreesTest):
    def test_new_files_are_copied_and_others_patched(self):
        self.patch(changed(("line 20", "line twenty")))
        self.apply()
        self.assertIn("line twenty", self.tree())
        self.assertIn("int a;", self.tree("sql/new.cc"))
        self.assertEqual(self.problems(), "")

    def test_only_what_changes_is_written(self):
        def times():
            return {name: os.stat(self.patched / "source/sql" / name).st_mtime_ns
                    for name in ("a.cc", "new.cc", "other.cc")}
        self.patch(changed(("line 20", "line twenty")))
        self.apply()
        before = times()
        put(self.top / "sql/new.cc", NEW + "int b;\n")
        self.apply()
        after = times()
        self.assertEqual([name for name in before if before[name] != after[name]],
                         ["new.cc"])

    def test_source_revision_tells_servers_apart_not_tests(self):
        name = "include/source_revision.h"
        put(self.stock / "source" / name, '#define SOURCE_REVISION "abc"\n')
        seen = []
        for path, text in (("sql/new.cc", "int b;"), ("sql/new.cc", "int c;"),
                           ("mysql-test/t/a.inc", "# d"), ("sql/e.cc", "")):
            put(self.top / path, NEW + text + "\n")
            self.apply()
            self.refresh()                      # takes it for no edit
            self.assertFalse((self.top / (name + ".patch")).exists())
            seen.append(self.tree(name))
            self.assertRegex(seen[-1], r'^#define SOURCE_REVISION '
                                       r'"abc\+table-cache\.[0-9a-f]{12}"\n$')
        self.assertEqual(seen[1], seen[2])
        self.assertEqual(len(set(seen)), 3)

    def test_patch_that_does_not_apply_leaves_the_tree_alone(self):
        self.apply()
        text = self.patch(changed(("line 20", "line twenty")))
        put(self.patch_file, HEADER + text.replace(" line 21", " line 21, edited"))
        put(self.top / "sql/new.cc", "// newer\n")
        with self.assertRaisesRegex(Problem, r"sql/a\.cc\.patch .*1:10\.11\.99: "
                                             "hunk 1 .* is found 0 times"):
            self.apply()
        self.assertEqual(self.tree(), STOCK)
        self.assertIn("int a;", self.tree("sql/new.cc"))

    def test_removed_patch_restores_the_original(self):
        self.patch(STOCK + "more\n")
        self.apply()
        self.patch_file.unlink()
        (self.top / "sql/new.cc").unlink()
        self.apply()
        self.assertEqual(self.tree(), STOCK)
        self.assertFalse((self.patched / "source/sql/new.cc").exists())

    def test_edit_in_the_tree_is_never_overwritten(self):
        self.apply()
        self.edit("edited\n", "sql/new.cc")
        put(self.top / "sql/new.cc", "from the repository\n")
        for act in (self.apply, self.refresh):
            with self.assertRaisesRegex(Problem, "sql/new.cc"):
                act()
        self.assertEqual(self.tree("sql/new.cc"), "edited\n")
        self.apply(discard=True)
        self.assertEqual(self.tree("sql/new.cc"), "from the repository\n")

    def test_new_source_gets_a_new_tree(self):
        self.apply()
        for path, text in (("version", "1:10.11.100\n"),
                           ("source/.fetched", "another one\n")):
            put(self.stock / path, text)
            put(self.stock / "source/sql/other.cc", text)
            self.apply()
            self.assertEqual(self.tree("sql/other.cc"), text)
        before = os.stat(self.patched / "source/sql/other.cc").st_ino
        self.apply()
        self.assertEqual(os.stat(self.patched / "source/sql/other.cc").st_ino, before)


class RefreshTest(TreesTest):
    def test_edits_and_new_files_are_taken_over(self):
        self.apply()
        edited = changed(("line 7", "line seven"))
        self.edit(edited)
        self.edit(NEW, "plugin/p/p.cc")
        self.refresh("second")
        self.assertIn("+line seven", self.patch_file.read_text())
        self.assertEqual((self.top / "plugin/p/p.cc").read_text(), NEW)
        self.assertIn("\n  plugin/p/p.cc\n",
                      (self.top / "BUILD/topics/20-second").read_text())
        self.apply()
        self.assertEqual(self.tree(), edited)

    def test_header_of_a_patch_is_kept(self):
        self.patch(STOCK + "more\n")
        self.apply()
        self.edit(STOCK + "most\n")
        self.refresh()
        self.assertRegex(self.patch_file.read_text(), r"(?s)Description: a test.*\+most")
        self.edit(STOCK)
        self.refresh()
        self.assertFalse(self.patch_file.exists())

    def test_what_changed_in_the_repository_is_left_to_apply(self):
        self.patch(changed(("line 20", "line twenty")))
        put(self.top / "sql/gone.cc", NEW)
        self.apply()
        put(self.top / "sql/new.cc", NEW + "int b;\n")
        put(self.top / "sql/newer.cc", NEW)
        (self.top / "sql/gone.cc").unlink()
        self.edit("int edited;\n", "sql/other.cc")
        self.refresh()
        self.assertTrue((self.top / "sql/other.cc.patch").exists())
        self.apply()
        self.assertIn("int b;", self.tree("sql/new.cc"))
        self.assertTrue((self.patched / "source/sql/newer.cc").exists())
        self.assertFalse((self.patched / "source/sql/gone.cc").exists())

    def test_new_hunk_needs_a_topic(self):
        self.apply()
        self.edit(changed(("line 7", "line 7\nnew")))
        with self.assertRaisesRegex(Problem, "sql/a.cc: .* line 8.*BUILD/refresh --topic"):
            self.refresh(None)
        with self.assertRaisesRegex(Problem, "no topic third.* first, second"):
            self.refresh("third")
        self.refresh("second")
        self.assertRegex(self.patch_file.read_text(), r"(?m)^@@ -7,2 \+7,3 @@ second$")

    def test_hunks_keep_their_topics(self):
        self.patch(changed(("line 20", "line twenty")))
        self.apply()
        text = changed(("line 20", "line twenty\nmore"))
        self.edit(text)
        self.refresh(None)
        self.edit("zero\n" + text)
        self.refresh("second")
        self.assertEqual([hunk.topic for hunk in hunks.read_hunks(overlay.split_patch(
            self.patch_file.read_text())[1])], ["second", "first"])


class CheckTest(TreesTest):
    def test_broken_rules_are_named(self):
        text = difference("sql/a.cc", STOCK, STOCK + "more\n")
        self.assertEqual(self.problems(), "")
        for path, content, problem in (
                ("sql/copy/other.cc", "int other;\n", "is a copy of a file of MariaDB's"),
                ("sql/a.cc", NEW, "MariaDB has a file of that name"),
                ("sql/other.cc.patch", HEADER + text, "sql/other.cc.patch: touches"),
                ("sql/a.cc.patch", HEADER + text.replace(" first\n", "\n"),
                 "sql/a.cc.patch: hunk 1 names no topic"),
                ("sql/a.cc.patch", overlay.LICENSE + "\n" + text, "no 'Description:'"),
                ("sql/other_new.cc", NEW, "sql/other_new.cc: no file in BUILD/topics"),
                ("sql/new_one.cc", "int a;\n", "sql/new_one.cc: no line 'SPDX"),
                ("mysql-test/suite/s/t/x.test", "# " + overlay.LICENSE, "x.test: has no")):
            with self.subTest(problem):
                put(self.top / path, content)
                self.assertIn(problem, self.problems())
                (self.top / path).unlink()

    def test_feature_that_nothing_defines(self):
        put(self.top / "sql/new.cc", NEW + "#ifdef HAVE_NEWS\nint a;\n#endif\n")
        self.assertIn("sql/new.cc: tests HAVE_NEWS", self.problems())
        put(self.stock / "source/config.h.cmake", "#define HAVE_NEWS 1\n")
        self.assertEqual(self.problems(), "")

    def test_change_of_code_that_is_disabled(self):
        stock = changed(("line 12", "#if X\nline 12\n#endif"))
        put(self.source, stock)
        self.apply()
        self.edit(changed(("line 10", "#ifdef REPLACED_CODE /* moved */\nline 10"),
                          ("line 20", "line 20\n#endif"), text=stock))
        self.refresh()
        put(self.patch_file, self.patch_file.read_text().replace("TODO", "x"))
        self.assertEqual(self.problems(), "")
        # The lines after the block may change
        for line, found in (("line 25", False), ("line 12", True), ("line 15", True)):
            put(self.source, stock.replace(line, "MariaDB's " + line))
            self.assertEqual("that it disables" in self.problems(), found)


class SeriesTest(TreesTest):
    """Two release series; the sources differ in one line."""

    def setUp(self):
        super().setUp()
        self.out = self.work / "out"
        for series, text in (("10.11", STOCK),
                             ("11.8", changed(("line 21", "line 21, wrapped")))):
            put(self.out / series / "stock/version", f"1:{series}.99-1\n")
            put(self.out / series / "stock/source/sql/a.cc", text)
            put(self.top / f"cmake/base-{series}.cmake", f"# {overlay.LICENSE}\n")
        self.other_source = self.out / "11.8/stock/source/sql/a.cc"
        self.patched = self.out / "10.11/patched"

    def target(self, series="10.11"):
        return overlay.Overlay(self.top, self.out / series / "stock",
                               self.out / series / "patched", self.out)

    def refresh(self, topic="first", series="10.11"):
        """Returns the warnings."""
        with quiet(), contextlib.redirect_stderr(io.StringIO()) as errors:
            self.target(series).refresh(topic)
        return errors.getvalue()

    def edit_lines(self, *replacements):
        self.apply()
        self.edit(changed(*replacements, text=self.tree()))

    def applied(self, series):
        return self.target(series).wanted()["sql/a.cc"].decode()

    def no_todo(self):
        put(self.patch_file, self.patch_file.read_text().replace("TODO", "x"))

    def test_file_of_a_series_takes_the_place_of_the_shared_one(self):
        put(self.top / "only-11.8/sql/new.cc", NEW + "int own;\n")
        put(self.top / "only-11.8/sql/only.cc", NEW)
        shared, mine = self.target().wanted(), self.target("11.8").wanted()
        self.assertIn(b"int a;", shared["sql/new.cc"])
        self.assertNotIn("sql/only.cc", shared)
        self.assertIn(b"int own;", mine["sql/new.cc"])
        self.assertIn("sql/only.cc", mine)
        put(self.top / "only-11.8/sql/new.cc")          # means that there is none
        self.assertIn("sql/new.cc", self.target().wanted())
        self.assertNotIn("sql/new.cc", self.target("11.8").wanted())

    def test_check_finds_what_a_series_has_in_vain(self):
        shared = (self.top / "sql/new.cc").read_text()
        for path, problem in (("only-11.8/sql/new.cc", "is a copy of"),
                              ("only-11.9/sql/new.cc", "is for no series"),
                              ("only-11.8/docs/new.cc", "is for no series")):
            put(self.top / path, shared)
            self.assertIn(f"{path}: {problem}", self.problems())
            (self.top / path).unlink()

    def test_check_looks_at_each_series_whose_source_is_there(self):
        self.patch(changed(("line 20", "line twenty")))
        self.assertRegex(self.problems(), r"^11\.8\.99: sql/a\.cc\.patch does not apply")
        put(self.other_source, STOCK)
        self.assertEqual(self.problems(), "")

    def test_refresh_writes_a_hunk_that_fits_each_series(self):
        self.edit_lines(("line 20", "line twenty"))
        self.assertEqual(self.refresh(), "")
        for series in ("10.11", "11.8"):
            self.assertIn("line twenty\n", self.applied(series))

    def test_refresh_rewords_a_patch_written_for_one_series(self):
        self.patch(changed(("line 20", "line twenty")))
        self.apply()
        self.assertNotEqual(self.problems(), "")
        self.assertEqual(self.refresh(), "")
        self.assertEqual(self.problems(), "")

    def test_refresh_leaves_the_hunks_of_other_patches_as_they_are(self):
        self.edit_lines(("line 30", "line thirty"))
        self.refresh()
        by_hand = (self.patch_file.read_text()
                   .replace("@@ -29,3 +29,3 @@", "@@ -29,2 +29,2 @@")
                   .replace("+line thirty\n line 31\n", "+line thirty\n"))
        self.assertNotEqual(by_hand, self.patch_file.read_text())
        put(self.patch_file, by_hand)
        self.apply()
        self.edit("new\n", "sql/new.cc")
        self.refresh()
        self.assertEqual((self.top / "sql/new.cc").read_text(), "new\n")
        self.assertEqual(self.patch_file.read_text(), by_hand)

    def test_refresh_warns_of_a_hunk_that_does_not_fit(self):
        self.edit_lines(("line 21", "line 21, mine"))
        self.assertIn("warning: 11.8.99: sql/a.cc.patch does not apply", self.refresh())
        self.assertIn("line 21, mine\n", self.applied("10.11"))

    def test_hunk_of_one_series(self):
        self.edit_lines(("line 30", "line thirty"))
        self.refresh()
        self.edit_lines(("line 21", "line 21, mine"))
        self.refresh("second only 10.11")
        self.assertIn("@@ second only 10.11\n", self.patch_file.read_text())
        self.no_todo()
        self.assertEqual(self.problems(), "")
        self.assertIn("line 21, mine\n", self.applied("10.11"))
        self.assertIn("line 21, wrapped\n", self.applied("11.8"))
        self.assertIn("line thirty\n", self.applied("11.8"))
        # A refresh of the other series keeps it
        with quiet():
            self.target("11.8").apply(False)
        file = self.out / "11.8/patched/source/sql/a.cc"
        put(file, file.read_text() + "more\n")
        self.refresh(series="11.8")
        self.assertIn("line 21, mine\n", self.applied("10.11"))
        self.assertIn("more\n", self.applied("10.11"))
        self.assertEqual(self.problems(), "")

    def test_refresh_writes_to_the_file_of_the_series(self):
        """Also to an empty one: so an edit is kept for one series."""
        own = self.top / "only-10.11/sql/a.cc.patch"
        for text in ("", HEADER + difference("sql/a.cc", STOCK, STOCK + "more\n")):
            put(own, text)
            self.edit_lines(("line 21", "line 21, mine"))
            self.assertEqual(self.refresh(), "")
            self.assertIn("+line 21, mine\n", own.read_text())
            self.assertFalse(self.patch_file.exists())
            self.assertNotIn("sql/a.cc", self.target("11.8").wanted())
            put(own, "")
            self.apply(discard=True)

    def test_refresh_writes_what_each_series_has_disabled(self):
        put(self.other_source, changed(("line 15", "line 15 of 11.8")))
        self.edit_lines(("line 10", "#ifdef REPLACED_CODE\nline 10"),
                        ("line 20", "#endif\nline 20"))
        self.assertNotIn("disables", self.refresh())
        self.assertRegex(self.patch_file.read_text(), r"(?m)^Disabled-Code: \w{16} \w{16}$")
        self.no_todo()
        self.assertEqual(self.problems(), "")
        # Code that changes is found on the series that changes it
        put(self.other_source, changed(("line 15", "line 15 of 11.8.1")))
        problem, = self.target().check()
        self.assertRegex(problem, r"^11\.8\.99: .* that it disables")


class SurveyTest(TreesTest):
    """What is said of a source that was not tested."""

    def setUp(self):
        super().setUp()
        self.patch(changed(("line 10", "line ten"), ("line 30", "line thirty")))
        put(self.top / overlay.REPLACED_SUMS)

    def survey(self, source=None, name="sql/a.cc"):
        if source is not None:
            put(self.stock / "source" / name, source)
        return list(self.target().survey())

    def fails(self, source, name="sql/a.cc"):
        """The sentence about what does not apply; nothing is patched then."""
        (_, state, sentence), = self.survey(source, name)
        self.assertEqual(state, overlay.DOES_NOT_APPLY)
        with (contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaises(Problem)):
            overlay.print_survey(self.target())
        self.assertIn("0 apply unchanged, 0 moved, 1 not at all", said.getvalue())
        return sentence

    def test_hunks_that_moved_or_did_not(self):
        without = changed(("line 20", "-")).replace("-\n", "")
        for source, state, sentence in (
                (None, overlay.UNCHANGED, ""),
                ("new\nnew\n" + without, overlay.MOVED, "2 of 2 hunks, by +1 to +2 lines"),
                (without, overlay.MOVED, "1 of 2 hunks, by -1 lines")):
            self.assertEqual(self.survey(source), [("sql/a.cc.patch", state, sentence)])

    def test_hunks_that_do_not_apply(self):
        lines = STOCK.splitlines(keepends=True)
        for source, sentence in (
                (changed(("line 30", "line 30;")), "hunk 2 (first) is found 0 times"),
                (STOCK + STOCK, "hunk 1 (first) is found 2 times; "
                                "hunk 2 (first) is found 2 times"),
                ("".join(lines[20:] + lines[:20]),
                 "hunk 2 (first) is found, but before the one that it was behind")):
            self.assertEqual(self.fails(source), sentence)
        self.source.unlink()
        self.assertIn("has no file sql/a.cc", self.fails(None))

    def test_code_that_is_replaced_and_has_changed(self):
        self.patch(changed(("line 10", "#ifdef REPLACED_CODE\nline 10"),
                           ("line 20", "#endif\nline 20")))
        self.assertIn("disables", self.problems())
        text = self.patch_file.read_text()
        was = overlay.disabled_code(overlay.split_patch(text)[1], STOCK.encode(), "10.11")
        put(self.patch_file, text.replace("\n\n", f"\nDisabled-Code: {was}\n\n", 1))
        self.assertEqual(self.survey()[0][1], overlay.UNCHANGED)
        self.assertIn("MariaDB has changed code that the patch set replaces",
                      self.fails(changed(("line 15", "a correction"))))

    def test_file_that_is_replaced_and_has_changed(self):
        self.patch_file.unlink()
        name, text = "sql/table_cache.cc", "int cache;\n"
        put(self.top / name, NEW)
        put(self.top / overlay.REPLACED_SUMS,
            f"# a comment\n{overlay.digest(text.encode())}  {name}\n")
        self.assertEqual(self.survey(text, name), [])
        self.assertIn("MariaDB has changed this file", self.fails("int correction;\n", name))

    def test_new_file_that_mariadb_has_now(self):
        self.patch_file.unlink()
        self.assertEqual(self.fails("int theirs;\n", "sql/new.cc"),
                         "MariaDB has a file of that name")

    def test_patch_of_debian_s_is_left_out_elsewhere(self):
        put(self.top / "only-10.11/sql/a.cc.patch", self.patch_file.read_text().replace(
            "\n\n", f"\n{overlay.ONLY_DEBIAN}\n\n", 1))
        self.patch_file.unlink()
        theirs = changed(("line 30", "not Debian's"))
        put(self.stock / "version", "10.11.99\n")
        self.assertEqual(self.survey(theirs), [])
        self.apply()
        self.assertEqual(self.tree(), theirs)
        put(self.stock / "version", "1:10.11.99-0+deb12u1\n")
        self.assertEqual(self.survey()[0][1], overlay.DOES_NOT_APPLY)
