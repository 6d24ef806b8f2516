#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
What InnoDB's checkpoint passes has to survive, in states that a few calls decide.

A server runs with disk.c, which holds single calls of the server until a
certain state is reached. After a checkpoint the server is killed, and recovers. Then
committed changes are there, and CHECK TABLE is content.

After these the files lose each write that was not synced, as by a power loss:

order   A page is written while the page cleaner is between syncing the files and reading
        the LSN for the checkpoint, where it waits for log_sys.latch: RENAME TABLE has that
        while it writes the log.
mark    A page is written while its file is being synced, and the next checkpoint has to
        sync the file again.
reopen  A page is written while SET GLOBAL innodb_data_file_write_through=ON (11.8) syncs
        its file in order to open it again with O_DSYNC: then no checkpoint syncs it.

In these another thread has a dirty page while DISCARD TABLESPACE looks at it:

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
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from benchlib import wire                                      # noqa: E402
from benchlib.program import one_of, run_program               # noqa: E402
from benchlib.servers import BenchError, Server                # noqa: E402
from benchlib.disk import (SECONDS, Disk, add_server_arguments,  # noqa: E402
                               build_layer)

DATABASE = "held"
ROOT, SECOND = 3 * 16384, 4 * 16384     # of the primary key, of the other index
ROWS = 600                      # of a table of which each page has about two
FUTEX = "202"                   # the system call in which a thread waits for a mutex
ER_UNKNOWN_SYSTEM_VARIABLE = 1193
# With these options InnoDB's background threads read and write no page. Only a
# statement makes them do so
QUIET_INNODB = ["--innodb-use-native-aio=0", "--innodb-max-dirty-pages-pct-lwm=0",
                "--innodb-max-dirty-pages-pct=90", "--innodb-fast-shutdown=1",
                "--innodb-stats-persistent=0", "--innodb-stats-auto-recalc=0",
                "--innodb-buffer-pool-dump-at-shutdown=0",
                "--innodb-buffer-pool-load-at-startup=0", "--skip-stack-trace"]


class Skipped(Exception):
    """This build or this machine cannot try the case."""


class NotReached(Exception):
    """The server does not come into the state that a case is about."""


def query_or_skip(connection, statement, reason):
    """Execute a statement with a variable that not every server has."""
    try:
        connection.query(statement)
    except wire.Error as error:
        if error.code != ER_UNKNOWN_SYSTEM_VARIABLE:
            raise
        raise Skipped(reason) from None


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


def mutex_of(server, thread):
    """The address of the mutex or latch that a thread waits for, or None."""
    call = pathlib.Path(f"/proc/{server.process.pid}/task/{thread}/syscall").read_text().split()
    return call[1] if call[0] == FUTEX else None


def wait_until(reached, what):
    end = time.monotonic() + SECONDS
    while not reached():
        if time.monotonic() > end:
            raise BenchError(f"the page cleaner does not wait for {what}")
        time.sleep(0.005)


class PowerLoss:
    """A change of both pages of t is committed. The page cleaner writes them, and those
    of two other tables, but for what is held."""

    options = ["--innodb-flush-method=O_DIRECT"]
    committed = "2"

    @staticmethod
    def create(server):
        for table in ("t", "other", "late", "away"):
            server.sql(f"CREATE TABLE {table} (a INT PRIMARY KEY, b INT, c INT, KEY(b)) "
                       f"ENGINE=InnoDB; INSERT INTO {table} VALUES (1, 1, 1);", DATABASE)

    @staticmethod
    def change_and_hold(connection, disk, *calls):
        connection.query("SELECT * FROM t, other, late, away")
        connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
        for call in calls:
            disk.hold(call)
        for table in ("t", "other", "late"):
            connection.query(f"UPDATE {table} SET b = 2")
        since = disk.mark()
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        return since

    def after_kill(self, disk):
        lost = disk.lose_unsynced()
        print("lost writes:", ", ".join(f"{file} {offset}" for file, offset in lost) or "none")

    def problems(self, server):
        rows = server.sql("SELECT b FROM t FORCE INDEX (PRIMARY);"
                          "SELECT b FROM t FORCE INDEX (b);", DATABASE)
        if rows != [[self.committed], [self.committed]]:
            yield (f"after the recovery, t has b = {rows[:1]} in the clustered index and "
                   f"{rows[1:]} in the other one; {self.committed} was committed")
        for row in server.sql("CHECK TABLE t EXTENDED", DATABASE):
            if row[-1] != "OK":
                yield f"CHECK TABLE: {' '.join(row)}"


