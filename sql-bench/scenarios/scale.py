# SPDX-License-Identifier: GPL-2.0-only
"""What ten times as many tables cost: the rate."""

import pathlib

from benchlib import sysbench
from benchlib.load import read_files
from benchlib.scenario import (CONTROL, RESERVED_DESCRIPTORS, Scenario,
                               descriptor_limit, engines, integers,
                               table_bytes)
from benchlib.servers import BenchError, Server, create_tables
from benchlib.statistics import median

INNODB_FILES = 500              # that InnoDB keeps open, beside other engines
FILES = {"myisam": 2, "aria": 2, "innodb": 0}   # descriptors of an open table
SECONDS = 2                     # of a measurement of the rate, at most


def miss(cache):
    return f"tables/s, table_open_cache={cache}"


class Scale(Scenario):
    name = "scale"
    title = "From 10,000 tables to 100,000"
    source = "servers with 100,000 tables"
    question = (
        "Does it cost more to open a table, the more there are, and the more stay "
        "open?")
    method = (
        "For each engine and number of tables, a fresh server reads all "
        "definitions. Then it opens as many tables once as the descriptors allow, "
        "so that it has asked for all the memory that it will need. Then the cache "
        "is filled, and one client reads the tables in order, so that each "
        f"statement misses, for {SECONDS} s at most.")
    caveat = (
        "One-column tables without rows, one connection. MyISAM and Aria need two "
        "descriptors for each open table, so their caches are only as large as "
        "those allow.")
    unit = "as named"
    weight = 10
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--scale-tables", metavar="N,N...",
                            help="numbers of tables (default "
                            "10000,50000,100000; quick 2000)")
        parser.add_argument("--scale-engines", default="innodb,myisam,aria")
        parser.add_argument("--scale-caches", metavar="N,N...",
                            help="table_open_cache (default "
                            "64,256,1024,4096,16384; quick 64,1024)")

    @staticmethod
    def most_open(engine):
        """How many tables may be open at a time."""
        if not FILES[engine]:
            return 1 << 30
        return (descriptor_limit() - RESERVED_DESCRIPTORS - INNODB_FILES
                ) // FILES[engine]

    @classmethod
    def settings(cls, options):
        """(part, engine, tables, caches) of each part"""
        numbers = integers(options.scale_tables or
                           ("2000" if options.quick else "10000,50000,100000"))
        caches = integers(options.scale_caches or
                          ("64,1024" if options.quick
                           else "64,256,1024,4096,16384"))
        found = {}
        for engine in engines(options.scale_engines):
            for number in numbers:
                # MyISAM and Aria: the caches that the descriptors allow
                fit = [cache for cache in caches
                       if cache <= min(cls.most_open(engine), number // 2)]
                part = f"{engine}, {number} tables: "
                found[part] = (part, engine, number, fit)
        return list(found.values())

    @classmethod
    def check(cls, options):
        sysbench.require()
        for part, _, _, caches in cls.settings(options):
            if not caches:
                raise BenchError(f"{part}no size of --scale-caches is possible "
                                 f"with {descriptor_limit()} descriptors, or "
                                 "none is at most half of the tables")

    @classmethod
    def largest(cls, options):
        """{engine: the most tables that one of its parts has}"""
        found = {}
        for _, engine, number, _ in cls.settings(options):
            found[engine] = max(number, found.get(engine, 0))
        return found

    @classmethod
    def disk(cls, options):
        return sum(table_bytes([engine], number)
                   for engine, number in cls.largest(options).items())

    @classmethod
    def parts(cls, options):
        return [setting[0] for setting in cls.settings(options)]

    @classmethod
    def cells(cls, options):
        found = []
        for part, engine, tables, caches in cls.settings(options):
            found += [{"label": part + miss(cache), "part": part,
                       "engine": engine, "tables": tables, "cache": cache}
                      for cache in caches]
        return found

    @staticmethod
    def server(trees, variant, options, engine, tables):
        words = [f"--table-definition-cache={tables + 1000}",
                 "--open-files-limit=1048576",
                 f"--innodb-open-files={INNODB_FILES}",
                 "--innodb-buffer-pool-load-at-startup=0",
                 "--innodb-buffer-pool-dump-at-shutdown=0"]
        if engine == "innodb":
            # A page of each table, and its rows in InnoDB's dictionary
            words += [f"--innodb-buffer-pool-size={256 + tables * 3 // 64}M"]
        return Server(trees / ("stock" if variant == CONTROL else variant),
                      options.data / f"scale-{engine}", words, variant)

    @classmethod
    def prepare_program(cls, trees, options, progress):
        for engine, most in cls.largest(options).items():
            server = cls.server(trees, "stock", options, engine, most)
            if pathlib.Path(server.datadir, f"have-{most}").exists():
                continue
            server.start("--innodb-flush-log-at-trx-commit=0",
                         "--skip-innodb-doublewrite", "--sync-frm=0",
                         "--debug-no-sync")
            create_tables(server, "scale", engine, most, progress)
            server.stop()
            for old in server.datadir.glob("have-*"):
                old.unlink()
            pathlib.Path(server.datadir, f"have-{most}").touch()

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        _, engine, tables, caches = next(
            setting for setting in cls.settings(options) if setting[0] == part)
        found = {}
        for name in (*order, CONTROL):
            server = cls.server(trees, name, options, engine, tables)
            read_files(server.datadir / "scale")
            server.start("--table-open-cache=400",
                         "--table-open-cache-instances=8")
            for label, value in cls.measure_server(
                    server, engine, tables, caches).items():
                found.setdefault(part + label, {})[name] = value
            server.stop()
        return found

    @classmethod
    def measure_server(cls, server, engine, tables, caches):
        cls.read(server, tables, tables, 1)         # the definitions
        number = min(tables, cls.most_open(engine))
        server.sql(f"SET GLOBAL table_open_cache={number + 400}")
        cls.read(server, number, tables, 1)
        found = {}
        for cache in caches:
            server.sql("SET GLOBAL table_open_cache=10; "
                       f"SET GLOBAL table_open_cache={cache}")
            fill = cache + cache // 4
            cls.read(server, fill, tables, 1)
            found[miss(cache)] = cls.read(server, tables, tables, fill + 1,
                                          SECONDS)["rate"]
        return found

    @staticmethod
    def read(server, events, tables, first, seconds=0):
        return sysbench.run(server, "open_tables", "scale", 1, events=events,
                            seconds=seconds, tables=tables, first=first,
                            random="off")

    @classmethod
    def remarks(cls, results, options):
        """What each server keeps of its rate, from the smallest cache to the
        largest."""
        values = {cell["label"]: values for cell, values in results}
        said = []
        for part, _, _, caches in cls.settings(options):
            ends = [values.get(part + miss(cache))
                    for cache in (caches[0], caches[-1])]
            if caches[0] == caches[-1] or None in ends:
                continue
            kept = ", ".join(
                f"{name} {median(b / a for a, b in zip(ends[0][name], ends[1][name])):.2f}"
                for name in ("stock", "patched")
                if ends[0].get(name) and ends[1].get(name))
            said.append(f"{part}of the rate with {caches[0]}, kept with "
                        f"{caches[-1]}: {kept}")
        return said
