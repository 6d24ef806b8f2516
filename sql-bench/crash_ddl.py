#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
A power loss at each step of CREATE, DROP, RENAME and TRUNCATE TABLE, DROP DATABASE, and
DELETE of all rows.

A server runs with disk.c, which kills it before one of the calls with which a statement
writes, syncs, extends, creates, renames or deletes a file. Then the files lose each write
and extension that was not synced, and the server recovers. So it does for call after
call, or, with --points, for that many of them, evenly spread. After each recovery

- the statement is done, or it is not (DROP of several tables: each table);
- if it was answered, it is done;
- CHECK TABLE is content with each table, and its rows are there: those of the table
  that it was before, so a swap of two tables is seen;
- each table has its files, and each file belongs to a table;
- with --binary-log, RENAME is in the binary log as often as it is done.

An engine such as Aria+InnoDB stands for tables of these engines in turn.

With --only-kill, the files keep all writes, as after kill -9. That is all that Aria and MyISAM
promise, which sync neither rows nor, while they create them, headers.

What a file system loses besides, such as a name that was not synced, is not shown: names of
files last at once, and so do lengths, but for those that fallocate() makes.

Exit status 0 means that all was well.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from benchlib import wire                                      # noqa: E402
from benchlib.program import list_of, one_of, run_program      # noqa: E402
from benchlib.servers import BenchError, Server                # noqa: E402
from benchlib.disk import Disk, add_server_arguments, build_layer  # noqa: E402

COLUMNS = "(a INT PRIMARY KEY, b INT, c TEXT, KEY (b), KEY (b, a), KEY (c(9)))"
ROWS = "VALUES (1, 1, REPEAT('x', 3000)), (2, 2, '{table}')"
EMPTY = ""                      # what a table without rows has
OLD = ["a", "b", "c"]           # the tables that there are before


def same(*names):
    return {name: name for name in names}


SWAP = "RENAME TABLE {0} TO n, {1} TO {0}, n TO {1}"
# {name: (statements, outcomes)}. Each outcome is {table: the table whose rows it has}, in
# the order in which the statements reach them: the last one is that they are done. After
# the recovery exactly these tables are there. None: any of the tables may be left, each
# with its rows
STATEMENTS = {
    "create": ("CREATE TABLE n {columns} ENGINE={engine}",
               [same(*OLD), {**same(*OLD), "n": EMPTY}]),
    "drop": ("DROP TABLE a", [same(*OLD), same("b", "c")]),
    "drop-many": ("DROP TABLE a, b, c", [same(*OLD[i:]) for i in range(4)]),
    "rename": ("RENAME TABLE a TO n",
               [same(*OLD), {**same("b", "c"), "n": "a"}]),
    "rename-many": ("RENAME TABLE a TO n, b TO a",
                    [same(*OLD), {"n": "a", "a": "b", "c": "c"}]),
    "swap": (SWAP.format("a", "b"), [same(*OLD), {"a": "b", "b": "a", "c": "c"}]),
    "swap-twice": (SWAP.format("a", "b") + ";" + SWAP.format("b", "c"),
                   [same(*OLD), {"a": "b", "b": "a", "c": "c"},
                    {"a": "b", "b": "c", "c": "a"}]),
    "truncate": ("TRUNCATE TABLE a", [same(*OLD), {**same("b", "c"), "a": EMPTY}]),
    "delete": ("DELETE FROM a", [same(*OLD), {**same("b", "c"), "a": EMPTY}]),
    "delete-insert": (f"DELETE FROM a;INSERT INTO a {ROWS.replace('{table}', 'n')}",
                      [same(*OLD), {**same("b", "c"), "a": EMPTY},
                       {**same("b", "c"), "a": "n"}]),
    "replace": ("CREATE OR REPLACE TABLE a {columns} ENGINE={engine}",
                [same(*OLD), same("b", "c"), {**same("b", "c"), "a": EMPTY}]),
    # In any order
    "drop-database": ("DROP DATABASE d",
                      [same(*(t for i, t in enumerate(OLD) if bits >> i & 1))
                       for bits in reversed(range(8))] + [None]),
    # More tables than one batch of fil0ddl.cc has: each of them, in any order
    "drop-database-of-70": ("DROP DATABASE d", None),
    "drop-of-70": ("DROP TABLE {tables}", None),
}
MANY = [*OLD] + [f"t{number}" for number in range(67)]


