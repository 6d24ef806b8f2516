# SPDX-License-Identifier: GPL-2.0-only
"""Tests of how the commands in BUILD/ choose the release series."""

import argparse
import fnmatch
import platform
import subprocess
import unittest
from unittest import mock

from support import TOP, WorkTest, put

import overlay
import package
from common import Problem, answer


def shell(script, *arguments, before=""):
    """Run a script that has sourced common.sh; return (status, output)."""
    return answer(["bash", "-c", f"{before} . '{TOP}/BUILD/common.sh'; {script}", "BUILD/x",
                   *arguments], env={"PATH": "/usr/bin:/bin"})


class BaseTest(WorkTest):
    def test_option_is_taken_from_anywhere_before_the_dashes(self):
        script = 'echo "$base $trees"; printf "<%s>" "$@"'
        for arguments in (["--base", "11.8", "a", "b c"],
                          ["a", "--base", "11.8", "b c"],
                          ["a", "b c", "--base", "11.8"]):
            self.assertEqual(
                shell(script, *arguments, "--", "--base", "x"),
                (0, f"11.8 {TOP}/out/11.8\n<a><b c><--><--base><x>"))

    def test_unknown_series_or_source_is_wrong_usage(self):
        for arguments in (["--base", "5.5"], ["--base"], ["--base", ""],
                          ["--source", "/nonexistent"], ["--source", "/etc"]):
            status, output = shell("echo reached", *arguments)
            self.assertEqual(status, 2, output)
            self.assertNotIn("reached", output)

    def test_source_has_trees_of_its_own_and_names_the_series(self):
        script = 'echo "$base $trees $MARIADB_SOURCE"; printf "<%s>" "$@"'
        source = self.work / "mariadb 1"
        put(source / "VERSION", "MYSQL_VERSION_MAJOR=11\nMYSQL_VERSION_MINOR=8\n"
            "MYSQL_VERSION_PATCH=3\n")
        subprocess.run(["tar", "-czf", self.work / "m.tar.gz", "-C", self.work,
                        "mariadb 1"], check=True)
        put(self.work / "m.dsc", "Version: 1:11.8.9-0+deb13u1\n")
        for given in (source, self.work / "m.tar.gz", self.work / "m.dsc"):
            self.assertEqual(
                shell(script, "--source", given, "a", "--", "--source", "x"),
                (0, f"11.8 {TOP}/out/source/11.8 {given}\n<a><--><--source><x>"))

    def test_foreign_architecture_has_trees_of_its_own(self):
        script = 'echo "$arch $trees $whole_trees"; printf "<%s>" "$@"'
        for here, arch, trees in (("amd64", "arm64", f"{TOP}/out/arm64/11.8"),
                                  ("arm64", "", f"{TOP}/out/11.8")):
            self.assertEqual(shell(script, "--arch", "arm64", "--base", "11.8", "a",
                                   before=f"dpkg() {{ echo {here}; }}; takes_arch=yes;"),
                             (0, f"{arch} {trees} {trees}\n<a>"))

    @unittest.skipIf(platform.machine() == "aarch64", "arm64 is not foreign here")
    def test_architecture_that_does_not_go_is_wrong_usage(self):
        for command, *arguments in (("run", "sparc"), ("run",), ("test", ""),
                                    ("run", "arm64", "--type", "tsan"),
                                    ("test", "arm64", "stress"),
                                    ("package", "arm64")):
            with self.subTest(command=command, arguments=arguments):
                status, said = answer([TOP / "BUILD" / command, "--arch", *arguments])
                self.assertEqual(status, 2, said)
                self.assertIn("arch", said)

    def test_default_is_the_series_of_the_debian_release(self):
        file = self.work / "os-release"
        self.assertEqual(shell(f"default_base '{file}'"), (0, "10.11"))
        for text, series in (('ID=debian\nVERSION_ID="12"\n', "10.11"),
                             ('ID=debian\nVERSION_ID="13"\n', "11.8"),
                             ('ID=ubuntu\nVERSION_ID="12"\n', "10.11"),
                             ("ID=debian\n", "10.11")):
            put(file, text)
            self.assertEqual(shell(f"default_base '{file}'"), (0, series))

    def test_package_is_of_debian_s_version(self):
        for base, version, upstream, made in (
                ("11.8", "1:11.8.9+ds-0+deb13u1", "11.8.9+ds",
                 "1:11.8.9+ds-0+deb13u1+tc2026.11"),
                ("10.11", "1:10.11.18-0+deb12u1", "10.11.18",
                 "1:10.11.18-0+deb12u1+tc2026.11")):
            with mock.patch.object(package.fetch_source, "machine_release", lambda: None):
                arguments = argparse.Namespace(
                    top=TOP, trees=self.work, base=base, output=self.work,
                    debug_symbols=False, release="2026.11")
                put(self.work / "stock/version", version + "\n")
                found = package.Package(arguments)
                self.assertEqual((found.upstream, found.version), (upstream, made))
                put(self.work / "stock/version", "11.8.9\n")
                with self.assertRaises(Problem):
                    package.Package(arguments)

    def test_package_names_each_file_of_the_patch_set(self):
        for base, here, elsewhere in (
                ("10.11", "sql/ddl_drop_batch.h", "sql/ddl_drop_batch.h.patch"),
                ("11.8", "sql/table_cache.cc", "sql/sql_base.cc")):
            text = package.copyright_of(TOP, base)
            head, *rest = text.split("\n")
            names = [line.split()[-1] for line in [head, *rest]
                     if line.startswith(("Files: ", "       "))]
            self.assertIn(here, names)
            self.assertNotIn(elsewhere, names)
            for name in overlay.sources(TOP, base):
                if not name.endswith(".patch"):
                    self.assertTrue(any(fnmatch.fnmatchcase(name, pattern)
                                        for pattern in names), name)
            for name in names:
                self.assertTrue(name.endswith("/*") or name in overlay.sources(TOP, base), name)
