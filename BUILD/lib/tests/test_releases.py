#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of releases.py, and of what the other tools make of its ranges."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

import hunks                                            # noqa: E402
import overlay                                          # noqa: E402
import releases                                         # noqa: E402
import test_overlay                                     # noqa: E402

STOCK = test_overlay.STOCK


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
            with self.assertRaises(releases.RangeError):
                releases.has(text, "10.11.14")

    def test_the_narrowest_range(self):
        ranges = ["10.11", "10.11<16", "10.11>=9<12", "11.8"]
        for release, text in (("10.11.18", "10.11"), ("10.11.14", "10.11<16"),
                              ("10.11.9", "10.11>=9<12"), ("11.4.5", None)):
            self.assertEqual(releases.narrowest(ranges, release), text)


class HeadTest(unittest.TestCase):
    def test_releases_in_a_head(self):
        for head, inside, outside in (
                ("a", "10.11.18 11.8.6", ""),
                ("a only 11.8", "11.8.6", "10.11.18"),
                ("a only 10.11<16 11.8", "10.11.14 11.8.6", "10.11.18"),
                ("a except 10.11<16", "10.11.18 11.8.6 10.11", "10.11.14"),
                ("a only 10.11 except 10.11<16", "10.11.18",
                 "10.11.14 11.8.6")):
            self.assertEqual(hunks.name_of(head), "a")
            for release in inside.split():
                self.assertTrue(hunks.is_for_release(head, release), head)
            for release in outside.split():
                self.assertFalse(hunks.is_for_release(head, release), head)
            self.assertTrue(hunks.is_for_release(head, None))
        self.assertTrue(hunks.is_variant("a only 10.11<16"))
        for head in ("a", "a only 10.11", "a except 10.11<16"):
            self.assertFalse(hunks.is_variant(head))

    def test_mistakes_in_a_head(self):
        for head in ("a for 10.11", "a only 10.11.14", "a except"
                     " 10.11<x"):
            with self.assertRaises(hunks.HunkError):
                hunks.is_for_release(head, "10.11.18")


