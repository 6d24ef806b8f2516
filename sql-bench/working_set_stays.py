#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Does the working set stay in the caches?  Measurements that print JSON:

    working_set_stays.py --stock TREE --patched TREE --data DIR WHAT

TREE is a directory with source/ and release/, DIR is for the data. Each round
measures stock, patched, and stock again, on the same data: what stock again
differs from stock is noise. WHAT is one of

dump     20,000 tables in 100 databases; 8 connections use 1,000 of them while
         mariadb-dump --all-databases runs, then mariadb-check --all-databases.
         table_open_cache and table_definition_cache are 2,000.
crawl    16 connections select from tables by Zipf's law, and a part of the
         statements is a crawler's, which selects from each table in turn:
         misses for 1,000 statements of the others.
restart  Seconds from the first connection until 90 % of the rate before the
         restart, and latencies, with and without table_cache_dump, with a warm
         page cache and with a cold one (which takes root).
all      dump and restart, with InnoDB and MyISAM.

At the end of dump, restart and all: the medians of the rounds, and what is aimed
at.
"""

import argparse
import bisect
import itertools
import json
import multiprocessing
import os
import pathlib
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


def select(number, words=""):
    return f"SELECT {words} b FROM {table(number)} WHERE a=1"


def zipf(tables):
    """The sums of the weights 1/(i+1)."""
    return list(itertools.accumulate(1 / (i + 1) for i in range(tables)))


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
                   "--innodb-stats-auto-recalc=0",
                   f"--plugin-dir={tree}/release/plugin/table_cache_dump",
                   *more], variant)


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

def client(socket, pipe, stop, next_statement, at, think):
    """Run statements until stop is set. Send how many, in how many seconds, what
    they missed, and when each ended with its latency in ms; those of a crawler
    have a session of their own, and count in nothing."""
    session = wire.Connection(socket)
    crawler = wire.Connection(socket)
    before = session_status(session)
    done, took = 0, []
    begin = time.monotonic()
    while not stop.is_set():
        statement = next_statement()
        if next_statement.crawls:
            crawler.send(statement)
            crawler.skip_result()
            continue
        start = time.monotonic()
        session.send(statement)
        session.skip_result()
        end = time.monotonic()
        took.append((end, 1000 * (end - start)))
        done += 1
        if think:
            time.sleep(think)
    misses = [b - a for a, b in zip(before, session_status(session))]
    pipe.send((at, done, time.monotonic() - begin, misses, took))
    session.close()
    crawler.close()


class Load:
    """Clients that run until finish()."""

    def __init__(self, server, makers, think=0):
        self.stop = multiprocessing.Event()
        self.clients = []
        for at, maker in enumerate(makers):
            mine, theirs = multiprocessing.Pipe(False)
            process = multiprocessing.Process(
                target=client, args=(server.socket, theirs, self.stop, maker,
                                     at, think))
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
    crawls = False                      # the last one was a crawler's

    def __init__(self, seed, numbers, sums=None):
        self.random = random.Random(seed)
        self.numbers, self.sums = numbers, sums

    def number(self):
        if not self.sums:
            return self.random.choice(self.numbers)
        return self.numbers[bisect.bisect_left(
            self.sums, self.random.random() * self.sums[-1])]

    def __call__(self):
        return select(self.number())


def report(**found):
    FOUND.append(found)
    print(json.dumps(found), flush=True)


def medians(what, **where):
    """The median of what was measured, by variant."""
    found = {}
    for row in FOUND:
        if all(row.get(name) == value for name, value in where.items()):
            name = row["variant"] + " with loading" * row.get("load", False)
            found.setdefault(name, []).append(row[what])
    # None: not reached while it was measured
    return {name: None if None in values else median(values)
            for name, values in found.items()}


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
        where = {"measured": "dump", "engine": engine, "beside": beside}
        title = f"{engine} beside {beside}"
        say(title, "reopened_per_table_and_minute", "patched < 0.05", **where)
        say(title, "definitions_read_again", "patched 0", **where)
        say(title, "rate", "patched >= stock", **where)
        say(title, "p99_ms", None, **where)
    for page_cache in "warm", "cold":
        where = {"measured": "restart", "page_cache": page_cache}
        title = f"restart, {page_cache} page cache"
        say(title, "rate_before", None, **where)
        say(title, "seconds_to_90", "with loading <= 10", **where)
        say(title, "p99_before_ms", None, **where)
        say(title, "p99_during_ms", "with loading <= 2 * before", **where)


# ---------------------------------------------------------------------- dump

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
            seconds = max(answer[2] for answer in answers)
            misses = sum(answer[3][0] for answer in answers)
            definitions = sum(answer[3][1] for answer in answers)
            latencies = sorted(ms for answer in answers for _, ms in answer[4])
            report(measured="dump", variant=variant, engine=engine, beside=name,
                   seconds=round(took, 1),
                   rate=round(sum(a[1] for a in answers) / seconds),
                   # Includes the work for the dump or check
                   server_cpu_us=round(1e6 * used /
                                       sum(a[1] for a in answers), 1),
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


# --------------------------------------------------------------------- crawl

class Crawled(Random):
    """A part of the statements is a crawler's, in all connections."""

    def __init__(self, seed, numbers, sums, part, words, counters):
        super().__init__(seed, numbers, sums)
        self.part, self.words, self.counters = part, words, counters

    def __call__(self):
        self.crawls = self.random.random() < self.part
        if self.crawls:
            with self.counters.get_lock():
                self.counters.value += 1
                return select(self.counters.value % len(self.numbers),
                              self.words)
        return super().__call__()


