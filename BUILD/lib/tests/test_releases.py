# SPDX-License-Identifier: GPL-2.0-only
"""Tests of releases.py, and of what the other tools make of its ranges."""

import unittest

from support import put, quiet

import hunks
import overlay
import releases
from common import Problem
from test_overlay import HEADER, NEW, STOCK, TreesTest, changed, difference


class RangeTest(unittest.TestCase):
    def test_release_of_a_version(self):
        for version, release, series in (
                ("1:10.11.14-0+deb12u2", "10.11.14", "10.11"),
                ("1:11.8.9+ds-0+deb13u1", "11.8.9", "11.8"),
                ("10.11.18", "10.11.18", "10.11"), ("?", "", "")):
            self.assertEqual(releases.release_of(version), release)
            self.assertEqual(releases.series_of(version), series)

    def test_what_is_in_a_range(self):
        for text, inside, outside in (
                ("10.11", "10.11 10.11.1 10.11.99", "10.1.1 10.110.2 11.8.10"),
                ("10.11<16", "10.11.15 10.11.2", "10.11.16 10.11.100 10.11"),
                ("11.8>=9", "11.8.9 11.8.10 11.8", "11.8.8 10.11.18"),
                ("11.8>=7<9", "11.8.7 11.8.8", "11.8.6 11.8.9 11.8")):
            for release in inside.split():
                self.assertTrue(releases.has(text, release), (text, release))
            for release in outside.split():
                self.assertFalse(releases.has(text, release), (text, release))

    def test_what_is_no_range_is_an_error(self):
        for text in ("10", "10.11.14", "10.11<", "10.11<16>=9", "<16", ""):
            with self.assertRaises(Problem):
                releases.has(text, "10.11.14")

    def test_the_narrowest_range(self):
        ranges = ["10.11", "10.11<16", "10.11>=9<12", "11.8"]
        for release, found in (("10.11.18", ["10.11"]), ("10.11.14", ["10.11<16", "10.11"]),
                               ("10.11.9", ["10.11>=9<12", "10.11<16", "10.11"]),
                               ("11.4.5", []), ("", [])):
            self.assertEqual(releases.with_release(ranges, release), found)

    def test_releases_in_a_head(self):
        for head, inside, outside in (
                ("a", "10.11.18 11.8.6", ""),
                ("a only 11.8", "11.8.6", "10.11.18"),
                ("a only 10.11<16 11.8", "10.11.14 11.8.6", "10.11.18"),
                ("a except 10.11<16", "10.11.18 11.8.6 10.11", "10.11.14"),
                ("a only 10.11 except 10.11<16", "10.11.18", "10.11.14 11.8.6")):
            self.assertEqual(hunks.name_of(head), "a")
            for release in inside.split():
                self.assertTrue(hunks.is_for_release(head, release), head)
            for release in outside.split():
                self.assertFalse(hunks.is_for_release(head, release), head)
            self.assertTrue(hunks.is_for_release(head, None))
            self.assertEqual(hunks.is_variant(head), "only 10.11<16" in head)
        for head in ("a for 10.11", "a only 10.11.14", "a except 10.11<x"):
            with self.assertRaises(Problem):
                hunks.is_for_release(head, "10.11.18")


