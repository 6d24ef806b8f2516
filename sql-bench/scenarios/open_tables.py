# SPDX-License-Identifier: GPL-2.0-only
"""WL#70, table_cache negative scalability (2009)."""

from benchlib import sysbench
from benchlib.scenario import (CONTROL, INNODB_FILES, Scenario, engines,
                               innodb_options, integers, need_descriptors,
                               positive, table_bytes)
from benchlib.servers import create_tables
from benchlib.statistics import geometric_mean, median, ratio_of_pairs

EXTRAPOLATED = 100000           # open tables
ONE_INSTANCE = "stock, 1 instance"
# Statements a table by several threads.  With 2, InnoDB's measurements took less
# than a second, and how the threads' scheduling had begun decided
ROUNDS = 10


class OpenTables(Scenario):
    name = "open-tables"
    title = "Opening many tables with a small and a large cache"
    source = "WL#70, table_cache negative scalability (2009)"
    question = ("Does opening a table cost more, the more tables are open?")
    method = (
        "SELECT * FROM tN over one-column tables without rows, each statement on "
        "another table. One thread takes the tables in order, so all statements "
        "miss the cache; several threads take them at random, so most do. All "
        "definitions are cached, and the cache is filled before each measurement. "
        "A measurement stops after one round over the tables, with several threads "
        f"after {ROUNDS} statements a table, or after a time limit.")
    unit = "tables/s"
    weight = 10
    caveat = (
        "The tables have no rows: what is read from a table after it was opened "
        "comes on top. Their files are in the page cache, InnoDB's pages in the "
        "buffer pool.")

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--tables", type=positive,
                            help="number of tables (default 20000; quick "
                            "3000)")
        parser.add_argument("--cache", default=None,
                            help="sizes of table_open_cache (default "
                            "64,1024,2048,4096,8192; quick 64,2048)")
        parser.add_argument("--engines", default="myisam,aria,innodb",
                            help="engines (default %(default)s)")
        parser.add_argument("--threads", default=None,
                            help="numbers of threads (default 1,16,128; quick "
                            "1,16)")

        parser.add_argument("--one-instance", action="store_true",
                            help="measure stock also with "
                            "table_open_cache_instances=1")

    @staticmethod
    def further_stock(options):
        return ({ONE_INSTANCE: ["--table-open-cache-instances=1"]}
                if options.one_instance else {})

    @staticmethod
    def settings(options):
        tables = options.tables or (3000 if options.quick else 20000)
        caches = integers(options.cache or
                          ("64,2048" if options.quick
                           else "64,1024,2048,4096,8192"))
        return (tables, caches, engines(options.engines),
                integers(options.threads or
                         ("1,16" if options.quick else "1,16,128")))

    @classmethod
    def check(cls, options):
        _, caches, names, _ = cls.settings(options)
        if "myisam" in names or "aria" in names:
            need_descriptors(max(caches) + INNODB_FILES // 2)
        sysbench.require()

    @classmethod
    def disk(cls, options):
        tables, _, names, _ = cls.settings(options)
        return table_bytes(names, tables)

    @classmethod
    def connections(cls, options):
        return max(cls.settings(options)[-1]) + 20

    @classmethod
    def server_options(cls, options):
        tables, caches, names, threads = cls.settings(options)
        settings = [f"--table-open-cache={max(caches)}",
                    f"--table-definition-cache={len(names) * tables + 1000}",
                    f"--max-connections={max(threads) + 20}",
                    "--open-files-limit=1048576"]
        if "innodb" in names:
            settings += innodb_options(tables)
        return settings

    @classmethod
    def cells(cls, options):
        _, caches, names, threads = cls.settings(options)
        return [{"label": f"{engine}, {count} thread{'s' * (count > 1)}, "
                          f"table_open_cache={cache}",
                 "engine": engine, "threads": count, "cache": cache}
                for engine in names for count in threads for cache in caches]

    @classmethod
    def prepare(cls, server, options, progress):
        tables, _, names, _ = cls.settings(options)
        for engine in names:
            create_tables(server, f"tc_{engine}_{tables}", engine, tables,
                          progress)

    @classmethod
    def warm_up(cls, server, options):
        """Read all definitions, so that a miss opens a table and no more."""
        tables, _, names, _ = cls.settings(options)
        server.sql("SET GLOBAL table_open_cache=64")
        for engine in names:
            sysbench.run(server, "open_tables", f"tc_{engine}_{tables}", 1,
                         events=tables, tables=tables)

    @classmethod
    def measure(cls, server, cell, options):
        tables, _, _, _ = cls.settings(options)
        threads, cache = cell["threads"], cell["cache"]
        database = f"tc_{cell['engine']}_{tables}"
        # A cache with nothing of the one before, filled
        server.sql("SET GLOBAL table_open_cache=10; "
                   f"SET GLOBAL table_open_cache={cache};")
        sysbench.run(server, "open_tables", database, 1,
                     events=min(tables, cache + cache // 4), tables=tables)
        opened, used = server.status("Opened_tables"), server.cpu_seconds()
        result = sysbench.run(
            server, "open_tables", database, threads,
            events=tables if threads == 1 else ROUNDS * tables,
            seconds=cls.seconds(options), tables=tables,
            first=cache + cache // 4,
            random="on" if threads > 1 else "off")
        measured = {"value": result["rate"],
                    "opens": (server.status("Opened_tables") - opened)
                             / result["events"]}
        if used is not None:
            measured["cpu_us"] = 1e6 * (server.cpu_seconds() - used
                                        ) / result["events"]
        return measured

    @staticmethod
    def seconds(options):
        """The limit of one round; filling the cache takes time, too."""
        if options.each:
            return min(max(round(0.6 * options.each), 1), 15)
        return 5 if options.quick else 15

    @classmethod
    def remarks(cls, results, options):
        """How much of its rate each engine keeps from the smallest cache to
        the largest."""
        _, caches, names, threads = cls.settings(options)
        low, high = min(caches), max(caches)
        if low == high:
            return []
        rates = {(cell["engine"], cell["threads"], cell["cache"]): values
                 for cell, values in results}
        said = []
        for variant in ("stock", "patched"):
            for count in threads:
                kept = []
                for engine in names:
                    small = rates.get((engine, count, low), {}).get(variant)
                    large = rates.get((engine, count, high), {}).get(variant)
                    if small and large:
                        share = median([b / a for a, b in zip(small, large)])
                        kept.append(f"{engine} {share:.2f}")
                if kept:
                    said.append(f"{variant}, {count} thread(s): of its rate "
                                f"at {low}, kept at {high}: "
                                + ", ".join(kept))
        for variant in ("stock", "patched"):
            for count in threads:
                shares = []
                for cache in (low, high):
                    for engine in names:
                        mine, innodb = (
                            rates.get((name, count, cache), {}).get(variant)
                            for name in (engine, "innodb"))
                        if engine != "innodb" and mine and innodb:
                            share = median([a / b
                                            for a, b in zip(mine, innodb)])
                            shares.append(f"{engine} {share:.2f} at {cache}")
                if shares:
                    said.append(f"{variant}, {count} thread(s): of InnoDB's "
                                "rate: " + ", ".join(shares))
        return (said + cls.cpu_time(results) + cls.overall(results)
                + cls.extrapolate(rates, caches, names))

    @staticmethod
    def cpu_time(results):
        """The server's CPU time a statement, which is steadier than rates."""
        said = []
        for cell, _ in results:
            used = {variant: [one["cpu_us"] for one in details
                              if "cpu_us" in one]
                    for variant, details in cell.get("details", {}).items()}
            if not used.get("stock") or not used.get("patched"):
                continue
            opens = median([one["opens"]
                            for one in cell["details"]["patched"]])
            ratios = ", ".join(
                f"{variant} {median(times):.1f} us ("
                + f"{median([b / a for a, b in zip(used['stock'], times)]):.2f})"
                for variant, times in used.items() if times)
            said.append(f"CPU time a statement, of which {opens:.2f} open a "
                        f"table, {cell['label']}: {ratios}")
        return said

    @staticmethod
    def overall(results):
        """The geometric mean of the ratios to stock, over all cells."""
        found = {name: [ratio_of_pairs(values["stock"], values.get(name, []))
                        for _, values in results]
                 for name in ("patched", CONTROL, ONE_INSTANCE)}
        return [f"{name}: the geometric mean of the ratios is "
                f"{geometric_mean(ratio['median'] for ratio in ratios):.3f}"
                for name, ratios in found.items() if None not in ratios]

    @staticmethod
    def extrapolate(rates, caches, names):
        """The time for one table as a line over the number of open tables;
        what it is where nothing could be measured."""
        if len(caches) < 3 or max(caches) >= EXTRAPOLATED:
            return []
        said = []
        for variant in ("stock", "patched"):
            expected = []
            for engine in names:
                points = [(cache, 1 / median(
                    rates[engine, 1, cache][variant]))
                          for cache in caches
                          if rates.get((engine, 1, cache), {}).get(variant)]
                if len(points) < 3:
                    continue
                mean, mean_time = (sum(values) / len(points)
                                   for values in zip(*points))
                slope = (sum((x - mean) * (y - mean_time) for x, y in points)
                         / sum((x - mean) ** 2 for x, _ in points))
                time = mean_time + slope * (EXTRAPOLATED - mean)
                each = 1e6 * 1000 * slope
                expected.append(
                    f"{engine} {each:+.1f} us for each 1000 open tables" +
                    (f", {1 / time:.0f} tables/s with {EXTRAPOLATED} open"
                     if time > 0 else ""))
            if expected:
                said.append(f"{variant}, 1 thread, extrapolated: "
                            + "; ".join(expected))
        return said
