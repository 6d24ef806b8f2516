# SPDX-License-Identifier: GPL-2.0-only
"""MySQL file system fragmentation benchmarks: many files that grow at once."""

from benchlib import sysbench
from benchlib.scenario import TABLE_BYTES, OneByOne, Option, engines, integers, plural
from benchlib.servers import create_tables

CONNECTIONS = 4
BYTES = 1000                    # of a row
DATABASE = "tc_fragments"


class FileFragmentation(OneByOne):
    name = "file-fragmentation"
    question = (
        "What do many files that grow at the same time cost when they are written?")
    method = (
        f"{CONNECTIONS} connections insert rows of {BYTES} bytes into new tables at "
        "random, with table_open_cache=64.")
    caveat = "In the original benchmark the data grew beyond memory."
    unit = "rows/s"
    programs = ("sysbench",)

    counts = Option("frag-tables", "numbers of tables", "1,10,100,1000,10000", "1,100", integers)
    rows = Option("frag-rows", "rows in all tables together", 20000, 5000)
    engines = Option("frag-engines", "engines", "myisam,aria,innodb", kind=engines)

    @classmethod
    def disk(cls, options):
        return (3 * cls.rows(options) * BYTES + (1 << 30)
                + 2 * TABLE_BYTES["innodb"] * max(cls.counts(options)))

    @staticmethod
    def server_options(options):
        # Creating the tables is not measured
        return ["--table-open-cache=64",
                "--table-definition-cache=40000",
                "--open-files-limit=1048576", "--sync-frm=0",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-flush-method=O_DIRECT",
                "--innodb-buffer-pool-size=128M"]

    @classmethod
    def cells(cls, options):
        return [{"label": f"rows/s inserted, {engine}, {plural(count, 'table')}",
                 "engine": engine, "tables": count}
                for engine in cls.engines(options) for count in cls.counts(options)]

    @classmethod
    def measure(cls, server, cell, options):
        server.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
        create_tables(server, DATABASE, cell["engine"], cell["tables"], lambda *_: None,
                      "a INT, b TEXT")
        rate = sysbench.run(server, "insert_rows", DATABASE, CONNECTIONS,
                            events=cls.rows(options), bytes=BYTES, tables=cell["tables"])["rate"]
        server.sql(f"DROP DATABASE {DATABASE}")
        return rate
