# SPDX-License-Identifier: GPL-2.0-only
"""How innodb_open_files affects performance (2009)."""

import os
import time

from benchlib import sysbench
from benchlib.scenario import OneByOne, Option, integers, need_descriptors, table_bytes
from benchlib.servers import create_tables

DATABASE = "tc_open_files"
SMALL, LARGE = 16, 1024         # MiB of buffer pool
READ, WRITE, RECOVER = "reads/s", "writes/s", "s of crash recovery"
LONGEST = "ms of the longest write"
CONNECTIONS = 8


class InnodbOpenFiles(OneByOne):
    name = "innodb-open-files"
    question = (
        "Does it matter how many files InnoDB may keep open? Does the limit still "
        "make no difference where it makes none today?")
    method = (
        "table_open_cache is 64. All of this is measured with a buffer pool that is smaller "
        f"({SMALL} MiB), and with one that is larger ({LARGE} MiB), than the pages that are "
        "used.\n\n"
        "- Reads and writes: connections read from tables at random, and then insert into them "
        "at random, all tables alike. The longest write is one of these.\n"
        f"- Crash recovery: a server with a buffer pool of {LARGE} MiB and the most open files "
        "inserts as many rows at random as there are tables, and is killed. The time is that "
        "of the next start.")
    caveat = (
        "The files are in the page cache as far as InnoDB does not bypass it. "
        "Which tablespaces are closed is not shown. The time of recovery includes "
        "that of a start without recovery.")
    unit = "as named"
    programs = ("sysbench",)
    longest = {}                # of each server's latest writes

    tables = Option("files-tables", "number of tables", 20000, 2000)
    limits = Option("open-files", "values of innodb_open_files", "100,2000,20000",
                    "100,2000", integers)

    @classmethod
    def check(cls, options):
        need_descriptors(max(cls.limits(options)), 1)

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
        return [{"label": f"{what}, innodb_open_files={limit}, {pool} MiB buffer pool",
                 "what": what, "limit": limit, "pool": pool}
                for pool in (SMALL, LARGE) for limit in cls.limits(options)
                for what in (READ, WRITE, LONGEST, RECOVER)]

    @classmethod
    def fill(cls, server, options, progress):
        create_tables(server, DATABASE, "innodb", cls.tables(options), progress)

    @classmethod
    def measure(cls, server, cell, options):
        if cell["what"] == RECOVER:
            # A shutdown writes all pages, and then the server writes next to
            # none.  So the recovery has to restore all rows that follow
            server.stop()
            server.start(*cls.limit({"pool": LARGE,
                                     "limit": max(cls.limits(options))}))
            sysbench.run(server, "insert_rows", DATABASE, CONNECTIONS,
                         events=cls.tables(options), tables=cls.tables(options))
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
            sysbench.run(server, "open_tables", DATABASE, CONNECTIONS,
                         events=cls.tables(options), seconds=cls.seconds(options),
                         tables=cls.tables(options))
        script, more = (("open_tables", {"random": "on"}) if cell["what"] == READ
                        else ("insert_rows", {}))
        result = sysbench.run(server, script, DATABASE, CONNECTIONS,
                              seconds=cls.seconds(options), tables=cls.tables(options), **more)
        if cell["what"] == WRITE:
            cls.longest[server.variant] = result["longest"]
        return result["rate"]

    @staticmethod
    def limit(cell):
        return (f"--innodb-open-files={cell['limit']}",
                f"--innodb-buffer-pool-size={cell['pool']}M")

    @staticmethod
    def seconds(options):
        return 2 if options.quick else 10
