# SPDX-License-Identifier: GPL-2.0-only
"""A large query cache: filled, read, invalidated, and kept full for long."""

import random
import re
import threading
import time

from benchlib import wire
from benchlib.processes import in_processes
from benchlib.scenario import Scenario, positive
from benchlib.servers import BenchError, Server
from benchlib.statistics import median
from benchlib.usage import thread_times

DATABASE = "tc_query_cache"
ROWS = 1000                     # of each table
BATCH = 50                      # statements on their way at a time
FILLERS = 2                     # sessions that fill
READERS = 8                     # sessions whose SELECTs are timed
# Results of 500 to 1500 bytes that a gigabyte holds, and how many of them the
# INSERT of bug 28382 invalidates
PER_GIGABYTE, INVALIDATED = 650000, 186000
REPLACE_BYTES = 64 << 20        # the cache of the steady replacement
STAGES = "performance_schema.events_stages_summary_global_by_event_name"
LOCK_WAIT = "stage/sql/Waiting for query cache lock"

DURING, WITHOUT = "during the INSERT", "without the INSERT"
INSERT, ON_CPU, NO_CPU = ("the INSERT, ms", "the INSERT on a CPU, ms",
                          "the INSERT waits for a CPU, ms")
LOCK, QUIET_LOCK = (f"longest wait for the lock {DURING}, ms",
                    f"longest wait for the lock {WITHOUT}, ms")
FILL, KEPT, READ, HITS = ("fill, results/s", "results kept after the fill",
                          "SELECTs/s", "hits in 100 SELECTs")
PERCENTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
REPLACE = "steady replacement, "
REPLACED, REPLACE_HITS, REPLACE_FREE = (
    "SELECTs/s", "hits in 100 SELECTs", "free memory, percent")


def readers(name):
    """How many sessions read: of bug:1 one, of bug as many as usual."""
    return int(name.partition(":")[2] or READERS)


