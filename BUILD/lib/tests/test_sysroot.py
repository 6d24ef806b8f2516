# SPDX-License-Identifier: GPL-2.0-only
"""Tests of sysroot.py."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "BUILD/lib"))
import sysroot  # noqa: E402


class RootTest(unittest.TestCase):
    def test_it_has_the_libraries_and_none_of_the_tools(self):
        names = sysroot.libraries("# comment\ncmake\ndpkg-dev\nlibaio-dev\n"
                                  "unixodbc-dev\nzlib1g-dev\n")
        self.assertEqual(names, ["libc6-dev", "libstdc++6", "libaio-dev",
                                 "zlib1g-dev"])

    def test_no_link_leads_out_of_it(self):
        with tempfile.TemporaryDirectory() as work:
            package, root = pathlib.Path(work, "package"), pathlib.Path(work, "root")
            for folder in ("DEBIAN", "lib/arm", "usr/lib/arm"):
                (package / folder).mkdir(parents=True)
            (package / "DEBIAN/control").write_text(
                "Package: x\nVersion: 1\nArchitecture: arm64\nMaintainer: x\n"
                "Description: x\n")
            (package / "lib/arm/libx.so.1").write_text("the library")
            (package / "usr/lib/arm/libx.so").symlink_to("/lib/arm/libx.so.1")
            subprocess.run(["dpkg-deb", "--build", package, f"{work}/x.deb"],
                           stdout=subprocess.DEVNULL, check=True)
            sysroot.unpack([pathlib.Path(work, "x.deb")], root)
            link = root / "usr/lib/arm/libx.so"
            self.assertFalse(os.path.isabs(os.readlink(link)))
            self.assertEqual(link.read_text(), "the library")


if __name__ == "__main__":
    unittest.main()
