# SPDX-License-Identifier: GPL-2.0-only
"""Tests of hunks.py."""

import random
import subprocess
import unittest

from support import WorkTest

import hunks
from common import Problem
from hunks import Edit

STOCK = [f"line {number}\n" for number in range(1, 41)]


def text(edits, lines=None, others=()):
    return hunks.write_hunks("sql/t.cc", edits, lines or STOCK, others)


def applied(difference, topics=None, lines=None):
    lines = lines or STOCK
    return hunks.apply_edits(hunks.locate(hunks.read_hunks(difference), lines, names=topics),
                             lines)


class HunksTest(WorkTest):
    def with_patch(self, difference, lines):
        """What GNU patch makes of it."""
        file = self.work / "file"
        file.write_bytes(hunks.content_of(lines))
        subprocess.run(["patch", "--fuzz=0", "--batch", "-s", file],
                       input=difference.encode(), check=True)
        return hunks.lines_of(file.read_bytes())

    def test_context_is_one_line_where_that_is_unambiguous(self):
        difference = text([Edit(19, 20, ["new\n"], "a")])
        self.assertEqual(difference.count("\n "), 2)
        self.assertIn("\n@@ -19,3 +19,3 @@ a\n", difference)

    def test_context_grows_until_the_place_is_unambiguous(self):
        lines = ["{\n", "  a;\n", "}\n"] * 2 + ["end\n"]
        difference = text([Edit(5, 5, ["  b;\n"], "a")], lines)
        self.assertEqual(applied(difference, None, lines), lines[:5] + ["  b;\n"] + lines[5:])
        self.assertEqual(applied(difference, None, lines),
                         self.with_patch(difference, lines))

    def test_context_on_one_side_is_better_than_very_much(self):
        block = [f"{number};\n" for number in range(6)]
        lines = ["{\n", *block, "a;\n", *block, "1st\n", "{\n", *block, "a;\n", *block, "2nd\n"]
        difference = text([Edit(7, 8, ["b;\n"], "a")], lines)
        self.assertEqual(sum(line[0] == " " for line
                             in hunks.read_hunks(difference)[0].lines), 8)
        self.assertEqual(applied(difference, None, lines)[7], "b;\n")

    def test_form_feed_does_not_end_a_line(self):
        lines = ["a\n", "\f b\n", "c\x85d\n"]
        self.assertEqual(hunks.lines_of(hunks.content_of(lines)), lines)
        edits = [Edit(2, 3, ["e\n"], "a")]
        self.assertEqual(applied(text(edits, lines), None, lines),
                         ["a\n", "\f b\n", "e\n"])

    def test_hunk_that_fits_each_file_is_preferred(self):
        other = STOCK[:]
        other[20] = "line 21, wrapped\n"
        difference = text([Edit(19, 20, ["new\n"], "a")], STOCK,
                          [("11.8.6", other)])
        self.assertEqual(applied(difference, None, other)[19], "new\n")

    def test_hunk_that_is_as_before_keeps_its_context(self):
        written = hunks.read_hunks(
            "--- a/sql/t.cc\n+++ b/sql/t.cc\n"
            "@@ -20,3 +20,3 @@ a\n-line 20\n+new\n line 21\n line 22\n"
            "@@ -30,3 +30,3 @@ a\n line 30\n-line 31\n+other\n line 32\n")
        edits = [Edit(19, 20, ["new\n"], "a"), Edit(30, 31, ["changed\n"], "a")]
        again = hunks.read_hunks(hunks.write_hunks("sql/t.cc", edits, STOCK, (), written))
        self.assertEqual(again[0], written[0])
        self.assertIn("+changed\n", again[1].lines)

    def test_topics_can_be_left_out(self):
        difference = text([Edit(3, 4, ["x\n"], "a"), Edit(4, 4, ["y\n"], "b"),
                           Edit(4, 5, ["z\n"], "c")])
        self.assertEqual(applied(difference)[2:7],
                         ["line 3\n", "x\n", "y\n", "z\n", "line 6\n"])
        self.assertEqual(applied(difference, {"a", "c"})[2:6],
                         ["line 3\n", "x\n", "z\n", "line 6\n"])
        self.assertEqual(applied(difference, {"b"})[3:6],
                         ["line 4\n", "y\n", "line 5\n"])
        self.assertEqual(applied(difference, set()), STOCK)
        for topics in ("ab", "ba"):             # at one place, in their order
            difference = text([Edit(4, 4, [f"{topic}\n"], topic) for topic in topics])
            self.assertEqual("".join(applied(difference)[4:6]), "\n".join(topics) + "\n")

    def test_two_hunks_cannot_change_one_line(self):
        difference = (text([Edit(4, 6, ["x\n"], "a")])
                      + "".join(text([Edit(5, 5, ["y\n"], "b")])
                                .splitlines(keepends=True)[2:]))
        with self.assertRaisesRegex(Problem, "change line 6.*a, b"):
            applied(difference)

    def test_place_that_is_not_there_is_an_error(self):
        difference = text([Edit(19, 20, ["new\n"], "a")])
        for lines in (STOCK[:19], STOCK * 2):
            with self.assertRaisesRegex(Problem, r"hunk 1 \(a\) is found [02] times"):
                applied(difference, None, lines)

    def test_header_must_count_right(self):
        difference = text([Edit(19, 20, ["new\n"], "a")])
        for old, new in (("-19,3", "-19,4"), ("-19,3", "-19,2"),
                         ("+19,3", "+19,9")):
            with self.assertRaises(Problem):
                hunks.read_hunks(difference.replace(old, new))

    def test_random_edits_are_written_and_read(self):
        generator = random.Random(1)
        for _ in range(200):
            lines = [f"{generator.randrange(6)}\n" for _ in range(60)]
            edits = []
            at = 0
            while (at := at + generator.randrange(0, 25)) < len(lines):
                end = min(at + generator.randrange(3), len(lines))
                new = [f"new {generator.random()}\n"
                       for _ in range(generator.randrange(end == at, 3))]
                edits.append(Edit(at, end, new, generator.choice("abc")))
                at = end + 1
            if not edits:
                continue
            try:
                difference = text(edits, lines)
            except Problem as error:
                self.assertIn("cannot be told apart", str(error))
                continue
            self.assertEqual(applied(difference, None, lines), hunks.apply_edits(edits, lines))


