#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compile what depends on the size of a cache line with each size.

A release build takes 64, 128 (ARM64, POWER) or 256 bytes (s390x) from
my_global.h.  This machine builds with one of them; the others are compiled
here, without output, to see the assertions about the size of structures.

Exit status: 0 done, 1 a file does not compile, 2 wrong usage.
"""

import argparse
import pathlib
import subprocess
import sys

import abi_check

SIZE = "CPU_LEVEL1_DCACHE_LINESIZE"
SIZES = (64, 128, 256)
# These include every header in which SIZE occurs (tests/test_cache_line.py)
FILES = ("sql/table_cache.cc", "mysys/my_spare_buffers.c")


def main():
    parser = argparse.ArgumentParser(
        description="Compile what depends on the size of a cache line with "
                    "each size.")
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="release build tree of the patched source")
    arguments = parser.parse_args()
    # Headers that the build generates
    subprocess.run(["ninja", "-C", str(arguments.build), "--quiet",
                    "GenError"], check=True, stdout=subprocess.DEVNULL)
    failed = False
    for name in FILES:
        command = abi_check.compile_command(arguments.build, name)
        source = arguments.build.parent / "source" / name
        for size in SIZES:
            done = subprocess.run(
                [*command, f"-D{SIZE}={size}", "-fsyntax-only", str(source)],
                cwd=arguments.build, stderr=subprocess.PIPE, text=True,
                check=False)
            if done.returncode:
                failed = True
                print(f"cache line: error: {name} does not compile with "
                      f"{size} bytes:\n{done.stderr[:3000]}", file=sys.stderr)
    if failed:
        return 1
    print(f"-- cache line: {', '.join(FILES)} compile with "
          f"{', '.join(map(str, SIZES))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
