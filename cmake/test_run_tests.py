# SPDX-License-Identifier: GPL-2.0-only
"""Tests of run_tests.py: which reports of ThreadSanitizer fail a stress."""

import pathlib
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "cmake"))
import run_tests  # noqa: E402

OWN = ("/sql/table_cache.cc",)
LINE = "=" * 18 + "\n"


def frames(*places):
    return "".join(f"    #{number} function(int) ../source{place}:7 (mariadbd+0x1)\n"
                   for number, place in enumerate(places))


def race(first, second, *, head="Read of size 8 at 0x1 by thread T1"):
    return (f"{LINE}WARNING: ThreadSanitizer: data race (pid=1)\n"
            f"  {head}:\n{frames(*first)}\n"
            f"  Previous write of size 8 at 0x1 by thread T2:\n"
            f"{frames(*second)}\n"
            "  Location is heap block of size 8 allocated by thread T2:\n"
            f"{frames('/sql/table_cache.cc')}\n"
            "  Mutex M1 (0x2) created at:\n"
            f"{frames('/sql/table_cache.cc')}\n"
            "  Thread T2 (tid=3, running) created by main thread at:\n"
            f"{frames('/sql/table_cache.cc')}\n"
            f"SUMMARY: ThreadSanitizer: data race\n{LINE}")


class RaceTest(unittest.TestCase):
    def test_access_by_an_own_file_counts_on_either_side(self):
        ours, theirs = ["/sql/table_cache.cc"], ["/sql/table.cc"]
        self.assertTrue(run_tests.race_in(OWN, race(ours, theirs)))
        self.assertTrue(run_tests.race_in(OWN, race(theirs, ours)))

    def test_an_own_file_further_out_does_not_count(self):
        called = ["/sql/table.cc", "/sql/table_cache.cc"]
        self.assertIsNone(run_tests.race_in(OWN, race(called, called)))

    def test_what_wraps_a_lock_is_passed_over(self):
        stack = ["/libsanitizer/tsan.cpp", "/mysys/thr_mutex.c",
                 "/include/mysql/psi/mysql_thread.h", "/sql/table_cache.cc"]
        report = race(["/sql/a.cc"], ["/sql/a.cc"]) + race(
            stack, ["/sql/a.cc"], head="Mutex M1 acquired here by thread T1")
        found = run_tests.race_in(OWN, report)
        self.assertIn("acquired here", found)

    def test_the_patch_sets_sources_are_known(self):
        runner = run_tests.Runner.__new__(run_tests.Runner)
        runner.top = TOP
        own = runner.own_files()
        self.assertIn("/sql/table_cache.cc", own)
        self.assertIn("/mysys/my_open_index.c", own)
        self.assertFalse([name for name in own if name.endswith(".patch")])


if __name__ == "__main__":
    unittest.main()
