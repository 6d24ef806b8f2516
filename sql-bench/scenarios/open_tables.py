# SPDX-License-Identifier: GPL-2.0-only
"""WL#70, table_cache negative scalability (2009)."""

from benchlib import sysbench
from benchlib.scenario import (INNODB_FILES, OneByOne, Option, engines,
                               innodb_options, integers, need_descriptors,
                               plural, table_bytes)
from benchlib.servers import create_tables

# Statements a table by several threads.  With 2, InnoDB's measurements took less
# than a second, and how the threads' scheduling had begun decided
ROUNDS = 10


class OpenTables(OneByOne):
    name = "open-tables"
    question = ("Does opening a table cost more, the more tables are open?")
    method = (
        "SELECT * FROM tN over one-column tables without rows, each statement on "
        "another table. One thread takes the tables in order, so all statements "
        "miss the cache; several threads take them at random, so most do. All "
        "definitions are cached, and the cache is filled before each measurement. "
        "A measurement stops after one round over the tables, with several threads "
        f"after {ROUNDS} statements a table, or after a time limit.")
    unit = "tables/s"
    programs = ("sysbench",)
    caveat = (
        "The tables have no rows: what is read from a table after it was opened comes on top. "
        "Their files are in the page cache, InnoDB's pages in the buffer pool.")

    tables = Option("tables", "number of tables", 20000, 3000)
    caches = Option("cache", "sizes of table_open_cache", "64,1024,2048,4096,8192",
                    "64,2048", integers)
    engines = Option("engines", "engines", "myisam,aria,innodb", kind=engines)
    threads = Option("threads", "numbers of threads", "1,16,128", "1,16", integers)

    @classmethod
    def check(cls, options):
        if set(cls.engines(options)) - {"innodb"}:
            need_descriptors(max(cls.caches(options)) + INNODB_FILES // 2)

    @classmethod
    def disk(cls, options):
        return table_bytes(cls.engines(options), cls.tables(options))

    @classmethod
    def server_options(cls, options):
        tables, names = cls.tables(options), cls.engines(options)
        settings = [f"--table-open-cache={max(cls.caches(options))}",
                    f"--table-definition-cache={len(names) * tables + 1000}",
                    f"--max-connections={max(cls.threads(options)) + 20}",
                    "--open-files-limit=1048576"]
        if "innodb" in names:
            settings += innodb_options(tables)
        return settings

    @classmethod
    def cells(cls, options):
        return [{"label": f"{engine}, {plural(count, 'thread')}, table_open_cache={cache}",
                 "engine": engine, "threads": count, "cache": cache}
                for engine in cls.engines(options) for count in cls.threads(options)
                for cache in cls.caches(options)]

    @classmethod
    def fill(cls, server, options, progress):
        tables = cls.tables(options)
        for engine in cls.engines(options):
            create_tables(server, f"tc_{engine}_{tables}", engine, tables, progress)

    @classmethod
    def warm_up(cls, server, options):
        """Read all definitions, so that a miss opens a table and no more."""
        tables = cls.tables(options)
        server.sql("SET GLOBAL table_open_cache=64")
        for engine in cls.engines(options):
            sysbench.run(server, "open_tables", f"tc_{engine}_{tables}", 1,
                         events=tables, tables=tables)

    @classmethod
    def measure(cls, server, cell, options):
        tables = cls.tables(options)
        threads, cache = cell["threads"], cell["cache"]
        database = f"tc_{cell['engine']}_{tables}"
        # A cache with nothing of the one before, filled
        server.sql("SET GLOBAL table_open_cache=10; "
                   f"SET GLOBAL table_open_cache={cache};")
        sysbench.run(server, "open_tables", database, 1,
                     events=min(tables, cache + cache // 4), tables=tables)
        opened, used = server.status("Opened_tables"), server.cpu_seconds()
        result = sysbench.run(
            server, "open_tables", database, threads,
            events=tables if threads == 1 else ROUNDS * tables,
            seconds=cls.seconds(options), tables=tables, first=cache + cache // 4,
            random="on" if threads > 1 else "off")
        return {"value": result["rate"],
                "opens": (server.status("Opened_tables") - opened) / result["events"],
                "cpu_us": 1e6 * (server.cpu_seconds() - used) / result["events"]}

    @staticmethod
    def seconds(options):
        """The limit of one round."""
        return 5 if options.quick else 15
