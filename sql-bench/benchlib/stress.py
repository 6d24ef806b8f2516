# SPDX-License-Identifier: GPL-2.0-only
"""The common part of the stress programs: their options, clients, and counting.

A connection is a "mariadb" client that is fed through a pipe; nothing but
Python's standard library is needed.
"""

import argparse
import json
import os
import pwd
import queue
import random
import subprocess
import sys
import threading
import time


def parser(doc, connections, user=None):
    """The options that all have; doc: the program's text, its first
    paragraph is for --help."""
    options = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    options.add_argument("--socket", required=True,
                         help="Unix socket of the server")
    options.add_argument("--user",
                         default=user or pwd.getpwuid(os.geteuid()).pw_name,
                         help="account, without a password (default %(default)s)")
    options.add_argument("--seconds", type=float, default=60,
                         help="how long to disturb the server (default "
                         "%(default)s)")
    options.add_argument("--seed", type=int, default=int(time.time()),
                         help="of the random choices (default: the time)")
    options.add_argument("--connections", type=int, default=connections,
                         help="that work at once (default %(default)s)")
    return options


def add_client(options):
    """For programs that use Client."""
    options.add_argument("--client", default="mariadb",
                         help="MariaDB's command-line client (default "
                         "%(default)s)")


class Gone(Exception):
    pass


class Client:
    """A mariadb client, to which statements are sent one at a time."""

    def __init__(self, args, database="stress"):
        self.errors = {}
        self.number = 0
        self.lost = False
        self.lines = queue.Queue()
        self.process = subprocess.Popen(
            [args.client, "--no-defaults", "--socket=" + args.socket,
             "--user=" + args.user, "--force", "--skip-reconnect", "--unbuffered",
             "--batch", "--raw", "--skip-column-names",
             "--database=" + database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1)
        self.stderr = threading.Thread(target=self.read_errors, daemon=True)
        self.stderr.start()
        self.stdout = threading.Thread(target=self.read_lines, daemon=True)
        self.stdout.start()

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            if line.startswith("ERROR "):
                number = line.split()[1]
                self.errors[number] = self.errors.get(number, 0) + 1
                if number in ("1927", "2006", "2013"):
                    # Somebody killed the connection: begin a new one.
                    self.lost = True
                    self.lines.put(None)

    def run(self, statement):
        """Run it, wait until it is done, return its rows."""
        self.number += 1
        end = "end of %d" % self.number
        try:
            self.process.stdin.write(statement + ";\n")
            rows = []
            while True:
                self.process.stdin.write("SELECT '" + end + "';\n")
                self.process.stdin.flush()
                try:
                    while True:
                        line = self.lines.get(timeout=3)
                        if line is None:
                            raise Gone()
                        if line == end:
                            return rows
                        if not line.startswith("end of "):
                            rows.append(line.split("\t"))
                except queue.Empty:
                    # It takes its time, or the SELECT was killed: send another.
                    pass
        except (OSError, ValueError):
            raise Gone()

    def close(self):
        try:
            if self.lost:
                self.process.kill()
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def status(client, name):
    rows = client.run("SHOW GLOBAL STATUS LIKE '%s'" % name)
    return rows[0][1] if rows else None


def total(counts):
    """Add up dictionaries of numbers."""
    result = {}
    for one in counts:
        for key, number in one.items():
            result[key] = result.get(key, 0) + number
    return result


def was_restarted(client, uptime, since):
    """Whether the server was started anew after it had the given uptime, at
    time.monotonic() == since.  Of uptimes, which are in whole seconds and
    follow a clock of their own, 5 seconds are allowed for."""
    return int(status(client, "Uptime")) < \
        uptime + int(time.monotonic() - since) - 5


class KeepingWorker(threading.Thread):
    """A connection that works until the deadline, and counts the rows that it has
    put into the tables kept0, kept1...  A program's own class has

    statements()        the kind of work, and its statements or a function of the
                        client
    kept_row(number)    columns and values of a row to keep, as in "(a) VALUES (1)"
    """

    SETTINGS = "lock_wait_timeout = 5, max_statement_time = 60"

    def __init__(self, args, number, deadline, database, tables):
        super().__init__()
        self.args, self.number, self.deadline = args, number, deadline
        self.database = database
        self.rng = random.Random(f"{args.seed}/{number}")
        self.done = {}
        self.errors = {}
        self.lost = False
        self.kept = [0] * tables        # Rows inserted without error

    def keep(self, number):
        """Work that inserts a row; ROW_COUNT() tells whether it did."""
        def insert(client):
            rows = client.run(f"INSERT INTO kept{number} "
                              f"{self.kept_row(number)};\nSELECT ROW_COUNT()")
            self.kept[number] += rows == [["1"]]
        return "keep", insert

    def ddl(self, table, kept, columns):
        """Lists of statements that create a table anew, empty it, or rename it or
        one with kept rows there and back."""
        away = f"away{self.number}"
        return [
            [f"CREATE OR REPLACE TABLE {table} " + columns],
            [f"DROP TABLE IF EXISTS {table}",
             f"CREATE TABLE IF NOT EXISTS {table} " + columns],
            [f"RENAME TABLE {table} TO {away}, {away} TO {table}"],
            [f"RENAME TABLE {kept} TO {away}, {away} TO {kept}"],
            [f"TRUNCATE TABLE {table}"]]

    def run(self):
        client = Client(self.args, database=self.database)
        try:
            client.run(f"SET SESSION {self.SETTINGS}")
            while time.monotonic() < self.deadline:
                kind, what = self.statements()
                if callable(what):
                    what(client)
                else:
                    for statement in what:
                        client.run(statement)
                self.done[kind] = self.done.get(kind, 0) + 1
        except Gone:
            self.lost = True
        finally:
            client.close()
            self.errors = client.errors


def work(workers, started, problems):
    """Start them and wait for their end; a connection that hangs is a problem."""
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0, started + worker.args.seconds + 300
                        - time.monotonic()))
        if worker.is_alive():
            problems.append(f"connection {worker.number} hangs")
    if any(worker.lost for worker in workers):
        problems.append("a connection was lost")


