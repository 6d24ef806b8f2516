#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
What InnoDB's checkpoint passes has to survive a power loss.

A server runs with unsynced_writes.c, which holds single calls of the server until a
certain state is reached. After a checkpoint the server is killed, the files lose each write
that was not synced, and the server recovers. Each case ends in the same check: a committed
change of two pages is there, and CHECK TABLE is content.

order   A page is written while the page cleaner is between syncing the files and reading
        the LSN for the checkpoint, where it waits for log_sys.latch: RENAME TABLE has that
        while it writes the log.
mark    A page is written while its file is being synced, and the next checkpoint has to
        sync the file again.

Exit status 0 means that all was well.
"""

import argparse
import pathlib
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from benchlib import wire                                      # noqa: E402
from benchlib.program import run_program                     # noqa: E402
from benchlib.servers import BenchError, Server                # noqa: E402
from benchlib.unsynced import (Disk, QUIET_INNODB, SECONDS,   # noqa: E402
                               add_case_arguments, build_layer, run_cases)

ROOT, SECOND = 3 * 16384, 4 * 16384     # of the primary key, of the other index
DATABASE = "powerloss"


def wait_asleep(process, thread):
    """Wait until a thread waits for a mutex or a latch."""
    end = time.monotonic() + SECONDS
    seen = 0
    while seen < 20:
        if time.monotonic() > end:
            raise BenchError("the page cleaner does not wait")
        call = pathlib.Path(f"/proc/{process}/task/{thread}/syscall").read_text()
        seen = seen + 1 if call.split()[0] == "202" else 0      # futex
        time.sleep(0.005)


def in_background(server, statement):
    thread = threading.Thread(
        target=lambda: subprocess.run(server.client(DATABASE), input=statement, text=True,
                                      stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, check=False),
        daemon=True)
    thread.start()
    return thread


def change_and_hold(connection, disk, *calls):
    """Commit a change of both pages of t, and of two other tables, and have the page
    cleaner write them, but for what is held."""
    connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
    for call in calls:
        disk.hold(call)
    connection.query("UPDATE t SET b = 2")
    connection.query("UPDATE other SET b = 2")
    connection.query("UPDATE late SET b = 2")
    since = disk.mark()
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    return since


def case_order(server, connection, disk):
    since = change_and_hold(connection, disk, "write.t.ibd", "synced.other.ibd")
    disk.wait(since, "held-write", "t.ibd", ROOT)
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
    cleaner = disk.wait(since, "held-synced", "other.ibd")

    # The page cleaner syncs files. RENAME has the latch when it gets to the LSN
    disk.hold("write.ib_logfile0")
    in_background(server, "RENAME TABLE away TO gone")
    disk.wait(since, "held-write", "ib_logfile0")
    disk.let_go("synced.other.ibd")
    wait_asleep(server.process.pid, cleaner)

    # The files are synced. Now the page is written, and the doublewrite buffer has not
    # synced it yet
    disk.hold("sync.t.ibd")
    disk.let_go("write.t.ibd")
    disk.wait(since, "write", "t.ibd", ROOT)
    time.sleep(0.2)                     # until the page is clean
    since = disk.mark()
    disk.let_go("write.ib_logfile0")
    disk.wait_for_checkpoint(since)


def case_mark(server, connection, disk):
    since = change_and_hold(connection, disk, f"write.t.ibd.{ROOT}", "write.late.ibd",
                            "synced.t.ibd")
    disk.wait(since, "held-write", "t.ibd", ROOT)
    disk.wait(since, "held-write", "late.ibd")
    disk.wait(since, "write", "t.ibd", SECOND)
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
    disk.wait(since, "held-synced", "t.ibd")

    # The file is synced, but the page cleaner does not know yet.  The last write of the
    # doublewrite batch is late, so the buffer does not sync now
    disk.let_go(f"write.t.ibd.{ROOT}")
    disk.wait(since, "write", "t.ibd", ROOT)
    time.sleep(0.2)
    disk.let_go("synced.t.ibd")
    time.sleep(0.2)
    disk.let_go("write.late.ibd")
    since = disk.mark()
    connection.query("UPDATE other SET b = 3")
    connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
    disk.wait_for_checkpoint(since)


CASES = {"order": case_order, "mark": case_mark}


def try_case(name, tree, build, directory, options):
    """Return what is wrong."""
    disk = Disk(directory / "disk")
    layer = build_layer(directory)
    server = Server(tree, directory / "data", options, build=build)
    with server:
        server.sql(f"CREATE DATABASE {DATABASE}")
        for table in ("t", "other", "late", "away"):
            server.sql(f"CREATE TABLE {table} (a INT PRIMARY KEY, b INT, c INT, KEY(b)) "
                       f"ENGINE=InnoDB; INSERT INTO {table} VALUES (1, 1, 1);", DATABASE)

    server.environment = disk.environment(layer)
    try:
        server.start()
        connection = wire.Connection(server.socket, DATABASE)
        connection.query("SELECT * FROM t, other, late, away")
        CASES[name](server, connection, disk)
    finally:
        if server.process:
            server.kill()
    lost = disk.lose_unsynced()
    print(f"{name}: lost writes: "
          f"{', '.join(f'{file} {offset}' for file, offset in lost) or 'none'}")

    problems = []
    server.environment = {}
    with server:
        rows = server.sql("SELECT b FROM t FORCE INDEX (PRIMARY);"
                          "SELECT b FROM t FORCE INDEX (b);", DATABASE)
        if rows != [["2"], ["2"]]:
            problems.append("after the recovery, t has b = "
                            f"{rows[:1]} in the clustered index and {rows[1:]} in the "
                            "other one; 2 was committed")
        for row in server.sql("CHECK TABLE t EXTENDED", DATABASE):
            if row[-1] != "OK":
                problems.append(f"CHECK TABLE: {' '.join(row)}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_case_arguments(parser, CASES)
    parser.add_argument("--flush-method", default="O_DIRECT",
                        help="innodb_flush_method (default %(default)s)")
    parser.add_argument("--no-doublewrite", action="store_true",
                        help="innodb_doublewrite=OFF")
    args = parser.parse_args()
    options = [*QUIET_INNODB,
               f"--innodb-flush-method={args.flush_method}",
               f"--innodb-doublewrite={0 if args.no_doublewrite else 1}"]
    return run_cases(
        args.cases or CASES, "power-loss-", args.keep, lambda name, directory:
        try_case(name, args.tree, args.type, directory, options))


if __name__ == "__main__":
    run_program(main)
