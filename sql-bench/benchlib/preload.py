# SPDX-License-Identifier: GPL-2.0-only
"""Compile the C files of sql-bench: programs, and libraries for LD_PRELOAD."""

import pathlib
import shutil
import subprocess

from .servers import BenchError


def compile_file(name, target, *options):
    """Compile sql-bench/NAME.c; return the target's path. options: what follows
    the file on the command line, such as libraries."""
    if not shutil.which("cc"):
        raise BenchError("cc is missing; apt-get install gcc libc6-dev")
    target = target.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["cc", "-O2", "-o", str(target),
         str(pathlib.Path(__file__).resolve().parents[1] / f"{name}.c"),
         *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{name}.c does not compile:\n{done.stdout}")
    return target


def compile_library(name, directory, *options):
    """Compile sql-bench/NAME.c to a directory; return the library's path."""
    return compile_file(name, directory / f"{name}.so", "-shared", "-fPIC", *options, "-ldl")
