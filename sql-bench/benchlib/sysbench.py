# SPDX-License-Identifier: GPL-2.0-only
"""Run sysbench scripts against a server and read what they report."""

import pathlib
import re
import subprocess

from .servers import BenchError
from .usage import ahead_of_others

# sysbench gives up when its threads have not all connected within 30 seconds,
# as may happen with thousands of them while the machine has other work
TOO_SLOW = "Worker threads failed to initialize"
ATTEMPTS = 3
LUA = pathlib.Path(__file__).resolve().parents[1] / "lua"


def arguments(server, script, database, threads, *, events=0, seconds=0,
              command="run", **options):
    """The command line for a script: a file of sql-bench/lua, or the name of
    one of sysbench's own.

    events: stop after that many, 0 for no limit; seconds: likewise.
    """
    path = LUA / f"{script}.lua"
    return ["sysbench", str(path) if path.exists() else script,
            "--db-driver=mysql", f"--mysql-user={server.account}",
            f"--mysql-socket={server.socket}", f"--mysql-db={database}",
            f"--threads={threads}", f"--events={events}", f"--time={seconds}",
            *(f"--{name.replace('_', '-')}={value}" for name, value in options.items()), command]


def run(server, script, database, threads, *, command="run", server_cpu=None, **options):
    """Run a script; return {"rate": events/s, "longest": ms, "events": n}.

    The rate is of all events until the last thread has ended: what thousands
    of threads have begun when the time is up is completed, and counts.

    server_cpu: returns seconds of CPU time; "cpu_seconds" is what it grows by from the
    moment when all threads have connected and prepared their statements.
    """
    command_line = arguments(server, script, database, threads, command=command, **options)
    for _ in range(ATTEMPTS):
        with subprocess.Popen(command_line, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            said = ""
            if server_cpu:
                with ahead_of_others():
                    said = until_started(process)
                    before = server_cpu()
            said += process.stdout.read()
        if process.returncode == 0:
            if command != "run":
                return None
            measured = read(script, said)
            if server_cpu:
                measured["cpu_seconds"] = server_cpu() - before
            return measured
        if TOO_SLOW not in said:
            break
    raise BenchError(f"sysbench {script} failed:\n{said[-2000:]}")


def until_started(process):
    """Wait for all threads of a script, or its end; return what it said."""
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("Threads started"):
            break
    return said


def read(script, text):
    """What a run has printed, as numbers."""
    count = re.search(r"transactions:\s+(\d+)\s", text)
    seconds = re.search(r"total time:\s+([\d.]+)s", text)
    longest = re.search(r"(?m)^\s+max:\s+([\d.]+)", text)
    if not count or not seconds:
        raise BenchError(f"sysbench {script} reported no rate:\n" + text[-2000:])
    return {"rate": int(count[1]) / float(seconds[1]),
            "events": int(count[1]),
            "longest": float(longest[1]) if longest else None}
