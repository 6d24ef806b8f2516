# SPDX-License-Identifier: GPL-2.0-only
"""Bug 33948 (2008): throughput of one table falls with many connections."""

from benchlib import sysbench
from benchlib.scenario import Scenario, integers
from benchlib.servers import BenchError
from benchlib.statistics import geometric_mean, ratio_of_pairs

SCRIPTS = ("oltp_point_select", "oltp_read_only", "oltp_read_write")
ROWS = 100000                   # in all tables together


class Sysbench(Scenario):
    name = "sysbench"
    title = "sysbench OLTP, one table and 16 tables"
    source = "bug 33948 (2008)"
    question = ("Does a server with few tables and many connections lose "
                "anything to the table cache, or gain?")
    method = (f"sysbench's own OLTP scripts, {ROWS} rows in InnoDB tables, "
              "buffer pool larger than the data; both servers run all the "
              "time and take turns.")
    unit = "transactions/s"
    both_running = True

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--scripts", default=",".join(SCRIPTS),
                            help="sysbench scripts (default %(default)s)")
        parser.add_argument("--sysbench-threads", default=None,
                            help="numbers of threads (default "
                            "1,4,16,64,256,1024,2048; quick 1,64)")
        parser.add_argument("--sysbench-tables", default=None,
                            help="numbers of tables (default 1,16; quick 1)")
        parser.add_argument("--seconds", type=int, default=None,
                            help="length of one measurement (default 10; "
                            "quick 5)")

    @staticmethod
    def settings(options):
        threads = integers(options.sysbench_threads or
                           ("1,64" if options.quick
                            else "1,4,16,64,256,1024,2048"))
        tables = integers(options.sysbench_tables or
                          ("1" if options.quick else "1,16"))
        return threads, tables, options.seconds or (5 if options.quick else 10)

    @classmethod
    def check(cls, options):
        sysbench.require()
        cls.settings(options)
        for script in options.scripts.split(","):
            if script not in SCRIPTS:
                raise BenchError(f"unknown sysbench script '{script}' "
                                 f"({', '.join(SCRIPTS)})")

    @classmethod
    def server_options(cls, options):
        threads, _, _ = cls.settings(options)
        return [f"--max-connections={max(threads) + 20}",
                f"--back-log={max(threads) + 20}",
                "--table-open-cache=4000", "--innodb-buffer-pool-size=512M",
                "--innodb-flush-log-at-trx-commit=2",
                "--innodb-log-file-size=1G"]

    @classmethod
    def cells(cls, options):
        threads, tables, _ = cls.settings(options)
        return [{"label": f"{script}, {count} table{'s' * (count > 1)}, "
                          f"{users} thread{'s' * (users > 1)}",
                 "script": script, "tables": count, "threads": users}
                for script in options.scripts.split(",")
                for count in tables for users in threads]

    @classmethod
    def prepare(cls, server, options, progress):
        _, tables, _ = cls.settings(options)
        for count in tables:
            database = f"tc_oltp{count}"
            if server.sql("SELECT COUNT(*) FROM information_schema.tables "
                          f"WHERE table_schema='{database}'") == [[str(count)]]:
                continue
            progress("creating sysbench's tables", 0, count)
            server.sql(f"DROP DATABASE IF EXISTS {database}; "
                       f"CREATE DATABASE {database}")
            sysbench.run(server, "oltp_read_write", database, 1,
                         command="prepare", tables=count,
                         table_size=ROWS // count)

    @classmethod
    def measure(cls, server, cell, options):
        _, _, seconds = cls.settings(options)
        return sysbench.run(server, cell["script"], f"tc_oltp{cell['tables']}",
                            cell["threads"], seconds=seconds,
                            tables=cell["tables"],
                            table_size=ROWS // cell["tables"])["rate"]

    @staticmethod
    def remarks(results, options):
        ratios = [ratio["median"] for ratio in
                  (ratio_of_pairs(values["stock"], values["patched"])
                   for _, values in results) if ratio]
        return [f"geometric mean of the median ratios: "
                f"{geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}"]
