# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what is said of a source that does not fit, and of --what-fits: on
copies of the patch set in which one hunk was broken, and on MariaDB's source if
it is there."""

import contextlib
import io
import shutil
import unittest

from support import TOP, WorkTest, put

import hunks
import overlay
import topics
from test_overlay import HEADER, STOCK, TOPIC, TreesTest, changed, difference

SOURCE = TOP / "out/10.11/stock"


def break_hunk(path, topic):
    """Make a topic's first hunk in a .patch quote a line that is not there."""
    lines = hunks.lines_of(path.read_bytes())
    head = next(number for number, line in enumerate(lines)
                if (match := hunks.HEAD.fullmatch(line))
                and hunks.name_of(match[5].strip()) == topic)
    at = next(number for number in range(head + 1, len(lines))
              if lines[number][0] in " -" and lines[number].strip())
    lines[at] = lines[at].rstrip("\n") + " in another release\n"
    path.write_bytes(hunks.content_of(lines))


@unittest.skipUnless((SOURCE / "source").is_dir(), f"no source in {SOURCE}")
class BrokenHunkTest(WorkTest):
    def test_one_hunk_does_not_fit(self):
        for file, topic, label, lost, kept in (
                ("storage/myisam/mi_open.c.patch", "open-table-index", "unfit-31",
                 "open-without-symlinks", "table-cache"),
                ("storage/innobase/dict/dict0load.cc.patch", "innodb-loading",
                 "unfit-63", "innodb-load-pool", "open-table-index"),
                ("sql/sql_base.cc.patch", "table-cache", "unfit-41",
                 "table-cache-memory", "open-table-index")):
            with self.subTest(topic):
                found = self.misfits_of(file, topic)
                self.assertEqual(found[0], label)
                self.assertIn(lost, found[1])
                self.assertNotIn(kept, found[1])

    def misfits_of(self, name, topic):
        """(label of what fits, topics that are left out)"""
        top = self.work / topic
        top.mkdir()
        for path in TOP.iterdir():
            if path.name in ("sql", "storage"):     # where hunks are broken
                shutil.copytree(path, top / path.name)
            elif path.name not in ("out", ".git"):
                (top / path.name).symlink_to(path)
        break_hunk(top / name, topic)
        target = overlay.Overlay(top, SOURCE, self.work / "patched")
        found = target.misfits()
        self.assertEqual(list(found), [topic])
        self.assertRegex(found[topic], r"^\S+: hunk \d+ \(.*\) is found 0 times$")
        lost = topics.dependents(target.topics, found)
        for part, *_, names, _ in target.survey_parts():
            self.assertEqual(names, [topic] if any(
                each.part == part and each.name in lost
                for each in target.topics) else [], part)
        # The rest applies
        selection, _ = topics.choose(target.topics, topics.read_parts(TOP), unfit=found)
        trees = self.work / selection.label
        put(trees / topics.SELECTION, "\n".join((selection.label, *selection.names)))
        rest = overlay.Overlay(top, SOURCE, trees / "patched")
        self.assertEqual([each for each in rest.survey()
                          if each[1] == overlay.DOES_NOT_APPLY], [])
        self.assertIn(f"+table-cache.{selection.label}.".encode(),
                      rest.stamped(rest.wanted())[overlay.STAMPED])
        self.assertEqual(set(lost) & set(selection.names), set())
        return selection.label, set(lost)


class TableTest(TreesTest):
    def setUp(self):
        super().setUp()
        put(self.top / overlay.REPLACED_SUMS)
        put(self.top / "BUILD/parts",
            "# parts\none the first\ntwo more\nthree without hunks\n")
        self.topic("10-first", "one", files="  sql/n*.cc\n")
        self.topic("20-second", "two", "\nNeeds: first")
        self.topic("30-third", "three")
        self.patch(changed(("line 10", "line ten")))
        put(self.top / "sql/other.cc.patch", HEADER + difference(
            "sql/other.cc", "int other;\n", "int others;\n", "second"))

    def topic(self, name, part, heads="", files=""):
        put(self.top / "BUILD/topics" / name,
            TOPIC.replace("\n\n", f"\nPart: {part}{heads}\n\n", 1) + files)

    def survey(self, source):
        put(self.source, source)
        return list(overlay.table_of_parts(list(self.target().survey_parts())))

    def test_everything_applies(self):
        self.assertEqual(self.survey("line 0\n" + STOCK), [
            "   one           applies, 1 hunk moved",
            "   two           applies",
            "   three         applies",
            "-- all parts can be built on this source"])

    def test_what_does_not_apply_and_what_needs_it(self):
        self.assertEqual(self.survey(changed(("line 10", "changed"))), [
            "   one           1 of 1 hunks does not apply",
            "   two           applies",
            "   three         applies",
            "-- three can be built on this source",
            "   one cannot, because the topic first does not apply",
            "   two cannot, because the topic first does not apply"])

    def test_what_a_selection_leaves_out_is_no_whole_part(self):
        self.topic("21-other", "two")
        put(self.patched.parent / topics.SELECTION, "unfit-10\nother\nthird\n")
        self.assertEqual(self.survey("changed\n"), [
            "   two           applies, without second",
            "   three         applies",
            "-- three can be built on this source"])

    def test_what_the_release_does_not_need_is_not_missed(self):
        self.topic("21-other", "two", "\nFrom: 10.11.100")
        self.assertIn("   two           applies", self.survey(STOCK))

    def test_what_is_left_out_is_printed_with_the_reason(self):
        put(self.source, "changed\n")
        with (contextlib.redirect_stdout(io.StringIO()) as out,
              contextlib.redirect_stderr(io.StringIO()) as errors):
            overlay.print_misfits(self.target())
        self.assertEqual(out.getvalue(), "first\n")
        self.assertEqual(errors.getvalue(),
                         "-- left out: first, because sql/a.cc.patch: hunk 1 "
                         "(first) is found 0 times\n"
                         "-- left out: second, because it needs first\n")


if __name__ == "__main__":
    unittest.main()
