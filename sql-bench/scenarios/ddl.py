# SPDX-License-Identifier: GPL-2.0-only
"""Whole sites that come and go, beside others that must not notice."""

import contextlib
import itertools
import multiprocessing
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from benchlib import wire
from benchlib.load import run
from benchlib.scenario import OneByOne, Option, need_descriptors, plural, table_bytes
from benchlib.servers import BenchError
from benchlib.disk import slow_disk

HOT = "tc_ddl_hot"              # the database of those that must not notice
UPDATERS = 8
SITE = 12                       # tables of a site, as WordPress has
CONNECTIONS = (1, 16)
COLUMNS = ("(id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, "
           "author BIGINT UNSIGNED NOT NULL DEFAULT 0, "
           "created DATETIME NOT NULL DEFAULT '2000-01-01', "
           "title VARCHAR(200) NOT NULL DEFAULT '', name VARCHAR(200) NOT NULL DEFAULT '', "
           "status VARCHAR(20) NOT NULL DEFAULT 'draft', content LONGTEXT, "
           "PRIMARY KEY (id), KEY kind (status, created, id), "
           "KEY name (name(190)), KEY author (author))")
DROP, STALL = "DROP DATABASE, s", "longest UPDATE during it, ms"
ENGINES = ("InnoDB", "Aria", "MyISAM")
SYNC_DELAY = 10                 # ms that each sync of a slow disk takes
SLOW_TABLES = 200               # of the database that is dropped there
SLOW = f"slow disk ({SYNC_DELAY} ms a sync), "


def update(session, number, dropping, stop):
    """Change rows of its own until told to stop; the longest time of a statement that ended
    during the DROP, in ms. Those that the start of the clients slows down do not count."""
    longest = 0.0
    for turn in itertools.count():
        if stop.is_set():
            return longest
        begin = time.monotonic()
        session.query(f"UPDATE t{number} SET b = b + 1 WHERE a = {turn % 100 + 1}")
        if dropping.is_set():
            longest = max(longest, 1000 * (time.monotonic() - begin))
    return longest


def drop(session, database, dropping, stop):
    """Seconds that it takes, after the others have begun."""
    time.sleep(0.5)
    dropping.set()
    begin = time.monotonic()
    session.query(f"DROP DATABASE {database}")
    seconds = time.monotonic() - begin
    stop.set()
    return seconds


def make_and_drop(session, number, sites):
    """Create the tables of a site and drop them in one statement, so many times;
    when that was done."""
    session.query(f"CREATE DATABASE tc_ddl_site{number}")
    session.query(f"USE tc_ddl_site{number}")
    tables = [f"t{table}" for table in range(SITE)]
    for _ in range(sites):
        for table in tables:
            session.query(f"CREATE TABLE {table} {COLUMNS} ENGINE=InnoDB")
        session.query(f"DROP TABLE {', '.join(tables)}")
    session.query(f"DROP DATABASE tc_ddl_site{number}")
    return time.monotonic()


@contextlib.contextmanager
def on_slow_disk(server):
    """Restart a server for a time, so that its disk is slow."""
    server.stop()
    server.environment = slow_disk(server.datadir.parent, sync_ms=SYNC_DELAY)
    server.start()
    try:
        yield
    finally:
        server.stop()
        server.environment = {}
        server.start()


def count_syncs(text):
    """How many syncs strace has seen."""
    return len(re.findall(r"\b(?:fsync|fdatasync|sync_file_range)\(", text))


