# SPDX-License-Identifier: GPL-2.0-only
"""What it costs to lower table_open_cache while many tables are open and in use."""

import multiprocessing
import pathlib
import random
import time

from benchlib.load import run
from benchlib.scenario import (Scenario, innodb_options, positive,
                               table_bytes)
from benchlib.servers import create_tables

DATABASE = "tc_lower_limit"
READERS = 64
WARM_UP = 5                     # seconds that the others read before
LEFT = 400                      # the new limit
TIME, CPU = "until the answer, ms", "CPU time of its thread, ms"


def read(session, seed, tables, opened, stop):
    """Read tables at random, from when all are open until told to stop."""
    choose = random.Random(seed)
    opened.wait()
    while not stop.is_set():
        session.query(f"SELECT a FROM t{choose.randint(1, tables)}")


def thread_ms(process, thread):
    """CPU time that a thread has used, in ms."""
    return int(pathlib.Path(f"/proc/{process}/task/{thread}/schedstat")
               .read_text().split()[0]) / 1e6


def lower(session, process, tables, opened, stop):
    """Open all tables, wait for the others to use them, and close most of them."""
    try:
        for number in range(1, tables + 1):
            session.query(f"SELECT a FROM t{number}")
        opened.set()
        time.sleep(WARM_UP)
        thread = int(session.query("SELECT TID FROM information_schema.processlist "
                                   "WHERE ID = CONNECTION_ID()")[0][0])
        used, begin = thread_ms(process, thread), time.monotonic()
        session.query(f"SET GLOBAL table_open_cache={LEFT}")
        return {TIME: 1000 * (time.monotonic() - begin),
                CPU: thread_ms(process, thread) - used}
    finally:
        stop.set()
        opened.set()


class LowerLimit(Scenario):
    name = "lower-limit"
    title = "A smaller table_open_cache while tables are in use"
    source = "SET GLOBAL table_open_cache on a busy server"
    question = (
        f"How long does SET GLOBAL table_open_cache take, when it closes all "
        f"but {LEFT} tables, and {READERS} connections go on reading them?")
    method = (
        f"A fresh server opens 20000 InnoDB tables. {READERS} connections read "
        f"tables at random. {WARM_UP} seconds later, another connection sets "
        f"table_open_cache to {LEFT}. The CPU time is that of the connection's "
        "thread alone.")
    caveat = (
        "The statement's thread shares the CPUs with the other connections, so "
        "how long it takes is mostly how long it waits for a CPU. The CPU time "
        "says what the statement costs.")
    unit = "ms"
    higher_is_better = False
    weight = 2
    peers = False
    together = 2

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--lower-tables", type=positive, metavar="N",
                            help="number of tables (default 20000; quick 2000)")

    @staticmethod
    def tables(options):
        return options.lower_tables or (2000 if options.quick else 20000)

    @classmethod
    def disk(cls, options):
        return table_bytes(["innodb"], cls.tables(options))

    @classmethod
    def server_options(cls, options):
        # Stock divides the limit by the instances, of which it activates more
        # when connections collide
        room = 2 * cls.tables(options) + LEFT
        return [f"--table-open-cache={room}", f"--table-definition-cache={room}",
                f"--max-connections={READERS + 20}", "--innodb-stats-auto-recalc=0",
                *innodb_options(cls.tables(options))]

    @classmethod
    def cells(cls, options):
        return [{"label": what} for what in (TIME, CPU)]

    @classmethod
    def prepare(cls, server, options, progress):
        create_tables(server, DATABASE, "innodb", cls.tables(options), progress)

    @classmethod
    def measure(cls, server, cell, options):
        if cell["label"] == TIME:
            opened, stop = multiprocessing.Event(), multiprocessing.Event()
            tables = cls.tables(options)
            answers, _, _ = run(
                server, DATABASE, (lower, server.process.pid, tables, opened, stop),
                *((read, seed, tables, opened, stop) for seed in range(READERS)))
            server.lowered = answers[0]
        return server.lowered[cell["label"]]

    @staticmethod
    def remarks(results, options):
        return []