class VariantsTest(test_overlay.TreesTest):
    """The patch set on 10.11.99 and on 10.11.14, where line 20 differs."""

    def setUp(self):
        super().setUp()
        self.out = self.work / "out"
        self.old = STOCK.replace("line 21\n", "line 21, older\n").replace(
            "line 2\n", "")
        self.put(self.top / "cmake/base-10.11.cmake",
                 f"# {overlay.LICENSE}\nset(BASE_ALSO 1:10.11.14-0)\n")
        for name, version, text in (
                ("10.11", "1:10.11.99-1", STOCK),
                ("source/10.11", "1:10.11.14-0", self.old)):
            self.put(self.out / name / "stock/version", version + "\n")
            self.put(self.out / name / "stock/source/sql/a.cc", text)
        self.put(self.top / "sql/a.cc.patch", test_overlay.HEADER
                 + test_overlay.difference("sql/a.cc", STOCK, STOCK.replace(
                     "line 20\n", "line twenty\n").replace(
                         "line 30\n", "line thirty\n")))

    def target(self, name="10.11"):
        return overlay.Overlay(self.top, self.out / name / "stock",
                               self.out / name / "patched", self.out)

    def old_target(self):
        return self.target("source/10.11")

    def act(self, target, action, *words):
        with contextlib.redirect_stdout(io.StringIO()):
            getattr(target, action)(*words)

    def edit(self, name, old, new):
        self.act(self.target(name), "apply", False)
        file = self.out / name / "patched/source/sql/a.cc"
        self.assertIn(old, file.read_text())
        file.write_text(file.read_text().replace(old, new))

    def patch_text(self):
        return (self.top / "sql/a.cc.patch").read_text()

    def heads(self):
        return [line.split("@@ ")[-1] for line in self.patch_text().split("\n")
                if line.startswith("@@")]

    def make_variant(self):
        self.act(self.old_target(), "make_exceptions", "10.11<16")
        self.edit("source/10.11", "line 20\n", "line twenty\n")
        self.act(self.old_target(), "refresh", "first only 10.11<16")

    def test_check_covers_releases_with_variants(self):
        self.assertEqual(
            list(self.target().check()),
            ["10.11.14: sql/a.cc.patch does not apply to MariaDB 1:10.11.14-0: "
             "hunk 1 (first) is found 0 times"])
        self.make_variant()
        self.assertEqual(list(self.target().check()), [])

    def test_other_sources_are_not_checked(self):
        self.put(self.out / "source/10.11/stock/version", "1:10.11.13-0\n")
        self.assertEqual(list(self.target().check()), [])

    def test_a_variant_takes_the_place_of_a_hunk_in_its_releases(self):
        general = self.patch_text()
        self.make_variant()
        self.assertEqual(self.heads(), ["first except 10.11<16", "first",
                                        "first only 10.11<16"])
        # The others keep even their line numbers
        self.assertIn(general[general.index("@@ -29,3 +29,3 @@"):],
                      self.patch_text())
        for target, text in ((self.target(), STOCK),
                             (self.old_target(), self.old)):
            self.assertEqual(
                target.wanted()["sql/a.cc"].decode(),
                text.replace("line 20\n", "line twenty\n").replace(
                    "line 30\n", "line thirty\n"))

    def test_refresh_of_one_release_keeps_the_variants_of_others(self):
        self.make_variant()
        before = self.old_target().wanted()["sql/a.cc"]
        self.edit("10.11", "line twenty\n", "line twenty, or so\n")
        self.act(self.target(), "refresh", None)
        self.assertIn(b"line twenty, or so\n",
                      self.target().wanted()["sql/a.cc"])
        self.assertEqual(self.old_target().wanted()["sql/a.cc"], before)
        self.assertEqual(self.heads(), ["first except 10.11<16", "first",
                                        "first only 10.11<16"])
        self.assertEqual(list(self.target().check()), [])

    def test_refresh_of_an_old_release_edits_its_variant(self):
        self.make_variant()
        before = self.target().wanted()["sql/a.cc"]
        self.edit("source/10.11", "line twenty\n", "line twenty, or so\n")
        self.act(self.old_target(), "refresh", None)
        self.assertEqual(self.target().wanted()["sql/a.cc"], before)
        self.assertIn(b"line twenty, or so\n",
                      self.old_target().wanted()["sql/a.cc"])

    def test_refresh_words_a_hunk_for_the_releases_that_it_is_for(self):
        self.make_variant()
        self.edit("10.11", "line 38\n", "line 38 of ours\n")
        self.act(self.target(), "refresh", "second")
        self.assertEqual(list(self.target().check()), [])
        self.assertIn(b"line 38 of ours\n",
                      self.old_target().wanted()["sql/a.cc"])

    def test_exceptions_are_for_a_range_with_this_release(self):
        before = self.patch_text()
        for text in ("10.11<14", "11.8"):
            with self.assertRaisesRegex(overlay.OverlayError, "is not in"):
                self.act(self.old_target(), "make_exceptions", text)
        self.assertEqual(self.patch_text(), before)

    def test_disabled_code_of_a_range(self):
        self.put(self.top / "sql/a.cc.patch", test_overlay.HEADER
                 + test_overlay.difference("sql/a.cc", STOCK, STOCK.replace(
                     "line 10\n", "#ifdef REPLACED_CODE\nline 10\n").replace(
                         "line 25\n", "#endif\nline 25\n")))
        found = {}
        for target, key in ((self.target(), "10.11"),
                            (self.old_target(), "10.11<16")):
            found[key] = overlay.disabled_code(
                overlay.split_patch(self.patch_text())[1],
                overlay.read(target.stock / "sql/a.cc"), target.release)
        self.assertNotEqual(*found.values())
        self.put(self.top / "sql/a.cc.patch", self.patch_text().replace(
            "\n\n", f"\nDisabled-Code: {overlay.disabled_field(found)}\n\n", 1))
        self.assertEqual(list(self.target().check()), [])
        # A refresh of either keeps both
        for name in ("10.11", "source/10.11"):
            self.edit(name, "line 35\n", f"line 35 {name}\n")
            self.act(self.target(name), "refresh", "first")
            self.assertIn(overlay.disabled_field(found), self.patch_text())
            self.edit(name, f"line 35 {name}\n", "line 35\n")
            self.act(self.target(name), "refresh", "first")

    def test_files_of_a_part_of_a_series(self):
        name = "sql/new.cc"
        for folder in ("only-10.11", "only-10.11-before-16",
                       "only-10.11-from-12-before-14"):
            self.put(self.top / folder / name,
                     f"// {overlay.LICENSE}\n// {folder}\n")
        for release, folder in (("10.11.18", "only-10.11"),
                                ("10.11", "only-10.11"),
                                ("10.11.14", "only-10.11-before-16"),
                                ("10.11.13", "only-10.11-from-12-before-14"),
                                ("11.8.6", "sql")):
            self.assertIn(folder,
                          str(overlay.sources(self.top, release)[name]))
        self.assertIn("only-10.11-before-16",
                      str(self.old_target().source_of(name)))
        self.put(self.top / "only-10.11-since-3/sql/new.cc",
                 f"// {overlay.LICENSE}\n")
        self.assertIn("is for no series", "\n".join(self.target().check()))

    def test_topic_that_mariadb_has_is_left_out(self):
        topic = self.top / "BUILD/topics/10-first"
        topic.write_text(topic.read_text().replace(
            "\n\n", "\nUntil: 10.11.50 11.8.7\n\n", 1))
        self.assertNotIn("sql/a.cc", self.target().wanted())
        self.assertNotIn("sql/new.cc", self.target().wanted())
        topic.write_text(topic.read_text().replace("10.11.50", "10.11.100"))
        self.assertIn(b"line twenty", self.target().wanted()["sql/a.cc"])
        self.assertIn("sql/new.cc", self.target().wanted())
        topic.write_text(topic.read_text().replace("10.11.100", "10.11"))
        with self.assertRaisesRegex(Exception, "Until names releases"):
            self.target()


if __name__ == "__main__":
    unittest.main()
