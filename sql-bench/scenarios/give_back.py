# SPDX-License-Identifier: GPL-2.0-only
"""Which part of the memory of tables a server gives back to the system."""

import pathlib
import re
import time

from benchlib import heap
from benchlib.load import run
from benchlib.scenario import (Option, OwnServers, engines, need_descriptors,
                               table_bytes, tree_of)
from benchlib.servers import Server, make_once

SCHEMA = "WordPress"
READERS = 16
POOL = 1 << 30                  # of InnoDB, in one piece
WAIT = 10                       # seconds after which the memory is measured
LEFT = 400                      # the smaller caches
FLUSH = "FLUSH TABLES"
AGAIN = "all read again, FLUSH TABLES again"
DEFINITIONS_FIRST = f"table_definition_cache, then table_open_cache={LEFT}"
TABLES_FIRST = f"table_open_cache, then table_definition_cache={LEFT}"
SMALLER = {DEFINITIONS_FIRST: ("table_definition_cache", "table_open_cache"),
           TABLES_FIRST: ("table_open_cache", "table_definition_cache")}


def resident_without_pool(smaps):
    """Bytes in memory of the mappings that /proc/PID/smaps lists, without those
    of the size of the buffer pool."""
    total = size = 0
    for name, number in re.findall(r"^(Size|Rss): +(\d+) kB$", smaps, re.M):
        if name == "Size":
            size = int(number) << 10
        elif size < POOL:
            total += int(number) << 10
    return total


def read(session, first, databases):
    """Read each table of every 16th database once."""
    for number in range(first, databases, READERS):
        for name in heap.SCHEMAS[SCHEMA]:
            session.query(f"SELECT * FROM site{number}.wp_{name} LIMIT 1")


class GiveBack(OwnServers):
    name = "give-back"
    title = "Memory that goes back to the system"
    source = "servers that have opened many tables once"
    question = (
        "How much of the memory that a server has taken for tables is the "
        "system's again after FLUSH TABLES, and with smaller caches?")
    method = (
        f"{READERS} connections read all tables of WordPress's sites once, each "
        "connection those of other sites. The resident memory without InnoDB's "
        f"buffer pool grows by that. The number says which part of the growth is "
        f"gone {WAIT} s after a statement. The server does that four times: "
        "twice it closes all tables, and twice it makes both caches smaller, in "
        "either order.")
    caveat = (
        f"With both caches at {LEFT}, as many tables stay. FLUSH TABLES frees no "
        "definition of InnoDB's. The memory before the first reading includes "
        "that of 24 tables.")
    unit = "% of the growth"

    tables = Option("back-tables", "number of tables", 3000, 1200)
    engines = Option("back-engines", "engines", "myisam,aria,innodb", kind=engines)

    @classmethod
    def databases(cls, options):
        return -(-cls.tables(options) // len(heap.SCHEMAS[SCHEMA]))

    @classmethod
    def check(cls, options):
        need_descriptors(cls.tables(options) + LEFT)

    @classmethod
    def disk(cls, options):
        return table_bytes(cls.engines(options), cls.tables(options))

    @classmethod
    def parts(cls, options):
        return [f"{engine}: " for engine in cls.engines(options)]

    @classmethod
    def cells(cls, options):
        return [{"label": part + what, "part": part} for part in cls.parts(options)
                for what in (FLUSH, AGAIN, *SMALLER)]

    @classmethod
    def server(cls, trees, variant, options, part):
        return Server(
            tree_of(trees, variant),
            options.data / f"give-back-{part[:-2]}-{cls.databases(options)}",
            [f"--innodb-buffer-pool-size={POOL}",
             f"--innodb-buffer-pool-chunk-size={POOL}",
             "--innodb-buffer-pool-load-at-startup=0",
             "--innodb-stats-auto-recalc=0",
             f"--table-open-cache={2 * cls.tables(options)}",
             f"--table-definition-cache={2 * cls.tables(options)}",
             f"--open-files-limit={4 * cls.tables(options)}"], variant)

    @classmethod
    def prepare_program(cls, trees, options, progress):
        for part in cls.parts(options):
            make_once(cls.server(trees, "stock", options, part),
                      lambda server: server.sql(heap.create(
                          SCHEMA, part[:-2], cls.databases(options))))

    @classmethod
    def measure_server(cls, server, options, part):
        """{what: % of the growth that is gone after it}"""
        with server:
            return cls.given_back(server, options)

    @classmethod
    def given_back(cls, server, options):
        databases = cls.databases(options)

        def resident():
            return resident_without_pool(pathlib.Path(
                f"/proc/{server.process.pid}/smaps").read_text(encoding="ascii"))

        def back(*statements):
            run(server, "mysql", *((read, first, databases)
                                   for first in range(READERS)))
            time.sleep(1)
            full = resident()
            for statement in statements:
                server.sql(statement)
            time.sleep(WAIT)
            return round(100 * (full - resident()) / (full - before), 1)

        server.sql(heap.read(SCHEMA, 0, 2))
        time.sleep(1)
        before = resident()
        found = {FLUSH: back("FLUSH TABLES"), AGAIN: back("FLUSH TABLES")}
        for what, variables in SMALLER.items():
            found[what] = back(*(f"SET GLOBAL {variable}={LEFT}"
                                 for variable in variables))
            for variable in variables:
                server.sql(f"SET GLOBAL {variable}={2 * cls.tables(options)}")
        return found
