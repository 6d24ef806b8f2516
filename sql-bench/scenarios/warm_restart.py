# SPDX-License-Identifier: GPL-2.0-only
"""How long statements take right after a restart, with and without the plugin that opens
the tables again."""

from benchlib import visitors
from benchlib.load import read_files, run, shares
from benchlib.scenario import (CONTROL, Option, OwnServers, engines, innodb_options,
                               need_descriptors, table_bytes, tree_of)
from benchlib.servers import BenchError, Server, create_tables
from benchlib.disk import slow_disk
from benchlib.statistics import percentile

from .ddl import COLUMNS

DATABASE = "tc_warm_restart"
NO_PLUGIN = "patched, no plugin"
READERS = 4                     # connections that use the tables before the restart
CLIENTS = 16
RATE = 400                      # statements a second
SECONDS = 10
FIRST = 2                       # seconds that count as the first ones
READ_DELAY = 1                  # ms that each read of a slow disk takes
HOT_PART, HOT_SHARE = 5, 0.8    # every fifth table gets 80 % of the statements
P50, P99_FIRST = "p50, ms", f"p99 of the first {FIRST} s, ms"


def use(session, tables):
    """Use each table, the hot ones more often."""
    for table in tables:
        for _ in range(1 if table % HOT_PART else 3):
            session.query(f"SELECT id FROM t{table} LIMIT 1")


class WarmRestart(OwnServers):
    name = "warm-restart"
    question = (
        "How long do statements take in the first seconds after a restart? What does the "
        "plugin table_cache_dump change?")
    method = (
        "A server uses all of its tables, every fifth one three times, and is restarted. Then "
        f"statements come by chance, {RATE} a second on average, for {SECONDS} s: each selects "
        f"a row of a table, {HOT_SHARE:.0%} of them of every fifth table. A statement takes "
        f"from its arrival to its answer, and at most {CLIENTS} run at once. 'Patched' has the "
        f"plugin, which opens the tables again, and '{NO_PLUGIN}' has not. InnoDB dumps and "
        "loads its buffer pool, as by default. All files are in the page cache; on the slow "
        f"disk, disk.c makes each read of a table's files take {READ_DELAY} ms longer.")
    caveat = (
        "The clients are one program in C on the same CPUs. It connects after the server "
        "has started, so the plugin has a lead of as long as that takes.")
    unit = "as named"
    copied = True
    pairs = 3

    number = Option("restart-tables", "number of tables", 8000, 1000)
    engines = Option("restart-engines", "engines", "myisam,innodb", kind=engines)

    @staticmethod
    def besides(options):
        return (CONTROL, NO_PLUGIN)

    @classmethod
    def tables(cls, options):
        return cls.number(options) // HOT_PART * HOT_PART

    @classmethod
    def settings(cls, options):
        """{part: (engine, slow)}"""
        return {f"{'slow disk, ' * slow}{engine}: ": (engine, slow) for slow in (False, True)
                for engine in cls.engines(options)}

    @classmethod
    def check(cls, options):
        visitors.require()
        need_descriptors(cls.tables(options))

    @classmethod
    def disk(cls, options):
        return 3 * table_bytes(cls.engines(options), cls.tables(options))

    @classmethod
    def labels(cls, options):
        return dict.fromkeys(cls.settings(options), (P50, P99_FIRST))

    @classmethod
    def server(cls, trees, variant, options, part, data=None):
        engine, _ = cls.settings(options)[part]
        tables, tree = cls.tables(options), tree_of(trees, variant)
        return Server(
            tree, options.data / f"restart-{engine}-{tables}" / (data or tree.name),
            [f"--table-open-cache={tables + 400}",
             f"--table-definition-cache={tables + 400}",
             f"--max-connections={CLIENTS + 20}", *innodb_options(tables)], variant)

    @classmethod
    def prepare(cls, trees, options, progress):
        visitors.compile_visitors(options.trees / "bench")
        super().prepare(trees, options, progress)

    @classmethod
    def fill(cls, server, options, part, progress):
        engine, _ = cls.settings(options)[part]
        create_tables(server, DATABASE, engine, cls.tables(options), progress,
                      COLUMNS[1:-1], rows="() VALUES ()")

    @classmethod
    def measure_server(cls, server, options, part):
        """Use all tables, restart, and measure."""
        _, slow = cls.settings(options)[part]
        tables, plugin = cls.tables(options), server.variant == "patched"
        more = [f"--plugin-dir={server.build / 'plugin' / 'table_cache_dump'}",
                "--plugin-load-add=table_cache_dump"] if plugin else []
        read_files(server.datadir)
        server.start(*more)
        run(server, DATABASE, *((use, share) for share in shares(range(1, tables + 1), READERS)))
        server.stop()
        if slow:
            server.environment = slow_disk(
                server.datadir.parent, read_ms=READ_DELAY,
                files=(".frm", ".ibd", ".MYI", ".MAI"))
        server.start(*more)
        statements = cls.ask(server, options)
        if plugin and not cls.has_loaded(server):
            raise BenchError("the plugin loads no tables")
        server.stop()
        return cls.summary(statements)

    @staticmethod
    def has_loaded(server):
        """Whether the plugin has begun to load."""
        rows = server.sql("SHOW GLOBAL STATUS LIKE 'Table_cache_load_status'")
        return bool(rows) and rows[0][1] != "not loaded yet"

    @classmethod
    def ask(cls, server, options):
        """When each statement arrived, in seconds, and the ms that it took."""
        directory = server.datadir.parent
        visitors.write_pages(directory / "statements.txt", {
            "select": (1, ["SELECT id FROM t{site} LIMIT 1"])})
        visitors.ask(
            visitors.compile_visitors(options.trees / "bench"), server,
            directory / "statements.txt", user=server.account,
            database=DATABASE, sites=cls.tables(options),
            hot_every=HOT_PART, hot_share=HOT_SHARE, rate=RATE, seconds=SECONDS,
            connections=CLIENTS, keep_connections=1, visits=directory / "visits.txt")
        return visitors.read_visits(directory / "visits.txt")

    @staticmethod
    def summary(statements):
        """What was measured, from when each statement arrived and how many ms it took."""
        return {P50: percentile([ms for _, ms in statements], 0.5),
                P99_FIRST: percentile([ms for at, ms in statements if at < FIRST], 0.99)}
