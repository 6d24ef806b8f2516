# SPDX-License-Identifier: GPL-2.0-only
"""First touch of InnoDB tables that the server does not know yet."""

import contextlib
import itertools
import math
import multiprocessing
import random
import time

from benchlib import wire
from benchlib.disk import slow_disk
from benchlib.load import read_files, run, shares
from benchlib.scenario import (RESERVED_DESCRIPTORS, Option, OwnServers,
                               available_memory, descriptor_limit, plural, tree_of)
from benchlib.servers import BenchError, Server, create_tables
from benchlib.statistics import percentile

DATABASE = "tc_cold_open"
CONNECTIONS = (1, 16)           # of the first touch
RANDOM_CONNECTIONS = 16
DEFINITIONS = 2000              # table_definition_cache of the random SELECTs
HOT_TABLES, HOT, COLD = 10, 8, 8
READ_DELAY = 20                 # ms that each read of a slow disk takes
BATCH = 20                      # statements on their way at a time
TABLE_BYTES = 9 * 16 << 10      # of one table, all of its files
COLUMNS = ("id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, "
           "author BIGINT UNSIGNED NOT NULL DEFAULT 0, "
           "created DATETIME NOT NULL DEFAULT '2000-01-01', "
           "changed DATETIME NOT NULL DEFAULT '2000-01-01', "
           "title VARCHAR(200) NOT NULL DEFAULT '', name VARCHAR(200) NOT NULL DEFAULT '', "
           "status VARCHAR(20) NOT NULL DEFAULT 'draft', "
           "type VARCHAR(20) NOT NULL DEFAULT 'post', "
           "parent BIGINT UNSIGNED NOT NULL DEFAULT 0, menu INT NOT NULL DEFAULT 0, "
           "comments BIGINT NOT NULL DEFAULT 0, content LONGTEXT, "
           "PRIMARY KEY (id), KEY kind (type, status, created, id), KEY author (author, parent)")

RATE, CPU, SELECTS = "tables/s", "us of the server's CPU time a table", "SELECTs/s"
P999, LONGEST = (f"{name} beside {COLD} that touch cold ones, ms" for name in ("p99.9", "max"))
RANDOM, BESIDE, POOL = "random: ", "hot: ", "load of the pool: "
SLOW = f"hot, slow disk ({READ_DELAY} ms a read): "
TOUCH = {plural(connections, "connection") + ": ": connections for connections in CONNECTIONS}
LONGEST_HOT = "longest hot SELECT, ms"
LABELS = {**dict.fromkeys(TOUCH, (RATE, CPU)), RANDOM: (SELECTS,),
          BESIDE: (P999, LONGEST), SLOW: (P999, LONGEST, RATE), POOL: (LONGEST_HOT,)}
TOUCHING, READING = 4, 2        # connections, beside the load of the pool
OPENED = 200                    # tables that the hot SELECTs open each time
OPEN = 10                       # table_open_cache then, so that they do


def touch(table):
    """One column of one row: the answer costs the client little."""
    return f"SELECT id FROM t{table} WHERE id=1"


def ask(session, tables):
    """Select from tables; the server always has some statements ahead."""
    tables = iter(tables)
    while batch := [touch(table) for table in itertools.islice(tables, BATCH)]:
        session.discard(*batch)


def read_each(session, tables):
    """Select from each table once; how many, and when that was done."""
    ask(session, tables)
    return len(tables), time.monotonic()


def read_any(session, tables, seconds, seed):
    """Select from tables at random; how many, and when that was done."""
    chance = random.Random(seed)
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        ask(session, [chance.randint(1, tables) for _ in range(BATCH)])
        done += BATCH
    return done, time.monotonic()


def read_timed(session, tables, seconds, stop, seed):
    """Time single SELECTs from so many tables, in ms."""
    chance = random.Random(seed)
    took, start = [], time.monotonic()
    end = start + seconds
    while start < end and not stop.is_set():
        query = touch(chance.randint(1, tables))
        start = time.monotonic()
        session.discard(query)
        took.append(1000 * (time.monotonic() - start))
    return took


def touch_each(session, tables, seconds, stop):
    """Select from each table once, for so long or until told to stop; return how many.
    If there is a limit of time, the others stop when there is no table left."""
    end, done = time.monotonic() + seconds, 0
    for table in tables:
        if time.monotonic() >= end or stop.is_set():
            return done
        ask(session, (table,))
        done += 1
    if seconds < math.inf:
        stop.set()
    return done


def load_pool(session, stop):
    """Load the buffer pool, and stop the others."""
    status = b""
    session.query("SET GLOBAL innodb_buffer_pool_load_now=1")
    while b"completed" not in status:
        time.sleep(0.02)
        (_, status), = session.query(
            "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'")
    stop.set()


def rate(answers, begin):
    """What all did in a second, of how many each has done, and when that was done."""
    return sum(count for count, _ in answers) / (max(end for _, end in answers) - begin)


