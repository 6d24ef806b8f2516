# SPDX-License-Identifier: GPL-2.0-only
"""Tests of tarball.py."""


from support import WorkTest, put

import tarball
from common import Problem

LDD = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f1)
\tlibcrypt.so.1 => /lib/x86_64-linux-gnu/libcrypt.so.1 (0x00007f2)
\tlibstdc++.so.6 => /usr/lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f7)
\tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f8)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f3)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4)
\tlibpam.so.0 => /lib/x86_64-linux-gnu/libpam.so.0 (0x00007f5)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f6)
"""


class TarballTest(WorkTest):
    def test_c_and_cxx_library_and_pam_are_the_systems(self):
        self.assertEqual(sorted(tarball.bundled(LDD)),
                         ["libcrypt.so.1", "libssl.so.3"])

    def test_library_that_is_missing_is_an_error(self):
        with self.assertRaisesRegex(Problem, "liburing.so.2"):
            tarball.bundled(LDD + "\tliburing.so.2 => not found\n")

    def test_directories_are_those_of_mariadb_s_tarballs(self):
        for name in ("usr/sbin/mariadbd", "usr/bin/mariadb", "usr/bin/mariadb-install-db",
                     "usr/lib/mysql/plugin/a.so", "usr/share/mysql/english/errmsg.sys",
                     "usr/mariadb-server/COPYING", "etc/logrotate.d/x"):
            put(self.work / "root" / name)
        (self.work / "root/usr/bin/mysql_install_db").symlink_to("mariadb-install-db")
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
