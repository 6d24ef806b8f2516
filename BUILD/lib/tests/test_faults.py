# SPDX-License-Identifier: GPL-2.0-only
"""What BUILD/test faults makes of the lines of sql-bench's programs."""

import pathlib
import subprocess
import unittest

from support import TOP

import faults_test


class Outcomes(unittest.TestCase):
    def test_directories(self):
        for line, wanted in (
                ("seed 5, plain: 12 kills, 900 statements, 30 s",
                 ("PASS", "random kills, seed 5, plain")),
                ("seed 6, import: 3 kills, 90 statements, 3 s; known: one, two",
                 ("SKIP", "random kills, seed 6, import: known: one, two")),
                ("seed 7, plain: 3 kills, 90 statements, 3 s; 2 problems",
                 ("FAIL", "random kills, seed 7, plain: 2 problems")),
                ('{"kills": 15}', None), ("  PROBLEM seed 5", None)):
            with self.subTest(line):
                self.assertEqual(faults_test.outcome_of(line), wanted)

    def test_stock_is_not_compared_with_itself(self):
        for variant, build, compared in (("patched", "release", True),
                                         ("patched", "debug", False),
                                         ("stock", "release", False)):
            names = [name for name, _ in faults_test.programs(
                pathlib.Path("out"), variant, build, 30, 1)]
            self.assertEqual("random answers" in names, compared)

    def test_wrong_usage(self):
        for words in (["faults", "--minutes", "x"], ["suite", "--minutes", "3"]):
            done = subprocess.run([TOP / "BUILD/test", *words], check=False,
                                  capture_output=True)
            self.assertEqual(done.returncode, 2)
