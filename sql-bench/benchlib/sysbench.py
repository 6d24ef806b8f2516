# SPDX-License-Identifier: GPL-2.0-only
"""Run sysbench scripts against a server and read what they report."""

import pathlib
import re
import shutil
import subprocess

from .servers import BenchError

LUA = pathlib.Path(__file__).resolve().parents[1] / "lua"


def require():
    if not shutil.which("sysbench"):
        raise BenchError("sysbench is missing; apt-get install sysbench")


def run(server, script, database, threads, *, events=0, seconds=0,
        command="run", **options):
    """Run a script; return {"rate": events/s, "p95": ms, "events": n,
    "opened": sum of what the script's threads print as 'opened n'}.

    events: stop after so many, 0 for no limit; seconds: likewise.
    script: a file of sql-bench/lua, or the name of one of sysbench's own.
    """
    path = LUA / f"{script}.lua"
    arguments = [
        "sysbench", str(path) if path.exists() else script,
        "--db-driver=mysql", "--mysql-user=root",
        f"--mysql-socket={server.socket}", f"--mysql-db={database}",
        f"--threads={threads}", f"--events={events}", f"--time={seconds}"]
    arguments += [f"--{name.replace('_', '-')}={value}"
                  for name, value in options.items()]
    done = subprocess.run([*arguments, command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BenchError(f"sysbench {script} failed:\n{done.stdout[-2000:]}")
    if command != "run":
        return None
    rate = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", done.stdout)
    p95 = re.search(r"95th percentile:\s+([\d.]+)", done.stdout)
    if not rate:
        raise BenchError(f"sysbench {script} reported no rate:\n"
                         + done.stdout[-2000:])
    return {"rate": float(rate[2]), "events": int(rate[1]),
            "p95": float(p95[1]) if p95 else None,
            "opened": sum(map(int, re.findall(r"(?m)^opened (\d+)$",
                                              done.stdout)))}
