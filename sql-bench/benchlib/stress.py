# SPDX-License-Identifier: GPL-2.0-only
"""The frame of the stress programs: their options, connections, and counting.

A program lets many connections do by chance what its own text says. It counts errors that
statements get from each other (a table that is gone, a timeout, a deadlock, a killed
statement). If the server reports a broken table, the program fails. When all connections have
ended, it checks that

1. the server is alive, and nobody has started it anew;
2. CHECK TABLE finds no error;
3. the tables that no connection drops (kept0, kept1...) have each row that a connection has
   counted as committed.

A program wants a server of its own: it drops and creates databases, and changes global
variables. It prints one JSON object. Exit status 0 means that all was well. What a sanitizer
finds is in the server's log.
"""

import argparse
import collections
import json
import os
import pathlib
import pwd
import random
import sys
import threading
import time

from .wire import Connection, Error

# Somebody killed the connection, or the server shuts down
LOST = {1053, 1927, 2006, 2013}
# These tell of a broken table: index corrupt, record file crashed, marked as crashed
BROKEN = {126, 127, 144, 145, 1034, 1035, 1194, 1195}


def parser(doc, connections, tables=None):
    """The options that all have; doc: the program's text, its first paragraph is for --help."""
    options = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    options.add_argument("--socket", required=True, help="Unix socket of the server")
    options.add_argument("--user", default=pwd.getpwuid(os.geteuid()).pw_name,
                         help="account, without a password (default %(default)s)")
    options.add_argument("--seconds", type=float, default=60,
                         help="how long to disturb the server (default %(default)s)")
    options.add_argument("--seed", type=int, default=int(time.time()),
                         help="of the random choices (default: the time)")
    options.add_argument("--connections", type=int, default=connections,
                         help="that work at once (default %(default)s)")
    if tables:
        options.add_argument("--tables", type=int, default=tables,
                             help="how many (default %(default)s)")
    return options


class Worker(threading.Thread):
    """A connection that works until the deadline. A program's own class has

    statements()        the kind of work, and its statements or a function

    and, to put rows into the tables kept0, kept1... and count them,

    kept_row()          columns and values of a row, as in "(a) VALUES (1)"
    """

    SETTINGS = "lock_wait_timeout = 5, innodb_lock_wait_timeout = 5, max_statement_time = 60"

    def __init__(self, args, number, deadline, made):
        """made: what the program's create() has returned"""
        super().__init__(daemon=True)
        self.args, self.number, self.deadline, self.made = args, number, deadline, made
        self.rng = random.Random(f"{args.seed}/{number}")
        self.done, self.errors = collections.Counter(), collections.Counter()
        self.lost = None                # the error that ended it early
        self.kept = [0] * args.kept     # rows inserted without error

    def execute(self, statement):
        """The rows of a statement, or None if it fails."""
        try:
            return self.session.query(statement)
        except Error as error:
            self.errors[error.code] += 1
            if error.code in LOST:
                raise ConnectionError from None
            return None

    def keep(self, *numbers):
        """Work that inserts a row into each of these tables."""
        def insert():
            for number in numbers:
                self.kept[number] += self.execute(
                    f"INSERT INTO kept{number} {self.kept_row()}") is not None
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
        try:
            self.session = Connection(self.args.socket, self.args.database, self.args.user)
            self.execute(f"SET SESSION {self.SETTINGS}")
            while time.monotonic() < self.deadline:
                kind, what = self.statements()
                if callable(what):
                    what()
                else:
                    for statement in what:
                        self.execute(statement)
                self.done[kind] += 1
            self.session.close()
        except (OSError, IndexError, Error) as error:
            self.lost = repr(error)


def make_database(session, database):
    for statement in (f"DROP DATABASE IF EXISTS {database}",
                      f"CREATE DATABASE {database}", f"USE {database}"):
        session.query(statement)


def tables_of(session, database):
    return [name for name, in session.text(
        "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = "
        f"'{database}' AND TABLE_TYPE = 'BASE TABLE'")]


def check_tables(session, database, tables, problems, how=""):
    """CHECK TABLE is content with each of them, when everybody is at rest."""
    for table in tables:
        rows = session.text(f"CHECK TABLE {database}.`{table}` {how}")
        wrong = [row for row in rows if row[2] != "note" and row[3] != "OK"]
        if wrong or not rows:
            problems.append(f"CHECK TABLE {table}: {wrong}")


def check_kept(session, database, workers, first, problems):
    """No row that was kept is lost, and none of the first ones that a table began
    with (who = -1)."""
    for number in range(len(workers[0].kept)):
        have = {int(who): int(count) for who, count in session.text(
            f"SELECT who, COUNT(*) FROM {database}.kept{number} GROUP BY who")}
        wanted = {-1: first, **{worker.number: worker.kept[number] for worker in workers}}
        problems += [f"kept{number}: {have.get(who, 0)} rows of connection {who}, "
                     f"{count} were inserted" for who, count in wanted.items()
                     if have.get(who, 0) != count]


def uptime(session):
    return session.status("Uptime")["Uptime"]


def run(doc, database, create, worker, check, *, connections=12, tables=None, kept=0, broken=()):
    """A program whose connections are all of one class, worker, and use one database, in
    which are so many tables that keep rows. The others are as in parser() and stress()."""
    args = parser(doc, connections, tables).parse_args()
    args.database, args.kept = database, kept
    stress(args, create, lambda deadline, made: [
        worker(args, number, deadline, made) for number in range(args.connections)],
           check, broken)


def stress(args, create, make_workers, check, broken=()):
    """Let connections work, and check what they leave. Print as JSON what was done and
    what is wrong, and end the program.

    create(session, args)                   makes what they need
    make_workers(deadline, made)            those who work; made: what create() has returned
    check(session, workers, problems)       everybody is at rest; a dictionary with what
                                            else to print
    broken                                  errors that tell of a broken table
    """
    problems, workers, more = [], [], {}
    try:
        session = Connection(args.socket, "information_schema", args.user)
        made = create(session, args)
        before, started = uptime(session), time.monotonic()
        workers = make_workers(started + args.seconds, made)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(max(0, started + args.seconds + 300 - time.monotonic()))
            if worker.is_alive():
                problems.append(f"connection {worker.number} hangs")
        problems += [f"connection {worker.number} ended early: {worker.lost}"
                     for worker in workers if worker.lost]
        # Uptimes are in whole seconds and follow a clock of their own
        if uptime(session) < before + int(time.monotonic() - started) - 5:
            problems.append("the server was started anew")
        if not problems:
            more = check(session, workers, problems)
    except (OSError, IndexError) as error:
        problems.append(f"the server is gone: {error!r}")
    except (Error, RuntimeError) as error:
        problems.append(str(error))
    errors = sum((worker.errors for worker in workers), collections.Counter())
    problems += [f"error {number} (a broken table) {errors[number]} times"
                 for number in sorted(set(broken) & set(errors))]
    kept = sum(sum(worker.kept) for worker in workers)
    if workers and workers[0].kept and not kept:
        problems.append("no connection kept a row")
    print(json.dumps({
        "program": pathlib.Path(sys.argv[0]).stem, "ok": not problems, "seed": args.seed,
        "seconds": args.seconds, "connections": args.connections,
        "done": sum((worker.done for worker in workers), collections.Counter()),
        "errors": errors, "kept_rows": kept, **more, "problems": problems}))
    # A thread that hangs must not keep the program from ending
    sys.stdout.flush()
    os._exit(1 if problems else 0)
