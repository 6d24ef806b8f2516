# SPDX-License-Identifier: GPL-2.0-only
"""Databases of many tables that come and go, beside a cache that is full."""

from benchlib.scenario import Scenario, fill_cache, need_descriptors
from benchlib.servers import create_tables
from benchlib.statistics import median

CACHE = 8192                    # table_open_cache
DATABASES = 3
TABLES = 300                    # a database


class DdlChurn(Scenario):
    name = "ddl-churn"
    title = "Creating, filling and dropping databases of 300 tables"
    source = "design measurement, 2026"
    question = ("Does CREATE, INSERT and DROP TABLE cost more when other "
                "tables fill the table cache?")
    method = (f"{DATABASES} databases of {TABLES} MyISAM tables are created, "
              "get a row a table, and are dropped: with an empty cache and "
              f"with {CACHE} other MyISAM tables open.")
    unit = "s"
    higher_is_better = False

    @staticmethod
    def check(options):
        need_descriptors(CACHE)

    @staticmethod
    def server_options(options):
        return [f"--table-open-cache={CACHE}", "--open-files-limit=1048576"]

    @staticmethod
    def cells(options):
        return [{"label": "empty cache", "full": False},
                {"label": f"{CACHE} tables open", "full": True}]

    @staticmethod
    def prepare(server, options, progress):
        create_tables(server, "tc_churn_others", "myisam", CACHE, progress)

    @staticmethod
    def measure(server, cell, options):
        if cell["full"]:
            fill_cache(server, "tc_churn_others", CACHE, CACHE)
        else:
            server.sql(f"SET GLOBAL table_open_cache={CACHE}; FLUSH TABLES")
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
