# SPDX-License-Identifier: GPL-2.0-only
"""Databases of many tables that come and go, beside a cache that is full."""

from benchlib.scenario import (INNODB_FILES, Scenario, fill_cache,
                               need_descriptors, table_bytes)
from benchlib.servers import create_tables
from benchlib.statistics import median

DATABASES = 3
TABLES = 300                    # a database


def cache(options):
    """table_open_cache, and as many other tables."""
    return 2048 if options.quick else 8192


def others(options):
    return f"tc_churn_others_{cache(options)}"


class DdlChurn(Scenario):
    name = "ddl-churn"
    title = "Creating, filling and dropping databases of 300 tables"
    source = "design measurement, 2026"
    question = (
        "Do CREATE, INSERT and DROP TABLE cost more when other tables fill the "
        "table cache?")
    method = (
        f"{DATABASES} databases of {TABLES} MyISAM tables are created. Each table "
        "gets a row, and then the databases are dropped. This is done with an "
        "empty cache, and with 8192 other MyISAM tables open (--quick: 2048).")
    weight = 2
    caveat = (
        "One connection. Most of the time is the file system's own cost of "
        "creating and removing files, and that varies."
        "\n\nInstructions of the server for each table, counted by callgrind "
        "with 100 tables, with a full cache (1,500 others open) and with an empty "
        "one: CREATE and INSERT 160,226 and 157,971, stock 253,907 and 158,287; "
        "DROP 85,983 and 88,225, stock 80,450 and 82,780.")
    unit = "s"
    higher_is_better = False

    @staticmethod
    def check(options):
        need_descriptors(cache(options) + INNODB_FILES // 2)

    @staticmethod
    def disk(options):
        return table_bytes(["myisam"], cache(options) + DATABASES * TABLES)

    @staticmethod
    def server_options(options):
        # InnoDB may have opened the other scenarios' tables, in a recovery
        return [f"--table-open-cache={cache(options)}",
                f"--innodb-open-files={INNODB_FILES}",
                "--open-files-limit=1048576"]

    @staticmethod
    def cells(options):
        return [{"label": "empty cache", "full": False},
                {"label": f"{cache(options)} tables open", "full": True}]

    @staticmethod
    def prepare(server, options, progress):
        create_tables(server, others(options), "myisam", cache(options),
                      progress)

    @staticmethod
    def measure(server, cell, options):
        # Of a measurement that was interrupted
        server.sql("".join(f"DROP DATABASE IF EXISTS tc_churn{database};\n"
                           for database in range(DATABASES)))
        if cell["full"]:
            fill_cache(server, others(options), cache(options),
                       cache(options))
        else:
            server.sql(f"SET GLOBAL table_open_cache={cache(options)}; "
                       "FLUSH TABLES")
        statements = []
        for database in range(DATABASES):
            statements.append(f"CREATE DATABASE tc_churn{database}; "
                              f"USE tc_churn{database};\n")
            for number in range(TABLES):
                statements.append(f"CREATE TABLE t{number} (a INT) "
                                  "ENGINE=MyISAM; "
                                  f"INSERT INTO t{number} VALUES (1);\n")
        statements += [f"DROP DATABASE tc_churn{database};\n"
                       for database in range(DATABASES)]
        return server.timed("".join(statements))

    @staticmethod
    def remarks(results, options):
        empty, full = (values for _, values in results)
        said = []
        for variant in ("stock", "patched"):
            ratios = [b / a for a, b in zip(empty.get(variant, []),
                                            full.get(variant, []))]
            if ratios:
                said.append(f"{variant}: a full cache takes "
                            f"{median(ratios):.2f} times the time of an empty "
                            f"one ({min(ratios):.2f} to {max(ratios):.2f})")
        return said