def spread(name, results):
    """Number of results for each table; the last one gets the INSERT."""
    tables = name.partition(":")[0]
    if tables == "bug":
        invalidated = results * INVALIDATED // PER_GIGABYTE
        return [results - invalidated, invalidated]
    return [results // int(tables)] * int(tables)


def select(table, number):
    """Statements that differ in one literal have results of their own."""
    return f"SELECT id,b,{number} FROM t{table} WHERE id={number % ROWS}"


def create_results(session, tables):
    """Tables with rows of 400 to 1400 bytes."""
    chance = random.Random(1)
    rows = ",".join(f"({i},REPEAT('x',{chance.randrange(400, 1400)}))"
                    for i in range(ROWS))
    for i in range(tables):
        session.query(f"CREATE TABLE t{i} (id INT PRIMARY KEY, b VARBINARY"
                      "(1400)) ENGINE=MyISAM")
        session.query(f"INSERT INTO t{i} VALUES {rows}")


def run_batch(session, statements):
    session.send(*statements)
    for _ in statements:
        session.skip_result()


def fill(pipe, socket, ranges):
    """Ask for each result once, in any order."""
    session = wire.Connection(socket, DATABASE)
    wanted = [(table, number) for table, begin, end in ranges
              for number in range(begin, end)]
    random.Random(len(wanted)).shuffle(wanted)
    for i in range(0, len(wanted), BATCH):
        run_batch(session, [select(*one) for one in wanted[i:i + BATCH]])
    pipe.send(len(wanted))


def read_fast(pipe, socket, counts, seconds, seed):
    """Any of the results, as many as come; statements a second."""
    session = wire.Connection(socket, DATABASE)
    chance = random.Random(seed)
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        batch = []
        for _ in range(BATCH):
            table = chance.randrange(len(counts))
            batch.append(select(table, chance.randrange(counts[table])))
        run_batch(session, batch)
        done += BATCH
    pipe.send(done / seconds)


def read_timed(pipe, socket, counts, begin, seconds, seed):
    """Single SELECTs of the tables but the last, if there are others."""
    session = wire.Connection(socket, DATABASE)
    chance = random.Random(seed)
    tables = max(1, len(counts) - 1)
    took, start = [], 0
    time.sleep(max(0, begin - time.monotonic()))
    try:
        while start < begin + seconds:
            table = chance.randrange(tables)
            query = select(table, chance.randrange(counts[table]))
            start = time.monotonic()
            session.send(query)
            session.skip_result()
            took.append(time.monotonic() - start)
    except (OSError, ConnectionError):
        pass                            # the server was killed
    pipe.send(took)


def replace(pipe, socket, selects, number):
    """New results, most small, some up to 96 kB, and old ones at random."""
    session = wire.Connection(socket, DATABASE)
    chance = random.Random(number)
    newest = done = 0
    while done < selects:
        batch = []
        for _ in range(BATCH):
            if newest > 100 and chance.random() < 0.3:
                which = max(1, newest - int(chance.expovariate(1 / 2000)))
            else:
                newest += 1
                which = newest
            size = random.Random(which).choice(
                (50, 100, 200, 500, 500, 1000, 1000, 2000, 4000, 8000, 16000,
                 64000))
            batch.append(f"SELECT LEFT(b,{size // 2 + which % size}),{which} "
                         f"FROM big WHERE id={number}")
        run_batch(session, batch)
        done += BATCH
    pipe.send(done)


class QueryCache(Scenario):
    name = "query-cache"
    title = "A large query cache, and one INSERT that invalidates much of it"
    source = "MySQL bug 28382"
    question = (
        "What does an INSERT cost that invalidates many cached results? What does "
        "it cost the others? How much does the cache hold?")
    method = (
        f"{FILLERS} sessions fill the cache with as many results of 500 to 1500 "
        "bytes as it may hold, and then read them at random. After that, "
        f"{READERS} sessions read at random, and each SELECT is timed. After a "
        "second one INSERT follows, into a table that they do not read if there is "
        "more than one. How long statements waited for the query cache's lock is "
        "what the performance schema says. A stock server is killed when the "
        "INSERT takes longer than a limit: then its time is the limit.\n\n"
        "- 'bug': the results are spread over two tables, as in the bug report. A "
        "number in its place: evenly over so many tables. ':1': one session "
        "reads.\n"
        "- 'steady replacement': a full cache of 64 MB continues to take new "
        "results of mixed sizes. Its free memory is what fragmentation has made "
        "useless.")
    caveat = (
        "The sessions that read share the CPUs with the server. With few CPUs the "
        "longest times, of SELECTs and of waits for the lock, are those for which "
        "the kernel had taken the CPU away from the thread that held the lock.")
    unit = "as named"
    weight = 6
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--qc-megabytes", type=positive,
                            help="query_cache_size (default 1024; quick 256)")
        parser.add_argument("--qc-tables",
                            help="numbers of tables, or 'bug', with the "
                            f"number of readers if it is not {READERS} "
                            "(default bug,bug:1,1,10,100; quick bug)")
        parser.add_argument("--qc-limit", type=float,
                            help="seconds that the INSERT may take (default "
                            "90; quick 15)")
        parser.add_argument("--qc-replace", type=int,
                            help="SELECTs of the steady replacement, 0 for "
                            "none (default 400000; quick 60000)")

    @staticmethod
    def settings(options):
        quick = options.quick
        replaced = options.qc_replace
        if replaced is None:
            replaced = 60000 if quick else 400000
        spreads = (options.qc_tables or
                   ("bug" if quick else "bug,bug:1,1,10,100")).split(",")
        return {"bytes": (options.qc_megabytes or
                          (256 if quick else 1024)) << 20,
                "spreads": spreads,
                "limit": options.qc_limit or (15 if quick else 90),
                "seconds": 3 if quick else 5, "replace": replaced}

    @classmethod
    def check(cls, options):
        settings = cls.settings(options)
        for name in settings["spreads"]:
            if not re.fullmatch("(bug|[1-9][0-9]*)(:[1-9][0-9]*)?", name):
                raise BenchError(f"--qc-tables: '{name}' is not like 10, bug, "
                                 "or bug:1")
        if settings["limit"] < 10:
            raise BenchError("--qc-limit: at least 10 seconds")
        if 0 < settings["replace"] < 1000 or settings["replace"] < 0:
            raise BenchError("--qc-replace: 0, or at least 1000")
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) << 10 for line in file
                             if line.startswith("MemAvailable"))
        if settings["bytes"] * 1.25 + (1 << 30) > available:
            raise BenchError("too little memory for a query cache of "
                             f"{settings['bytes'] >> 20} MB; choose a smaller "
                             "one by --qc-megabytes")

    @classmethod
    def cells(cls, options):
        settings = cls.settings(options)
        found = []
        for part in cls.parts(options):
            labels = [REPLACED, REPLACE_HITS, REPLACE_FREE]
            if part != REPLACE:
                labels = [INSERT, ON_CPU, NO_CPU, LOCK, QUIET_LOCK, FILL, KEPT, READ, HITS]
                labels += [f"SELECT {name} {when}, ms"
                           for name, _ in PERCENTILES
                           for when in (WITHOUT, DURING)]
            found += [{"label": f"{part}{label}", "part": part}
                      for label in labels]
        return found

    @classmethod
    def parts(cls, options):
        settings = cls.settings(options)
        return ([f"{tables}: " for tables in settings["spreads"]]
                + ([REPLACE] if settings["replace"] else []))

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        settings = cls.settings(options)
        found = {}
        for variant in order:
            server = Server(trees / variant,
                            options.data / "data-query-cache",
                            cls.options())
            measured = (cls.replacement(server, settings) if part == REPLACE
                        else cls.one_spread(server, part[:-2], settings))
            cls.check_labels(part, measured, options)
            for label, value in measured.items():
                found.setdefault(f"{part}{label}", {})[variant] = value
        return found

    @classmethod
    def check_labels(cls, part, measured, options):
        """What is measured under a label that no cell has would be lost."""
        known = {cell["label"] for cell in cls.cells(options)}
        lost = [label for label in measured if part + label not in known]
        if lost:
            raise BenchError(f"no cell for {lost}")

    @staticmethod
    def options():
        return ["--query-cache-type=1", "--query-cache-size=0",
                "--query-cache-limit=1M", "--performance-schema=1",
                "--performance-schema-consumer-events-stages-current=1",
                "--performance-schema-instrument=stage/sql/%=OFF",
                f"--performance-schema-instrument={LOCK_WAIT}=ON",
                "--key-buffer-size=64M", "--max-connections=200"]

    @staticmethod
    def connect(server, size):
        """A session beside the cache, in an empty database."""
        session = wire.Connection(server.socket)
        session.query("SET query_cache_type=0")
        session.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        session.query(f"CREATE DATABASE {DATABASE}")
        session.query(f"USE {DATABASE}")
        session.query(f"SET GLOBAL query_cache_size={size}")
        return session

    @staticmethod
    def forget_waits(session):
        """This wants the lock itself, so not while an INSERT may have it."""
        session.query(f"TRUNCATE {STAGES}")

    @staticmethod
    def longest_wait(session):
        """For the lock, in ms, since forget_waits()."""
        (longest,), = session.query(f"SELECT MAX_TIMER_WAIT FROM {STAGES} "
                                    f"WHERE EVENT_NAME='{LOCK_WAIT}'")
        return int(longest) / 1e9

    @classmethod
    def one_spread(cls, server, name, settings):
        results = PER_GIGABYTE * (settings["bytes"] >> 20) // 1024
        counts = spread(name, results)
        sessions = range(readers(name))
        seconds, limit = settings["seconds"], settings["limit"]
        found = {}
        server.start()
        session = cls.connect(server, settings["bytes"])
        create_results(session, len(counts))

        begin = time.monotonic()
        in_processes(fill, [
            (server.socket, [(table, count * i // FILLERS,
                              count * (i + 1) // FILLERS)
                             for table, count in enumerate(counts)])
            for i in range(FILLERS)])
        found[FILL] = sum(counts) / (time.monotonic() - begin)
        found[KEPT] = session.status("Qcache_queries%")[
            "Qcache_queries_in_cache"]

        before = session.status("Qcache_hits")["Qcache_hits"]
        found[READ] = sum(in_processes(read_fast, [
            (server.socket, counts, seconds, i) for i in range(FILLERS)]))
        found[HITS] = 100 * (session.status("Qcache_hits")["Qcache_hits"] -
                             before) / (found[READ] * seconds)

        cls.forget_waits(session)
        begin = time.monotonic() + 0.5
        took = in_processes(read_timed, [
            (server.socket, counts, begin, seconds, i) for i in sessions])
        cls.percentiles(found, WITHOUT, took)
        found[QUIET_LOCK] = cls.longest_wait(session)

        cls.forget_waits(session)
        times = []
        begin = time.monotonic() + 0.5
        writer = threading.Thread(target=cls.invalidate, args=(
            server, len(counts) - 1, begin + 1, found, times))
        # Stock's INSERT may take minutes, in which its lock is not free
        killer = threading.Timer(1.5 + limit, cls.kill,
                                 (server, found, limit, times))
        try:
            writer.start()
            killer.start()
            took = in_processes(read_timed, [
                (server.socket, counts, begin, seconds, READERS + i)
                for i in sessions])
            cls.percentiles(found, DURING, took)
            writer.join()
        finally:
            killer.cancel()
            if killer.ident:
                killer.join()
        if server.process:
            found[LOCK] = cls.longest_wait(session)
            server.stop()
        else:
            # Some waited until the server was killed; the performance schema
            # is gone with it
            found[LOCK] = found[f"SELECT max {DURING}, ms"] = 1e3 * limit
        if INSERT not in found:
            raise BenchError("the INSERT failed")
        return found

    @staticmethod
    def invalidate(server, table, when, found, times):
        """Measure the INSERT; 'times' becomes a function that gives the times
        of its thread in the server since it began."""
        session = wire.Connection(server.socket, DATABASE)
        (tid,), = session.query("SELECT TID FROM information_schema.processlist"
                                " WHERE ID=CONNECTION_ID()")
        pid = server.process.pid
        time.sleep(max(0, when - time.monotonic()))
        before = thread_times(pid, int(tid))
        times.append(lambda: [1e3 * (now - then) for now, then
                              in zip(thread_times(pid, int(tid)), before)])
        begin = time.monotonic()
        try:
            session.query(f"INSERT INTO t{table} VALUES ({ROWS + 1},'x')")
            took = 1e3 * (time.monotonic() - begin)
            found[ON_CPU], found[NO_CPU] = times[0]()
            found[INSERT] = took
        except (OSError, wire.Error):
            pass                        # the server was killed

    @staticmethod
    def kill(server, found, limit, times):
        if times:
            found[ON_CPU], found[NO_CPU] = times[0]()
        server.kill()
        found[INSERT] = 1e3 * limit

    @staticmethod
    def percentiles(found, when, took):
        took = sorted(sum(took, []))
        if not took:
            raise BenchError("no SELECT was answered")
        for name, share in PERCENTILES:
            found[f"SELECT {name} {when}, ms"] = 1e3 * took[
                min(len(took) - 1, int(share * len(took)))]

    @classmethod
    def replacement(cls, server, settings):
        server.start()
        session = cls.connect(server, REPLACE_BYTES)
        session.query("CREATE TABLE big (id INT PRIMARY KEY, b LONGBLOB) "
                      "ENGINE=MyISAM")
        session.query("INSERT INTO big VALUES " + ",".join(
            f"({i},REPEAT('x',100000))" for i in range(FILLERS)))
        begin = time.monotonic()
        done = sum(in_processes(replace, [
            (server.socket, settings["replace"] // FILLERS, i)
            for i in range(FILLERS)]))
        state = session.status("Qcache%")
        found = {REPLACED: done / (time.monotonic() - begin),
                 REPLACE_HITS: 100 * state["Qcache_hits"] / done,
                 REPLACE_FREE: 100 * state["Qcache_free_memory"] /
                 REPLACE_BYTES}
        server.stop()
        return found

    @classmethod
    def remarks(cls, results, options):
        settings = cls.settings(options)
        said = []
        for cell, values in results:
            if not cell["label"].endswith(": " + INSERT):
                continue
            tables = cell["label"].rpartition(": ")[0]
            limit = 1e3 * settings["limit"]
            for variant in ("stock", "patched"):
                killed = sum(value >= limit for value in values[variant])
                if killed:
                    said.append(
                        f"{tables}: the {variant} server was killed in "
                        f"{killed} of {len(values[variant])} runs, because the"
                        f" INSERT was not done after {settings['limit']:.0f} "
                        "s; the ratio is at most that")
            said.append(f"{tables}: the patched server's INSERT takes "
                        f"{median(values['patched']):.2g} ms, at most "
                        f"{max(values['patched']):.2g} ms")
        return said
