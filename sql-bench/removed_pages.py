#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Another thread has a dirty page of InnoDB's while DISCARD TABLESPACE looks at it.

A server runs with unsynced_writes.c, which holds single calls of the server until a
certain state is reached. The server has to survive it, and a committed change of another
table has to survive kill -9 after the next checkpoint.

flush   The page cleaner has chosen a dirty page of table t, has released its mutexes, and
        waits for the mutex of all tablespaces, which a thread that opens a file has. ALTER
        TABLE t DISCARD TABLESPACE removes the page from the list of dirty pages. Behind it
        in the list are more pages than the page cleaner writes at once.
unzip   A thread decompresses a dirty page of another table. Only a debug build has the
        setting that makes it do so, and the assertion that fails.
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
                               Skipped, add_case_arguments, build_layer, run_cases)

DATABASE = "removed"
ER_UNKNOWN_SYSTEM_VARIABLE = 1193
ROWS = 600                      # of the other table, about two a page


class NotReached(Exception):
    """The server does not come into the state that a case is about."""


class Background:
    """A statement that runs in a connection of its own."""

    def __init__(self, server, statement):
        self.connection = wire.Connection(server.socket, DATABASE)
        self.thread_id = int(self.connection.query(
            "SELECT TID FROM information_schema.processlist WHERE ID = CONNECTION_ID()")
            [0][0])
        self.thread = threading.Thread(target=self.run, args=(statement,), daemon=True)
        self.thread.start()

    def run(self, statement):
        try:
            self.connection.query(statement)
        except (OSError, wire.Error):
            pass                        # the check of the data tells

    def join(self):
        self.thread.join(SECONDS)
        if self.thread.is_alive():
            raise BenchError("a statement does not end")


def mutex_of(process, thread):
    """The address of the mutex that a thread waits for, or None."""
    call = pathlib.Path(f"/proc/{process}/task/{thread}/syscall").read_text().split()
    return call[1] if call[0] == "202" else None


def wait_for_same_mutex(process, statement, cleaner):
    """Wait until the page cleaner waits for the mutex that a statement waits for."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if not statement.thread.is_alive():
            raise NotReached("a thread that opens this file does not have the mutex")
        mutex = mutex_of(process, statement.thread_id)
        if mutex and mutex == mutex_of(process, cleaner):
            return
        time.sleep(0.005)
    raise BenchError("the page cleaner does not wait for the mutex")


def clean(connection, disk):
    """Have all pages written; return the page cleaner's thread. Without the doublewrite
    buffer nobody else syncs the file."""
    connection.query("UPDATE other SET b = 3 WHERE a = 1")
    connection.query("SET GLOBAL innodb_max_purge_lag_wait = 0")
    since = disk.mark()
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    cleaner = disk.wait(since, "sync", "other.ibd")
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
    connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
    return cleaner


def case_flush(server, connection, disk):
    cleaner = clean(connection, disk)
    # This changes a page of t first, without an undo log
    connection.query("ALTER TABLE t AUTO_INCREMENT = 100")
    connection.query("UPDATE other SET b = 2")
    since = disk.mark()

    # The tablespace is gone, its pages are still in the list
    disk.hold("close.t.ibd")
    discard = Background(server, "ALTER TABLE t DISCARD TABLESPACE")
    disk.wait(since, "held-close", "t.ibd")

    # InnoDB has not opened this file yet. Two threads wait for the mutex
    disk.hold("open.closed.ibd.2")
    opens = Background(server, "SELECT * FROM closed")
    disk.wait(since, "held-open", "closed.ibd")
    waits = Background(server, "SELECT COUNT(*) FROM "
                       "information_schema.innodb_tablespaces_encryption")
    connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    wait_for_same_mutex(server.process.pid, waits, cleaner)

    disk.let_go("close.t.ibd")
    discard.join()
    disk.let_go("open.closed.ibd.2")
    for statement in (opens, waits):
        statement.join()
    since = disk.mark()
    connection.query("UPDATE late SET b = 2")
    connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
    disk.wait_for_checkpoint(since)


def case_unzip(server, connection, disk):
    connection.query("CREATE TABLE zipped (a INT PRIMARY KEY) ENGINE=InnoDB "
                     "ROW_FORMAT=COMPRESSED")
    connection.query("INSERT INTO zipped VALUES (1)")
    try:
        connection.query("SET GLOBAL innodb_buffer_pool_evict = 'uncompressed'")
    except wire.Error as error:
        if error.code != ER_UNKNOWN_SYSTEM_VARIABLE:
            raise
        raise Skipped("a release build has no innodb_buffer_pool_evict; use "
                      "--type debug") from None
    since = disk.mark()
    disk.hold("inflate.page")
    reads = Background(server, "SELECT * FROM zipped")
    disk.wait(since, "held-inflate", "page")
    connection.query("ALTER TABLE t DISCARD TABLESPACE")
    disk.let_go("inflate.page")
    reads.join()
    connection.query("UPDATE other SET b = 2")


CASES = {"flush": case_flush, "unzip": case_unzip}


def what_ended(server):
    """Why a server has ended, or None if it runs."""
    try:
        server.process.wait(5)
    except subprocess.TimeoutExpired:
        return None
    log = pathlib.Path(server.run_directory, "log").read_text(errors="replace")
    for line in log.splitlines():
        if "ssertion" in line:
            return f"the server ended: {line.strip()}"
    return "the server ended"


def try_case(name, tree, build, directory, options):
    """Return what is wrong."""
    disk = Disk(directory / "disk")
    layer = build_layer(directory)
    server = Server(tree, directory / "data", options, build=build)
    with server:
        server.sql(f"CREATE DATABASE {DATABASE}")
        for table in ("t", "late", "closed"):
            server.sql(f"CREATE TABLE {table} (a INT AUTO_INCREMENT PRIMARY KEY, b INT) "
                       f"ENGINE=InnoDB; INSERT INTO {table} (b) VALUES (1);", DATABASE)
        server.sql("CREATE TABLE other (a INT PRIMARY KEY, b INT, c VARCHAR(7000)) "
                   "CHARSET latin1 ENGINE=InnoDB; INSERT INTO other SELECT seq, 1, "
                   f"REPEAT('c', 7000) FROM seq_1_to_{ROWS};", DATABASE)

    # Recovery opens the files that the log mentions. At the next start it mentions none
    with server:
        pass
    server.environment = disk.environment(layer)
    problems = []
    try:
        server.start()
        connection = wire.Connection(server.socket, DATABASE)
        connection.query("SELECT COUNT(*) FROM t, other, late")
        try:
            CASES[name](server, connection, disk)
        except NotReached as reason:
            print(f"{name}: not reached: {reason}")
        except (OSError, wire.Error, BenchError) as error:
            problems.append(what_ended(server) or str(error))
    finally:
        if server.process:
            server.kill()
    if problems:
        return problems

    # The recovery, on the same files
    server.environment = {}
    with server:
        lost = int(server.sql("SELECT COUNT(*) FROM other WHERE b <> 2", DATABASE)[0][0])
        if lost:
            problems.append(f"after the recovery, {lost} of {ROWS} rows are as before the "
                            "UPDATE, which was committed")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_case_arguments(parser, CASES)
    args = parser.parse_args()
    options = [*QUIET_INNODB, "--innodb-doublewrite=0", "--skip-stack-trace",
               "--innodb-io-capacity=100", "--innodb-io-capacity-max=100"]
    return run_cases(
        args.cases or CASES, "removed-pages-", args.keep, lambda name, directory:
        try_case(name, args.tree, args.type, directory, options))


if __name__ == "__main__":
    run_program(main)
