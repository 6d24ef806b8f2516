#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Does the working set stay in the caches beside mariadb-dump and mariadb-check?

    working_set_stays.py --stock TREE --patched TREE --data DIR

TREE is a directory with source/ and release/, DIR is for the data. There are
20,000 tables in 100 databases. 8 connections use 1,000 of them while mariadb-dump
--all-databases runs, then mariadb-check --all-databases; table_open_cache and
table_definition_cache are 2,000. Each round measures stock, patched, and stock
again, on the same data: what stock again differs from stock is noise. A line of
JSON says what each measurement has found, and the last lines have the medians of
the rounds, and what is aimed at.
"""

import argparse
import itertools
import json
import multiprocessing
import random
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from benchlib import wire                                      # noqa: E402
from benchlib.program import (list_of, only_one, resolved,     # noqa: E402
                              run_program)
from benchlib.scenario import CONTROL                          # noqa: E402
from benchlib.servers import Server                            # noqa: E402
from benchlib.statistics import median, percentile             # noqa: E402

DATABASES = 100
PREFIX = "tc_stays_"
FOUND = []                              # what has been reported


def table(number):
    """Neighbours in number are in different databases."""
    return f"{PREFIX}{number % DATABASES}.t{number // DATABASES}"


def select(number):
    return f"SELECT b FROM {table(number)} WHERE a=1"


def order(tables):
    """Tables in the order of their popularity, which is one of chance."""
    numbers = list(range(tables))
    random.Random(22).shuffle(numbers)
    return numbers


def server_of(options, variant, engine, *more):
    tree = options.patched if variant == "patched" else options.stock
    return Server(tree, options.data / f"{engine}-{options.tables}",
                  ["--open-files-limit=1048576", "--max-connections=200",
                   "--innodb-buffer-pool-size=2G", "--innodb-flush-method=fsync",
                   "--innodb-buffer-pool-load-at-startup=0",
                   "--innodb-buffer-pool-dump-at-shutdown=0",
                   "--innodb-open-files=10000", "--innodb-log-file-size=512M",
                   "--innodb-stats-auto-recalc=0", *more], variant)


def create(options, engine):
    server = server_of(options, "stock", engine,
                       "--innodb-flush-log-at-trx-commit=0", "--sync-frm=0",
                       "--skip-innodb-doublewrite", "--debug-no-sync")
    if (server.datadir / "ready").exists():
        return
    shutil.rmtree(server.datadir, ignore_errors=True)
    server.start()
    for name in range(DATABASES):
        server.sql(f"CREATE DATABASE {PREFIX}{name}")
        server.sql("".join(
            f"CREATE TABLE {table(number)} (a INT PRIMARY KEY, b VARCHAR(100),"
            f" c DATETIME, KEY (c, b)) ENGINE={engine};\n"
            f"INSERT INTO {table(number)} VALUES (1,'one',NOW()),"
            "(2,'two',NOW());\n"
            for number in range(name, options.tables, DATABASES)))
        if name % 10 == 9:
            print(f"{engine}: {name + 1} of {DATABASES} databases made",
                  file=sys.stderr, flush=True)
    server.stop()
    (server.datadir / "ready").touch()


def session_status(session):
    rows = session.query("SHOW SESSION STATUS WHERE Variable_name IN ("
                         "'Table_open_cache_misses',"
                         "'Opened_table_definitions')")
    found = {name.decode(): int(value) for name, value in rows}
    return found["Table_open_cache_misses"], found["Opened_table_definitions"]


# ------------------------------------------------------------------ a client

def client(socket, pipe, stop, next_statement, think):
    """Run statements until stop is set. Send how many, in how many seconds, what
    they missed, and the ms that each took."""
    session = wire.Connection(socket)
    before = session_status(session)
    done, took = 0, []
    begin = time.monotonic()
    while not stop.is_set():
        statement = next_statement()
        start = time.monotonic()
        session.send(statement)
        session.skip_result()
        took.append(1000 * (time.monotonic() - start))
        done += 1
        if think:
            time.sleep(think)
    misses = [b - a for a, b in zip(before, session_status(session))]
    pipe.send((done, time.monotonic() - begin, misses, took))
    session.close()


class Load:
    """Clients that run until finish()."""

    def __init__(self, server, makers, think=0):
        self.stop = multiprocessing.Event()
        self.clients = []
        for maker in makers:
            mine, theirs = multiprocessing.Pipe(False)
            process = multiprocessing.Process(
                target=client, args=(server.socket, theirs, self.stop, maker,
                                     think))
            process.start()
            theirs.close()
            self.clients.append((process, mine))

    def finish(self):
        self.stop.set()
        answers = [pipe.recv() for _, pipe in self.clients]
        for process, _ in self.clients:
            process.join()
        return answers


class Random:
    """Picks statements; used by one process."""

    def __init__(self, seed, numbers):
        self.random = random.Random(seed)
        self.numbers = numbers

    def __call__(self):
        return select(self.random.choice(self.numbers))


def report(**found):
    FOUND.append(found)
    print(json.dumps(found), flush=True)


def medians(what, **where):
    """The median of what was measured, by variant."""
    found = {}
    for row in FOUND:
        if all(row.get(name) == value for name, value in where.items()):
            found.setdefault(row["variant"], []).append(row[what])
    return {name: median(values) for name, values in found.items()}


def say(title, what, aim, **where):
    found = medians(what, **where)
    if found:
        print(f"{title}, {what}: " + ", ".join(
            f"{name} {value}" for name, value in found.items()) +
            (f" (aim: {aim})" if aim else ""))


def summary():
    for engine, beside in itertools.product(
            ("InnoDB", "MyISAM"), ("nothing", "mariadb-dump",
                                   "mariadb-check")):
        where = {"engine": engine, "beside": beside}
        title = f"{engine} beside {beside}"
        say(title, "reopened_per_table_and_minute", "patched < 0.05", **where)
        say(title, "definitions_read_again", "patched 0", **where)
        say(title, "rate", "patched >= stock", **where)
        say(title, "p99_ms", None, **where)
def dump(options):
    for engine in options.engines:
        create(options, engine)
        for _, variant in itertools.product(range(options.repeat),
                                            options.variants):
            dump_once(options, variant, engine)


def dump_once(options, variant, engine):
    server = server_of(options, variant, engine,
                       f"--table-open-cache={options.caches}",
                       f"--table-definition-cache={options.caches}")
    working_set = order(options.tables)[:options.working_set]
    with server:
        # The same programs for both
        tools = options.patched / "release/client"

        def beside(name, command):
            load = Load(server, [
                Random(seed, working_set[seed::8] if options.own
                       else working_set) for seed in range(8)],
                options.think / 1000)
            begin, used = time.monotonic(), server.cpu_seconds()
            if command:
                subprocess.run([str(tools / command[0]), "--no-defaults",
                                f"--socket={server.socket}", *command[1:]],
                               stdout=subprocess.DEVNULL, check=True)
            else:
                time.sleep(options.seconds)
            took = time.monotonic() - begin
            used = server.cpu_seconds() - used
            answers = load.finish()
            done = sum(answer[0] for answer in answers)
            seconds = max(answer[1] for answer in answers)
            misses = sum(answer[2][0] for answer in answers)
            definitions = sum(answer[2][1] for answer in answers)
            latencies = [ms for answer in answers for ms in answer[3]]
            report(variant=variant, engine=engine, beside=name,
                   seconds=round(took, 1),
                   rate=round(done / seconds),
                   # Includes the work for the dump or check
                   server_cpu_us=round(1e6 * used / done, 1),
                   reopened_per_table_and_minute=round(
                       misses / len(working_set) / (seconds / 60), 3),
                   reopened=misses, definitions_read_again=definitions,
                   p99_ms=round(percentile(latencies, 0.99), 2))

        server.sql("".join(select(number) + ";\n" for number in working_set))
        beside("warming up", None)
        beside("nothing", None)
        beside("mariadb-dump", ["mariadb-dump", "--all-databases",
                                *options.dump_options.split()])
        beside("mariadb-check", ["mariadb-check", "--all-databases"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("--stock", required=True, type=resolved,
                        help="tree of the stock server")
    parser.add_argument("--patched", required=True, type=resolved,
                        help="tree of the patched server")
    parser.add_argument("--data", required=True, type=resolved,
                        help="directory for the data")
    parser.add_argument("--variants", default=f"stock,patched,{CONTROL}",
                        type=list_of(("stock", "patched", CONTROL)),
                        help="servers to measure in turn (default %(default)s)")
    parser.add_argument("--engines", default="InnoDB,MyISAM",
                        type=list_of(("InnoDB", "MyISAM")),
                        help="of the tables (default %(default)s)")
    parser.add_argument("--tables", type=int, default=20000,
                        help="how many (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=10,
                        help="of a measurement (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=1,
                        help="number of rounds (default %(default)s)")
    parser.add_argument("--caches", type=int, default=2000,
                        help="table_open_cache and table_definition_cache "
                        "(default %(default)s)")
    parser.add_argument("--working-set", type=int, default=1000,
                        help="number of tables that are in use (default "
                        "%(default)s)")
    parser.add_argument("--dump-options", default="",
                        help="further options of mariadb-dump")
    parser.add_argument("--think", type=float, default=0, metavar="MS",
                        help="milliseconds that a client waits between two "
                        "statements (default %(default)s)")
    parser.add_argument("--own", action="store_true",
                        help="each client has an eighth of the working "
                        "set for itself, so no two need a table at once")
    options = parser.parse_args()
    with only_one(options.data):
        dump(options)
    summary()


if __name__ == "__main__":
    run_program(main)
