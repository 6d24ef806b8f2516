# SPDX-License-Identifier: GPL-2.0-only
"""Tests of sysroot.py."""

import os
import subprocess

from support import WorkTest, put

import sysroot


class RootTest(WorkTest):
    def test_it_has_the_libraries_and_none_of_the_tools(self):
        names = sysroot.libraries("# comment\ncmake\ndpkg-dev\nlibaio-dev\n"
                                  "unixodbc-dev\nzlib1g-dev\n")
        self.assertEqual(names, ["libc6-dev", "libstdc++6", "libaio-dev", "zlib1g-dev"])

    def test_no_link_leads_out_of_it(self):
        package, root = self.work / "package", self.work / "root"
        put(package / "DEBIAN/control",
            "Package: x\nVersion: 1\nArchitecture: arm64\nMaintainer: x\nDescription: x\n")
        put(package / "lib/arm/libx.so.1", "the library")
        link = "usr/lib/arm/libx.so"
        (package / link).parent.mkdir(parents=True)
        (package / link).symlink_to("/lib/arm/libx.so.1")
        subprocess.run(["dpkg-deb", "--build", package, self.work / "x.deb"],
                       stdout=subprocess.DEVNULL, check=True)
        sysroot.unpack([self.work / "x.deb"], root)
        self.assertFalse(os.path.isabs(os.readlink(root / link)))
        self.assertEqual((root / link).read_text(), "the library")
