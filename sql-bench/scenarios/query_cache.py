# SPDX-License-Identifier: GPL-2.0-only
"""A large query cache: filled, read, and invalidated."""

import random
import threading
import time

from benchlib import wire
from benchlib.load import run
from benchlib.scenario import Option, OwnServers, available_memory, tree_of
from benchlib.servers import BenchError, Server
from benchlib.statistics import percentile

DATABASE = "tc_query_cache"
ROWS = 1000                     # of each table
BATCH = 50                      # statements on their way at a time
FILLERS = 2                     # sessions that fill
READERS = 8                     # sessions whose SELECTs are timed
# Results of 500 to 1500 bytes that a gigabyte holds, and how many of them the
# INSERT of bug 28382 invalidates
PER_GIGABYTE, INVALIDATED = 650000, 186000

INSERT, READ = "the INSERT, ms", "SELECTs/s"
P999, LONGEST = "SELECT p99.9 during the INSERT, ms", "SELECT max during the INSERT, ms"


def select(table, number):
    """Statements that differ in one literal have results of their own."""
    return f"SELECT id,b,{number} FROM t{table} WHERE id={number % ROWS}"


def create_results(session, tables):
    """Tables with rows of 400 to 1400 bytes."""
    chance = random.Random(1)
    rows = ",".join(f"({i},REPEAT('x',{chance.randrange(400, 1400)}))" for i in range(ROWS))
    for i in range(tables):
        session.query(f"CREATE TABLE t{i} (id INT PRIMARY KEY, b VARBINARY(1400)) ENGINE=MyISAM")
        session.query(f"INSERT INTO t{i} VALUES {rows}")


def fill(session, ranges):
    """Ask for each result once, in any order."""
    wanted = [(table, number) for table, begin, end in ranges for number in range(begin, end)]
    random.Random(len(wanted)).shuffle(wanted)
    for i in range(0, len(wanted), BATCH):
        session.discard(*(select(*one) for one in wanted[i:i + BATCH]))


def read_fast(session, counts, seconds, seed):
    """Any of the results, as many as come; statements a second."""
    chance = random.Random(seed)
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        batch = []
        for _ in range(BATCH):
            table = chance.randrange(len(counts))
            batch.append(select(table, chance.randrange(counts[table])))
        session.discard(*batch)
        done += BATCH
    return done / seconds


def read_timed(session, counts, seconds, seed):
    """The ms of single SELECTs of the tables but the last."""
    chance = random.Random(seed)
    took, start = [], time.monotonic()
    end = start + seconds
    try:
        while start < end:
            table = chance.randrange(len(counts) - 1)
            query = select(table, chance.randrange(counts[table]))
            start = time.monotonic()
            session.discard(query)
            took.append(1000 * (time.monotonic() - start))
    except OSError:
        pass                            # the server was killed
    return took


def insert(session, table):
    """The ms of an INSERT, a second after the others have begun; None if it fails."""
    time.sleep(1)
    begin = time.monotonic()
    try:
        session.query(f"INSERT INTO t{table} VALUES ({ROWS + 1},'x')")
    except (OSError, IndexError, wire.Error):
        return None                     # the server was killed
    return 1000 * (time.monotonic() - begin)


class QueryCache(OwnServers):
    name = "query-cache"
    question = (
        "What does an INSERT cost that invalidates many cached results? What does "
        "it cost the others?")
    method = (
        f"{FILLERS} sessions fill the cache with as many results of 500 to 1500 "
        "bytes as it may hold, of two tables as in the bug report, and then read them at "
        f"random. After that, {READERS} sessions read at random, and each SELECT is "
        "timed. After a second one INSERT follows, into a table that they do not read. "
        "A stock server is killed when the INSERT takes longer than a limit: then its "
        "time is the limit.")
    caveat = (
        "The sessions that read share the CPUs with the server. With few CPUs the "
        "longest times are those for which "
        "the kernel had taken the CPU away from the thread that held the lock.")
    unit = "as named"

    megabytes = Option("qc-megabytes", "query_cache_size", 1024, 256)
    limit = Option("qc-limit", "seconds that the INSERT may take", 90.0, 15.0, float)

    @classmethod
    def check(cls, options):
        if cls.limit(options) < 10:
            raise BenchError("--qc-limit: at least 10 seconds")
        if (cls.megabytes(options) << 20) * 1.25 + (1 << 30) > available_memory():
            raise BenchError("too little memory for a query cache of "
                             f"{cls.megabytes(options)} MB; choose a smaller "
                             "one by --qc-megabytes")

    @staticmethod
    def besides(options):
        return ()

    @staticmethod
    def labels(options):
        return {"bug: ": (INSERT, READ, P999, LONGEST)}

    @classmethod
    def server(cls, trees, variant, options, _part):
        return Server(tree_of(trees, variant), options.data / "data-query-cache",
                      ["--query-cache-type=1", "--query-cache-size=0",
                       "--query-cache-limit=1M", "--key-buffer-size=64M",
                       "--max-connections=200"], variant)

    @staticmethod
    def connect(server, size):
        """A session beside the cache, in an empty database."""
        session = wire.Connection(server.socket)
        session.query("SET query_cache_type=0")
        session.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        session.query(f"CREATE DATABASE {DATABASE}")
        session.query(f"USE {DATABASE}")
        session.query(f"SET GLOBAL query_cache_size={size}")
        return session

    @classmethod
    def measure_server(cls, server, options, _part):
        results = PER_GIGABYTE * cls.megabytes(options) // 1024
        invalidated = results * INVALIDATED // PER_GIGABYTE
        counts = [results - invalidated, invalidated]   # of each table
        seconds, limit = 3 if options.quick else 5, cls.limit(options)
        server.start()
        create_results(cls.connect(server, cls.megabytes(options) << 20), len(counts))
        run(server, DATABASE, *(
            (fill, [(table, count * i // FILLERS, count * (i + 1) // FILLERS)
                    for table, count in enumerate(counts)]) for i in range(FILLERS)))
        rates, _, _ = run(server, DATABASE, *(
            (read_fast, counts, seconds, i) for i in range(FILLERS)))
        # Stock's INSERT may take minutes, in which its lock is not free
        killer = threading.Timer(1.5 + limit, server.kill)
        killer.start()
        try:
            (inserted, *took), _, _ = run(
                server, DATABASE, (insert, len(counts) - 1),
                *((read_timed, counts, seconds, i) for i in range(READERS)))
        finally:
            killer.cancel()
            killer.join()
        took, killed = sum(took, []), not server.process
        server.stop()
        if not took or not (inserted or killed):
            raise BenchError("no SELECT was answered, or the INSERT failed")
        # Some waited until the server was killed
        return {INSERT: 1000 * limit if killed else inserted, READ: sum(rates),
                P999: percentile(took, 0.999),
                LONGEST: 1000 * limit if killed else max(took)}

    @classmethod
    def remarks(cls, results, options):
        limit = 1e3 * cls.limit(options)
        values = next(values for cell, values in results
                      if cell["label"].endswith(": " + INSERT))
        killed = {variant: sum(value >= limit for value in values[variant])
                  for variant in ("stock", "patched")}
        return [f"the {variant} server was killed in {number} of "
                f"{len(values[variant])} runs, because the INSERT was not done after "
                f"{cls.limit(options):.0f} s; the ratio is at most that"
                for variant, number in killed.items() if number]
