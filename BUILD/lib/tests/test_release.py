# SPDX-License-Identifier: GPL-2.0-only
"""Tests of release.py: the version of each commit, and how dpkg sorts them."""

import re
import shutil
import subprocess
import sys

from support import TOP, WorkTest, git

import deploy_test
import package
import release
from common import Problem


class ReleaseTest(WorkTest):
    def setUp(self):
        super().setUp()
        self.top = self.work / "clone"
        self.top.mkdir()
        self.git("init", "-q", "-b", "main")
        self.name("2026.11")

    def git(self, *words):
        git(self.top, *words)

    def name(self, text):
        (self.top / "VERSION").write_text(f"# comment\n{text}\n")

    def commits(self, number):
        for _ in range(number):
            self.git("commit", "-q", "--allow-empty", "-m", "x")

    def version(self):
        return release.version(self.top)

    def test_each_version_is_newer_than_the_one_before(self):
        found = ["324"]                 # as packages were numbered before
        for named in ("2026.11", "2026.11.1", "2026.12", "2027.01", "2027.01.9", "2027.01.10"):
            self.name(named)
            for tagged in (False, True):
                if tagged:
                    self.git("tag", f"tc-{named}")
                    found.append(self.version())
                for number in (1, 9) if named == "2026.11" else (1,):
                    self.commits(number)
                    found.append(self.version())
        self.assertEqual(found[:7], ["324", "2026.11~1", "2026.11~10", "2026.11",
                                     "2026.11+1", "2026.11+10", "2026.11.1~21"])
        for one, next_one in zip(found, found[1:]):
            older, newer = (f"1:10.11.18-0+deb12u1+tc{version}" for version in (one, next_one))
            self.assertFalse(subprocess.run(
                ["dpkg", "--compare-versions", older, "lt", newer],
                check=False).returncode, f"{older} < {newer}")
        # Debian's next version is newer than any of ours
        self.assertFalse(subprocess.run(
            ["dpkg", "--compare-versions", newer, "lt",
             "1:10.11.18-0+deb12u2"], check=False).returncode)

    def test_version_fits_the_servers(self):
        """SERVER_VERSION_LENGTH is 60, with -log and a NUL."""
        for path in TOP.glob("cmake/base-*.cmake"):
            base = re.fullmatch(r"base-(.*)\.cmake", path.name)[1]
            values = package.base_values(TOP, base)
            version = f"{base}.99-0+deb13u9+tc2026.11.1~9999"
            server = deploy_test.server_version(version, values)
            self.assertLess(len(server), 60 - len("-log"), server)

    def test_tag_elsewhere_is_an_error(self):
        self.commits(1)
        self.git("checkout", "-q", "-b", "other")
        self.commits(1)
        self.git("tag", "tc-2026.11")
        self.git("checkout", "-q", "main")
        with self.assertRaisesRegex(Problem, "tc-2026.11 is not"):
            self.version()

    def test_shallow_clone_is_an_error(self):
        self.commits(3)
        shallow = self.top.with_name("shallow")
        subprocess.run(["git", "clone", "-q", "--depth=1",
                        f"file://{self.top}", str(shallow)], check=True)
        shutil.copy(self.top / "VERSION", shallow)
        with self.assertRaisesRegex(Problem, "shallow"):
            release.version(shallow)

    def test_only_a_release_is_named(self):
        for text in ("", "2026", "2026.13", "2026.1", "26.11", "2026.11~1",
                     "2026.11\n2026.12", "2026.11.0", "tc-2026.11"):
            self.name(text)
            with self.subTest(text), self.assertRaises(Problem):
                release.release(self.top)

    def test_option_takes_versions_only(self):
        for text, status in (("2026.11", 0), ("2026.11.1~7", 0),
                             ("2026.11+30", 0), ("7", 1), ("2026.11+", 1),
                             ("2026.11~1+2", 1), ("2026.11;x", 1)):
            done = subprocess.run(
                [sys.executable, release.__file__, "--top", str(TOP),
                 "--check", text], stderr=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, status, text)
