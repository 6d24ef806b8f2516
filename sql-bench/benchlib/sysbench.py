# SPDX-License-Identifier: GPL-2.0-only
"""Run sysbench scripts against a server and read what they report."""

import contextlib
import pathlib
import re
import shutil
import signal
import subprocess
import time

from . import wire
from .servers import BenchError
from .usage import ahead_of_others

# sysbench gives up when its threads have not all connected within 30 seconds,
# as may happen with thousands of them while the machine has other work
TOO_SLOW = "Worker threads failed to initialize"
ATTEMPTS = 3
LUA = pathlib.Path(__file__).resolve().parents[1] / "lua"


def require():
    if not shutil.which("sysbench"):
        raise BenchError("sysbench is missing; apt-get install sysbench")


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
            *(f"--{name.replace('_', '-')}={value}"
              for name, value in options.items()), command]


def run(server, script, database, threads, *, command="run",
        server_cpu=None, **options):
    """Run a script; return {"rate": events/s, "p95": ms, "longest": ms,
    "events": n, "opened": sum of what the script's threads print as 'opened n'}.

    The rate is of all events until the last thread has ended: what thousands
    of threads have begun when the time is up is completed, and counts.

    percentile=99 gives "p99" in place of "p95". server_cpu: returns seconds of
    CPU time; "cpu_seconds" is what it grows by from the moment when all threads
    have connected and prepared their statements.
    """
    command_line = arguments(server, script, database, threads,
                             command=command, **options)
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


class Load:
    """A script that keeps its connections, and is at work only during run().

    So no measurement contains the start and end of thousands of threads, and
    two servers can take turns every second.
    """

    def __init__(self, server, *positional, **options):
        # A stopped program would stay for ever if this one is killed
        command = ["setpriv", "--pdeathsig=KILL",
                   *arguments(server, *positional, **options)]
        for attempt in range(1, ATTEMPTS + 1):
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True)
            try:
                said = until_started(self.process)
                if "Threads started" in said:
                    self.status = wire.Connection(server.socket,
                                                  user=server.account)
                    self.asked = 0
                    self.paused = self.pause()
                    return
            except BaseException:
                self.end()
                raise
            self.end()
            if TOO_SLOW not in said or attempt == ATTEMPTS:
                raise BenchError(f"sysbench failed, attempt {attempt}:\n"
                                 + said[-2000:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.status.close()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def counters(self):
        """(statements of all clients but this one, those that are running)"""
        self.asked += 1
        rows = {name: int(value) for name, value in self.status.query(
            "SHOW GLOBAL STATUS WHERE Variable_name IN "
            "('Questions', 'Threads_running')")}
        return rows[b"Questions"] - self.asked, rows[b"Threads_running"] - 1

    def pause(self):
        """Stop the threads; return the statements so far when the server has
        answered what it had been asked, and when that was seen.

        Those that wait for a row lock of a stopped thread's transaction go
        on waiting, in the next run, too.
        """
        self.process.send_signal(signal.SIGSTOP)
        before, unchanged, when = None, 0, 0
        while True:
            statements, running = self.counters()
            if statements == before:
                unchanged += 1
                if unchanged >= (5 if running else 1):
                    return statements, when
            else:
                before, unchanged, when = statements, 0, time.monotonic()
            time.sleep(0.01)

    @contextlib.contextmanager
    def working(self):
        """Do something while it works; then see self.paused."""
        self.process.send_signal(signal.SIGCONT)
        yield
        self.paused = self.pause()
        if self.process.poll() is not None:
            raise BenchError("sysbench ended:\n"
                             + self.process.stdout.read()[-2000:])

    def run(self, seconds):
        """Let it work for so long; return statements a second."""
        before = self.counters()[0]
        begin = time.monotonic()
        with self.working():
            time.sleep(seconds)
        statements, end = self.paused
        return (statements - before) / (end - begin)


def read(script, text):
    """What a run has printed, as numbers."""
    count = re.search(r"transactions:\s+(\d+)\s", text)
    seconds = re.search(r"total time:\s+([\d.]+)s", text)
    percentile = re.search(r"(\d+)th percentile:\s+([\d.]+)", text)
    longest = re.search(r"(?m)^\s+max:\s+([\d.]+)", text)
    if not count or not seconds:
        raise BenchError(f"sysbench {script} reported no rate:\n"
                         + text[-2000:])
    return {"rate": int(count[1]) / float(seconds[1]),
            "events": int(count[1]),
            **({f"p{percentile[1]}": float(percentile[2])} if percentile
               else {"p95": None}),
            "longest": float(longest[1]) if longest else None,
            "opened": sum(map(int, re.findall(r"(?m)^opened (\d+)$", text)))}
