# SPDX-License-Identifier: GPL-2.0-only
"""What an open table takes: memory and descriptors."""

import os
import pathlib

from benchlib import heap
from benchlib.scenario import CONTROL, engines, integers
from benchlib.servers import Server
from benchlib.usage import resident

from .scale import Scale

KNOWN = "MiB of the server, all definitions known, next to no table open"
OPEN = "MiB of the server, tables open"
TABLE = "KiB an open table"
DESCRIPTORS = "descriptors an open table"
HEAP = "bytes of heap a known and open table"


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Memory(Scale):
    """Its tables and servers are those of scale."""
    name = "memory"
    title = "Memory and descriptors of open tables"
    question = (
        "How much memory, and how many descriptors, does an open table take?")
    method = (
        "- Memory of the server: for each engine and number of tables, a fresh "
        "server reads all definitions, and closes all tables but 10 at most. Then "
        "it opens all of them or, with MyISAM and Aria, as many as the descriptors "
        "allow. An open table takes what the server's resident memory has grown "
        "by, divided by the number of tables.\n"
        "- Bytes of heap: what a server has allocated to read each of some hundred "
        "tables once, and not freed, by the functions that allocated it "
        "(live_memory.c). The twelve tables of WordPress have its columns and "
        "keys, without rows.")
    caveat = (
        "One-column tables without rows: a table of 12 columns with three indexes "
        "takes more. What closed tables have left in the heap is used again for "
        "open ones. So the growth depends on what was opened before; the server's "
        "whole memory does not.")
    repeatable = True
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
    def heap_parts(cls, options):
        """{part: (engine, schema)} of those that measure the heap"""
        return {f"{engine}, {schema}: ": (engine, schema)
                for engine in engines(options.scale_engines)
                for schema in heap.SCHEMAS}

    @staticmethod
    def databases(options, schema):
        """So many that there are 60 or 600 tables to measure."""
        return -(-(75 if options.quick else 750) // len(heap.SCHEMAS[schema]))

    @classmethod
    def parts(cls, options):
        return super().parts(options) + list(cls.heap_parts(options))

    @classmethod
    def cells(cls, options):
        return [{"label": part + label, "part": part}
                for part, _, _, _ in cls.settings(options)
                for label in (KNOWN, OPEN, TABLE, DESCRIPTORS)] + [
                    {"label": part + label, "part": part}
                    for part in cls.heap_parts(options)
                    for label in (HEAP, *(f"{HEAP}: {name}" for name, _ in
                                          heap.COMPONENTS))]

    @classmethod
    def heap_server(cls, trees, variant, options, part):
        engine, schema = cls.heap_parts(options)[part]
        databases = cls.databases(options, schema)
        return Server(
            trees / ("stock" if variant == CONTROL else variant),
            options.data / f"heap-{engine}-{schema.replace(' ', '-')}-"
                              f"{databases}",
            ["--table-definition-cache=2000", "--table-open-cache=2000",
             "--innodb-buffer-pool-load-at-startup=0",
             "--innodb-stats-auto-recalc=0"], variant)

    @classmethod
    def prepare_program(cls, trees, options, progress):
        super().prepare_program(trees, options, progress)
        cls.library = heap.live_memory(options.data)
        for part, (engine, schema) in cls.heap_parts(options).items():
            server = cls.heap_server(trees, "stock", options, part)
            if pathlib.Path(server.datadir, "have").exists():
                continue
            server.start("--sync-frm=0", "--debug-no-sync")
            server.sql(heap.create(schema, engine,
                                   cls.databases(options, schema)))
            server.stop()
            pathlib.Path(server.datadir, "have").touch()

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        if part not in cls.heap_parts(options):
            return super().measure_pair(trees, options, part, order)
        _, schema = cls.heap_parts(options)[part]
        found = {}
        for name in (*order, CONTROL):
            server = cls.heap_server(trees, name, options, part)
            measured = heap.measure(server, schema,
                                    cls.databases(options, schema),
                                    cls.library)
            found.setdefault(part + HEAP, {})[name] = sum(measured.values())
            for component, size in measured.items():
                found.setdefault(f"{part}{HEAP}: {component}",
                                 {})[name] = size
        return found

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
