# SPDX-License-Identifier: GPL-2.0-only
"""The core of the table cache by itself, beside a model of what it replaces."""

import json

from benchlib.scenario import CONTROL, Scenario, plural
from benchlib.servers import said

PROGRAM = "unittest/sql/table_cache-bench"
THREADS = (1, 2, 8, 64)


class TableCache(Scenario):
    name = "table-cache"
    question = (
        "What does it cost to get a TABLE and to give it back, by one thread and by several?")
    method = (
        "unittest/sql/table_cache-bench: threads acquire and release as fast as "
        "they can, on one share and on 1000. 'stock' is its model of MariaDB's "
        f"instances, and '{CONTROL}' the model once more.")
    caveat = (
        "'stock' is a model of MariaDB's lists and locks, not its code. Threads "
        "that do nothing else meet more often than those of a server do.")
    unit = "pairs/s"

    @staticmethod
    def cells(options):
        return [{"label": f"{plural(shares, 'share')}, {plural(threads, 'thread')}",
                 "shares": shares, "threads": threads}
                for shares in (1, 1000) for threads in THREADS]

    @staticmethod
    def measure_pair(trees, options, _part, order):
        """Run the program once."""
        text = said(trees / "patched" / "release" / PROGRAM, "0.2" if options.quick else "0.5",
                    "core" if order[0] == "patched" else "instances", *map(str, THREADS))
        found = {(row["shares"], row["threads"]): row for row in json.loads(text)}
        for cell in TableCache.cells(options):
            row = found[cell["shares"], cell["threads"]]
            for variant, name in (("stock", "instances"), ("patched", "core"),
                                  (CONTROL, "again")):
                yield cell["label"], variant, row[name]
