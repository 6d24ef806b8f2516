#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what is said of a source that does not fit, and of --what-fits: on
copies of the patch set in which one hunk was broken, and on MariaDB's source if
it is there."""

import contextlib
import io
import pathlib
import shutil
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
sys.dont_write_bytecode = True

import hunks                                            # noqa: E402
import overlay                                          # noqa: E402
import test_overlay                                     # noqa: E402
import topics                                           # noqa: E402

STOCK = TOP / "out/10.11/stock"


def break_hunk(path, topic):
    """Make a topic's first hunk in a .patch quote a line that is not there."""
    lines = hunks.lines_of(path.read_bytes())
    heads = [number for number, line in enumerate(lines)
             if hunks.HEAD.fullmatch(line) and hunks.name_of(
                 hunks.HEAD.fullmatch(line)[5].strip()) == topic]
    at = next(number for number in range(heads[0] + 1, len(lines))
              if lines[number][0] in " -" and lines[number].strip())
    lines[at] = lines[at].rstrip("\n") + " in another release\n"
    path.write_bytes(hunks.content_of(lines))


@unittest.skipUnless((STOCK / "source").is_dir(), f"no source in {STOCK}")
class BrokenHunkTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)
        self.top = self.work / "top"
        self.top.mkdir()
        for path in TOP.iterdir():
            if path.name in ("sql", "storage"):     # where hunks are broken
                shutil.copytree(path, self.top / path.name)
            elif path.name not in ("out", ".git"):
                (self.top / path.name).symlink_to(path)

    def misfits_of(self, name, topic):
        break_hunk(self.top / name, topic)
        target = overlay.Overlay(self.top, STOCK, self.work / "patched")
        found = target.misfits()
        self.assertEqual(list(found), [topic])
        self.assertRegex(found[topic], r"^\S+: hunk \d+ \(.*\) is found 0 times$")
        lost = topics.dependents(target.topics, found)
        missing = {part: names for part, *_, names, _ in target.survey_parts()}
        for part, names in missing.items():
            self.assertEqual(names, [topic] if any(
                each.part == part and each.name in lost
                for each in target.topics) else [], part)
        # The rest applies
        selection, _ = topics.choose(target.topics, topics.read_parts(TOP),
                                     unfit=found)
        trees = self.work / selection.label
        trees.mkdir()
        (trees / topics.SELECTION).write_text(
            "\n".join((selection.label, *selection.names)))
        rest = overlay.Overlay(self.top, STOCK, trees / "patched")
        self.assertEqual([each for each in rest.survey()
                          if each[1] == overlay.DOES_NOT_APPLY], [])
        wanted = rest.stamped(rest.wanted())
        self.assertIn(f"+table-cache.{selection.label}.".encode(),
                      wanted[overlay.STAMPED])
        self.assertEqual(set(lost) & set(selection.names), set())
        return selection.label, set(lost)

    def test_index_of_open_tables(self):
        label, lost = self.misfits_of("storage/myisam/mi_open.c.patch",
                                      "open-table-index")
        self.assertEqual(label, "unfit-31")
        self.assertIn("open-without-symlinks", lost)
        self.assertNotIn("table-cache", lost)

    def test_innodb_s_loading(self):
        label, lost = self.misfits_of(
            "storage/innobase/dict/dict0load.cc.patch", "innodb-loading")
        self.assertEqual(label, "unfit-63")
        self.assertIn("innodb-load-pool", lost)
        self.assertNotIn("open-table-index", lost)

    def test_table_cache(self):
        label, lost = self.misfits_of("sql/sql_base.cc.patch", "table-cache")
        self.assertEqual(label, "unfit-41")
        self.assertIn("table-cache-memory", lost)
        self.assertNotIn("open-table-index", lost)


class TableTest(test_overlay.TreesTest):
    def setUp(self):
        super().setUp()
        self.put(self.top / overlay.REPLACED_SUMS, "")
        self.put(self.top / "BUILD/parts", "# parts\none the first\ntwo more\n"
                 "three without hunks\n")
        for name, part, heads in (("10-first", "one", ""),
                                  ("20-second", "two", "\nNeeds: first"),
                                  ("30-third", "three", "")):
            self.put(self.top / "BUILD/topics" / name,
                     test_overlay.TOPIC.replace(
                         "\n\n", f"\nPart: {part}{heads}\n\n", 1)
                     + ("  sql/n*.cc\n" if part == "one" else ""))
        text = test_overlay.STOCK
        self.patch(text.replace("line 10\n", "line ten\n"))
        second = test_overlay.difference(
            "sql/other.cc", "int other;\n", "int others;\n", "second")
        self.put(self.top / "sql/other.cc.patch", test_overlay.HEADER + second)

    def survey(self, source):
        self.put(self.stock / "source/sql/a.cc", source)
        target = overlay.Overlay(self.top, self.stock, self.patched)
        return list(overlay.table_of_parts(list(target.survey_parts())))

    def test_everything_applies(self):
        self.assertEqual(self.survey("line 0\n" + test_overlay.STOCK), [
            "   one           applies, 1 hunk moved",
            "   two           applies",
            "   three         applies",
            "-- all parts can be built on this source"])

    def test_what_does_not_apply_and_what_needs_it(self):
        self.assertEqual(
            self.survey(test_overlay.STOCK.replace("line 10\n", "changed\n")), [
                "   one           1 of 1 hunks does not apply",
                "   two           applies",
                "   three         applies",
                "-- three can be built on this source",
                "   one cannot, because the topic first does not apply",
                "   two cannot, because the topic first does not apply"])

    def test_what_a_selection_leaves_out_is_no_whole_part(self):
        self.put(self.top / "BUILD/topics/21-other", test_overlay.TOPIC.replace(
            "\n\n", "\nPart: two\n\n", 1))
        self.put(self.patched.parent / topics.SELECTION,
                 "unfit-10\nother\nthird\n")
        self.assertEqual(self.survey("changed\n"), [
            "   two           applies, without second",
            "   three         applies",
            "-- three can be built on this source"])

    def test_what_the_release_does_not_need_is_not_missed(self):
        self.put(self.top / "BUILD/topics/21-other", test_overlay.TOPIC.replace(
            "\n\n", "\nPart: two\nFrom: 10.11.100\n\n", 1))
        self.assertIn("   two           applies", self.survey(test_overlay.STOCK))

    def test_what_is_left_out_is_printed_with_the_reason(self):
        self.put(self.stock / "source/sql/a.cc", "changed\n")
        out, errors = io.StringIO(), io.StringIO()
        with (contextlib.redirect_stdout(out),
              contextlib.redirect_stderr(errors)):
            overlay.print_misfits(overlay.Overlay(self.top, self.stock,
                                                  self.patched))
        self.assertEqual(out.getvalue(), "first\n")
        self.assertEqual(errors.getvalue(),
                         "-- left out: first, because sql/a.cc.patch: hunk 1 "
                         "(first) is found 0 times\n"
                         "-- left out: second, because it needs first\n")

    def test_a_source_that_does_not_fit_is_refused(self):
        self.put(self.stock / "source/sql/a.cc", "changed\n")
        with (contextlib.redirect_stdout(io.StringIO()),
              self.assertRaisesRegex(overlay.OverlayError, "does not fit")):
            overlay.print_survey(overlay.Overlay(self.top, self.stock,
                                                 self.patched))


if __name__ == "__main__":
    unittest.main()
