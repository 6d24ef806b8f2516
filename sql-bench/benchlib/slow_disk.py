# SPDX-License-Identifier: GPL-2.0-only
"""Servers on a slow disk: slow_disk.c."""

import pathlib
import subprocess

from .servers import BenchError


def slow_disk(directory, *, read_ms=0, sync_ms=0, files=(".ibd",)):
    """Compile slow_disk.c to a directory; return the environment of a server whose
    reads of files with such names, and whose syncs, take so much longer."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory.resolve() / "slow_disk.so"
    done = subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", str(library),
         str(pathlib.Path(__file__).parents[1] / "slow_disk.c")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BenchError("slow_disk.c does not compile:\n" + done.stdout)
    return {"LD_PRELOAD": str(library), "READ_DELAY_US": str(1000 * read_ms),
            "READ_DELAY_FILES": " ".join(files),
            "SYNC_DELAY_US": str(1000 * sync_ms)}