class Ddl(OneByOne):
    name = "ddl"
    question = (
        "How long do statements wait that have nothing to do with tables that are "
        "being dropped? How fast are CREATE and DROP?")
    method = (
        f"- DROP DATABASE: {UPDATERS} connections update rows of InnoDB tables of "
        "their own by primary key, with a commit each, while a database of 1000 "
        "tables with a row each is dropped.\n"
        f"- Slow disk: disk.c makes each sync take {SYNC_DELAY} ms longer. The "
        f"database has {SLOW_TABLES} tables there, and the server was restarted "
        "before, so it does not know them.\n"
        f"- Tables created and dropped: {SITE} InnoDB tables with WordPress's kinds "
        "of keys are created, and dropped in one statement, again and again.\n"
        "- Syncs: those that strace sees of all threads of the server, divided by "
        "the number of tables.")
    caveat = (
        "Most of the time is what the file system and the disk take for a sync, "
        "and that differs between machines.")
    unit = "as named"
    pairs = 3

    tables = Option("ddl-tables", "tables of the database that is dropped", 1000, 200)

    @classmethod
    def check(cls, options):
        need_descriptors(2 * cls.tables(options))

    @classmethod
    def disk(cls, options):
        return table_bytes([engine.lower() for engine in ENGINES], cls.tables(options))

    @staticmethod
    def server_options(options):
        return ["--innodb-flush-log-at-trx-commit=1", "--table-open-cache=4000",
                "--max-connections=100"]

    @classmethod
    def cells(cls, options):
        drops = [{"label": f"{SLOW * slow}{engine}: {what}", "engine": engine,
                  "what": what, "slow": slow} for slow in (False, True)
                 for engine in ENGINES for what in (DROP, STALL)]
        rates = [{"label": f"{SLOW * slow}tables created and dropped, 1/s, "
                  + plural(number, "connection"), "connections": number, "slow": slow}
                 for slow in (False, True) for number in CONNECTIONS]
        # For some seconds after many files were deleted, ext4 takes long to choose an
        # inode. So those of the fast disk come before all drops
        fast = len(CONNECTIONS)
        cells = rates[:fast] + drops + rates[fast:]
        if shutil.which("strace"):
            cells.append({"label": "syncs a table, CREATE", "syncs": True})
        return cells

    @staticmethod
    def fill(server, options, progress):
        server.sql(f"CREATE DATABASE IF NOT EXISTS {HOT}")
        server.sql("".join(
            f"CREATE TABLE IF NOT EXISTS t{number} (a INT PRIMARY KEY, b INT) "
            f"ENGINE=InnoDB; INSERT IGNORE INTO t{number} "
            "SELECT seq, 0 FROM seq_1_to_100;" for number in range(UPDATERS)), HOT)

    @classmethod
    def measure(cls, server, cell, options):
        if "engine" in cell:
            if cell["what"] == DROP:
                tables = cls.tables(options)
                server.ddl_found = cls.drop_database(
                    server, cell["engine"], min(tables, SLOW_TABLES) if cell["slow"] else tables,
                    cell["slow"])
            return server.ddl_found[cell["what"]]
        if "connections" in cell:
            return cls.rate(server, cell["connections"], cell["slow"], options)
        return cls.syncs(server)

    @staticmethod
    def drop_database(server, engine, tables, slow):
        database = "tc_ddl_drop"
        server.sql(f"DROP DATABASE IF EXISTS {database}; "
                   f"CREATE DATABASE {database}; USE {database};" + "".join(
                       f"CREATE TABLE t{number} {COLUMNS} ENGINE={engine};"
                       f"INSERT INTO t{number} () VALUES ();" for number in range(tables)))
        dropping, stop = multiprocessing.Event(), multiprocessing.Event()
        with on_slow_disk(server) if slow else contextlib.nullcontext():
            answers, _, _ = run(server, HOT, (drop, database, dropping, stop),
                                *((update, number, dropping, stop)
                                  for number in range(UPDATERS)))
        return {DROP: answers[0], STALL: max(answers[1:])}

    @staticmethod
    def rate(server, connections, slow, options):
        """Tables that are created and dropped in a second."""
        sites = 2 if slow else 4 if options.quick else 16
        sites = max(1, sites // (1 + (connections > 1)))
        server.sql("".join(f"DROP DATABASE IF EXISTS tc_ddl_site{number};"
                           for number in range(connections)))
        with on_slow_disk(server) if slow else contextlib.nullcontext():
            answers, begin, _ = run(server, HOT,
                                    *((make_and_drop, number, sites)
                                      for number in range(connections)))
        return connections * sites * SITE / (max(answers) - begin)

    @staticmethod
    def syncs(server):
        """Syncs of the server that it takes to create a table."""
        session = wire.Connection(server.socket, HOT)
        tables = [f"s{table}" for table in range(SITE)]
        session.query(f"DROP TABLE IF EXISTS {', '.join(tables)}")
        with tempfile.TemporaryDirectory() as directory:
            output = pathlib.Path(directory, "strace")
            tracer = subprocess.Popen(
                ["strace", "-f", "-e", "trace=fsync,fdatasync,sync_file_range",
                 "-o", output, "-p", str(server.process.pid)], stderr=subprocess.PIPE, text=True)
            try:
                if "attached" not in tracer.stderr.readline():
                    raise BenchError("strace cannot trace the server")
                time.sleep(0.5)
                for table in tables:
                    session.query(f"CREATE TABLE {table} {COLUMNS} ENGINE=InnoDB")
            finally:
                tracer.terminate()
                tracer.communicate()
            found = count_syncs(output.read_text()) / SITE
        session.query(f"DROP TABLE {', '.join(tables)}")
        session.close()
        return found
