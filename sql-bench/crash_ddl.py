#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
A power loss at each step of CREATE, DROP, RENAME and TRUNCATE TABLE and DROP DATABASE.

A server runs with unsynced_writes.c, which kills it before one of the calls with which
a statement writes, syncs, extends, creates, renames or deletes a file. Then the files lose each
write and extension that was not synced, and the server recovers. So it does for call after call, or, with --points,
for that many of them, evenly spread. After each recovery

- the statement is done, or it is not (DROP of several tables: each table);
- if it was answered, it is done;
- CHECK TABLE is content with each table, and its rows are there;
- each table has its files, and each file belongs to a table.

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
from benchlib.program import list_of, one_of, resolved, run_program  # noqa: E402
from benchlib.servers import Server                            # noqa: E402
from benchlib.unsynced import Disk, add_server_arguments, build_layer  # noqa: E402

COLUMNS = "(a INT PRIMARY KEY, b INT, c TEXT, KEY (b), KEY (b, a), KEY (c(9)))"
ROWS = "VALUES (1, 1, REPEAT('x', 3000)), (2, 2, 'y')"
OLD = ["a", "b", "c"]           # the tables that there are before
# {name: (statement, outcomes)}. Each outcome is (tables, empty ones): after the recovery
# exactly these tables are there, and all but the empty ones have both rows. None: any of
# the tables may be left, each with its rows
STATEMENTS = {
    "create": ("CREATE TABLE n {columns} ENGINE={engine}",
               [({*OLD}, set()), ({*OLD, "n"}, {"n"})]),
    "drop": ("DROP TABLE a", [({*OLD}, set()), ({"b", "c"}, set())]),
    "drop-many": ("DROP TABLE a, b, c",
                  [({*OLD[i:]}, set()) for i in range(4)]),
    "rename": ("RENAME TABLE a TO n", [({*OLD}, set()), ({"n", "b", "c"}, set())]),
    "rename-many": ("RENAME TABLE a TO n, b TO a",
                    [({*OLD}, set()), ({"n", "a", "c"}, set())]),
    "truncate": ("TRUNCATE TABLE a", [({*OLD}, set()), ({*OLD}, {"a"})]),
    "replace": ("CREATE OR REPLACE TABLE a {columns} ENGINE={engine}",
                [({*OLD}, set()), ({*OLD}, {"a"}), ({"b", "c"}, set())]),
    # In any order
    "drop-database": ("DROP DATABASE d",
                      [({t for i, t in enumerate(OLD) if bits >> i & 1}, set())
                       for bits in range(8)] + [(None, set())]),
    # More tables than one batch of fil0delete.cc has: each of them, in any order
    "drop-database-of-70": ("DROP DATABASE d", None),
    "drop-of-70": ("DROP TABLE {tables}", None),
}
MANY = [*OLD] + [f"t{number}" for number in range(67)]


def tables_before(name):
    return MANY if STATEMENTS[name][1] is None else OLD


SUFFIXES = {"InnoDB": {".frm", ".ibd"}, "Aria": {".frm", ".MAI", ".MAD"},
            "MyISAM": {".frm", ".MYI", ".MYD"}}