def check_kept(client, workers, names, first, problems):
    """Everybody is at rest: no row of a KeepingWorker is lost, and none of the
    first ones that a table began with (who = -1).  names: for messages."""
    for number, name in enumerate(names):
        rows = client.run(f"SELECT who, COUNT(*) FROM {workers[0].database}."
                          f"kept{number} GROUP BY who")
        have = {int(row[0]): int(row[1]) for row in rows}
        for worker in workers:
            if have.get(worker.number, 0) != worker.kept[number]:
                problems.append(
                    f"{name}: {have.get(worker.number, 0)} rows of connection "
                    f"{worker.number}, {worker.kept[number]} were inserted")
        if have.get(-1) != first:
            problems.append(f"{name}: {have.get(-1, 0)} of {first} first rows")


def report(program, args, workers, broken, problems, **more):
    """Print what was done and what is wrong as JSON, and end the program.

    broken: errors that tell of a broken table; more: other things to print
    """
    errors = total(worker.errors for worker in workers)
    for number in sorted(broken & set(errors)):
        problems.append(f"error {number} (a broken table) {errors[number]} "
                        "times")
    if workers and not any(map(any, (worker.kept for worker in workers))):
        problems.append("no connection kept a row")
    print(json.dumps({
        "program": program, "ok": not problems, "seed": args.seed,
        "seconds": args.seconds, "connections": args.connections,
        "done": total(worker.done for worker in workers), "errors": errors,
        "kept_rows": sum(sum(worker.kept) for worker in workers), **more,
        "problems": problems}))
    # A thread that hangs must not keep the program from ending
    sys.stdout.flush()
    os._exit(1 if problems else 0)