class VariantsTest(TreesTest):
    """The patch set on 10.11.99 and on 10.11.14, where line 21 differs."""

    def setUp(self):
        super().setUp()
        self.out = self.work / "out"
        self.old = changed(("line 21", "line 21, older")).replace("line 2\n", "")
        put(self.top / "cmake/base-10.11.cmake",
            f"# {overlay.LICENSE}\nset(BASE_ALSO 1:10.11.14-0)\n")
        for name, version, text in (("10.11", "1:10.11.99-1", STOCK),
                                    ("source/10.11", "1:10.11.14-0", self.old)):
            put(self.out / name / "stock/version", version + "\n")
            put(self.out / name / "stock/source/sql/a.cc", text)
        self.patch(self.ours())

    @staticmethod
    def ours(text=STOCK):
        return changed(("line 20", "line twenty"), ("line 30", "line thirty"), text=text)

    def target(self, name="10.11"):
        return overlay.Overlay(self.top, self.out / name / "stock",
                               self.out / name / "patched", self.out)

    def old_target(self):
        return self.target("source/10.11")

    def wanted(self, target):
        return target.wanted()["sql/a.cc"].decode()

    def edit_and_refresh(self, name, old, new, topic=None):
        file = self.out / name / "patched/source/sql/a.cc"
        with quiet():
            self.target(name).apply(False)
            self.assertIn(old + "\n", file.read_text())
            put(file, file.read_text().replace(old + "\n", new + "\n"))
            self.target(name).refresh(topic)

    def heads(self):
        return [line.split("@@ ")[-1] for line in self.patch_file.read_text().split("\n")
                if line.startswith("@@")]

    def make_variant(self):
        with quiet():
            self.old_target().make_exceptions("10.11<16")
        self.edit_and_refresh("source/10.11", "line 20", "line twenty", "first only 10.11<16")

    def test_check_covers_releases_with_variants(self):
        self.assertEqual(
            self.problems(), "10.11.14: sql/a.cc.patch does not apply to MariaDB "
            "1:10.11.14-0: hunk 1 (first) is found 0 times")
        self.make_variant()
        self.assertEqual(self.problems(), "")

    def test_other_sources_are_not_checked(self):
        put(self.out / "source/10.11/stock/version", "1:10.11.13-0\n")
        self.assertEqual(self.problems(), "")

    def test_a_variant_takes_the_place_of_a_hunk_in_its_releases(self):
        general = self.patch_file.read_text()
        self.make_variant()
        self.assertEqual(self.heads(), ["first except 10.11<16", "first",
                                        "first only 10.11<16"])
        # The others keep even their line numbers
        self.assertIn(general[general.index("@@ -29,3 +29,3 @@"):], self.patch_file.read_text())
        self.assertEqual(self.wanted(self.target()), self.ours())
        self.assertEqual(self.wanted(self.old_target()), self.ours(self.old))

    def test_refresh_of_one_release_keeps_the_variants_of_others(self):
        self.make_variant()
        before = self.wanted(self.old_target())
        self.edit_and_refresh("10.11", "line twenty", "line twenty, or so")
        self.assertIn("line twenty, or so\n", self.wanted(self.target()))
        self.assertEqual(self.wanted(self.old_target()), before)
        self.assertEqual(self.heads(), ["first except 10.11<16", "first",
                                        "first only 10.11<16"])
        self.assertEqual(self.problems(), "")

    def test_refresh_of_an_old_release_edits_its_variant(self):
        self.make_variant()
        before = self.wanted(self.target())
        self.edit_and_refresh("source/10.11", "line twenty", "line twenty, or so")
        self.assertEqual(self.wanted(self.target()), before)
        self.assertIn("line twenty, or so\n", self.wanted(self.old_target()))

    def test_refresh_words_a_hunk_for_the_releases_that_it_is_for(self):
        self.make_variant()
        self.edit_and_refresh("10.11", "line 38", "line 38 of ours", "second")
        self.assertEqual(self.problems(), "")
        self.assertIn("line 38 of ours\n", self.wanted(self.old_target()))

    def test_exceptions_are_for_a_range_with_this_release(self):
        before = self.patch_file.read_text()
        for text in ("10.11<14", "11.8"):
            with self.assertRaisesRegex(Problem, "is not in"):
                self.old_target().make_exceptions(text)
        self.assertEqual(self.patch_file.read_text(), before)

    def test_disabled_code_of_each_release(self):
        text = difference("sql/a.cc", STOCK, changed(
            ("line 10", "#ifdef REPLACED_CODE\nline 10"), ("line 25", "#endif\nline 25")))
        found = sorted(target.disabled(text, "sql/a.cc")
                       for target in (self.target(), self.old_target()))
        self.assertNotEqual(*found)
        field = f"\nDisabled-Code: {' '.join(found)}\n\n"
        put(self.patch_file, HEADER.replace("\n\n", field) + text)
        self.assertEqual(self.problems(), "")
        # A refresh of either keeps both
        for name in ("10.11", "source/10.11"):
            for old, new in (("line 35", name), (name, "line 35")):
                self.edit_and_refresh(name, old, new, "first")
                self.assertIn(field, self.patch_file.read_text())

    def test_files_of_a_part_of_a_series(self):
        name = "sql/new.cc"
        for folder in ("only-10.11", "only-10.11-before-16", "only-10.11-from-12-before-14"):
            put(self.top / folder / name, f"{NEW}// {folder}\n")
        for release, folder in (("10.11.18", "only-10.11"), ("10.11", "only-10.11"),
                                ("10.11.14", "only-10.11-before-16"),
                                ("10.11.13", "only-10.11-from-12-before-14"),
                                ("11.8.6", "sql")):
            self.assertEqual(overlay.sources(self.top, release)[name].relative_to(
                self.top).parts[0], folder)
        self.assertIn("only-10.11-before-16", str(self.old_target().source_of(name)))
        put(self.top / "only-10.11-since-3/sql/new.cc", NEW)
        self.assertIn("is for no series", self.problems())

    def test_topic_that_mariadb_has_is_left_out(self):
        topic = self.top / "BUILD/topics/10-first"
        text = topic.read_text()
        for until, there in (("10.11.50 11.8.7", False), ("10.11.100", True)):
            put(topic, text.replace("\n\n", f"\nUntil: {until}\n\n", 1))
            for name in ("sql/a.cc", "sql/new.cc"):
                self.assertEqual(name in self.target().wanted(), there)
        put(topic, text.replace("\n\n", "\nUntil: 10.11\n\n", 1))
        with self.assertRaisesRegex(Problem, "Until names releases"):
            self.target()
