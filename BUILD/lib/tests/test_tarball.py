#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of tarball.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True

import tarball                                          # noqa: E402

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f1)
\tlibcrypt.so.1 => /lib/x86_64-linux-gnu/libcrypt.so.1 (0x00007f2)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f3)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4)
\tlibpam.so.0 => /lib/x86_64-linux-gnu/libpam.so.0 (0x00007f5)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f6)
"""


class TarballTest(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def write(self, *names):
        for name in names:
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def test_c_library_and_pam_are_the_systems(self):
        self.assertEqual(sorted(tarball.bundled(LDD)),
                         ["libcrypt.so.1", "libssl.so.3"])

    def test_library_that_is_missing_is_an_error(self):
        with self.assertRaisesRegex(tarball.TarballError, "liburing.so.2"):
            tarball.bundled(LDD + "\tliburing.so.2 => not found\n")

    def test_directories_are_those_of_mariadb_s_tarballs(self):
        self.write("root/usr/sbin/mariadbd", "root/usr/bin/mariadb",
                   "root/usr/bin/mariadb-install-db",
                   "root/usr/lib/mysql/plugin/a.so",
                   "root/usr/share/mysql/english/errmsg.sys",
                   "root/usr/mariadb-server/COPYING", "root/etc/logrotate.d/x")
        (self.work / "root/usr/bin/mysql_install_db").symlink_to(
            "mariadb-install-db")
        tree = self.work / "tree"
        tarball.arrange(self.work / "root", tree)
        for name in ("bin/mariadbd", "bin/mariadb", "lib/plugin/a.so",
                     "scripts/mariadb-install-db", "scripts/mysql_install_db",
                     "share/english/errmsg.sys", "COPYING",
                     # As compiled in, and as mariadb-install-db has it
                     "sbin/mariadbd", "lib/mysql/plugin/a.so",
                     "share/mysql/english/errmsg.sys"):
            self.assertTrue((tree / name).is_file(), name)
        self.assertFalse((tree / "etc").exists())


if __name__ == "__main__":
    unittest.main()
