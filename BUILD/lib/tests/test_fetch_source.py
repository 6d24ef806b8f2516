# SPDX-License-Identifier: GPL-2.0-only
"""Tests of fetch_source.py."""

import contextlib
import hashlib
import io
import os
import subprocess
import sys

from support import WorkTest, put

import fetch_source
from common import Problem


class AptTest(WorkTest):
    def test_entries_of_the_machine_become_those_of_another_release(self):
        self.assertEqual(fetch_source.for_release({
            "sources.list":
                "deb-src [arch=amd64] http://m.invalid/d bookworm main\n"
                "deb-src http://m.invalid/d bookworm-updates main\n"
                "deb-src http://vendor.invalid/ sdk-bookworm main\n",
            "d.sources":
                "Types: deb-src\nURIs: http://m.invalid/d\n"
                "Suites: bookworm stable-security\nSigned-By: /key\n\n"
                "Types: deb-src\nURIs: http://vendor.invalid/\nSuites: nodistro\n",
            "vendor.list": "deb-src http://vendor.invalid/ any main\n"},
            "bookworm", "trixie"), {
            "sources.list":
                "deb-src [arch=amd64] http://m.invalid/d trixie main\n"
                "deb-src http://m.invalid/d trixie-updates main\n",
            "d.sources":
                "Types: deb-src\nURIs: http://m.invalid/d\n"
                "Suites: trixie trixie-security\nSigned-By: /key\n\n"})

    def test_release_of_the_machine_is_known_on_debian_only(self):
        file = self.work / "os-release"
        self.assertIsNone(fetch_source.machine_release(file))
        for text, release in (('ID=debian\nVERSION_CODENAME="trixie"\n', "trixie"),
                              ("ID=ubuntu\nVERSION_CODENAME=noble\n", None),
                              ("ID=debian\n", None)):
            put(file, text)
            self.assertEqual(fetch_source.machine_release(file), release)

    def test_source_entries_and_mirrors_are_found_in_both_formats(self):
        put(self.work / "sources.list",
            "# comment\ndeb [arch=amd64] http://a.invalid/d/ x main\n"
            "deb-src http://a.invalid/d x main\n")
        put(self.work / "sources.list.d/d.sources",
            "Types: deb\nURIs: http://b.invalid/d http://a.invalid/d\nSuites: y\n"
            "Components: main\n")
        put(self.work / "sources.list.d/off.list.disabled", "deb http://off.invalid/d x main\n")
        entries = fetch_source.source_entries(self.work)
        self.assertEqual(entries, {
            "sources.list": "deb-src [arch=amd64] http://a.invalid/d/ x main\n"
                            "deb-src http://a.invalid/d x main\n",
            "d.sources": "Types: deb-src\n"
                         "URIs: http://b.invalid/d http://a.invalid/d\nSuites: y\n"
                         "Components: main\n"})
        for name, text in entries.items():
            put(self.work / "parts" / name, text)
        put(self.work / "apt.conf", 'Dir::Etc::sourcelist "/dev/null";\n'
            f'Dir::Etc::sourceparts "{self.work}/parts";\n')
        self.assertEqual(
            set(fetch_source.mirrors(dict(os.environ, APT_CONFIG=str(self.work / "apt.conf")))),
            {"http://a.invalid/d", "http://b.invalid/d"})

    def test_versions_are_tried_from_the_newest(self):
        self.assertEqual(fetch_source.newer_first(["1:10.11.9-0", "1:10.11.18-0",
                                                   "1:10.11.18-0+deb12u1"]),
                         ["1:10.11.18-0+deb12u1", "1:10.11.18-0", "1:10.11.9-0"])


