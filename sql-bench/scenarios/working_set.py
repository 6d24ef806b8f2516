# SPDX-License-Identifier: GPL-2.0-only
"""Does reading the schema throw the working set out of the table cache?"""

import os
import signal
import subprocess

from benchlib import sysbench
from benchlib.scenario import OneByOne, Option, need_descriptors, table_bytes
from benchlib.servers import BenchError, create_tables

CACHE = 2000                    # table_open_cache
WORKING_SET = 500               # InnoDB tables
CONNECTIONS = 8

BESIDE = "statements/s, beside the schema query"


class WorkingSet(OneByOne):
    name = "working-set"
    question = (
        "Does a monitoring query that opens every table of the server push the "
        "tables in use out of the table cache?")
    method = (
        f"{CONNECTIONS} connections read {WORKING_SET} InnoDB tables at random, "
        f"with table_open_cache={CACHE}, beside a connection that sums up the sizes of "
        "many MyISAM tables again and again.")
    unit = "as named"
    programs = ("sysbench",)
    caveat = (
        "The cache has room for the working set. With few CPUs the schema query "
        "takes time from the readers, whatever the cache does.")

    tables = Option("schema-tables", "MyISAM tables in the schema that is read", 20000, 3000)
    minutes = Option("minutes", "length of the measurement beside the query", 1.0, 0.25, float)

    @classmethod
    def check(cls, options):
        need_descriptors(CACHE)
        if cls.seconds(options) < 1:
            raise BenchError("--minutes: at least 0.02")

    @classmethod
    def disk(cls, options):
        return (table_bytes(["myisam"], cls.tables(options))
                + table_bytes(["innodb"], WORKING_SET))

    @classmethod
    def seconds(cls, options):
        return round(60 * cls.minutes(options))

    @staticmethod
    def server_options(options):
        return [f"--table-open-cache={CACHE}", "--open-files-limit=1048576"]

    @staticmethod
    def cells(options):
        return [{"label": BESIDE}]

    @classmethod
    def fill(cls, server, options, progress):
        tables = cls.tables(options)
        create_tables(server, "tc_working_set", "innodb", WORKING_SET, progress)
        create_tables(server, f"tc_schema_{tables}", "myisam", tables, progress)

    @classmethod
    def measure(cls, server, cell, options):
        # Connections of the first read have made room for the second
        cls.read(server, 3)
        query = ("SELECT SUM(data_length+index_length) FROM information_schema.tables "
                 f"WHERE table_schema='tc_schema_{cls.tables(options)}'")
        monitor = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "sh", "-c", 'while "$@" > /dev/null; do :; done', "sh",
             *server.client("-e", query)], process_group=0)
        try:
            return cls.read(server, cls.seconds(options))["rate"]
        finally:
            os.killpg(monitor.pid, signal.SIGKILL)
            monitor.wait()

    @staticmethod
    def read(server, seconds):
        return sysbench.run(server, "open_tables", "tc_working_set",
                            CONNECTIONS, seconds=seconds, tables=WORKING_SET, random="on")
