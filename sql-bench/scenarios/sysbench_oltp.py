# SPDX-License-Identifier: GPL-2.0-only
"""Bug 33948 (2008): throughput of one table falls with many connections."""

import contextlib

from benchlib import sysbench
from benchlib.scenario import (Scenario, integers, need_descriptors,
                               positive)
from benchlib.servers import BenchError
from benchlib.statistics import geometric_mean, ratio_of_pairs

# Each script, and how many statements one of its transactions has
SCRIPTS = {"oltp_point_select": 1, "oltp_read_only": 16, "oltp_read_write": 20}
POOL = 512                      # MiB, more than twice the data
LOWEST = 0.98                   # a ratio below it is worth a look
WARM = 1                        # second of each load that does not count


def plural(count, word):
    return f"{count} {word}{'s' * (count > 1)}"


class Sysbench(Scenario):
    name = "sysbench"
    title = "sysbench OLTP, one table and 16 tables"
    source = "bug 33948 (2008)"
    question = (
        "Does a server with few tables and many connections lose anything to the "
        "table cache, or gain?")
    method = (
        "sysbench's own OLTP scripts run over one million InnoDB rows in the "
        "buffer pool, chosen evenly. Both servers run all the time, each with a "
        "sysbench of its own. They take turns, for a second or two each, while the "
        "other's sysbench is stopped. Statements are prepared on one table, and "
        "plain on 16, where 2048 connections would prepare 300,000.")
    caveat = (
        "sysbench takes a share of the same CPUs, the larger the simpler the "
        "statements are. With few CPUs the cost of cache lines that move between "
        "cores hardly shows. Stock was measured against itself in the same way, 15 "
        "pairs of a second, 8 cells of 256 and 2048 threads: its median ratios are "
        "0.93 to 1.12, their geometric mean 1.02. So a cell's ratio in that range "
        "shows nothing.")
    unit = "transactions/s"
    both_running = True
    remarks_on_some = True
    weight = 8
    pairs = 15

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--scripts", default=",".join(SCRIPTS),
                            help="sysbench scripts (default %(default)s)")
        parser.add_argument("--sysbench-threads", default=None,
                            help="numbers of threads (default "
                            "1,16,64,256,2048; quick 1,64)")
        parser.add_argument("--sysbench-tables", default=None,
                            help="numbers of tables (default 1,16; quick 1)")
        parser.add_argument("--sysbench-rows", type=positive, default=None,
                            help="rows in all tables together (default "
                            "1000000; quick 100000)")
        parser.add_argument("--seconds", type=positive, default=None,
                            help="seconds that one measurement takes (default "
                            "2, or what --budget allows)")

    @classmethod
    def threads(cls, options):
        return integers(options.sysbench_threads or
                        ("1,64" if options.quick else "1,16,64,256,2048"))

    @classmethod
    def tables(cls, options):
        return integers(options.sysbench_tables or
                        ("1" if options.quick else "1,16"))

    @staticmethod
    def rows(options):
        return options.sysbench_rows or (100000 if options.quick else 1000000)

    @classmethod
    def check(cls, options):
        sysbench.require()
        cls.tables(options)
        # sysbench has one for each connection, the server two for each table
        need_descriptors(max(cls.threads(options)))
        for script in options.scripts.split(","):
            if script not in SCRIPTS:
                raise BenchError(f"unknown sysbench script '{script}' "
                                 f"({', '.join(SCRIPTS)})")

    @classmethod
    def disk(cls, options):
        # Two servers, and their logs
        return (2 * len(cls.tables(options)) * cls.rows(options) * 300
                + (5 << 30))

    @classmethod
    def connections(cls, options):
        return max(cls.threads(options)) + 20

    @classmethod
    def server_options(cls, options):
        connections = cls.connections(options)
        return [f"--max-connections={connections}",
                f"--back-log={connections}",
                f"--thread-cache-size={connections}",
                "--max-prepared-stmt-count=1000000",
                "--table-open-cache=4000", "--open-files-limit=1048576",
                f"--innodb-buffer-pool-size={POOL}M",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-log-file-size=1G"]

    @classmethod
    def cells(cls, options):
        return [{"label": f"{script}, {plural(tables, 'table')}, "
                          f"{plural(threads, 'thread')}",
                 "script": script, "tables": tables, "threads": threads}
                for script in options.scripts.split(",")
                for tables in cls.tables(options)
                for threads in cls.threads(options)]

    @classmethod
    def database(cls, options, tables):
        return f"tc_oltp_{tables}_{cls.rows(options)}"

    @classmethod
    def prepare(cls, server, options, progress):
        for tables in cls.tables(options):
            database = cls.database(options, tables)
            if server.sql("SELECT COUNT(*) FROM information_schema.tables "
                          f"WHERE table_schema='{database}_done'") == [["1"]]:
                continue
            progress("creating sysbench's tables", 0, tables)
            server.sql(f"DROP DATABASE IF EXISTS {database}; "
                       f"CREATE DATABASE {database}")
            cls.sysbench(server, options, "oltp_read_write", tables, 1,
                         command="prepare")
            # Only now it is complete
            server.sql(f"CREATE DATABASE IF NOT EXISTS {database}_done; "
                       f"CREATE TABLE {database}_done.t (a INT)")

    @classmethod
    def warm_up(cls, server, options):
        """Everything into the buffer pool; as many threads as will be."""
        for tables in cls.tables(options):
            cls.sysbench(server, options, "oltp_read_write", tables, 1,
                         command="prewarm")
        cls.sysbench(server, options, "oltp_read_write", tables,
                     max(cls.threads(options)), seconds=2)

    @classmethod
    @contextlib.contextmanager
    def load(cls, servers, cell, options):
        with contextlib.ExitStack() as stack:
            for server in servers:
                server.load = stack.enter_context(cls.sysbench(
                    server, options, cell["script"], cell["tables"],
                    cell["threads"], how=sysbench.Load))
                server.load.run(WARM)
            yield

    @classmethod
    def measure(cls, server, cell, options):
        return (server.load.run(cls.seconds(options))
                / SCRIPTS[cell["script"]])

    @staticmethod
    def seconds(options):
        """As long as was asked for, or as the time for all allows."""
        if options.seconds:
            return options.seconds
        if options.each:
            # Threads are started, and servers become idle, in between
            return min(max(0.8 * options.each - 0.2, 0.5), 5)
        return 2

    @classmethod
    def sysbench(cls, server, options, script, tables, threads,
                 how=sysbench.run, **more):
        return how(
            server, script, cls.database(options, tables), threads,
            tables=tables, table_size=cls.rows(options) // tables,
            rand_type="uniform",
            db_ps_mode="auto" if tables == 1 else "disable", **more)

    @staticmethod
    def remarks(results, options):
        ratios = [ratio["median"] for ratio in
                  (ratio_of_pairs(values["stock"], values["patched"])
                   for _, values in results) if ratio]
        low = sum(ratio < LOWEST for ratio in ratios)
        return [f"geometric mean of the {len(ratios)} median ratios: "
                f"{geometric_mean(ratios):.3f}; lowest {min(ratios):.3f}, "
                f"highest {max(ratios):.3f}; below {LOWEST}: {low}"]