class PinnedTest(WorkTest):
    """A version that the lists lack."""

    def fetch(self, name, damage=None):
        """Make a package on a mirror, and fetch it; return the reason why it failed."""
        files = {"mariadb_1.0.orig.tar.gz": b"orig",
                 "mariadb_1.0-1+deb1.debian.tar.xz": b"debian"}
        description = ("Format: 3.0 (quilt)\nChecksums-Sha256:\n"
                       + "".join(f" {hashlib.sha256(text).hexdigest()} {len(text)} {name}\n"
                                 for name, text in files.items()) + "Files:\n").encode()
        files["mariadb_1.0-1+deb1.dsc"] = description
        mirror, self.got = self.work / name, self.work / f"{name}-got"
        folder = mirror / "pool/main/m/mariadb"
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_bytes(text[::-1] if file == damage else text)
        self.got.mkdir()
        return fetch_source.fetch_pinned(
            "mariadb", "1:1.0-1+deb1", hashlib.sha256(description).hexdigest(),
            [f"copy:{self.work}/empty", f"copy:{mirror}"], None, self.got)

    def test_it_comes_from_the_mirror_that_has_it(self):
        self.assertIsNone(self.fetch("mirror"))
        self.assertEqual(sorted(path.name for path in self.got.iterdir()),
                         ["mariadb_1.0-1+deb1.debian.tar.xz", "mariadb_1.0-1+deb1.dsc",
                          "mariadb_1.0.orig.tar.gz"])

    def test_it_must_have_its_checksums(self):
        for damaged in ("mariadb_1.0-1+deb1.dsc", "mariadb_1.0.orig.tar.gz"):
            self.assertRegex(self.fetch(damaged, damaged), f"{damaged.replace('+', '.')}.*"
                             "Hash Sum mismatch")
            self.assertFalse((self.got / damaged).exists())


class GivenTest(WorkTest):
    """A source that the user has."""

    def setUp(self):
        super().setUp()
        self.given, self.target = self.work / "given", self.work / "target"
        self.is_of("10.11")

    def is_of(self, series):
        major, minor = series.split(".")
        put(self.given / "VERSION", f"MYSQL_VERSION_MAJOR={major}\n"
            f"MYSQL_VERSION_MINOR={minor}\nMYSQL_VERSION_PATCH=1\n")

    def take(self, given=None):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            fetch_source.fetch("", "10.11", "", str(given or self.given), self.target)
        return (self.target / "version").read_text(), said.getvalue()

    def test_it_is_taken_again_when_it_has_changed(self):
        version, said = self.take()
        self.assertEqual(version, "10.11.1\n")
        self.assertIn("copying", said)
        self.assertEqual(self.take()[1], "")
        put(self.given / "a.c", "int a;\n")
        self.take()
        self.assertEqual((self.target / "source/a.c").read_text(), "int a;\n")

    def test_what_was_built_of_the_former_source_is_out_of_date(self):
        """ninja compares times, and those of an archive are long ago."""
        identities = set()
        for text in ("1", "22"):
            put(self.given / "a.c", text)
            os.utime(self.given / "a.c", (1, 1))
            put(self.work / "a.o")
            self.take()
            self.assertGreaterEqual(os.stat(self.target / "source/a.c").st_mtime_ns,
                                    os.stat(self.work / "a.o").st_mtime_ns)
            identities.add((self.target / "source/.fetched").read_text())
        self.assertEqual(len(identities), 2)
        self.assertEqual(sorted(path.name for path in self.target.iterdir()),
                         ["origin", "source", "version"])

    def test_with_debian_s_patches_it_has_debian_s_version(self):
        put(self.given / "debian/changelog",
            "mariadb (1:10.11.1-0+deb12u1) bookworm; urgency=medium\n")
        self.assertEqual(self.take()[0], "10.11.1\n")
        put(self.given / ".pc/applied-patches", "one.patch\n")
        self.assertEqual(self.take()[0], "1:10.11.1-0+deb12u1\n")

    def test_source_package_is_unpacked_with_its_patches(self):
        put(self.given / "debian/source/format", "3.0 (native)\n")
        put(self.given / "debian/control",
            "Source: mariadb\nMaintainer: a <a@b>\n\nPackage: m\n"
            "Architecture: all\nDescription: m\n")
        put(self.given / "debian/changelog",
            "mariadb (10.11.1) bookworm; urgency=medium\n\n  * one\n\n"
            " -- a <a@b>  Mon, 01 Jan 2024 00:00:00 +0000\n")
        subprocess.run(["dpkg-source", "--build", self.given], cwd=self.work, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        version, said = self.take(self.work / "mariadb_10.11.1.dsc")
        self.assertIn("unpacking with Debian's patches", said)
        self.assertEqual(version, "10.11.1\n")

    def test_checkout_needs_its_submodules(self):
        (self.given / "libmariadb").mkdir()
        with self.assertRaisesRegex(Problem, "git submodule update"):
            self.take()
        self.assertEqual(list(self.target.iterdir()), [])

    def test_it_must_be_of_the_series(self):
        self.is_of("10.6")
        done = subprocess.run(
            [sys.executable, fetch_source.__file__, "--series", "10.11", "--from",
             self.given, "--destination", self.target], capture_output=True, text=True,
            check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is MariaDB 10.6.1", done.stderr)
        self.assertEqual(list(self.target.iterdir()), [])
