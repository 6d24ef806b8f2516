# SPDX-License-Identifier: GPL-2.0-only
"""What monitoring tools ask of servers with many tables."""

import time

from benchlib.scenario import (INNODB_FILES, OneByOne, Option, engines, innodb_options,
                               need_descriptors, table_bytes)
from benchlib.servers import create_tables

# table_open_cache
SMALL = 64


def large(options):
    return 2048 if options.quick else 8192


class InformationSchema(OneByOne):
    name = "information-schema"
    question = (
        "How long does the query of monitoring tools take, which opens every "
        "table, with a small and with a large full table cache?")
    method = (
        "The query is SELECT COUNT(*), SUM(data_length+index_length) FROM "
        "information_schema.tables, over one schema of many one-column tables. Before, the "
        "cache is filled with tables of the schema. All definitions are cached, InnoDB's, too.")
    caveat = (
        "One query at a time, on an idle server. What such a query does to others is the next "
        "experiment. If table_definition_cache is smaller than the schema, both servers read "
        "definitions again: from .frm files, and with InnoDB from its dictionary, from which a "
        "background thread evicts once a second.")
    unit = "s"

    tables = Option("is-tables", "number of tables in the schema", 20000, 3000)
    engines = Option("is-engines", "engines", "myisam,aria,innodb", kind=engines)

    @classmethod
    def database(cls, engine, options):
        """That of open-tables, if it has as many tables."""
        return f"tc_{engine}_{cls.tables(options)}"

    @classmethod
    def check(cls, options):
        need_descriptors(large(options) + INNODB_FILES // 2)

    @classmethod
    def disk(cls, options):
        return table_bytes(cls.engines(options), cls.tables(options))

    @classmethod
    def server_options(cls, options):
        count = len(cls.engines(options)) * cls.tables(options)
        return [f"--table-open-cache={large(options)}",
                f"--table-definition-cache={count + 1000}",
                "--open-files-limit=1048576",
                *innodb_options(cls.tables(options))]

    @classmethod
    def cells(cls, options):
        return [{"label": f"{engine}, table_open_cache={cache}",
                 "engine": engine, "cache": cache} for engine in cls.engines(options)
                for cache in (SMALL, large(options))]

    @classmethod
    def fill(cls, server, options, progress):
        for engine in cls.engines(options):
            create_tables(server, cls.database(engine, options), engine,
                          cls.tables(options), progress)

    @classmethod
    def warm_up(cls, server, options):
        """Read all definitions."""
        for engine in cls.engines(options):
            cls.query(server, cls.database(engine, options))

    @classmethod
    def measure(cls, server, cell, options):
        database = cls.database(cell["engine"], options)
        # Open tables until the cache is full of them
        server.sql(f"FLUSH TABLES; SET GLOBAL table_open_cache={cell['cache']};")
        server.sql("".join(f"SELECT * FROM t{number} LIMIT 0;\n" for number in range(
            1, min(cls.tables(options), cell["cache"]) + 1)), database)
        return cls.query(server, database)

    @staticmethod
    def query(server, database):
        """The seconds that one client takes"""
        begin = time.monotonic()
        server.sql("SELECT COUNT(*), SUM(data_length+index_length) "
                   f"FROM information_schema.tables WHERE table_schema='{database}'")
        return time.monotonic() - begin
