# SPDX-License-Identifier: GPL-2.0-only
"""Tests of count_lines.py: each file has one kind, and all lines count."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import count_lines  # noqa: E402


class CountLinesTest(unittest.TestCase):
    def test_kinds(self):
        for path, kind in (
                ("sql/a.cc", "new source files"),
                ("only-11.8/sql/a.cc", "new source files"),
                ("only-11.8/sql/a.cc.patch", "edits of MariaDB's files"),
                ("plugin/p/CMakeLists.txt", "new source files"),
                ("mysql-test/suite/s/t/a.test", "mtr tests"),
                ("only-11.8/mysql-test/suite/s/r/a.result", "mtr results"),
                ("plugin/p/unittest/a-t.cc", "unit tests of the server"),
                ("docs/a.svg", "plots"), ("README.md", "documents"),
                ("sql-bench/results/10.11/a.json", "raw data of benchmarks"),
                ("sql-bench/stress/a.py", "stress programs"),
                ("sql-bench/bench.py", "benchmarks"),
                ("BUILD/lib/tests/test_a.py", "tests of the tools"),
                ("BUILD/lib/deploy_test.py", "tools and build"),
                ("BUILD/topics/10-a", "messages of the topics"),
                ("CMakeLists.txt", "tools and build")):
            self.assertEqual(count_lines.kind_of(path), kind, path)

    def test_every_file_here_has_a_kind(self):
        listed = subprocess.run(["git", "ls-files"], cwd=TOP, check=True,
                                stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual([path for path in listed.splitlines()
                          if count_lines.kind_of(path) == "other"], [])

    def test_lines_of_a_revision_are_counted(self):
        with tempfile.TemporaryDirectory() as work:
            def git(*words):
                subprocess.run(["git", "-c", "user.name=n", "-c",
                                "user.email=e", *words], cwd=work, check=True,
                               stdout=subprocess.DEVNULL)
            git("init", "-q")
            for name, text in (("README.md", "a\n\nb\n"), ("a b.md", "c\n"),
                               ("sql/a.cc", "d\ne"), ("docs/empty.svg", "")):
                path = pathlib.Path(work, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            git("add", ".")
            git("commit", "-q", "-m", "x")
            pathlib.Path(work, "sql/a.cc").write_text("\n" * 99)
            self.assertEqual(count_lines.lines_of("HEAD", pathlib.Path(work)),
                             {"documents": 4, "new source files": 1,
                              "plots": 0})


if __name__ == "__main__":
    unittest.main()