class Run:
    """One statement on a copy of the prepared data directory."""

    def __init__(self, args, model, layer, directory, engine):
        self.engine = engine
        self.only_kill = args.only_kill
        self.disk = Disk(directory / "disk")
        self.server = Server(args.tree, directory / "data", args.options,
                             build=args.type)
        shutil.copytree(model, self.server.datadir)
        self.server.environment = self.disk.environment(layer,
                                                        self.server.datadir)

    def execute(self, statement, point):
        """Execute it, and be killed at a step; return whether it was answered, and how
        many steps there were."""
        try:
            self.server.start()
            session = wire.Connection(self.server.socket, "d")
            before = self.disk.mark()
            part = self.disk.path / "kill.new"
            part.write_text(str(point))
            part.rename(self.disk.path / "kill")
            answered = True
            try:
                session.query(statement)
            except (wire.Error, ConnectionError):
                answered = False
            session.close()
        finally:
            if self.server.process:
                self.server.kill()
        steps = sum(event[0].startswith("step-")
                    for event in self.disk.events()[before:])
        return answered, steps

    def recover(self, answered, outcomes):
        """Return what is wrong after the recovery."""
        lost = [] if self.only_kill else self.disk.lose_unsynced()
        self.server.environment = {}
        problems = []
        with self.server as server:
            server.sql("SET GLOBAL innodb_max_purge_lag_wait=0")
            found = self.tables(server)
            rows = {}
            for table in sorted(found or ()):
                for row in server.sql(f"CHECK TABLE {table} EXTENDED", "d"):
                    if row[-1] != "OK":
                        problems.append("CHECK TABLE: " + " ".join(row))
                if not problems:
                    rows[table] = int(server.sql(
                        f"SELECT COUNT(*) FROM {table}", "d")[0][0])
            if not problems:
                empty = {t for t, count in rows.items() if count != 2}
                if outcomes is None:
                    right = not empty and (not found or found <= {*MANY})
                    done = not found
                else:
                    right = (found, empty) in outcomes
                    done = right and (outcomes.index((found, empty)) ==
                                      self.done(outcomes))
                if not right:
                    problems.append(f"neither done nor not done: {rows}")
                elif answered and not done:
                    problems.append(f"answered, but not done: {rows}")
            problems += self.files(server, found)
        if problems:
            problems.append("lost: " + ", ".join(f"{n} {o}" for n, o in lost[:20]))
        return problems

    @staticmethod
    def done(outcomes):
        """The index of the outcome that means "done": 1 for CREATE OR REPLACE, which is
        the only one with three, and whose third is that the old table is gone; else
        the last."""
        return (1 if len(outcomes) == 3 else len(outcomes) - 1)

    @staticmethod
    def tables(server):
        if not server.sql("SHOW DATABASES LIKE 'd'"):
            return None
        return {name for name, in server.sql(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = 'd'")}

    def files(self, server, found):
        """What is wrong with the files of the database."""
        directory = server.datadir / "d"
        here = ({path.name for path in directory.iterdir()} - {"db.opt"}
                if directory.exists() else set())
        expected = {table + suffix for table in found or ()
                    for suffix in SUFFIXES[self.engine]}
        problems = []
        if here - expected:
            problems.append(f"files without table: {sorted(here - expected)}")
        if expected - here:
            problems.append(f"tables without file: {sorted(expected - here)}")
        known = {name.split("/")[1] for name, in server.sql(
            "SELECT name FROM information_schema.innodb_sys_tables "
            "WHERE name LIKE 'd/%'")}
        if known != (found or set() if self.engine == "InnoDB" else set()):
            problems.append(f"InnoDB's dictionary has {sorted(known)}, "
                            f"the server {sorted(found or ())}")
        return problems


def try_statement(args, name, engine, model, layer):
    """Return the number of steps, how many were tried, and the problems."""
    text, outcomes = STATEMENTS[name]
    statement = text.format(columns=COLUMNS, engine=engine, tables=", ".join(MANY))

    def run(point):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="crash-ddl-", dir=args.dir))
        try:
            execution = Run(args, model, layer, directory, engine)
            answered, steps = execution.execute(statement, point)
            return steps, execution.recover(answered, outcomes)
        finally:
            if not args.keep:
                shutil.rmtree(directory, ignore_errors=True)

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
            print(f"{name} {engine}: step {point} of {steps}", file=sys.stderr,
                  flush=True)
        for text in run(point)[1]:
            problems.append(f"{name} {engine}, killed at step {point} of {steps}: "
                            f"{text}")
            print(problems[-1], flush=True)
    return steps, len(points), problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_server_arguments(parser)
    parser.add_argument("statements", nargs="*", metavar="STATEMENT", type=one_of(STATEMENTS),
                        help=f"{', '.join(STATEMENTS)} (default: each)")
    parser.add_argument("--engines", default="InnoDB", type=list_of(SUFFIXES),
                        help="of InnoDB, Aria, MyISAM (default InnoDB)")
    parser.add_argument("--only-kill", action="store_true",
                        help="lose no writes")
    parser.add_argument("--points", type=int, default=0,
                        help="how many steps of each statement (default: each)")
    parser.add_argument("--dir", type=resolved, help="where the data directories are made; not in memory")
    args = parser.parse_args()
    args.options = ["--innodb-use-native-aio=0", "--innodb-flush-method=O_DIRECT",
                    "--innodb-log-file-size=10M", "--innodb-buffer-pool-size=16M",
                    "--innodb-buffer-pool-dump-at-shutdown=0",
                    "--innodb-buffer-pool-load-at-startup=0",
                    "--innodb-fast-shutdown=0"]
    total, problems = 0, []
    with tempfile.TemporaryDirectory(prefix="crash-ddl-", dir=args.dir) as place:
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
                            f"CREATE TABLE {table} {COLUMNS} ENGINE={engine}; "
                            f"INSERT INTO {table} {ROWS};" for table in tables), "d")
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
