# SPDX-License-Identifier: GPL-2.0-only
"""What statements cost that fire triggers, if a TABLE reads them when it is written."""

from benchlib import sysbench
from benchlib.scenario import CONTROL, Scenario, positive
from benchlib.servers import Server, make_tables_once

from .hits import together

TABLES, ROWS = 4, 20000
SCRIPTS = ("oltp_update_non_index", "oltp_write_only", "oltp_read_write")
RATE, CPU = "transactions/s", "us of the server's CPU time a transaction"
LABELS = (RATE, CPU)
TRIGGERS = {"BEFORE INSERT": "SET NEW.pad=NOW()", "BEFORE UPDATE": "SET NEW.pad=NOW()",
            "AFTER DELETE": "SET @deleted=OLD.id"}


class TriggersWritten(Scenario):
    name = "triggers-written"
    title = "Statements that fire triggers"
    source = "sysbench's oltp_write_only, with triggers"
    question = (
        "Does a statement that fires triggers pay for it that other statements do not "
        "read them?")
    method = (
        f"sysbench's scripts over {TABLES} InnoDB tables of {ROWS} rows, which are in the "
        "buffer pool and in the table cache. Each table has three triggers. "
        "oltp_read_write also reads the tables. Three servers are started anew for "
        f"each pair: stock, patched, and stock once more as '{CONTROL}'. They take "
        "turns for each cell, each is the first one as often as the others, and each "
        "has a sysbench of its own for it.")
    caveat = (
        "sysbench takes a share of the same CPUs. The CPU time is that of all threads "
        "of the server, those that write pages and purge rows included.")
    unit = "as named"
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--written-connections", type=positive, default=8,
                            metavar="N", help="(default %(default)s)")
        parser.add_argument("--written-seconds", type=positive, default=4, metavar="N",
                            help="of a measurement (default %(default)s)")

    @staticmethod
    def check(options):
        sysbench.require()

    @staticmethod
    def disk(options):
        return 4 << 30

    @staticmethod
    def cells(options):
        return [{"label": f"{script}: {label}", "part": None}
                for script in SCRIPTS for label in LABELS]

    @staticmethod
    def server(trees, variant, options, data=None):
        return Server(trees / ("stock" if variant == CONTROL else variant),
                      options.data / "triggers-written" /
                      (data or variant.replace(" ", "-")),
                      ["--table-open-cache=4000", "--innodb-buffer-pool-size=256M",
                       "--innodb-flush-log-at-trx-commit=2",
                       "--innodb-log-file-size=512M"], variant)

    @staticmethod
    def sysbench(server, script, connections, **more):
        return sysbench.run(server, script, "test", connections, tables=TABLES,
                            table_size=ROWS, rand_type="uniform", **more)

    @classmethod
    def prepare_program(cls, trees, options, progress):
        """Make the tables once, and a copy for each server."""
        made = cls.server(trees, "stock", options, "data")

        def fill():
            cls.sysbench(made, SCRIPTS[0], 1, command="prepare")
            made.sql("".join(
                f"CREATE TRIGGER {when.replace(' ', '_')}_{number} {when} ON "
                f"sbtest{number} FOR EACH ROW {action};\n"
                for number in range(1, TABLES + 1)
                for when, action in TRIGGERS.items()), "test")

        make_tables_once(made, [cls.server(trees, variant, options) for variant
                                in ("stock", "patched", CONTROL)], fill, progress)

    @classmethod
    def measure_pair(cls, trees, options, _part, order):
        servers = [cls.server(trees, variant, options)
                   for variant in (*order, CONTROL)]
        try:
            for server in servers:
                server.start()
                cls.sysbench(server, SCRIPTS[0], 1, command="prewarm")
                cls.sysbench(server, "oltp_read_write", options.written_connections,
                             seconds=2)
            found = {}
            for number, script in enumerate(SCRIPTS):
                # Each server is the first one in its turn
                for server in servers[number:] + servers[:number]:
                    measured = cls.sysbench(
                        server, script, options.written_connections,
                        seconds=options.written_seconds,
                        server_cpu=lambda: float(server.cpu_seconds()))
                    for label, value in zip(LABELS, (
                            measured["rate"],
                            1e6 * measured["cpu_seconds"] / measured["events"])):
                        found.setdefault(f"{script}: {label}", {})[
                            server.variant] = value
            return found
        finally:
            for server in servers:
                server.stop()

    @staticmethod
    def remarks(results, options):
        """What all scripts say together."""
        return [f"all scripts together, {label}: {text}" for label in LABELS
                if (text := together([
                    values for cell, values in results
                    if cell["label"].endswith(": " + label)]))]
