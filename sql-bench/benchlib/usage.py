# SPDX-License-Identifier: GPL-2.0-only
"""The CPU time and memory of a process, and what a thread waits for a CPU."""

import os
import pathlib


def usage(pid):
    """(seconds of CPU time, voluntary context switches) of a process so far;
    the latter of the threads that there are."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii",
                                                       errors="replace")
    fields = text.rpartition(")")[2].split()
    switches = 0
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = path.read_text(errors="replace").splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue                    # the thread has ended
        switches += sum(int(line.split()[1]) for line in lines
                        if line.startswith("voluntary_ctxt_switches"))
    return ((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
            switches)


def thread_times(pid, tid):
    """(seconds on a CPU, seconds of waiting for one) of a thread so far, as the
    kernel's scheduler counts them."""
    text = pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text(
        encoding="ascii")
    ran, waited, _ = text.split()
    return int(ran) / 1e9, int(waited) / 1e9


def resident(pid):
    """Bytes of a process that are in memory."""
    text = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")
