# SPDX-License-Identifier: GPL-2.0-only
"""Tests of what is said of a source that does not fit, and of --what-fits."""

import contextlib
import io

from support import put

import overlay
import topics
from test_overlay import HEADER, STOCK, TOPIC, TreesTest, changed, difference

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
        return [line.split(maxsplit=1) for line in
                overlay.table_of_parts(self.target().survey_parts())]

    def test_everything_applies(self):
        self.assertEqual(self.survey("line 0\n" + STOCK), [
            [part, "can be built on this source"] for part in ("one", "two", "three")])

    def test_what_does_not_apply_and_what_needs_it(self):
        lost = "cannot be built, because this does not apply: first"
        self.assertEqual(self.survey(changed(("line 10", "changed"))), [
            ["one", lost], ["two", lost], ["three", "can be built on this source"]])

    def test_what_a_selection_leaves_out_is_no_whole_part(self):
        self.topic("21-other", "two")
        put(self.patched.parent / topics.SELECTION, "unfit-10\nother\nthird\n")
        self.assertEqual(self.survey("changed\n"), [
            ["two", "can be built on this source, without second"],
            ["three", "can be built on this source"]])

    def test_what_the_release_does_not_need_is_not_missed(self):
        self.topic("21-other", "two", "\nFrom: 10.11.100")
        self.assertIn(["two", "can be built on this source"], self.survey(STOCK))

    def test_the_rest_applies_and_is_named_in_the_revision(self):
        put(self.stock / "source" / overlay.STAMPED, '#define SOURCE_REVISION "abc"\n')
        put(self.source, "changed\n")
        target = self.target()
        selection, _ = topics.choose(target.topics, topics.read_parts(self.top),
                                     unfit=target.misfits())
        self.assertEqual(selection, ("unfit-10", ["third"]))
        put(self.patched.parent / topics.SELECTION,
            "\n".join((selection.label, *selection.names)))
        rest = self.target()
        self.assertEqual(list(rest.survey()), [])
        self.assertIn(b"+table-cache.unfit-10.",
                      rest.stamped(rest.wanted())[overlay.STAMPED])

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
