# SPDX-License-Identifier: GPL-2.0-only
"""The base of the scenarios in which visitors ask for pages of many sites."""

from statistics import median

from benchlib import visitors
from benchlib.load import read_files
from benchlib.scenario import CONTROL, OwnServers, need_descriptors, tree_of, words
from benchlib.servers import BenchError, Server
from benchlib.usage import resident

CLIENTS = 16                    # of the closed loop
AT_ONCE = 256                   # pages of the open loop; more wait for these
TABLES = 12                     # of a site
PAGES, CPU, OPENED, P50, P99, MEMORY = (
    "pages/s", "ms of the server's CPU time a page", "tables opened a page",
    "p50, ms a page", "p99, ms a page", "MiB of the server in memory")
CLOSED_LABELS = (PAGES, CPU, OPENED, P50, P99, MEMORY)
ARRIVAL_P50, ARRIVAL_P99, LONGEST = (
    "p50 from the arrival, ms", "p99 from the arrival, ms",
    "longest from the arrival, ms")
OPEN_LABELS = (PAGES, ARRIVAL_P50, ARRIVAL_P99, LONGEST, CPU)
WARM, COLD = "warm", "after a restart"
STATES = {"warm": WARM, "cold": COLD}
GENERATOR = (
    "The visitors are one program in C (sql-bench/visitors.c) on the same CPUs; its "
    "part of the CPU time is named below the table.")


def account(number):
    """SQL for the database of a site and an account for it, as installers of such
    hosts make them."""
    return (f"CREATE DATABASE site{number}; USE site{number};\n"
            f"CREATE USER site{number}@localhost IDENTIFIED BY "
            f"'password {number}'; GRANT ALL ON site{number}.* TO site{number}@localhost;\n")


def server_options(pool, tables):
    """Of a server for so many tables: their definitions fit. pool: bytes of InnoDB's
    buffer pool, on top of those for the rest"""
    return [f"--table-definition-cache={tables + 400}",
            "--open-files-limit=1048576", f"--thread-cache-size={AT_ONCE}",
            # Connections that have been closed count until their threads notice
            f"--max-connections={4 * AT_ONCE}", f"--back-log={4 * AT_ONCE}",
            f"--innodb-buffer-pool-size={(256 << 20) + pool}",
            "--innodb-buffer-pool-load-at-startup=0",
            "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-open-files=2000", "--innodb-flush-method=fsync"]


