#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Verify that the patch set keeps MariaDB's plugin ABI, and compiles with each size of
a cache line.

Engines and plugins in the distribution's packages are compiled against the
unpatched server.  They reach into the structures in TYPES, so size, member
offsets and the order of virtual functions must be those of the stock build.

One translation unit is compiled against the stock and against the patched
headers, with the flags of the patched release build; gdb prints the layouts
from its debug information; the two texts must be equal.

A release build takes the size of a cache line, 64, 128 (ARM64, POWER) or 256 bytes
(s390x), from my_global.h.  This machine builds with one of them; the others are
compiled here, without output, to see the assertions about the size of structures.

Exit status: 0 good, 1 different or failed, 2 wrong usage.
"""

import argparse
import difflib
import json
import pathlib
import re
import shlex
import subprocess
import tempfile

import common
from common import Problem, run

TYPES = ("TABLE", "TABLE_SHARE", "handler", "handlerton", "THD")
SIZE = "CPU_LEVEL1_DCACHE_LINESIZE"
SIZES = (64, 128, 256)
# These include every header in which SIZE occurs (tests/test_cache_line.py)
FILES = ("sql/table_cache.cc", "mysys/my_spare_buffers.c")
PROBE = """\
#include "mariadb.h"
#include "sql_class.h"
#include "table.h"
#include "handler.h"
""" + "".join(f"{name} *probe_{name};\n" for name in TYPES)


def compile_command(build, name):
    """The words by which a build compiles a file of the source, without its
    precompiled header, its output and its dependencies."""
    for entry in json.loads(subprocess.check_output(["ninja", "-C", build, "-t", "compdb"])):
        if not entry["file"].endswith("/" + name):
            continue
        words = shlex.split(entry["command"])
        for option in ("-include", "-MF", "-MT", "-o", "-c"):
            while option in words:
                at = words.index(option)
                del words[at:at + 2]
        return [word for word in words if word != "-MD"]
    raise Problem(f"the build does not compile {name}")


def layout(command, build, output):
    """Compile the probe; return the layout of each type as a list of lines."""
    run(command, cwd=build)
    shown = []
    for name in TYPES:
        # /o shows members with their offsets, but no methods; the plain form
        # shows those, of which only virtual ones are part of the ABI
        said = run(["gdb", "--batch", "-nx", "-ex", f"ptype /o {name}",
                    "-ex", f"ptype {name}", output])
        lines = [line.rstrip() for line in said.splitlines()
                 if "virtual" in line or "total size" in line
                 or re.match(r"\s*/[*X]?\s*\d", line)]
        if not any("total size" in line for line in lines):
            raise Problem(f"gdb knows no type {name}:\n{said}")
        shown += [f"{name}: {line}" for line in lines]
    return shown


def compare_layouts(arguments):
    """Stock and patched have the same layouts."""
    command = compile_command(arguments.build, "sql/table.cc")
    with tempfile.TemporaryDirectory() as work:
        probe = pathlib.Path(work, "probe.cc")
        probe.write_text(PROBE)
        layouts = {}
        for name in ("stock", "patched"):
            source = str(getattr(arguments, name))
            output = pathlib.Path(work, name + ".o")
            words = [word.replace(str(arguments.patched), source) for word in command]
            # Types, too, and classes with virtual functions in full
            words += ["-g", "-femit-class-debug-always", "-c", str(probe), "-o", str(output)]
            layouts[name] = layout(words, arguments.build, output)
    difference = list(difflib.unified_diff(layouts["stock"], layouts["patched"], "stock",
                                           "patched", n=2, lineterm=""))
    if difference:
        raise Problem("\n".join(difference[:60]) + "\nthe patch set changes the layout "
                      "of a structure that plugins reach into")
    print(f"-- abi: {', '.join(TYPES)} have the stock layout "
          f"({len(layouts['stock'])} lines compared)")


def compile_sizes(build):
    """FILES compile with each of SIZES."""
    for name in FILES:
        command = compile_command(build, name)
        for size in SIZES:
            run([*command, f"-D{SIZE}={size}", "-fsyntax-only", build.parent / "source" / name],
                f"compiling {name} with a cache line of {size} bytes", cwd=build)
    print(f"-- cache line: {', '.join(FILES)} compile with {', '.join(map(str, SIZES))} bytes")


def main():
    parser = argparse.ArgumentParser(
        description="Verify that the patch set keeps MariaDB's plugin ABI, and compiles "
                    "with each size of a cache line.")
    for name, text in (("stock", "MariaDB's source"),
                       ("patched", "the patched source"),
                       ("build", "release build tree of the patched source")):
        parser.add_argument("--" + name, type=pathlib.Path, required=True, help=text)
    arguments = parser.parse_args()
    # Headers that the build generates
    run(["ninja", "-C", arguments.build, "--quiet", "GenError"])
    compare_layouts(arguments)
    compile_sizes(arguments.build)


if __name__ == "__main__":
    common.end("abi", main)
