#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make the tarball in a root of an older Debian release (called by BUILD/package).

debootstrap makes the root, and BUILD/package --tarball runs in it, with the source
that this machine has fetched and the same choice of topics.  What it builds is in
out/BASE/deploy/SUITE-out, which the root sees as out/, so that the next time compiles
what has changed only.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import os
import pathlib
import subprocess

import common
import deploy_test
from common import TOP, Problem

SUITES = {"11": "bullseye", "12": "bookworm", "13": "trixie"}


def make(trees, cache, log, suite, release, output):
    """Run BUILD/package --tarball in a root of a Debian release, which 'cache' keeps."""
    own_out = cache / f"{suite}-out"
    for directory in (own_out, output):
        directory.mkdir(parents=True, exist_ok=True)
    with deploy_test.BareRoot(cache, log, suite, [
            (TOP, TOP), (own_out, TOP / "out"),
            (trees / "stock/source", "/srv/source"), (output, "/srv/output"),
            # MariaDB uses only the headers of libfmt; Debian 11's are too old for it
            ("/usr/include/fmt", "/srv/include/fmt")]) as root:
        deploy_test.say(f"installing what a build needs in the root of {suite}")
        root.do("apt-get", "update", "--quiet")
        root.do("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "python3")
        status = subprocess.run(root.command(
            "CPATH=/srv/include", f"CCACHE_DIR={TOP}/out/ccache",
            f"SELECTION={os.environ.get('SELECTION', '')}",
            str(TOP / "BUILD/package"), "--tarball", "--base", trees.name,
            "--source", "/srv/source", "--release", release, "--output", "/srv/output"),
            stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        raise Problem(f"BUILD/package failed in the root of {suite}; see above")


def main():
    parser = argparse.ArgumentParser(
        description="Make the tarball in a root (called by BUILD/package).")
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--in-root", choices=SUITES, required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if os.geteuid():
        raise Problem("making a Debian root needs root")
    cache = deploy_test.cache_directory(arguments.trees)
    (cache / "log").write_text("")
    make(arguments.trees, cache, cache / "log", SUITES[arguments.in_root],
         arguments.release, arguments.output)
    return 0


if __name__ == "__main__":
    common.end("package", main)
