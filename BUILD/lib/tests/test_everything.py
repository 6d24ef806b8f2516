# SPDX-License-Identifier: GPL-2.0-only
"""Tests of everything.py, and of 'all' in run_tests.py: which suites there are,
what is made again after an interruption, and what counts as worse."""

import types

from support import WorkTest, git, put, quiet

import everything
import run_tests


class SuitesTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.source = self.work
        (self.source / "mysql-test/suite/archive/t").mkdir(parents=True)
        for path, is_default in (
                ("plugin/disks/mysql-test/disks", "sub is_default { 1 }"),
                ("plugin/table_cache_dump/mysql-test/table_cache_dump", "sub is_default { 1 }"),
                ("storage/x/mysql-test/archive", "sub is_default { 1 }"),
                ("storage/x/mysql-test/x/more",
                 "  sub is_default { not $::opt_embedded_server }"),
                ("storage/x/mysql-test/x", "sub is_default { 0 }"),
                ("storage/x/mysql-test/x_rpl", "#sub is_default { 1 }"),
                ("storage/x/mysql-test/x_backup", "sub skip_combinations {}")):
            put(self.source / path / "suite.pm",
                f"@ISA = qw(My::Suite);\n{is_default}\nbless {{ }};\n")

    def write(self, text):
        self.source.joinpath("mysql-test/mariadb-test-run.pl").write_text(text)

    def test_suites_that_mtr_runs_by_default_but_not_ours_and_no_overlays(self):
        self.write("my @DEFAULT_SUITES= qw(\n  main-\n  archive-\n);\n")
        self.assertEqual(everything.default_suites(self.source),
                         ["main-", "archive-", "disks", "x/more"])

    def test_tests_that_need_a_debug_build_also_by_what_they_include(self):
        self.write("my @DEFAULT_SUITES= qw(\n  main-\n  archive-\n);\n")
        files = {"main/a.test": "--source include/have_debug.inc\n",
                 "main/b.test": "# --source include/have_debug.inc\n",
                 "main/c.test": "source include/outer.inc;\n",
                 "include/have_debug.inc": "", "include/outer.inc":
                 "--source include/outer.inc\n -- source include/inner.inc\n",
                 "include/inner.inc": "--source include/have_debug_sync.inc\n",
                 "suite/archive/t/d.test": "--source suite/archive/e.inc\n",
                 "suite/archive/e.inc": "--source ../../include/inner.inc\n",
                 "suite/other/t/f.test": "--source include/have_debug.inc\n"}
        for name, text in files.items():
            put(self.source / "mysql-test" / name, text)
        self.assertEqual(everything.debug_tests(self.source),
                         ["main.a", "main.c", "archive.d"])

    def test_another_form_of_the_list_is_an_error(self):
        self.write("my @SUITES= ();\n")
        with self.assertRaises(ValueError):
            everything.default_suites(self.source)


class StateTest(WorkTest):
    def test_files_count_for_the_runs_that_read_them(self):
        """Documents for the unit run only, stress programs also for the stress runs,
        and code for all, whether it is committed, changed or new."""
        self.assertEqual(everything.states(self.work),      # outside of a clone
                         {"unit": "unknown", "stress": "unknown", "": "unknown"})
        git(self.work, "init", "-q")
        for name in ("README.md", "docs/a.svg", "sql-bench/stress/a.py", "sql/a.cc"):
            put(self.work / name, "1")
        git(self.work, "add", ".")
        git(self.work, "commit", "-q", "-m", "c")
        before = everything.states(self.work)
        for name, text, runs in (
                ("README.md", "2", {"unit"}), ("docs/a.svg", "2", {"unit"}),
                ("sql-bench/stress/a.py", "2", {"unit", "stress"}),
                ("sql/a.cc", "2", {"unit", "stress", ""}),
                ("sql/b.cc", "1", {"unit", "stress", ""}),
                ("sql/b.cc", "2", {"unit", "stress", ""})):
            put(self.work / name, text)
            now = everything.states(self.work)
            self.assertEqual({run for run in now if now[run] != before[run]}, runs, name)
            before = now
        git(self.work, "add", ".")
        git(self.work, "commit", "-q", "-m", "c")
        self.assertNotEqual(everything.states(self.work)[""], before[""])


class RunsTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.made = []

    def runner(self):
        runner = types.SimpleNamespace(
            top=self.work, trees=self.work, older=None, tables=None, arch=None,
            excuse=lambda name: None)
        runner.counts = lambda results: run_tests.Runner.counts(runner, results)
        return runner

    def all_at(self, code, outcome="passed", documents="d1"):
        """Run a run of code and the unit run, each of one test, as 'all' does
        if their files are in these states."""
        whole = run_tests.Everything(self.runner(), record=False)
        whole.kept = everything.Kept(self.work / "tests-made.json",
                                     {"unit": code + documents, "": code})

        def make(run):
            self.made.append(run)
            results = run_tests.Results(run)
            results.add("a test", outcome)
            return results
        for run in ("main-:release", "unit:release"):
            whole.run(run, lambda run=run: make(run))
        return whole.counts

    def test_what_is_made_again(self):
        """After a failure, and if its files have changed or are not in a clone."""
        unit, both = ["unit:release"], ["main-:release", "unit:release"]
        for before, now, again in (
                (["r1"], ["r1"], []), (["r1"], ["r2"], both),
                (["r1"], ["r1", "passed", "d2"], unit), (["r1", "failed"], ["r1"], both),
                (["unknown", "passed", ""], ["unknown", "passed", ""], both)):
            first = self.all_at(*before)
            self.made = []
            last = self.all_at(*now)
            self.assertEqual(self.made, again)
            self.assertEqual(first, dict.fromkeys(both, (0, 1, 0) if "failed" in before
                                                  else (1, 0, 0)))
            self.assertEqual(last, dict.fromkeys(both, (1, 0, 0)))
            (self.work / "tests-made.json").unlink()

    def test_record_is_read_as_it_was_written(self):
        file = self.work / "tested"
        counts = {"main-:release": (1129, 0, 40), "stress:tsan": (5, 0, 0)}
        everything.write_tested(file, counts)
        self.assertEqual(everything.read_tested(file), counts)
        self.assertEqual(everything.read_tested(self.work / "none"), {})

    def test_a_record_takes_the_place_of_that_of_its_release_and_command(self):
        put(self.work / "BUILD/lib/tested.tsv")
        for version, command, passed in (
                ("11.8.6", "suite", 1), ("10.11.18", "suite", 2),
                ("10.11.18", "main", 3), ("10.11.18", "suite", 4), ("10.11.9", "main", 6)):
            everything.record(self.work, version, command, (passed, 0, 5), "r1")
        self.assertEqual(everything.read_records(self.work), [
            ("10.11.9", "main", "6", "0", "5", "r1"),
            ("10.11.18", "main", "3", "0", "5", "r1"),
            ("10.11.18", "suite", "4", "0", "5", "r1"),
            ("11.8.6", "suite", "1", "0", "5", "r1")])

    def test_runs_record_what_they_found(self):
        put(self.work / "BUILD/lib/tested.tsv")
        (self.work / "BUILD/topics").mkdir()
        put(self.work / "stock/version", "1:10.11.18-0+deb12u1\n")
        put(self.work / "README.md", "<!-- pages.py: tested -->\n<!-- end -->\n")
        runner = self.runner()
        results = []
        for outcome in ("passed", "failed"):
            results.append(run_tests.Results("x"))
            results[-1].add("a test", outcome)
        runs = ["suite:release", "suite:debug"]
        for name in (None, "all"):
            with quiet():
                run_tests.Runner.record(runner, name, runs, results)
        self.assertEqual(everything.read_records(self.work), [
            ("10.11.18", "all", "1", "1", "0", "unknown"),
            ("10.11.18", "suite", "1", "0", "0", "unknown"),
            ("10.11.18", "suite --type debug", "0", "1", "0", "unknown")])
        self.assertIn("| 10.11.18 | `suite --type debug` | 0 | 1 | 0 | unknown |\n",
                      (self.work / "README.md").read_text())

    def test_a_revision_is_that_of_the_last_change_of_the_code(self):
        self.assertEqual(everything.revision(self.work / "none"), "unknown")
        git(self.work, "init", "-q")
        found = []
        for name in ("sql/a.cc", "docs/A.md", "sql/a.cc"):
            put(self.work / name, str(len(found)))
            if found and name == "sql/a.cc":
                found.append(everything.revision(self.work))
            git(self.work, "add", ".")
            git(self.work, "commit", "-q", "-m", name)
            found.append(everything.revision(self.work))
        self.assertEqual(found[:3], [found[0], found[0], found[0] + "-dirty"])
        self.assertNotIn(found[3], found[:3])

    def test_fewer_passes_more_failures_and_no_run_are_worse(self):
        before = {"a": (10, 0, 1), "b": (10, 0, 1), "c": (10, 1, 1),
                  "d": (1, 0, 0)}
        now = {"a": (9, 0, 2), "b": (10, 1, 0), "c": (11, 0, 1)}
        self.assertEqual([line.split(":")[1].strip() for line in everything.worse(before, now)],
                         ["a", "b", "d"])
        self.assertRegex(everything.worse(before, before)[0], "^no run got worse")
