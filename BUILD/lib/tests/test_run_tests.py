# SPDX-License-Identifier: GPL-2.0-only
"""Tests of run_tests.py: which reports of ThreadSanitizer fail a stress, what
mtr says that fails a run, which tests a topic has, and what becomes of a program
when it is interrupted.
"""

import os
import subprocess
import sys
import unittest
from unittest import mock

from support import TOP, WorkTest, put

import run_tests
import topics

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
        called = theirs + ours
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
        runner.top, runner.trees = TOP, TOP / "out" / "11.8"
        runner.selected = None
        own = runner.own_files()
        self.assertIn("/sql/table_cache.cc", own)
        self.assertIn("/mysys/my_open_index.c", own)
        self.assertFalse([name for name in own if name.endswith(".patch")])


def mtr_says(*lines, retried=()):
    end = run_tests.MtrEnd()
    for line in lines:
        end.read(line + "\n")
    return end.problem(retried)


class MtrEndTest(unittest.TestCase):
    FAILED = "mysql-test-run: *** ERROR: there were failing test cases"
    SHUTDOWN = "Errors/warnings were found in logfiles during server shutdown after running the"
    COMPLETED = "Completed: Failed 2/1129 tests, 99.82% were successful."

    def test_a_failed_test_is_no_problem_of_the_run_and_an_early_end_is(self):
        self.assertIsNone(mtr_says(self.COMPLETED, self.FAILED))
        self.assertIn("before all", mtr_says("main.a [ pass ] 3"))
        self.assertIn("only 3 of 9", mtr_says(
            "Completed: All 3 tests were successful.",
            "mysql-test-run: *** ERROR: Not all tests completed (only 3 of 9)"))

    def test_errors_at_shutdown_are_unless_of_an_attempt_that_was_repeated(self):
        end = (self.COMPLETED, self.SHUTDOWN, self.FAILED)
        warning = ("***Warnings generated in error logs during shutdown after running "
                   "tests: main.a main.b")
        other = warning.replace("main.b", "main.c")
        self.assertIsNone(mtr_says(warning, *end, retried=("main.b 'row'",)))
        for lines, retried in ((end, ()), ((warning, *end), ("main.a",)),
                               ((other, warning, *end), ("main.b",))):
            self.assertIn("shutdown", mtr_says(*lines, retried=retried))


class TestsOfTopicTest(WorkTest):
    def test_tests_are_found_by_their_files(self):
        mtr, unit = run_tests.tests_of((
            "mysql-test/suite/table_cache/t/tc_ddl.test",
            "mysql-test/suite/table_cache/r/tc_ddl.result",
            "mysql-test/suite/sys_vars/t/host_cache_size_auto-master.opt",
            "mysql-test/main/status.result",
            "mysql-test/suite/table_cache/include/tc_use.inc",
            "plugin/table_cache_info/mysql-test/table_cache_info/t/counts.opt",
            "plugin/table_cache_dump/mysql-test/table_cache_dump/suite.opt",
            "storage/innobase/unittest/innodb_latch-t.cc",
            "unittest/mysys/open_index-t.c", "sql/table_cache.cc"))
        self.assertEqual(mtr, {"table_cache.tc_ddl", "main.status",
                               "sys_vars.host_cache_size_auto",
                               "table_cache_info.counts", "table_cache_dump.suite"})
        self.assertEqual(unit, {"innodb_latch", "open_index"})

    def runner(self, *chosen):
        runner = run_tests.Runner.__new__(run_tests.Runner)
        runner.top, runner.trees = TOP, TOP / "out" / "10.11"
        runner.topics, runner.variant = chosen, "patched"
        return runner

    def test_a_topics_files_are_new_ones_and_those_of_its_hunks(self):
        names = {topic.name: topic for topic in topics.read_topics(TOP)}
        paths = set(self.runner().paths_of(names["query-cache"]))
        self.assertLess({"sql/query_cache_evict.cc", "sql/sql_cache.cc",
                         "mysql-test/suite/table_cache/t/qc_correctness.test"}, paths)
        self.assertNotIn("sql/query_cache_memory.h", paths)
        self.assertNotIn("sql/sql_show.cc", paths)

    def test_tests_of_topics_are_run(self):
        runner = self.runner("table-cache-core", "query-cache-memory")
        ran = []
        runner.ctest = lambda names, build_type, results: [
            results.add(name, "passed") for name in names]
        runner.mtr = lambda suites, build_type, tests: ran.append(tests)
        results = runner.run("suite", "debug")
        self.assertEqual(results.outcome, {"table_cache": "passed",
                                           "query_cache_memory": "passed"})
        self.assertEqual(ran, [])
        self.assertEqual(results.title, "table-cache-core query-cache-memory (debug)")

    def test_a_part_runs_its_tests_in_trees_of_its_own(self):
        runner = self.runner()
        runner.trees = self.work / "10.11"
        own = self.work / "part/query-cache/10.11"
        put(own / "patched/source/mysql-test/suite/table_cache/t/qc_xa_detached.test")
        put(own / topics.SELECTION, "query-cache\nquery-cache-xa\n")
        ran = []

        def mtr(self, suites, build_type, tests):
            ran.append((self.tree(build_type), tests))
            results = run_tests.Results("")
            results.add(tests[0], "passed")
            return results

        with mock.patch.object(run_tests.Runner, "mtr", mtr):
            results = runner.run("part:query-cache", "debug")
        self.assertEqual(ran, [(own / "patched/debug", ["table_cache.qc_xa_detached"])])
        self.assertEqual(results.title, "part query-cache (debug)")


class StreamTest(unittest.TestCase):
    def test_who_is_interrupted_is_waited_for_and_heard(self):
        """The child ends by itself, after it has said more than a pipe holds."""
        child = ("import signal, sys\n"
                 "try:\n    print('ready', flush=True)\n"
                 "    signal.pause()\n"
                 "except KeyboardInterrupt:\n"
                 "    print('x' * 300000, flush=True)\n"
                 "    print('cleaned up', flush=True)\n")
        parent = ("import os, signal, sys\n"
                  f"sys.path.insert(0, {str(TOP / 'BUILD/lib')!r})\n"
                  "sys.dont_write_bytecode = True\n"
                  "import common, run_tests\n"
                  "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                  "common.catch_signals()\n"
                  "def each_line(line):\n"
                  "    if line == 'ready\\n':\n"
                  "        os.kill(os.getpid(), signal.SIGTERM)\n"
                  "run_tests.stream([sys.executable, '-c', sys.argv[1]], '/', each_line)\n")
        done = subprocess.run([sys.executable, "-c", parent, child], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertIn("cleaned up", done.stdout)
        self.assertIn("KeyboardInterrupt", done.stderr)


class MemoryTest(WorkTest):
    def test_what_mtr_left_in_memory_goes_and_logs_of_failures_stay(self):
        directory, memory = self.work / "mysql-test", self.work / "memory"
        directory.mkdir()
        for keep in (False, True):
            put(memory / "log/mysqld.1.err", "crash\n")
            (directory / "var").symlink_to(memory)
            run_tests.Runner.free_memory(directory, keep, "main")
            self.assertFalse(memory.exists())
            self.assertFalse(os.path.lexists(directory / "var"))
            self.assertEqual((directory / "log-main/mysqld.1.err").exists(), keep)