class Order(PowerLoss):
    def run(self, server, connection, disk):
        since = self.change_and_hold(connection, disk, "write.t.ibd", "synced.other.ibd")
        disk.wait(since, "held-write", "t.ibd", ROOT)
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
        cleaner = disk.wait(since, "held-synced", "other.ibd")

        # The page cleaner syncs files. RENAME has the latch when it gets to the LSN
        disk.hold("write.ib_logfile0")
        Background(server, "RENAME TABLE away TO gone")
        disk.wait(since, "held-write", "ib_logfile0")
        disk.let_go("synced.other.ibd")
        seen = 0

        def sleeps():
            nonlocal seen
            seen = seen + 1 if mutex_of(server, cleaner) else 0
            return seen == 20

        wait_until(sleeps, "the latch")

        # The files are synced. Now the page is written, and the doublewrite buffer has
        # not synced it yet
        disk.hold("sync.t.ibd")
        disk.let_go("write.t.ibd")
        disk.wait(since, "write", "t.ibd", ROOT)
        time.sleep(0.2)                 # until the page is clean
        since = disk.mark()
        disk.let_go("write.ib_logfile0")
        disk.wait_for_checkpoint(since)


class Mark(PowerLoss):
    def run(self, server, connection, disk):
        since = self.change_and_hold(connection, disk, f"write.t.ibd.{ROOT}",
                                     "write.late.ibd", "synced.t.ibd")
        disk.wait(since, "held-write", "t.ibd", ROOT)
        disk.wait(since, "held-write", "late.ibd")
        disk.wait(since, "write", "t.ibd", SECOND)
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
        disk.wait(since, "held-synced", "t.ibd")

        # The file is synced, but the page cleaner does not know yet.  The last write of
        # the doublewrite batch is late, so the buffer does not sync now
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


class Reopen(PowerLoss):
    committed = "3"

    @staticmethod
    def change(connection, disk, value):
        """Change t, and have its pages written."""
        since = disk.mark()
        connection.query(f"UPDATE t SET b = {value}")
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        for page in (ROOT, SECOND):
            disk.wait(since, "write", "t.ibd", page)
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")

    def run(self, server, connection, disk):
        query_or_skip(connection, "SELECT @@GLOBAL.innodb_data_file_write_through",
                    "this server has no innodb_data_file_write_through")
        connection.query("SELECT * FROM t")
        connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
        since = disk.mark()
        disk.hold("sync.t.ibd")
        sets = Background(server, "SET GLOBAL innodb_data_file_write_through = 1")
        disk.wait(since, "held-sync", "t.ibd")

        # The thread that writes pages uses the file while SET syncs it
        self.change(connection, disk, 2)
        disk.let_go("sync.t.ibd")
        sets.join()

        self.change(connection, disk, 3)
        since = disk.mark()
        connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
        disk.wait_for_checkpoint(since)


class Discard:
    """A committed change of another table survives DISCARD TABLESPACE and kill -9."""

    options = ["--innodb-doublewrite=0", "--innodb-io-capacity=100",
               "--innodb-io-capacity-max=100"]

    @staticmethod
    def create(server):
        for table in ("t", "late", "closed"):
            server.sql(f"CREATE TABLE {table} (a INT AUTO_INCREMENT PRIMARY KEY, b INT) "
                       f"ENGINE=InnoDB; INSERT INTO {table} (b) VALUES (1);", DATABASE)
        server.sql("CREATE TABLE other (a INT PRIMARY KEY, b INT, c VARCHAR(7000)) "
                   "CHARSET latin1 ENGINE=InnoDB; INSERT INTO other SELECT seq, 1, "
                   f"REPEAT('c', 7000) FROM seq_1_to_{ROWS};", DATABASE)

    def after_kill(self, disk):
        """The operating system loses nothing."""

    @staticmethod
    def problems(server):
        lost = int(server.sql("SELECT COUNT(*) FROM other WHERE b <> 2", DATABASE)[0][0])
        if lost:
            yield (f"after the recovery, {lost} of {ROWS} rows are as before the UPDATE, "
                   "which was committed")


