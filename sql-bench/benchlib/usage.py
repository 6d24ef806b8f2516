# SPDX-License-Identifier: GPL-2.0-only
"""The CPU time and memory of a process, and what a thread waits for a CPU."""

import contextlib
import os
import pathlib
import time


def cpu_time(pid):
    """Seconds of CPU time of a process and its former threads so far. /proc has
    the same in hundredths of a second."""
    return time.clock_gettime(~pid << 3 | 2)    # Linux's CPUCLOCK_SCHED


@contextlib.contextmanager
def on_one_cpu(pid):
    """Meanwhile run a process, and the programs that this one starts, on one CPU."""
    def run_on(cpus):
        for path in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(path.name), cpus)

    allowed = os.sched_getaffinity(0)
    one = {max(allowed)}
    try:
        os.sched_setaffinity(0, one)
        run_on(one)
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        run_on(allowed)


@contextlib.contextmanager
def ahead_of_others(priority=-19):
    """Meanwhile let this process have a CPU as soon as it wants one, if it is
    allowed to: among a thousand threads that are ready to run, it may otherwise
    wait for a second. Programs that it starts meanwhile inherit that."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, priority)
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def resident(pid):
    """Bytes of a process that are in memory."""
    text = pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")
