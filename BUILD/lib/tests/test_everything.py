# SPDX-License-Identifier: GPL-2.0-only
"""Tests of everything.py, and of 'all' in run_tests.py: which suites there are,
what is made again after an interruption, and what counts as worse."""

import pathlib
import sys
import tempfile
import types
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import everything  # noqa: E402
import run_tests  # noqa: E402


class SuitesTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.source = pathlib.Path(directory.name)
        for path in ("mysql-test/suite/archive/t", "mysql-test/main",
                     "plugin/disks/mysql-test/disks/t",
                     "plugin/table_cache_dump/mysql-test/table_cache_dump/t",
                     "storage/x/mysql-test/archive/t",
                     "storage/x/mysql-test/without_tests"):
            (self.source / path).mkdir(parents=True)

    def write(self, text):
        self.source.joinpath("mysql-test/mariadb-test-run.pl").write_text(text)

    def test_suites_of_mtr_and_of_plugins_but_not_ours_and_no_overlays(self):
        self.write("my @DEFAULT_SUITES= qw(\n  main-\n  archive-\n);\n")
        self.assertEqual(everything.default_suites(self.source),
                         ["main-", "archive-", "disks"])

    def test_another_form_of_the_list_is_an_error(self):
        self.write("my @SUITES= ();\n")
        with self.assertRaises(ValueError):
            everything.default_suites(self.source)


class RunsTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.made = []

    def all_at(self, revision, outcome="passed"):
        """Run two runs, each of one test, as 'all' does at a revision."""
        runner = types.SimpleNamespace(
            top=self.directory, trees=self.directory / "10.11",
            excuse=lambda name: None)
        runner.trees.mkdir(exist_ok=True)
        runner.counts = lambda results: run_tests.Runner.counts(runner, results)
        whole = run_tests.Everything(runner, record=False)
        whole.kept = everything.Kept(runner.trees / "test-all.json", revision)

        def make(run):
            self.made.append(run)
            results = run_tests.Results(run)
            results.add("a test", outcome)
            return results
        for run in ("one:release", "two:debug"):
            whole.run(run, lambda run=run: make(run))
        return whole.counts

    def test_what_has_passed_is_not_made_again(self):
        first = self.all_at("r1")
        self.assertEqual(self.all_at("r1"), first)
        self.assertEqual(self.made, ["one:release", "two:debug"])

    def test_another_revision_makes_all_again(self):
        self.all_at("r1")
        self.all_at("r2")
        self.assertEqual(len(self.made), 4)

    def test_outside_of_a_clone_nothing_counts_as_made(self):
        self.all_at("unknown")
        self.all_at("unknown")
        self.assertEqual(len(self.made), 4)

    def test_what_has_failed_is_made_again(self):
        self.assertEqual(self.all_at("r1", "failed"),
                         {"one:release": (0, 1, 0), "two:debug": (0, 1, 0)})
        self.assertEqual(self.all_at("r1"),
                         {"one:release": (1, 0, 0), "two:debug": (1, 0, 0)})

    def test_record_is_read_as_it_was_written(self):
        file = self.directory / "tested"
        counts = {"main-:release": (1129, 0, 40), "stress:tsan": (5, 0, 0)}
        everything.write_tested(file, counts)
        self.assertEqual(everything.read_tested(file), counts)
        self.assertEqual(everything.read_tested(self.directory / "none"), {})

    def test_fewer_passes_more_failures_and_no_run_are_worse(self):
        before = {"a": (10, 0, 1), "b": (10, 0, 1), "c": (10, 1, 1),
                  "d": (1, 0, 0)}
        now = {"a": (9, 0, 2), "b": (10, 1, 0), "c": (11, 0, 1)}
        self.assertEqual([line.split(":")[1].strip()
                          for line in everything.worse(before, now)],
                         ["a", "b", "d"])
        self.assertRegex(everything.worse(before, before)[0], "^no run got worse")
