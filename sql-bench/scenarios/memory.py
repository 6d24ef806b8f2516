# SPDX-License-Identifier: GPL-2.0-only
"""What an open table takes: memory and descriptors."""

import os

from benchlib.scenario import CONTROL, engines, integers
from benchlib.usage import resident

from .scale import Scale

KNOWN = "MiB of the server, all definitions known, next to no table open"
OPEN = "MiB of the server, tables open"
TABLE = "KiB an open table"
DESCRIPTORS = "descriptors an open table"


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Memory(Scale):
    """Its tables and servers are those of scale."""
    name = "memory"
    title = "Memory and descriptors of open tables"
    question = ("How much memory, and how many descriptors, does an open table "
                "take?")
    method = ("For each engine and number of tables, a fresh server reads all "
              "definitions and closes all tables but 10 at most. Then it opens "
              "all of them, or, with MyISAM and Aria, as many as the "
              "descriptors allow. An open table takes what the server's "
              "resident memory has grown by, divided by the number of tables. "
              f"'{CONTROL}' is a third measurement of each pair.")
    caveat = ("One-column tables without rows: a table of 12 columns with three "
              "indexes takes more. What closed tables have left in the heap is "
              "used again for open ones, so the growth depends on what was "
              "opened before; the server's whole memory does not.")
    plot = None
    weight = 4
    also_options = ("scale_tables", "scale_engines")

    @staticmethod
    def add_arguments(parser):
        """Those of scale."""

    @classmethod
    def settings(cls, options):
        """(part, engine, tables, no caches) of each part"""
        numbers = integers(options.scale_tables or
                           ("2000" if options.quick else "10000,100000"))
        return [(f"{engine}, {number} tables: ", engine, number, [])
                for engine in engines(options.scale_engines)
                for number in numbers]

    @classmethod
    def check(cls, options):
        """Needs no size of a cache."""
        integers(options.scale_tables or "1")
        engines(options.scale_engines)

    @classmethod
    def cells(cls, options):
        return [{"label": part + label, "part": part}
                for part, _, _, _ in cls.settings(options)
                for label in (KNOWN, OPEN, TABLE, DESCRIPTORS)]

    @classmethod
    def measure_server(cls, server, engine, tables, caches):
        def state():
            pid = server.process.pid
            return (resident(pid), descriptors(pid),
                    server.status("Open_tables"))

        cls.read(server, tables, tables, 1)         # the definitions
        # Stock closes all tables when the limit changes, the patched server
        # those beyond it
        server.sql("SET GLOBAL table_open_cache=10")
        known = state()
        number = min(tables, cls.most_open(engine))
        server.sql(f"SET GLOBAL table_open_cache={number + 10}")
        cls.read(server, number, tables, 1)
        opened = state()
        memory, files, count = (after - before
                                for before, after in zip(known, opened))
        return {KNOWN: known[0] / 2**20, OPEN: opened[0] / 2**20,
                TABLE: memory / 2**10 / count,
                DESCRIPTORS: round(files / count, 2)}

    @classmethod
    def remarks(cls, results, options):
        return []
