# SPDX-License-Identifier: GPL-2.0-only
"""Servers on a slow disk: slow_disk.c."""

from .preload import compile_library


def slow_disk(directory, *, read_ms=0, sync_ms=0, files=(".ibd",)):
    """Compile slow_disk.c to a directory; return the environment of a server whose
    reads of files with such names, and whose syncs, take so much longer."""
    library = compile_library("slow_disk", directory)
    return {"LD_PRELOAD": str(library), "READ_DELAY_US": str(1000 * read_ms),
            "READ_DELAY_FILES": " ".join(files),
            "SYNC_DELAY_US": str(1000 * sync_ms)}
