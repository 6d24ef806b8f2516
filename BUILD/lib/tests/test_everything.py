# SPDX-License-Identifier: GPL-2.0-only
"""Tests of everything.py: which suites and debug tests there are, and what is recorded."""

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


class RunsTest(WorkTest):
    def runner(self):
        runner = types.SimpleNamespace(
            top=self.work, trees=self.work, older=None, tables=None, arch=None,
            excuse=lambda name: None)
        runner.counts = lambda results: run_tests.Runner.counts(runner, results)
        return runner

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
