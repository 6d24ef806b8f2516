# SPDX-License-Identifier: GPL-2.0-only
"""Bug 33948 (2008): throughput of one table falls with many connections."""

from benchlib import sysbench
from benchlib.scenario import Option, integers, need_descriptors, plural

from .hits import TURNS, TakingTurns

SCRIPTS = ("oltp_point_select", "oltp_read_only", "oltp_read_write")
POOL = 512                      # MiB, more than twice the data


class Sysbench(TakingTurns):
    name = "sysbench"
    question = (
        "Does a server with few tables and many connections lose anything to the "
        "table cache, or gain?")
    method = (
        "sysbench's own OLTP scripts run over one million InnoDB rows in the "
        f"buffer pool, chosen evenly. {TURNS} Statements are prepared on one table, and "
        "plain on 16, where 2048 connections would prepare 300,000.")
    caveat = (
        "sysbench takes a share of the same CPUs, the larger the simpler the statements are. "
        "With few CPUs the cost of cache lines that move between cores hardly shows. Stock was "
        "measured against itself in the same way, 15 pairs of a second, 8 cells of 256 and "
        "2048 threads: its median ratios are 0.93 to 1.12, their geometric mean 1.02. So a "
        "cell's ratio in that range shows nothing.")
    unit = "transactions/s"

    threads = Option("sysbench-threads", "numbers of threads", "1,16,64,256,2048", "1,64",
                     integers)
    tables = Option("sysbench-tables", "numbers of tables", "1,16", "1", integers)
    rows = Option("sysbench-rows", "rows in all tables together", 1000000, 100000)
    seconds = Option("seconds", "of a measurement", 2)

    @classmethod
    def check(cls, options):
        # sysbench has one for each connection, the server two for each table
        need_descriptors(max(cls.threads(options)))

    @classmethod
    def disk(cls, options):
        # Three servers, and their logs
        return 3 * len(cls.tables(options)) * cls.rows(options) * 300 + (6 << 30)

    @classmethod
    def directory(cls, options):
        return options.data / f"sysbench-{cls.rows(options)}-" \
            f"{'-'.join(map(str, cls.tables(options)))}"

    @classmethod
    def server_options(cls, options):
        connections = max(cls.threads(options)) + 20
        return [f"--max-connections={connections}",
                f"--back-log={connections}",
                f"--thread-cache-size={connections}",
                "--max-prepared-stmt-count=1000000",
                "--table-open-cache=4000", "--open-files-limit=1048576",
                f"--innodb-buffer-pool-size={POOL}M",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-log-file-size=1G"]

    @classmethod
    def settings(cls, options):
        """(label, script, tables, threads)"""
        return [(f"{script}, {plural(tables, 'table')}, {plural(threads, 'thread')}",
                 script, tables, threads) for script in SCRIPTS
                for tables in cls.tables(options) for threads in cls.threads(options)]

    @classmethod
    def cells(cls, options):
        return [{"label": label} for label, *_ in cls.settings(options)]

    @classmethod
    def make_tables(cls, server, options):
        for tables in cls.tables(options):
            server.sql(f"CREATE DATABASE oltp_{tables}")
            cls.sysbench(server, options, "oltp_read_write", tables, 1, command="prepare")

    @classmethod
    def warm_up(cls, server, options):
        """Everything into the buffer pool; as many threads as will be."""
        for tables in cls.tables(options):
            cls.sysbench(server, options, "oltp_read_write", tables, 1, command="prewarm")
        cls.sysbench(server, options, "oltp_read_write", cls.tables(options)[-1],
                     max(cls.threads(options)), seconds=2)

    @classmethod
    def measure_setting(cls, server, options, setting):
        label, script, tables, threads = setting
        return {label: cls.sysbench(server, options, script, tables, threads,
                                    seconds=cls.seconds(options))["rate"]}

    @classmethod
    def sysbench(cls, server, options, script, tables, threads, **more):
        return sysbench.run(
            server, script, f"oltp_{tables}", threads, tables=tables,
            table_size=cls.rows(options) // tables, rand_type="uniform",
            db_ps_mode="auto" if tables == 1 else "disable", **more)
