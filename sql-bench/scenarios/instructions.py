# SPDX-License-Identifier: GPL-2.0-only
"""What a statement costs in instructions, which no other work on the machine changes."""

from benchlib import callgrind, wire
from benchlib.scenario import (CONTROL, Option, OwnServers, integers, plural, table_bytes,
                               tree_of)
from benchlib.servers import Server, create_tables

ROWS = 2000                     # of each table that is open
STATEMENTS = 2000               # of each kind
DATABASE, MISSES = "tc_hit", "tc_miss_"
HIT, MISS = "hit, ", "miss, "
CLOSE = "SET GLOBAL table_open_cache, for each table that it closes"
ENGINES = ("innodb", "myisam", "aria")
PROTOCOLS = ("text", "prepared")
SMALL = 64                      # table_open_cache, so that all others miss


def executor(session, protocol, tables):
    """A function that executes the n-th point SELECT, of the tables in turn and of
    another row each time."""
    prepared = [session.prepare(f"SELECT c FROM t{table} WHERE id = ?")
                for table in range(1, tables + 1)] if protocol == "prepared" else []

    def execute(number):
        table, row = number % tables, number * 7919 % (ROWS - 1) + 1
        if prepared:
            session.send_packets(wire.execution(prepared[table], row))
            session.skip_result()
        else:
            session.discard(f"SELECT c FROM t{table + 1} WHERE id = {row}")
    return execute


class Instructions(OwnServers):
    name = "instructions"
    question = (
        "How many instructions does the server execute for a statement, if the "
        "table is open, and if it is not?")
    method = (
        "callgrind counts what the connection's thread executes outside of the "
        "kernel. It begins when all definitions are cached and the statement has "
        "been executed many times. One server runs at a time, on one data "
        f"directory; '{CONTROL}' is the stock server started a second time.\n\n"
        f"- 'hit': InnoDB tables of {ROWS} rows in the buffer pool, used in turn.\n"
        "- 'miss': SELECT * FROM one-column tables in turn, with a cache of "
        f"{SMALL}, so each statement opens a table and closes another.\n"
        f"- SET GLOBAL table_open_cache={SMALL}: the InnoDB tables of 'miss' are "
        "open. Stock closes them all.")
    caveat = (
        "Instructions take different times. Waiting for memory and for locks is not in these "
        "numbers, nor is the kernel. valgrind's threads run one at a time. valgrind 3.19 does "
        "not know openat2(), so the patched server opens files of MyISAM and Aria as on Linux "
        "before 5.6, which takes more instructions.")
    unit = "instructions"
    programs = ("valgrind",)
    pairs = 1

    tables = Option("instructions-tables", "tables of the hits", "1,4,16", kind=integers)
    misses = Option("instructions-misses", "tables of each engine", 3000)

    @classmethod
    def disk(cls, options):
        return table_bytes(ENGINES, cls.misses(options)) + (1 << 30)

    @classmethod
    def hits(cls, options):
        """{label: (protocol, tables)} of statements that find their tables open"""
        return {f"{HIT}{protocol}, point SELECT, {plural(tables, 'table')}":
                (protocol, tables) for protocol in PROTOCOLS for tables in cls.tables(options)}

    @classmethod
    def labels(cls, options):
        return {None: [*cls.hits(options), *(MISS + engine for engine in ENGINES), CLOSE]}

    @classmethod
    def server(cls, trees, variant, options, _part):
        most = cls.misses(options)
        return Server(tree_of(trees, variant), options.data / f"instructions-{most}",
                      [f"--table-definition-cache={4 * most + 1000}",
                       f"--table-open-cache={most + 1000}",
                       # Both then have one list of free TABLEs
                       "--table-open-cache-instances=1",
                       "--innodb-buffer-pool-size=512M",
                       "--innodb-buffer-pool-load-at-startup=0",
                       "--innodb-stats-auto-recalc=0"], variant)

    @classmethod
    def fill(cls, server, options, part, progress):
        most = max(cls.tables(options))
        create_tables(server, DATABASE, "innodb", most, progress,
                      "id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT "
                      "NULL, pad CHAR(60) NOT NULL, KEY (k)", "SELECT seq, seq, "
                      f"REPEAT('c', 119), REPEAT('p', 59) FROM seq_1_to_{ROWS}")
        for engine in ENGINES:
            create_tables(server, MISSES + engine, engine, cls.misses(options), progress)

    @classmethod
    def measure_server(cls, server, options, _part):
        with callgrind.Counted(server) as counted:
            return dict(cls.counts(counted, options))

    @classmethod
    def counts(cls, counted, options):
        """Yield (label, instructions a statement)."""
        session = wire.Connection(counted.server.socket, DATABASE)
        for label, (protocol, tables) in cls.hits(options).items():
            yield label, counted.each(STATEMENTS, executor(session, protocol, tables))

        def miss(number):
            session.discard(f"SELECT * FROM t{number % cls.misses(options) + 1}")

        def open_tables():
            return session.status("Open_tables")["Open_tables"]

        for engine in ENGINES:
            session.query(f"USE {MISSES}{engine}")
            session.query("SET GLOBAL table_open_cache = "
                          f"{cls.misses(options) + 1000}")
            for number in range(cls.misses(options)):
                miss(number)
            if engine == ENGINES[0]:
                opened = open_tables()
                cost = counted.once(lambda: session.query(
                    f"SET GLOBAL table_open_cache = {SMALL}"))
                yield CLOSE, cost / (opened - open_tables())
            session.query(f"SET GLOBAL table_open_cache = {SMALL}")
            yield MISS + engine, counted.each(STATEMENTS, miss)
        session.close()
