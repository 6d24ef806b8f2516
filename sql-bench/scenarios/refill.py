# SPDX-License-Identifier: GPL-2.0-only
"""How long a server takes to have all its tables open again after FLUSH."""

import time

from benchlib import sysbench
from benchlib.scenario import engines
from benchlib.servers import BenchError

from .scale import Scale

CONNECTIONS = (1, 16)
FLUSH = "FLUSH TABLES, s"


def refill(connections):
    return (f"all tables opened again, tables/s, {connections} "
            f"connection{'s' * (connections > 1)}")


class Refill(Scale):
    name = "refill"
    title = "All tables opened again after FLUSH TABLES"
    source = "backups and nightly jobs that flush all tables"
    question = (
        "FLUSH TABLES closes all tables of a server whose cache has room for them. "
        "How fast are they open again?")
    method = (
        "A fresh server opens all tables of an engine once. FLUSH TABLES follows. "
        "Then each connection reads a part of the tables, in order, each table "
        "once.")
    caveat = (
        "One-column tables without rows. Nobody else uses the server, and the "
        "files are in the page cache.")
    unit = "as named"
    weight = 3

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--refill-tables", type=int, metavar="N",
                            help="(default 8000, quick 1000)")
        parser.add_argument("--refill-engines", default="myisam,aria,innodb")

    @classmethod
    def settings(cls, options):
        number = options.refill_tables or (1000 if options.quick else 8000)
        return [(f"{engine}, {number} tables: ", engine, number, [number])
                for engine in engines(options.refill_engines)]

    @classmethod
    def check(cls, options):
        sysbench.require()
        for part, engine, number, _ in cls.settings(options):
            if number > cls.most_open(engine):
                raise BenchError(f"{part}the descriptors allow "
                                 f"{cls.most_open(engine)} open tables; give "
                                 "a smaller --refill-tables")

    @classmethod
    def cells(cls, options):
        found = []
        for part, engine, tables, _ in cls.settings(options):
            for connections in CONNECTIONS:
                found.append({"label": part + refill(connections),
                              "part": part, "engine": engine,
                              "tables": tables})
            found.append({"label": part + FLUSH, "part": part,
                          "engine": engine, "tables": tables})
        return found

    @classmethod
    def measure_server(cls, server, engine, tables, caches):
        server.sql(f"SET GLOBAL table_open_cache={tables + 400}")
        cls.read(server, tables, tables, 1)
        found = {}
        for connections in CONNECTIONS:
            began = time.monotonic()
            server.sql("FLUSH TABLES")
            found[FLUSH] = time.monotonic() - began
            found[refill(connections)] = sysbench.run(
                server, "open_tables", "scale", connections, events=tables,
                seconds=0, tables=tables, first=1, random="off")["rate"]
        return found

    @classmethod
    def remarks(cls, results, options):
        return []