def tables_before(name):
    return MANY if STATEMENTS[name][1] is None else OLD


SUFFIXES = {"InnoDB": {".frm", ".ibd"}, "Aria": {".frm", ".MAI", ".MAD"},
            "MyISAM": {".frm", ".MYI", ".MYD"}}


def list_of_engines(text):
    """For argparse's type: such as InnoDB,Aria+MyISAM."""
    for engine in text.split(","):
        list_of(SUFFIXES)(engine.replace("+", ","))
    return text.split(",")


def engine_of(table, engine):
    """That of a table that there was before, or of a new one."""
    engines = engine.split("+")
    return engines[MANY.index(table) % len(engines) if table in MANY else 0]


class Run:
    """Some statements on a copy of the prepared data directory."""

    def __init__(self, args, model, layer, directory, engine):
        self.engine = engine
        self.only_kill = args.only_kill
        self.binary_log = args.binary_log
        self.disk = Disk(directory / "disk")
        self.server = Server(args.tree, directory / "data", args.options, build=args.type)
        shutil.copytree(model, self.server.datadir)
        self.server.environment = self.disk.environment(layer, self.server.datadir)

    def execute(self, statements, point):
        """Execute them, and be killed at a step; return how many were answered, and how
        many steps there were."""
        try:
            self.server.start()
            session = wire.Connection(self.server.socket, "d")
            before = self.disk.mark()
            part = self.disk.path / "kill.new"
            part.write_text(str(point))
            part.rename(self.disk.path / "kill")
            answered = 0
            try:
                for statement in statements:
                    session.query(statement)
                    answered += 1
            except (wire.Error, ConnectionError):
                pass
            session.close()
        finally:
            if self.server.process:
                self.server.kill()
        steps = sum(event[0].startswith("step-") for event in self.disk.events()[before:])
        return answered, steps

    def recover(self, statements, answered, outcomes):
        """Return what is wrong after the recovery."""
        lost = [] if self.only_kill else self.disk.lose_unsynced()
        self.server.environment = {}
        problems = []
        with self.server as server:
            server.sql("SET GLOBAL innodb_max_purge_lag_wait=0")
            tables = self.tables(server)
            found = None if tables is None else {}
            for table in sorted(tables or ()):
                try:
                    for row in server.sql(f"CHECK TABLE {table} EXTENDED", "d"):
                        if row[-1] != "OK":
                            problems.append("CHECK TABLE: " + " ".join(row))
                    found[table] = self.rows(server, table)
                except BenchError as error:
                    problems.append(str(error))
            if not problems:
                if outcomes is None:
                    right = not found or found == same(*found)
                    done = not found
                else:
                    right = found in outcomes
                    reached = outcomes.index(found) if right else 0
                    done = reached >= (answered if answered < len(statements)
                                       else len(outcomes) - 1)
                    renames = self.renames_in_binary_log(server)
                    if right and statements[0].startswith("RENAME") and \
                            renames not in (None, reached):
                        problems.append(f"{renames} in the binary log, {reached} done")
                if not right:
                    problems.append(f"neither done nor not done: {found}")
                elif answered and not done:
                    problems.append(f"{answered} answered, but not done: {found}")
            problems += self.files(server, found)
        if problems:
            problems.append("lost: " + ", ".join(f"{n} {o}" for n, o in lost[:20]))
        return problems

    @staticmethod
    def tables(server):
        if not server.sql("SHOW DATABASES LIKE 'd'"):
            return None
        return {name for name, in server.sql(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'd'")}

    @staticmethod
    def rows(server, table):
        """The table whose rows a table has, or EMPTY; else the rows."""
        rows = server.sql(f"SELECT a, b, IF(a = 1, LENGTH(c), c) FROM {table}", "d")
        if not rows:
            return EMPTY
        if len(rows) == 2 and rows[0] == ["1", "1", "3000"] and \
                rows[1][:2] == ["2", "2"]:
            return rows[1][2]
        return str(rows)

    def renames_in_binary_log(self, server):
        if not self.binary_log:
            return None
        return sum("RENAME TABLE" in event[-1] for log in server.sql("SHOW BINARY LOGS")
                   for event in server.sql(f"SHOW BINLOG EVENTS IN '{log[0]}'"))

    def files(self, server, found):
        """What is wrong with the files of the database."""
        directory = server.datadir / "d"
        here = ({path.name for path in directory.iterdir()} - {"db.opt"}
                if directory.exists() else set())
        engines = {table: engine_of(was, self.engine) for table, was in (found or {}).items()}
        expected = {table + suffix for table, engine in engines.items()
                    for suffix in SUFFIXES[engine]}
        problems = []
        if here - expected:
            problems.append(f"files without table: {sorted(here - expected)}")
        if expected - here:
            problems.append(f"tables without file: {sorted(expected - here)}")
        known = {name.split("/")[1] for name, in server.sql(
            "SELECT name FROM information_schema.innodb_sys_tables WHERE name LIKE 'd/%'")}
        if known != {table for table, engine in engines.items() if engine == "InnoDB"}:
            problems.append(f"InnoDB's dictionary has {sorted(known)}, "
                            f"the server {sorted(found or ())}")
        return problems


def try_statement(args, name, engine, model, layer):
    """Return the number of steps, how many were tried, and the problems."""
    text, outcomes = STATEMENTS[name]
    statements = text.format(columns=COLUMNS, engine=engine.split("+")[0],
                             tables=", ".join(MANY)).split(";")

    def run(point):
        with tempfile.TemporaryDirectory(prefix="crash-ddl-",
                                         ignore_cleanup_errors=True) as directory:
            execution = Run(args, model, layer, pathlib.Path(directory), engine)
            answered, steps = execution.execute(statements, point)
            return steps, execution.recover(statements, answered, outcomes)

    steps, problems = run(1 << 30)
    problems = [f"{name} {engine}, after it: {text}" for text in problems]
    points = range(1, steps + 1)
    if args.points and args.points < steps:
        points = sorted({1 + i * (steps - 1) // max(1, args.points - 1)
                         for i in range(args.points)})
    said = time.monotonic()
    for point in points:
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"{name} {engine}: step {point} of {steps}", file=sys.stderr, flush=True)
        for text in run(point)[1]:
            problems.append(f"{name} {engine}, killed at step {point} of {steps}: {text}")
            print(problems[-1], flush=True)
    return steps, len(points), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_server_arguments(parser)
    parser.add_argument("statements", nargs="*", metavar="STATEMENT", type=one_of(STATEMENTS),
                        help=f"{', '.join(STATEMENTS)} (default: each)")
    parser.add_argument("--engines", default="InnoDB", type=list_of_engines,
                        help="such as InnoDB,Aria+MyISAM (default InnoDB)")
    parser.add_argument("--only-kill", action="store_true", help="lose no writes")
    parser.add_argument("--binary-log", action="store_true", help="let the servers write it")
    parser.add_argument("--points", type=int, default=0,
                        help="how many steps of each statement (default: each)")
    args = parser.parse_args()
    args.options = ["--innodb-use-native-aio=0", "--innodb-flush-method=O_DIRECT",
                    "--innodb-log-file-size=10M", "--innodb-buffer-pool-size=16M",
                    "--innodb-buffer-pool-dump-at-shutdown=0",
                    "--innodb-buffer-pool-load-at-startup=0",
                    "--innodb-fast-shutdown=0"]
    if args.binary_log:
        args.options += ["--log-bin=binary-log", "--sync-binlog=1"]
    total, problems = 0, []
    with tempfile.TemporaryDirectory(prefix="crash-ddl-") as place:
        place = pathlib.Path(place)
        layer = build_layer(place)
        for engine in args.engines:
            models = {}
            for name in args.statements or STATEMENTS:
                tables = tables_before(name)
                if len(tables) not in models:
                    model = Server(args.tree, place / f"{engine}-{len(tables)}",
                                   args.options, build=args.type)
                    with model:
                        model.sql("CREATE DATABASE d")
                        model.sql("".join(
                            f"CREATE TABLE {table} {COLUMNS} "
                            f"ENGINE={engine_of(table, engine)}; INSERT INTO {table} "
                            f"{ROWS.format(table=table)};" for table in tables), "d")
                    models[len(tables)] = model.datadir
                steps, tried, wrong = try_statement(args, name, engine,
                                                    models[len(tables)], layer)
                total += tried
                problems += wrong
                print(f"{name} {engine}: {steps} steps, {tried} tried, "
                      f"{len(wrong)} problems", flush=True)
    print(f"{total} points: {'; '.join(problems[:5]) or 'all well'}")
    return int(bool(problems))


if __name__ == "__main__":
    run_program(main)