class Pages(OwnServers):
    """What it measures: in a closed loop, and at each of rates(options), in each of
    states(options). A scenario has the options sites, engines, caches (table_open_cache) and
    seconds (of a measurement, and of warming up before it), and

      fill(server, options, part, progress)   as OwnServers, of the default engine
      pages(options, engine)              {kind: (weight, statements)}
      forget_comments(options, engine)    SQL that takes those of one site out that visitors
                                          have written, so that a page stays what it is
    """

    unit = "as named"
    turns = ("stock", "patched", CONTROL)
    copied = True
    made = None                 # which sites they are; in the data's directory
    table_bytes = {}            # of a table, all of its files, by engine
    closed_loop = ""            # how the labels of the closed loop begin
    items = 1                   # of a site, one of which a page shows

    @staticmethod
    def besides(options):
        return ()

    @staticmethod
    def rates(options):
        """Of the open loop, in % of what stock can do"""
        return []

    @staticmethod
    def states(options):
        return [WARM]

    @classmethod
    def settings(cls, options):
        """{part: (engine, cache)}"""
        return {f"{engine}, table_open_cache={cache}: ": (engine, cache)
                for engine in cls.engines(options) for cache in cls.caches(options)}

    @classmethod
    def check(cls, options):
        visitors.require()
        need_descriptors(max(cls.caches(options)))

    @classmethod
    def disk(cls, options):
        return 3 * (cls.sites(options) + 1) * TABLES * sum(
            cls.table_bytes[engine] for engine in
            {engine for engine, _ in cls.settings(options).values()})

    @classmethod
    def labels(cls, options):
        found = [at_rate(state, rate) + label for state in cls.states(options)
                 for rate in cls.rates(options) for label in OPEN_LABELS]
        if WARM in cls.states(options):
            found = [cls.closed_loop + label for label in CLOSED_LABELS] + found
        return dict.fromkeys(cls.settings(options), found)

    @classmethod
    def directory(cls, options, engine):
        return options.data / f"pages-{cls.made}-{engine}-{cls.sites(options)}"

    @classmethod
    def server(cls, trees, variant, options, part, data=None):
        engine, _ = cls.settings(options)[part]
        tables, tree = (cls.sites(options) + 1) * TABLES, tree_of(trees, variant)
        # Half of each InnoDB table fits the buffer pool
        pool = tables * cls.table_bytes["innodb"] // 2 * (engine == "innodb")
        return Server(tree, cls.directory(options, engine) / (data or tree.name),
                      [f"--default-storage-engine={engine}",
                       *server_options(pool, tables)], variant)

    @classmethod
    def prepare(cls, trees, options, progress):
        visitors.compile_visitors(options.trees / "bench")
        super().prepare(trees, options, progress)

    @classmethod
    def make_sites(cls, server, options, progress, sql):
        """sql: a function that returns the statements for the n-th site"""
        sites, step = cls.sites(options), 20
        for begin in range(1, sites + 1, step):
            progress("creating sites", begin - 1, sites)
            server.sql("".join(map(sql, range(
                begin, min(begin + step, sites + 1)))))

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        engine, _ = cls.settings(options)[part]
        visitors.write_pages(cls.directory(options, engine) / "pages.txt",
                             cls.pages(options, engine))
        cls.full = cls.full_rate(trees, options, part) if cls.rates(options) else None
        return super().measure_pair(trees, options, part, order)

    @classmethod
    def measure_server(cls, server, options, part):
        """{label: value}, of a server that runs neither before nor after."""
        engine, cache = cls.settings(options)[part]
        found = {}
        for state in cls.states(options):
            if state == WARM:
                cls.start(server, cache)
                cls.ask(server, options, 100)
                found.update(cls.busy(server, options))
            for number, rate in enumerate(cls.rates(options)):
                if state == COLD:
                    cls.start(server, cache)
                said = cls.ask(server, options, 300 + 100 * number, cls.full * rate / 100)
                found.update((at_rate(state, rate) + label, value)
                             for label, value in waits(said).items())
        forget = cls.forget_comments(options, engine)
        server.sql("".join(f"USE site{number}; {forget}\n" for number
                           in range(1, cls.sites(options) + 1)))
        server.stop()
        return found

    @staticmethod
    def start(server, cache):
        server.stop()
        read_files(server.datadir)
        server.start(f"--table-open-cache={cache}")

    @classmethod
    def busy(cls, server, options):
        """Each of so many clients asks for the next page at once."""
        before = server.status("Opened_tables")
        said = cls.ask(server, options, 200)
        opened = server.status("Opened_tables") - before
        return {cls.closed_loop + label: value for label, value in zip(
            CLOSED_LABELS, (
                said["pages_a_second"], cpu_of(said), opened / said["pages"],
                said["p50"], said["p99"], cls.memory(server)))}

    @staticmethod
    def memory(server):
        return resident(server.process.pid) / (1 << 20)

    @classmethod
    def ask(cls, server, options, seed, rate=None):
        """What visitors find; rate: of pages a second, None for the closed loop."""
        said = visitors.ask(
            visitors.compile_visitors(options.trees / "bench"), server,
            server.datadir.parent / "pages.txt", sites=cls.sites(options), items=cls.items,
            user="site{site}", password="password {site}",
            database="site{site}", rate=rate, seed=seed, seconds=cls.seconds(options),
            connections=AT_ONCE if rate else CLIENTS)
        if not said["pages"]:
            raise BenchError(f"no visitor comes in {cls.seconds(options)} s; let it last longer")
        return said

    @classmethod
    def full_rate(cls, trees, options, part):
        """Pages a second of stock when it is warm and all clients are busy. It is measured
        once: the rates of all pairs are parts of it."""
        if (cls.name, part) not in FULL_RATES:
            _, cache = cls.settings(options)[part]
            server = cls.server(trees, "stock", options, part)
            cls.start(server, cache)
            cls.ask(server, options, 100)
            FULL_RATES[cls.name, part] = cls.ask(server, options, 200)["pages_a_second"]
            server.stop()
        return FULL_RATES[cls.name, part]

    @classmethod
    def remarks(cls, results, options):
        sites = cls.sites(options)
        return [f"{sites:,} sites, {sites * TABLES:,} tables",
                *of_generator(cell for cell, _ in results)]


FULL_RATES = {}                 # of stock, by the scenario and the part


def states_of(text):
    """An argument like warm,cold"""
    return [STATES[word] for word in words(*STATES)(text)]


def at_rate(state, rate):
    """How a label of the open loop begins, behind the part"""
    return f"{state}, {rate} %: "


def cpu_of(said):
    """The server's CPU time a page in ms; and the generator's as a part of it, and in which
    part of the time the generator was ready to run and did not"""
    used = said["server_cpu_seconds"]
    return {"value": 1000 * used / said["pages"],
            "generator_cpu": round(said["own_cpu_seconds"] / max(used, 1e-9), 4),
            "generator_waited": round(
                said["seconds_without_cpu"] / max(said["seconds"], 1e-9), 4)}


def waits(said):
    """The values of OPEN_LABELS."""
    return dict(zip(OPEN_LABELS, (said["pages_a_second"], said["p50"],
                                  said["p99"], said["max"], cpu_of(said))))


def of_generator(cells):
    """Remarks on the part of the CPU time that the generator took, and on how long
    it waited for a CPU itself."""
    found = [one for cell in cells for details in cell.get("details", {}).values()
             for one in details if "generator_cpu" in one]
    if not found:
        return []
    shares, waits_of = ([one[name] for one in found]
                        for name in ("generator_cpu", "generator_waited"))
    most = max(shares)
    return [f"the visitors' program took {100 * median(shares):.0f} % of the "
            f"server's CPU time, {100 * most:.0f} % at most"
            + (f": more than {100 * visitors.MOST_CPU:.0f} %, so these rates "
               "are of both" if most > visitors.MOST_CPU else "")
            + f"; it waited for a CPU in {100 * median(waits_of):.0f} % of the "
              f"time, {100 * max(waits_of):.0f} % at most, and pages take longer by that"]
