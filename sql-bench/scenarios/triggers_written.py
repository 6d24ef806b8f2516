# SPDX-License-Identifier: GPL-2.0-only
"""What statements cost that fire triggers, if a TABLE reads them when it is written."""

from benchlib import sysbench

from .hits import TURNS, TakingTurns

TABLES, ROWS = 4, 20000
CONNECTIONS, SECONDS = 8, 4     # of a measurement
SCRIPTS = ("oltp_write_only", "oltp_read_write")
CPU = ": us of the server's CPU time a transaction"
TRIGGERS = {"BEFORE INSERT": "SET NEW.pad=NOW()", "BEFORE UPDATE": "SET NEW.pad=NOW()",
            "AFTER DELETE": "SET @deleted=OLD.id"}


class TriggersWritten(TakingTurns):
    name = "triggers-written"
    question = (
        "Does a statement that fires triggers pay for it that other statements do not "
        "read them?")
    method = (
        f"sysbench's scripts over {TABLES} InnoDB tables of {ROWS} rows, which are in the "
        "buffer pool and in the table cache. Each table has three triggers. oltp_read_write "
        f"also reads the tables. {TURNS}")
    caveat = (
        "sysbench takes a share of the same CPUs. The CPU time is that of all threads "
        "of the server, those that write pages and purge rows included.")

    @staticmethod
    def disk(options):
        return 4 << 30

    @staticmethod
    def cells(options):
        return [{"label": script + CPU} for script in SCRIPTS]

    @staticmethod
    def directory(options):
        return options.data / "triggers-written"

    @staticmethod
    def server_options(options):
        return ["--table-open-cache=4000", "--innodb-buffer-pool-size=256M",
                "--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=512M"]

    @staticmethod
    def settings(options):
        return SCRIPTS

    @staticmethod
    def sysbench(server, script, connections, **more):
        return sysbench.run(server, script, "test", connections, tables=TABLES,
                            table_size=ROWS, rand_type="uniform", **more)

    @classmethod
    def make_tables(cls, server, options):
        cls.sysbench(server, SCRIPTS[0], 1, command="prepare")
        server.sql("".join(
            f"CREATE TRIGGER {when.replace(' ', '_')}_{number} {when} ON "
            f"sbtest{number} FOR EACH ROW {action};\n" for number in range(1, TABLES + 1)
            for when, action in TRIGGERS.items()), "test")

    @classmethod
    def warm_up(cls, server, options):
        cls.sysbench(server, SCRIPTS[0], 1, command="prewarm")
        cls.sysbench(server, "oltp_read_write", CONNECTIONS, seconds=2)

    @classmethod
    def measure_setting(cls, server, options, script):
        measured = cls.sysbench(server, script, CONNECTIONS, seconds=SECONDS,
                                server_cpu=server.cpu_seconds)
        return {script + CPU: 1e6 * measured["cpu_seconds"] / measured["events"]}
