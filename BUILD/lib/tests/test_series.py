# SPDX-License-Identifier: GPL-2.0-only
"""Tests of series.py: the map is complete, and mistakes in it are found."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import overlay  # noqa: E402
import series  # noqa: E402


def parse(text):
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work, "series.map")
        path.write_text(text)
        return series.read_map(path)


MAP = """\
# comment
[first]
Title: One
 Text.
 .
 More.

sql/* at 1234567
mysys/*

[second]
Title: Two

sql/*
sql/special*
"""


class SeriesTest(unittest.TestCase):
    def test_every_file_of_the_patch_set_has_its_patch(self):
        capabilities = series.read_map(TOP / "BUILD/lib" / "series.map")
        for base in TOP.glob("only-*"):
            paths = sorted(overlay.sources(TOP, base.name[len("only-"):]))
            self.assertTrue(paths)
            owners = series.assign(capabilities, paths)
            self.assertEqual(sorted(owners), paths)

    def test_map_is_read(self):
        first, second = parse(MAP)
        self.assertEqual((first.name, first.title), ("first", "One"))
        self.assertEqual(first.description, ["Text.", "", "More."])
        self.assertEqual(first.patterns,
                         [("sql/*", "1234567"), ("mysys/*", None)])
        self.assertEqual(second.description, [])

    def test_longest_pattern_decides(self):
        capabilities = parse(MAP + "\n[third]\nTitle: T\n\nsql/special.cc\n")
        owners = series.assign(capabilities,
                               ["sql/a.cc", "sql/special.h", "sql/special.cc",
                                "mysys/deep/x.c"])
        self.assertEqual(owners, {"sql/a.cc": 1, "sql/special.h": 1,
                                  "sql/special.cc": 2, "mysys/deep/x.c": 0})

    def test_file_without_a_patch_is_named(self):
        with self.assertRaisesRegex(series.SeriesError, "plugin/new.cc"):
            series.assign(parse(MAP), ["sql/a.cc", "plugin/new.cc"])

    def test_earlier_form_alone_does_not_do(self):
        text = MAP.replace("\nsql/*\nsql/special*\n", "\nplugin/*\n")
        with self.assertRaisesRegex(series.SeriesError, "sql/a.cc"):
            series.assign(parse(text), ["sql/a.cc"])

    def test_file_claimed_twice_is_named(self):
        text = MAP + "\n[third]\nTitle: T\n\nsql/*\n"
        with self.assertRaisesRegex(series.SeriesError,
                                    "second and third"):
            series.assign(parse(text), ["sql/a.cc"])

    def test_directory_of_others_is_not_replaced(self):
        with tempfile.TemporaryDirectory() as work:
            directory = pathlib.Path(work)
            for name in ("series", "table-cache-01-index.patch"):
                (directory / name).touch()
            self.assertEqual(series.files_of_others(directory), [])
            (directory / "0001-of-debian.patch").touch()
            self.assertEqual(series.files_of_others(directory),
                             ["0001-of-debian.patch"])

    def test_mistakes_in_the_map_are_errors(self):
        for text in ("sql/*\n", "[a]\nno title\n\nsql/*\n",
                     "[a]\nTitle: A\n\nsql/* at HEAD\n", "[a]\nTitle: A\n\n",
                     "[a]\nTitle: A\n\nx\n[a]\nTitle: A\n\ny\n", ""):
            with self.subTest(text), self.assertRaises(series.SeriesError):
                parse(text)


if __name__ == "__main__":
    unittest.main()
