# SPDX-License-Identifier: GPL-2.0-only
"""Which part of the memory of tables a server gives back to the system."""

import pathlib
import re
import time

from benchlib import heap
from benchlib.load import run
from benchlib.scenario import (Option, OwnServers, engines, need_descriptors,
                               table_bytes, tree_of)
from benchlib.servers import Server

READERS = 16
POOL = 1 << 30                  # of InnoDB, in one piece
WAIT = 10                       # seconds after which the memory is measured
FLUSH = "FLUSH TABLES"


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
        for name in heap.TABLES:
            session.query(f"SELECT * FROM site{number}.wp_{name} LIMIT 1")


class GiveBack(OwnServers):
    name = "give-back"
    question = (
        "How much of the memory that a server has taken for tables is the "
        "system's again after FLUSH TABLES?")
    method = (
        f"{READERS} connections read all tables of WordPress's sites once, each connection "
        "those of other sites. The resident memory without InnoDB's buffer pool grows by that. "
        f"The number says which part of the growth is gone {WAIT} s after FLUSH TABLES.")
    caveat = (
        "FLUSH TABLES frees no definition of InnoDB's. The memory before the first "
        "reading includes that of 24 tables.")
    unit = "% of the growth"

    tables = Option("back-tables", "number of tables", 3000, 1200)
    engines = Option("back-engines", "engines", "myisam,aria,innodb", kind=engines)

    @classmethod
    def databases(cls, options):
        return -(-cls.tables(options) // len(heap.TABLES))

    @classmethod
    def check(cls, options):
        need_descriptors(cls.tables(options))

    @classmethod
    def disk(cls, options):
        return table_bytes(cls.engines(options), cls.tables(options))

    @classmethod
    def labels(cls, options):
        return {f"{engine}: ": [FLUSH] for engine in cls.engines(options)}

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
    def fill(cls, server, options, part, progress):
        server.sql(heap.create(part[:-2], cls.databases(options)))

    @classmethod
    def measure_server(cls, server, options, part):
        """{FLUSH: % of the growth that is gone after it}"""
        def resident(seconds):
            time.sleep(seconds)
            return resident_without_pool(pathlib.Path(
                f"/proc/{server.process.pid}/smaps").read_text(encoding="ascii"))

        with server:
            server.sql(heap.read(0, 2))
            before = resident(1)
            run(server, "mysql", *((read, first, cls.databases(options))
                                   for first in range(READERS)))
            full = resident(1)
            server.sql("FLUSH TABLES")
            return {FLUSH: round(100 * (full - resident(WAIT)) / (full - before), 1)}
