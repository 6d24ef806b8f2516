# SPDX-License-Identifier: GPL-2.0-only
"""Libraries for LD_PRELOAD, from the C files of sql-bench."""

import pathlib
import shutil
import subprocess

from .servers import BenchError


def compile_library(name, directory, *options):
    """Compile sql-bench/NAME.c to a directory; return the library's path."""
    if not shutil.which("cc"):
        raise BenchError("cc is missing; apt-get install gcc libc6-dev")
    directory.mkdir(parents=True, exist_ok=True)
    library = directory.resolve() / f"{name}.so"
    done = subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", *options, "-o", str(library),
         str(pathlib.Path(__file__).resolve().parents[1] / f"{name}.c"), "-ldl"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{name}.c does not compile:\n{done.stdout}")
    return library