def crawl(options):
    engine = "InnoDB"
    create(options, engine)
    numbers, sums = order(options.tables), zipf(options.tables)
    for variant in options.variants:
        for part, words in ((0, ""), (0.2, ""), (0.2, "SQL_NO_CACHE"), (0.5, ""),
                            (0.5, "SQL_NO_CACHE")):
            with server_of(options, variant, engine, "--table-open-cache=2000",
                           "--table-open-cache-instances=1",
                           "--table-definition-cache=22000") as server:
                counter = multiprocessing.Value("L", 0)
                for seconds in (options.seconds, options.seconds):
                    before = counter.value
                    load = Load(server, [
                        Crawled(seed, numbers, sums, part, words, counter)
                        for seed in range(16)])
                    time.sleep(seconds)
                    answers = load.finish()
                done = sum(a[1] for a in answers)
                misses = sum(a[3][0] for a in answers)
                report(measured="crawl", variant=variant, crawler=part,
                       words=words, statements=done,
                       crawled=counter.value - before,
                       misses_of_1000=round(1000 * misses / done, 1))


# ------------------------------------------------------------------- restart

def drop_page_cache():
    subprocess.run(["sync"], check=True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n",
                                                        encoding="ascii")


def rates(answers, begin, width=0.5):
    """Statements per second in each half second from begin on."""
    counts = {}
    for answer in answers:
        for end, _ in answer[4]:
            counts[int((end - begin) / width)] = counts.get(
                int((end - begin) / width), 0) + 1
    return [counts.get(i, 0) / width for i in range(max(counts))]


def restart(options):
    engine = "InnoDB"
    create(options, engine)
    for _, cold, variant in itertools.product(
            range(options.repeat), (False,) if options.short else (False, True),
            options.variants):
        restart_once(options, variant, False, cold)
        if variant == "patched":
            restart_once(options, variant, True, cold)


def restart_once(options, variant, plugin, cold):
    cache = options.cache or options.tables + 400
    more = [f"--table-open-cache={cache}",
            f"--table-definition-cache={options.tables + 400}"]
    if plugin:
        more += ["--plugin-load-add=table_cache_dump.so",
                 f"--table-cache-load-threads={options.threads}"]
    server = server_of(options, variant, "InnoDB", *more)
    numbers, sums = order(options.tables), zipf(options.tables)

    def run(seconds):
        begin = time.monotonic()
        load = Load(server, [Random(seed, numbers, sums) for seed in range(16)])
        time.sleep(seconds)
        return begin, load.finish()

    (server.datadir / "table_cache.dump").unlink(missing_ok=True)
    with server:
        server.sql("".join(select(number) + ";\n" for number in reversed(numbers)))
        run(5)
        _, answers = run(options.seconds)
        before = sum(a[1] for a in answers) / max(a[2] for a in answers)
        loaded = sorted(ms for a in answers for _, ms in a[4])
    if cold:
        drop_page_cache()
    start = time.monotonic()
    server.start()
    started = time.monotonic()
    begin, answers = run(options.after)
    found = rates(answers, begin)
    warm = next((i for i in range(len(found) - 1)
                 if (found[i] + found[i + 1]) / 2 >= 0.9 * before), None)
    status = dict(server.sql("SHOW GLOBAL STATUS LIKE 'Table_cache_%status'")
                  ) if plugin else {}
    loading = status.get("Table_cache_load_status", "")
    until = begin + (float(loading.partition(" in ")[2].split()[0])
                     if " in " in loading else options.after)
    during = sorted(ms for a in answers for end, ms in a[4] if end < until)
    server.stop()
    report(measured="restart", variant=variant, load=plugin,
           page_cache="cold" if cold else "warm",
           rate_before=round(before), start_seconds=round(started - start, 1),
           seconds_to_90=None if warm is None else (warm + 1) / 2,
           p99_before_ms=round(percentile(loaded, 0.99), 2),
           # Empty if the load had ended when the clients came
           p99_during_ms=round(percentile(during, 0.99), 2) if during else 0,
           first_seconds=[round(rate) for rate in found[:40]],
           status=loading)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("dump", "crawl", "restart", "all"))
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
    parser.add_argument("--after", type=int, default=40,
                        help="seconds that are measured after a restart "
                        "(default %(default)s)")
    parser.add_argument("--repeat", type=int, default=1,
                        help="number of rounds (default %(default)s)")
    parser.add_argument("--threads", type=int, default=4,
                        help="table_cache_load_threads (default %(default)s)")
    parser.add_argument("--cache", type=int, help="table_open_cache of restart")
    parser.add_argument("--caches", type=int, default=2000,
                        help="table_open_cache and table_definition_cache of "
                        "dump (default %(default)s)")
    parser.add_argument("--working-set", type=int, default=1000,
                        help="number of tables that are in use in dump (default "
                        "%(default)s)")
    parser.add_argument("--dump-options", default="",
                        help="further options of mariadb-dump")
    parser.add_argument("--think", type=float, default=0, metavar="MS",
                        help="milliseconds that a client waits between two "
                        "statements, in dump (default %(default)s)")
    parser.add_argument("--own", action="store_true",
                        help="dump: each client has an eighth of the working "
                        "set for itself, so no two need a table at once")
    parser.add_argument("--short", action="store_true",
                        help="restart: with the page cache warm only")
    options = parser.parse_args()
    if options.what in ("restart", "all") and not options.short and os.geteuid():
        parser.error("only root can empty the page cache; run as root, or with "
                     "--short")
    with only_one(options.data):
        if options.what == "crawl":
            crawl(options)
            return
        if options.what in ("dump", "all"):
            dump(options)
        if options.what in ("restart", "all"):
            restart(options)
    summary()


if __name__ == "__main__":
    run_program(main)
