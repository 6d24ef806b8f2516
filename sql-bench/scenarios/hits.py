# SPDX-License-Identifier: GPL-2.0-only
"""What a statement costs that finds its tables open."""

import contextlib

from benchlib import sysbench
from benchlib.scenario import (CONTROL, Option, Scenario, integers, need_descriptors,
                               plural, tree_of)
from benchlib.servers import Server, make_once
from benchlib.usage import on_one_cpu

ROWS = 20000                    # of each table
RATE, CPU = "statements/s", "us of the server's CPU time"
PROTOCOLS = {"text": "disable", "prepared": "auto"}     # sysbench's --db-ps-mode
TURNS = (
    "Three servers are started anew for each pair: stock, patched, and stock once more as "
    f"'{CONTROL}'. They take turns for each cell, each is the first one as often as the others, "
    "and each has a sysbench of its own for it.")


def part_of(protocol, tables, connections):
    return f"{protocol}, {plural(tables, 'table')}, {plural(connections, 'connection')}: "


class TakingTurns(Scenario):
    """Stock, patched, and stock once more run at the same time, each started anew for each
    pair. They take turns for each setting, and each has a sysbench of its own.

    A scenario has
      directory(options)         of their data
      server_options(options)
      make_tables(server, options)    in the database test
      settings(options)          what is measured, one by one
      measure_setting(server, options, setting)   {label: value}
    """

    unit = "as named"
    programs = ("sysbench",)

    @classmethod
    def server(cls, trees, variant, options):
        return Server(tree_of(trees, variant),
                      cls.directory(options) / variant.replace(" ", "-"),
                      cls.server_options(options), variant)

    @classmethod
    def prepare(cls, trees, options, progress):
        made = Server(trees / "stock", cls.directory(options) / "data",
                      cls.server_options(options))

        def fill(server):
            progress("creating sysbench's tables", 0, 1)
            server.sql("CREATE DATABASE IF NOT EXISTS test")
            cls.make_tables(server, options)

        make_once(made, fill, [cls.server(trees, variant, options) for variant in
                               ("stock", "patched", CONTROL)], progress)

    @classmethod
    def measure_pair(cls, trees, options, _part, order):
        servers = [cls.server(trees, variant, options) for variant in (*order, CONTROL)]
        try:
            for server in servers:
                server.start()
                cls.warm_up(server, options)
            for number, setting in enumerate(cls.settings(options)):
                # Each server is the first one in its turn
                turn = number % len(servers)
                for server in servers[turn:] + servers[:turn]:
                    for label, value in cls.measure_setting(server, options, setting).items():
                        yield label, server.variant, value
        finally:
            for server in servers:
                server.stop()


class Hits(TakingTurns):
    name = "hits"
    question = (
        "Does a server with few tables, all of them open, pay for the table cache?")
    method = (
        f"sysbench runs oltp_point_select over InnoDB tables of {ROWS} rows, which are in the "
        f"buffer pool and in the table cache. {TURNS} What connecting and preparing costs is "
        "not measured. One connection and its client share a CPU.")
    caveat = (
        "sysbench takes a share of the same CPUs. One start of a server differs from the next "
        "by more than pairs within a start do, so each pair is a start.")

    connections = Option("hits-connections", "numbers of connections", "1,8,16,256,1024",
                         "1,8", integers)
    tables = Option("hits-tables", "numbers of tables", "1,4,16", "4", integers)
    seconds = Option("hits-seconds", "of a measurement", 1)

    @classmethod
    def settings(cls, options):
        """(part, protocol, tables, connections) of each part"""
        return [(part_of(protocol, t, c), protocol, t, c) for protocol in PROTOCOLS
                for t in cls.tables(options) for c in cls.connections(options)]

    @classmethod
    def check(cls, options):
        need_descriptors(max(cls.connections(options)), 1)

    @classmethod
    def disk(cls, options):
        return 3 * (max(cls.tables(options)) * ROWS * 300 + (1 << 30))

    @classmethod
    def cells(cls, options):
        return [{"label": part + label}
                for part, *_ in cls.settings(options) for label in (RATE, CPU)]

    @classmethod
    def directory(cls, options):
        return options.data / f"hits-{max(cls.tables(options))}"

    @classmethod
    def server_options(cls, options):
        most = max(cls.connections(options)) + 20
        return [f"--max-connections={most}", f"--back-log={most}",
                f"--thread-cache-size={most}",
                "--max-prepared-stmt-count=1000000", "--table-open-cache=4000",
                "--open-files-limit=1048576", "--innodb-buffer-pool-size=512M"]

    @staticmethod
    def sysbench(server, tables, connections, **more):
        return sysbench.run(server, "oltp_point_select", "test", connections,
                            tables=tables, table_size=ROWS, rand_type="uniform", **more)

    @classmethod
    def make_tables(cls, server, options):
        cls.sysbench(server, max(cls.tables(options)), 1, command="prepare")

    @classmethod
    def warm_up(cls, server, options):
        cls.sysbench(server, max(cls.tables(options)), 1, command="prewarm")

    @classmethod
    def measure_setting(cls, server, options, setting):
        part, protocol, tables, connections = setting
        # Else each statement wakes a CPU that has nothing to do. What that
        # costs differs from start to start by a factor of 2
        with (on_one_cpu(server.process.pid) if connections == 1 else contextlib.nullcontext()):
            measured = cls.sysbench(
                server, tables, connections, seconds=cls.seconds(options),
                db_ps_mode=PROTOCOLS[protocol], server_cpu=server.cpu_seconds)
        return {part + RATE: measured["rate"],
                part + CPU: 1e6 * measured["cpu_seconds"] / measured["events"]}