class RebaseTest(unittest.TestCase):
    EDITS = [Edit(4, 5, ["five\n", "and a half\n"], "a"),
             Edit(5, 5, ["inserted\n"], "b"),
             Edit(20, 20, ["twenty\n", "more\n"], "a")]

    def rebase(self, *replacements, asked=None):
        content = "".join(hunks.apply_edits(self.EDITS, STOCK))
        for old, new in replacements:
            self.assertIn(old, content)
            content = content.replace(old, new)
        edits, _ = hunks.rebase(self.EDITS, STOCK, hunks.lines_of(content), asked)
        self.assertEqual("".join(hunks.apply_edits(edits, STOCK)), content)
        return edits

    def test_edit_within_a_hunk_belongs_to_its_topic(self):
        for asked in (None, "b"):
            self.assertEqual(
                self.rebase(("more\n", "most\n"), asked=asked)[2],
                Edit(20, 20, ["twenty\n", "most\n"], "a"))

    def test_edit_at_the_edge_of_a_hunk(self):
        edit = ("more\n", "more\nat the edge\n")
        self.assertEqual(self.rebase(edit)[2].topic, "a")
        self.assertEqual([each.topic for each in self.rebase(edit, asked="c")],
                         ["a", "b", "a", "c"])

    def test_edit_elsewhere_needs_a_topic(self):
        edit = ("line 30\n", "line thirty\n")
        with self.assertRaisesRegex(Problem, "line 34"):
            self.rebase(edit)
        self.assertEqual(self.rebase(edit, asked="c")[3], Edit(29, 30, ["line thirty\n"], "c"))

    def test_edit_between_two_topics_or_across_them_needs_one(self):
        between = ("and a half\n", "and a half\nbetween\n")
        across = ("half\ninserted\n", "half, inserted\n")
        for edit in (between, across):
            with self.assertRaises(Problem):
                self.rebase(edit)
        self.assertEqual(self.rebase(between, asked="b")[1],
                         Edit(5, 5, ["between\n", "inserted\n"], "b"))
        self.assertEqual(self.rebase(between, asked="a")[0].new,
                         ["five\n", "and a half\n", "between\n"])
        self.assertEqual(self.rebase(across, asked="b")[0], Edit(4, 5, ["five\n"], "a"))

    def test_what_is_undone_is_no_edit(self):
        self.assertEqual(self.rebase(), self.EDITS)
        self.assertEqual(self.rebase(("five\nand a half\n", "line 5\n")), self.EDITS[1:])
        self.assertEqual(self.rebase(("inserted\n", "")),
                         [self.EDITS[0], self.EDITS[2]])

    def test_random_edits_are_taken_over(self):
        generator = random.Random(2)
        for _ in range(50):
            content = hunks.apply_edits(self.EDITS, STOCK)
            for _ in range(generator.randrange(1, 6)):
                at = generator.randrange(len(content))
                content[at:at + generator.randrange(3)] = [
                    f"new {generator.random()}\n" for _ in range(generator.randrange(3))]
            edits, _ = hunks.rebase(self.EDITS, STOCK, content, "c")
            self.assertEqual(hunks.apply_edits(edits, STOCK), content)
            self.assertEqual(hunks.locate(hunks.read_hunks(text(edits)),
                                          STOCK) if edits else [], edits)


class ReplacedTest(unittest.TestCase):
    CODE = ["a\n", "\n", "#ifdef REPLACED_CODE // see b.cc\n", "old\n",
            "#if X\n", "older\n", "#else\n", "#endif\n", "#endif\n", "\n",
            "b\n", "#ifdef Y\n", "c\n", "#endif\n"]

    def test_replaced_code_goes(self):
        self.assertEqual(hunks.without_replaced(self.CODE),
                         ["a\n", "\n", "b\n", "#ifdef Y\n", "c\n", "#endif\n"])

    def test_conditional_must_end(self):
        for code in (self.CODE[:8], ["#ifdef REPLACED_CODE\n", "#else\n", "#endif\n"]):
            with self.assertRaises(Problem):
                hunks.without_replaced(code)
