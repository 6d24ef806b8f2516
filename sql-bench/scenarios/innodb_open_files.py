# SPDX-License-Identifier: GPL-2.0-only
"""How innodb_open_files affects performance (2009)."""

import os
import time

from benchlib import sysbench
from benchlib.scenario import (RESERVED_DESCRIPTORS, Scenario,
                               descriptor_limit, integers, positive,
                               table_bytes)
from benchlib.servers import BenchError, create_tables

DATABASE = "tc_open_files"
SMALL, LARGE = 16, 1024         # MiB of buffer pool
READ, WRITE, RECOVER = "reads/s", "writes/s", "s of crash recovery"
LONGEST = "ms of the longest write"
SKEWED = "writes/s, nine tenths into a tenth of the tables"


class InnodbOpenFiles(Scenario):
    name = "innodb-open-files"
    title = "Reads, writes and crash recovery by innodb_open_files"
    source = "How innodb_open_files affects performance (2009)"
    question = (
        "Does it matter how many files InnoDB may keep open? Does the limit still "
        "make no difference where it makes none today?")
    method = (
        "table_open_cache is 64. All of this is measured with a buffer pool that "
        f"is smaller ({SMALL} MiB), and with one that is larger ({LARGE} MiB), "
        "than the pages that are used.\n\n"
        "- Reads and writes: connections read from tables at random, and then "
        "insert into them at random, all tables alike. The longest write is one of "
        "these.\n"
        "- 'nine tenths into a tenth of the tables': they insert so that nine "
        "tenths of the rows go into a tenth of the tables.\n"
        f"- Crash recovery: a server with a buffer pool of {LARGE} MiB and the "
        "most open files inserts as many rows at random as there are tables, and "
        "is killed. The time is that of the next start.")
    caveat = (
        "The files are in the page cache as far as InnoDB does not bypass it. "
        "Which tablespaces are closed is not shown. The time of recovery includes "
        "that of a start without recovery.")
    unit = "as named"
    together = 5
    longest = {}                # of each server's latest writes
    weight = 10

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--files-tables", type=positive,
                            help="number of tables (default 20000; quick "
                            "2000)")
        parser.add_argument("--files-connections", type=positive, default=8,
                            help="number of connections (default 8)")
        parser.add_argument("--open-files", default=None,
                            help="values of innodb_open_files (default "
                            "100,2000 and 20000, or what this shell's "
                            "descriptors allow; quick 100,2000)")

    @staticmethod
    def tables(options):
        return options.files_tables or (2000 if options.quick else 20000)

    @staticmethod
    def limits(options):
        if options.open_files:
            return integers(options.open_files)
        if options.quick:
            return [100, 2000]
        return [100, 2000, min(20000,
                               descriptor_limit() - RESERVED_DESCRIPTORS)]

    @classmethod
    def check(cls, options):
        sysbench.require()
        need = max(cls.limits(options)) + RESERVED_DESCRIPTORS
        if need > descriptor_limit():
            raise BenchError(
                f"innodb_open_files={max(cls.limits(options))} needs {need} "
                f"file descriptors, this shell may have {descriptor_limit()}; "
                "raise 'ulimit -Hn' or lower --open-files")

    @classmethod
    def disk(cls, options):
        return table_bytes(["innodb"], cls.tables(options)) + (1 << 30)

    @staticmethod
    def server_options(options):
        return ["--table-open-cache=64", "--table-definition-cache=40000",
                "--open-files-limit=1048576",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-log-file-size=512M"]

    @classmethod
    def cells(cls, options):
        return [{"label": f"{what}, innodb_open_files={limit}, "
                          f"{pool} MiB buffer pool",
                 "what": what, "limit": limit, "pool": pool}
                for pool in (SMALL, LARGE) for limit in cls.limits(options)
                for what in (READ, WRITE, LONGEST, SKEWED, RECOVER)]

    @classmethod
    def prepare(cls, server, options, progress):
        create_tables(server, DATABASE, "innodb", cls.tables(options),
                      progress)

    @classmethod
    def measure(cls, server, cell, options):
        if cell["what"] == RECOVER:
            # A shutdown writes all pages, and then the server writes next to
            # none.  So the recovery has to restore all rows that follow
            server.stop()
            server.start(*cls.limit({"pool": LARGE,
                                     "limit": max(cls.limits(options))}))
            sysbench.run(server, "insert_rows", DATABASE,
                         options.files_connections,
                         events=cls.tables(options),
                         tables=cls.tables(options))
            server.kill()
            begin = time.monotonic()
            server.start(*cls.limit(cell))
            return time.monotonic() - begin
        if cell["what"] == LONGEST:
            return cls.longest.pop(server.variant)
        if cell["what"] == READ:
            server.stop()
            server.start(*cls.limit(cell))
            # Pages that the previous cell has written; and the first touch of files
            os.sync()
            sysbench.run(server, "open_tables", DATABASE,
                         options.files_connections,
                         events=cls.tables(options),
                         seconds=cls.seconds(options),
                         tables=cls.tables(options))
        script = "open_tables" if cell["what"] == READ else "insert_rows"
        more = {READ: {"random": "on"}, WRITE: {},
                SKEWED: {"skew": "on"}}[cell["what"]]
        result = sysbench.run(server, script, DATABASE,
                              options.files_connections,
                              seconds=cls.seconds(options),
                              tables=cls.tables(options), **more)
        if cell["what"] == WRITE:
            cls.longest[server.variant] = result["longest"]
        return result["rate"]

    @staticmethod
    def limit(cell):
        return (f"--innodb-open-files={cell['limit']}",
                f"--innodb-buffer-pool-size={cell['pool']}M")

    @staticmethod
    def seconds(options):
        if options.each:
            # Three measurements of five and a first touch; three starts
            return min(max(round(options.each - 2), 2), 30)
        return 2 if options.quick else 10