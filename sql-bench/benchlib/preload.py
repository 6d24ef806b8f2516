# SPDX-License-Identifier: GPL-2.0-only
"""Compile the C files of sql-bench: programs, and libraries for LD_PRELOAD."""

import pathlib
import shutil

from .servers import BenchError, said


def compile_file(name, target, *options):
    """Compile sql-bench/NAME.c; return the target's path. options: what follows
    the file on the command line, such as libraries."""
    if not shutil.which("cc"):
        raise BenchError("cc is missing; apt-get install gcc libc6-dev")
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    said("cc", pathlib.Path(__file__).resolve().parents[1] / f"{name}.c", "-O2", "-o", target,
         *options)
    return target


def compile_library(name, directory, *options):
    """Compile sql-bench/NAME.c to a directory; return the library's path."""
    return compile_file(name, directory / f"{name}.so", "-shared", "-fPIC", *options, "-ldl")