class ColdOpen(OwnServers):
    name = "cold-open"
    question = (
        "What does the first use of a table cost? How much faster are many connections than "
        "one? What do statements notice that use tables which the server knows?")
    method = (
        "A server is started for each measurement. Its InnoDB tables have 12 columns, three "
        "indexes and persistent statistics, and their files are in the page cache.\n\n"
        "- '1 connection', '16 connections': each table is selected from once.\n"
        f"- 'random': {RANDOM_CONNECTIONS} connections select from all of the tables, with "
        f"table_definition_cache={DEFINITIONS}.\n"
        f"- 'hot': {HOT} connections time their SELECTs from {HOT_TABLES} tables, beside {COLD} "
        "that touch cold ones.\n"
        f"- 'hot, slow disk': the same, while each read of an .ibd file takes {READ_DELAY} ms "
        "longer.\n"
        f"- 'load of the pool': {TOUCHING} connections touch cold tables, and {READING} time "
        "SELECTs that open known tables, while the buffer pool loads a page of each of the "
        "other half of the tables.")
    caveat = (
        "The clients share the CPUs with the server. With few CPUs the longest hot SELECTs are "
        "those that waited for a CPU. Nothing is read from a disk; the slow one is disk.c.")
    unit = "as named"
    copied = True

    tables = Option("cold-tables", "number of tables", 20000, 3000)

    @staticmethod
    def seconds(options):
        return 3 if options.quick else 10

    @classmethod
    def check(cls, options):
        if cls.tables(options) < 1000:
            raise BenchError("--cold-tables: at least 1000")
        if available_memory() < cls.disk(options) * 2 // 3 + (2 << 30):
            raise BenchError(f"too little memory for the files of "
                             f"{cls.tables(options)} tables, twice; choose "
                             "fewer by --cold-tables")

    @classmethod
    def disk(cls, options):
        return 3 * cls.tables(options) * TABLE_BYTES

    @staticmethod
    def labels(options):
        return LABELS

    @classmethod
    def server(cls, trees, variant, options, part, data=None):
        """A server on a copy of the data for its own variant."""
        tables, tree = cls.tables(options), tree_of(trees, variant)
        files = min(tables, descriptor_limit() - RESERVED_DESCRIPTORS)
        definitions = DEFINITIONS if part == RANDOM else tables + 400
        cache = OPEN if part == POOL else definitions
        return Server(tree, options.data / f"cold-open-{tables}" / (data or tree.name),
                      [f"--table-definition-cache={definitions}",
                       f"--table-open-cache={cache}",
                       "--open-files-limit=1048576", "--thread-cache-size=64",
                       f"--innodb-open-files={files}",
                       f"--innodb-buffer-pool-size={(256 << 20) + tables * TABLE_BYTES // 4}",
                       "--innodb-buffer-pool-load-at-startup=0",
                       "--innodb-buffer-pool-dump-at-shutdown=0",
                       # So that the page cache is used
                       "--innodb-flush-method=fsync"], variant)

    @classmethod
    def fill(cls, server, options, part, progress):
        # CREATE TABLE stores statistics, too
        create_tables(server, DATABASE, "InnoDB", cls.tables(options), progress, COLUMNS,
                      rows="(title) VALUES ('a'),('b'),('c')")

    @classmethod
    def measure_server(cls, server, options, part):
        read_files(server.datadir)
        if part == SLOW:
            server.environment = slow_disk(server.datadir.parent, read_ms=READ_DELAY)
        with server:
            if part in TOUCH:
                return cls.first_touch(server, options, TOUCH[part])
            if part in (BESIDE, SLOW):
                return cls.hot(server, options, part == SLOW)
            return {RANDOM: cls.at_random, POOL: cls.pool}[part](server, options)

    @classmethod
    def first_touch(cls, server, options, connections):
        # Each connection from its own end, as sites of a host are apart
        answers, begin, used = run(server, DATABASE, *(
            (read_each, share) for share in
            shares(range(1, cls.tables(options) + 1), connections)))
        return {RATE: rate(answers, begin), CPU: 1e6 * used / cls.tables(options)}

    @classmethod
    def at_random(cls, server, options):
        def read(seconds, seed):
            answers, begin, _ = run(server, DATABASE, *(
                (read_any, cls.tables(options), seconds, seed + number)
                for number in range(RANDOM_CONNECTIONS)))
            return rate(answers, begin)
        read(cls.seconds(options) / 2, 100)     # the caches fill up
        return {SELECTS: read(cls.seconds(options), 200)}

    @classmethod
    def hot(cls, server, options, slow):
        """The time that SELECTs from known tables take; on a slow disk, how
        many others are opened meanwhile, too."""
        with contextlib.closing(wire.Connection(server.socket, DATABASE)) as session:
            ask(session, range(1, HOT_TABLES + 1))
            stop, seconds = multiprocessing.Event(), cls.seconds(options)
            answers, begin, _ = run(
                server, DATABASE,
                *((read_timed, HOT_TABLES, seconds, stop, number) for number in range(HOT)),
                *((touch_each, share, seconds, stop)
                  for share in shares(range(201, cls.tables(options) + 1), COLD)))
            elapsed = time.monotonic() - begin
        took = list(itertools.chain(*answers[:HOT]))
        return {P999: percentile(took, 0.999), LONGEST: max(took),
                **({RATE: sum(answers[HOT:]) / elapsed} if slow else {})}

    @classmethod
    def pool(cls, server, options):
        """The longest SELECT from known tables, beside the load of the pool and the first
        touch of others."""
        # The dump names a page of every second table
        spaces = server.sql(
            "SELECT space FROM information_schema.innodb_sys_tables WHERE name "
            f"LIKE '{DATABASE}/t%' AND SUBSTRING_INDEX(name, '/t', -1) MOD 2 = 0")
        (server.datadir / "ib_buffer_pool").write_text(
            "".join(f"{space},3\n" for space, in spaces), encoding="ascii")
        session = wire.Connection(server.socket, DATABASE)
        ask(session, range(1, OPENED + 1))
        session.close()

        stop = multiprocessing.Event()
        answers, _, _ = run(
            server, DATABASE,
            *((touch_each, share, math.inf, stop) for share in
              shares(range(OPENED + 1, cls.tables(options) + 1, 2), TOUCHING)),
            *((read_timed, OPENED, math.inf, stop, number) for number in range(READING)),
            (load_pool, stop))
        return {LONGEST_HOT: max(itertools.chain(*answers[TOUCHING:-1]))}
