# SPDX-License-Identifier: GPL-2.0-only
"""What an open table takes of the memory."""

from benchlib import heap, sysbench
from benchlib.load import read_files
from benchlib.preload import compile_library
from benchlib.scenario import (RESERVED_DESCRIPTORS, Option, OwnServers,
                               descriptor_limit, engines, integers, table_bytes,
                               tree_of)
from benchlib.servers import Server, create_tables
from benchlib.usage import resident

DATABASE = "memory"
INNODB_FILES = 500              # that InnoDB keeps open, beside other engines
OPEN = "MiB of the server, tables open"
HEAP = "bytes of heap a known and open table"
WORDPRESS = "WordPress"         # whose tables the heap is measured with


def read(server, count, tables):
    """Read the first tables, in order."""
    sysbench.run(server, "open_tables", DATABASE, 1, events=count, tables=tables,
                 first=1, random="off")


class Memory(OwnServers):
    name = "memory"
    question = "How much memory does an open table take?"
    method = (
        "- Memory of the server: for each engine and number of tables, a fresh "
        "server reads all definitions, and closes all tables but 10 at most. Then "
        "it opens all of them or, with MyISAM and Aria, as many as the descriptors "
        "allow. The tables have one column and no rows.\n"
        "- Bytes of heap: by how much more of the heap is in use when a server has "
        "read each of some hundred tables once (heap_size.c). The twelve tables of "
        "WordPress have its columns and keys, without rows.")
    caveat = (
        "One-column tables without rows: a table of 12 columns with three indexes takes more.")
    unit = "as named"
    programs = ("sysbench",)

    numbers = Option("memory-tables", "numbers of tables", "10000,100000", "2000", integers)
    engines = Option("memory-engines", "engines", "innodb,myisam,aria", kind=engines)

    @classmethod
    def table_parts(cls, options):
        """{part: (engine, tables)} of those that measure the server's memory"""
        return {f"{engine}, {number} tables: ": (engine, number)
                for engine in cls.engines(options) for number in cls.numbers(options)}

    @classmethod
    def heap_parts(cls, options):
        """{part: engine} of those that measure the heap"""
        return {f"{engine}, {WORDPRESS}: ": engine for engine in cls.engines(options)}

    @staticmethod
    def databases(options):
        """So many that there are 60 or 600 tables to measure."""
        return -(-(75 if options.quick else 750) // len(heap.TABLES))

    @classmethod
    def disk(cls, options):
        return table_bytes(cls.engines(options), max(cls.numbers(options)))

    @classmethod
    def labels(cls, options):
        return {**dict.fromkeys(cls.table_parts(options), [OPEN]),
                **dict.fromkeys(cls.heap_parts(options), [HEAP])}

    @classmethod
    def server(cls, trees, variant, options, part):
        words = ["--innodb-buffer-pool-load-at-startup=0"]
        if part in cls.heap_parts(options):
            data = f"heap-{cls.heap_parts(options)[part]}-{WORDPRESS}-{cls.databases(options)}"
            words += ["--table-definition-cache=2000", "--table-open-cache=2000",
                      "--innodb-stats-auto-recalc=0"]
        else:
            engine, tables = cls.table_parts(options)[part]
            data = f"memory-{engine}-{max(cls.numbers(options))}"
            words += [f"--table-definition-cache={tables + 1000}",
                      "--table-open-cache=400", "--table-open-cache-instances=8",
                      "--open-files-limit=1048576",
                      f"--innodb-open-files={INNODB_FILES}",
                      "--innodb-buffer-pool-dump-at-shutdown=0"]
            if engine == "innodb":
                # A page of each table, and its rows in InnoDB's dictionary
                words.append(f"--innodb-buffer-pool-size={256 + tables * 3 // 64}M")
        return Server(tree_of(trees, variant), options.data / data, words, variant)

    @classmethod
    def prepare(cls, trees, options, progress):
        cls.library = compile_library("heap_size", options.data)
        super().prepare(trees, options, progress)

    @classmethod
    def fill(cls, server, options, part, progress):
        if part in cls.heap_parts(options):
            server.sql(heap.create(cls.heap_parts(options)[part], cls.databases(options)))
        else:
            create_tables(server, DATABASE, cls.table_parts(options)[part][0],
                          max(cls.numbers(options)), progress)

    @classmethod
    def measure_server(cls, server, options, part):
        if part in cls.heap_parts(options):
            return {HEAP: heap.measure(server, cls.databases(options), cls.library)}
        engine, tables = cls.table_parts(options)[part]
        most = (tables if engine == "innodb" else
                (descriptor_limit() - RESERVED_DESCRIPTORS - INNODB_FILES) // 2)
        count = min(tables, most)
        read_files(server.datadir / DATABASE)
        with server:
            read(server, tables, tables)        # the definitions
            # Stock closes all tables when the limit changes, the patched server those beyond it
            server.sql("SET GLOBAL table_open_cache=10")
            server.sql(f"SET GLOBAL table_open_cache={count + 10}")
            read(server, count, tables)
            return {OPEN: resident(server.process.pid) / 2**20}