class Flush(Discard):
    @staticmethod
    def clean(connection, disk):
        """Have all pages written; return the page cleaner's thread. Without the
        doublewrite buffer nobody else syncs the file."""
        connection.query("UPDATE other SET b = 3 WHERE a = 1")
        connection.query("SET GLOBAL innodb_max_purge_lag_wait = 0")
        since = disk.mark()
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        cleaner = disk.wait(since, "sync", "other.ibd")
        connection.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
        connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
        return cleaner

    def run(self, server, connection, disk):
        connection.query("SELECT COUNT(*) FROM t, other, late")
        cleaner = self.clean(connection, disk)
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

        def both_wait():
            if not waits.thread.is_alive():
                raise NotReached("a thread that opens this file does not have the mutex")
            mutex = mutex_of(server, waits.thread_id)
            return mutex and mutex == mutex_of(server, cleaner)

        wait_until(both_wait, "the mutex")

        disk.let_go("close.t.ibd")
        discard.join()
        disk.let_go("open.closed.ibd.2")
        for statement in (opens, waits):
            statement.join()
        since = disk.mark()
        connection.query("UPDATE late SET b = 2")
        connection.query("SET GLOBAL innodb_log_checkpoint_now = 1")
        disk.wait_for_checkpoint(since)


class Unzip(Discard):
    def run(self, server, connection, disk):
        connection.query("SELECT COUNT(*) FROM t, other, late")
        connection.query("CREATE TABLE zipped (a INT PRIMARY KEY) ENGINE=InnoDB "
                         "ROW_FORMAT=COMPRESSED")
        connection.query("INSERT INTO zipped VALUES (1)")
        query_or_skip(connection, "SET GLOBAL innodb_buffer_pool_evict = 'uncompressed'",
                    "a release build has no innodb_buffer_pool_evict; use --type debug")
        since = disk.mark()
        disk.hold("inflate.page")
        reads = Background(server, "SELECT * FROM zipped")
        disk.wait(since, "held-inflate", "page")
        connection.query("ALTER TABLE t DISCARD TABLESPACE")
        disk.let_go("inflate.page")
        reads.join()
        connection.query("UPDATE other SET b = 2")


CASES = {"order": Order, "mark": Mark, "reopen": Reopen, "flush": Flush, "unzip": Unzip}


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


def try_case(name, args, directory):
    """Return what is wrong."""
    case = CASES[name]()
    disk = Disk(directory / "disk")
    layer = build_layer(directory)
    server = Server(args.tree, directory / "data",
                    [*QUIET_INNODB, *case.options], build=args.type)
    with server:
        server.sql(f"CREATE DATABASE {DATABASE}")
        case.create(server)
    # Recovery opens the files that the log mentions. At the next start it mentions none
    with server:
        pass
    server.environment = disk.environment(layer)
    try:
        server.start()
        connection = wire.Connection(server.socket, DATABASE)
        try:
            case.run(server, connection, disk)
        except NotReached as reason:
            print(f"{name}: not reached: {reason}")
        except (OSError, wire.Error, BenchError) as error:
            return [what_ended(server) or str(error)]
    finally:
        if server.process:
            server.kill()
    case.after_kill(disk)
    server.environment = {}
    with server:
        return list(case.problems(server))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_server_arguments(parser)
    parser.add_argument("cases", nargs="*", metavar="CASE", type=one_of(CASES),
                        help=f"{' or '.join(CASES)} (default: each)")
    args = parser.parse_args()
    wrong = False
    for name in args.cases or CASES:
        try:
            with tempfile.TemporaryDirectory(prefix="held-calls-",
                                             ignore_cleanup_errors=True) as directory:
                problems = try_case(name, args, pathlib.Path(directory))
        except Skipped as reason:
            print(f"{name}: skipped: {reason}", flush=True)
            continue
        print(f"{name}: {'; '.join(problems) or 'ok'}")
        wrong |= bool(problems)
    return int(wrong)


if __name__ == "__main__":
    run_program(main)
