# SPDX-License-Identifier: GPL-2.0-only
"""First touch of InnoDB tables that the server does not know yet."""

import itertools
import multiprocessing
import random
import shutil
import time

from benchlib import wire
from benchlib.load import forget_files, read_files, run, shares
from benchlib.program import list_of, one_of
from benchlib.scenario import (CONTROL, RESERVED_DESCRIPTORS, Scenario,
                               descriptor_limit, positive)
from benchlib.servers import BenchError, Server, copy_for_each
from benchlib.disk import slow_disk
from benchlib.statistics import median, percentile, ratio_of_pairs
from . import cold_company

DATABASE = "tc_cold_open"
CONNECTIONS = (1, 16)           # of the first touch
RANDOM_CONNECTIONS = 16
DEFINITIONS = 2000              # table_definition_cache of the random SELECTs
HOT_TABLES, HOT, COLD = 10, 8, 8
READ_DELAY = 20                 # ms that each read of a slow disk takes
BATCH = 20                      # statements on their way at a time
TABLE_PAGES = 9                 # of one table, all of its files
PAGE_KIB = {"4k": 4, "8k": 8, "16k": 16}
# One key, number 1, as file_key_management reads it. Its secrecy does not matter
KEYS = "1;" + "00112233445566778899aabbccddeeff" * 2 + "\n"
COLUMNS = ("id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, "
           "author BIGINT UNSIGNED NOT NULL DEFAULT 0, "
           "created DATETIME NOT NULL DEFAULT '2000-01-01', "
           "changed DATETIME NOT NULL DEFAULT '2000-01-01', "
           "title VARCHAR(200) NOT NULL DEFAULT '', "
           "name VARCHAR(200) NOT NULL DEFAULT '', "
           "status VARCHAR(20) NOT NULL DEFAULT 'draft', "
           "type VARCHAR(20) NOT NULL DEFAULT 'post', "
           "parent BIGINT UNSIGNED NOT NULL DEFAULT 0, "
           "menu INT NOT NULL DEFAULT 0, "
           "comments BIGINT NOT NULL DEFAULT 0, content LONGTEXT, "
           "PRIMARY KEY (id)")
INDEXES = ", KEY kind (type, status, created, id), KEY author (author, parent)"

RATE, CPU, SWITCHES = ("tables/s", "us of the server's CPU time a table",
                       "voluntary context switches a table")
AGAIN = "us of CPU time to select from it again"
SELECTS = ("SELECTs/s", "us of the server's CPU time a SELECT",
           "voluntary context switches a SELECT")
PERCENTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
# The load that runs together with the hot SELECTs
ALONE, KNOWN, UNKNOWN = ("alone", f"beside {COLD} that read known tables",
                         f"beside {COLD} that touch cold ones")
RANDOM, BESIDE, EVICT = "random: ", "hot: ", "eviction: "
POOL, COMPANY = "load of the pool: ", "beside a loop: "
EVICTING = 2                    # connections that time SELECTs meanwhile
EVICT_TO = 400                  # table_definition_cache then
EVICTED = ("p99.9 of hot SELECTs, ms", "longest hot SELECT, ms",
           "part of the dictionary's memory that is left")
SLOW = f"hot, slow disk ({READ_DELAY} ms a read): "
# What --cold-parts calls them
PARTS = {f"touch-{CONNECTIONS[0]}": f"{CONNECTIONS[0]} connection: ",
         f"touch-{CONNECTIONS[1]}": f"{CONNECTIONS[1]} connections: ",
         "random": RANDOM, "hot": BESIDE, "slow-disk": SLOW, "eviction": EVICT,
         "pool": POOL, "loop": COMPANY}


def touch(table):
    """One column of one row: the answer costs the client little."""
    return f"SELECT id FROM t{table} WHERE id=1"


def ask(session, tables):
    """Select from tables; the server always has some statements ahead."""
    tables = iter(tables)
    while batch := [touch(table) for table in itertools.islice(tables, BATCH)]:
        session.send(*batch)
        for _ in batch:
            session.skip_result()


def read_each(session, tables):
    """Select from each table once; how many, and when that was done."""
    ask(session, tables)
    return len(tables), time.monotonic()


def read_any(session, tables, seconds, seed):
    """Select from tables at random; how many, and when that was done."""
    chance = random.Random(seed)
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        ask(session, [chance.randint(1, tables) for _ in range(BATCH)])
        done += BATCH
    return done, time.monotonic()


def read_timed(session, seconds, stop, seed):
    """Time single SELECTs from the hot tables, in ms."""
    chance = random.Random(seed)
    took, start = [], time.monotonic()
    end = start + seconds
    while start < end and not stop.is_set():
        query = touch(chance.randint(1, HOT_TABLES))
        start = time.monotonic()
        session.send(query)
        session.skip_result()
        took.append(1000 * (time.monotonic() - start))
    return took


def keep_busy(session, tables, seconds, stop, again, rate=None):
    """Select from each table once, or again and again, for so long, at most so
    many a second; stop the others when there is no table left. Return how
    many."""
    begin, done = time.monotonic(), 0
    end = begin + seconds
    for table in itertools.cycle(tables) if again else tables:
        if rate:
            time.sleep(max(0, begin + done / rate - time.monotonic()))
        if time.monotonic() >= end or stop.is_set():
            return done
        ask(session, (table,))
        done += 1
    stop.set()
    return done


def shrink(session, _):
    """Let nearly all definitions be evicted."""
    session.query(f"SET GLOBAL table_definition_cache={EVICT_TO}")
    session.query("FLUSH TABLES")


def rates(names, answers, begin, used):
    """What was done by all, as a rate; and its cost to the server."""
    done = sum(count for count, _ in answers)
    seconds = max(end for _, end in answers) - begin
    return dict(zip(names, (done / seconds, 1e6 * used[0] / done,
                            used[1] / done)))


def first(connections):
    """The part of a first touch from so many connections."""
    return PARTS[f"touch-{connections}"]


class ColdOpen(Scenario):
    name = "cold-open"
    title = "First touch of InnoDB tables after a start"
    source = "MDEV-35154, and a design measurement of 2026"
    question = (
        "What does the first use of a table cost? How much faster are many "
        "connections than one? What do statements notice that use tables which "
        "the server knows?")
    method = (
        "A server is started for each measurement. Its InnoDB tables have 12 "
        "columns, three indexes and persistent statistics, and their files are in "
        "the page cache.\n\n"
        "- '1 connection', '16 connections': each table is selected from once, and "
        "then once more, when it is known and open. What many connections cost "
        "beyond one in the second round has nothing to do with loading.\n"
        f"- 'random': {RANDOM_CONNECTIONS} connections select from all of the "
        f"tables, with table_definition_cache={DEFINITIONS}.\n"
        f"- 'hot': {HOT} connections time their SELECTs from {HOT_TABLES} tables, "
        f"alone, beside {COLD} that read known tables, and beside {COLD} that "
        "touch cold ones.\n"
        "- 'hot, slow disk': the same without those that read known tables, while "
        f"each read of an .ibd file takes {READ_DELAY} ms longer.\n"
        "- 'eviction': when all tables are known, table_definition_cache becomes "
        f"{EVICT_TO}, and all tables are closed, while {EVICTING} connections time "
        "their SELECTs."
        f"\n- 'load of the pool': {cold_company.TOUCHING} connections touch cold "
        f"tables, and {cold_company.READING} time SELECTs that open known tables, "
        "while the buffer pool loads a page of each of the other half of the "
        "tables.\n"
        f"- 'beside a loop': {cold_company.TOUCHING} connections touch cold tables "
        "beside one that repeats a statement.")
    caveat = (
        "The clients share the CPUs with the server. With few CPUs the longest hot "
        "SELECTs are those that waited for a CPU: compare them with those beside "
        "connections that read known tables. Without --cold-page-cache nothing is "
        "read from a disk; the slow one is disk.c.")
    unit = "as named"
    weight = 8
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--cold-tables", type=positive,
                            help="number of tables (default 20000; quick "
                            "3000)")
        parser.add_argument("--cold-shared", action="store_true",
                            help="create them in the system tablespace, "
                            "without secondary indexes, and measure eviction "
                            "only: for 200000 tables")
        parser.add_argument("--cold-page-size", type=one_of(PAGE_KIB),
                            default="16k",
                            help="innodb_page_size: 4k for 100000 tables "
                            "(default 16k)")
        parser.add_argument("--cold-encrypted", action="store_true",
                            help="encrypt them, with the plugin "
                            "file_key_management")
        parser.add_argument("--cold-parts", type=list_of(PARTS),
                            metavar="PART[,PART...]",
                            help="measure these parts only: "
                            + ", ".join(PARTS))
        parser.add_argument("--cold-read-ms", type=positive, default=0,
                            metavar="MS",
                            help="add so many ms to each read of an .ibd file, "
                            "and read without native AIO "
                            "(default 0; the part slow-disk always adds "
                            f"{READ_DELAY})")
        parser.add_argument("--cold-page-cache", action="store_true",
                            help="the page cache has no file when a server "
                            "starts (default: all); not on tmpfs")
        parser.add_argument("--cold-rate", type=positive,
                            help="how many cold tables a second are touched "
                            "beside hot SELECTs, the same on each server "
                            "(default: as many as it can)")

    @staticmethod
    def tables(options):
        return options.cold_tables or (3000 if options.quick else 20000)

    @staticmethod
    def seconds(options):
        return 3 if options.quick else 10

    @classmethod
    def check(cls, options):
        if cls.tables(options) < 1000:
            raise BenchError("--cold-tables: at least 1000")
        if options.cold_shared and (options.cold_parts
                                    or options.cold_encrypted):
            raise BenchError("--cold-shared goes without --cold-parts and "
                             "--cold-encrypted")
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) << 10 for line in file
                             if line.startswith("MemAvailable"))
        if available < cls.disk(options) * 2 // 3 + (2 << 30):
            raise BenchError(f"too little memory for the files of "
                             f"{cls.tables(options)} tables, twice; choose "
                             "fewer by --cold-tables")

    @classmethod
    def disk(cls, options):
        return 3 * cls.tables(options) * cls.table_bytes(options)

    @staticmethod
    def table_bytes(options):
        return ((TABLE_PAGES * PAGE_KIB[options.cold_page_size] << 10)
                // (4 if options.cold_shared else 1))

    @staticmethod
    def parts(options):
        if options.cold_shared:
            return [EVICT]
        return [part for name, part in PARTS.items()
                if not options.cold_parts or name in options.cold_parts]

    @classmethod
    def cells(cls, options):
        found = {first(connections): (RATE, CPU, SWITCHES, AGAIN)
                 for connections in CONNECTIONS}
        found[RANDOM] = SELECTS
        found[BESIDE] = [f"{name} {company}, ms"
                         for company in (ALONE, KNOWN, UNKNOWN)
                         for name, _ in PERCENTILES]
        found[SLOW] = [f"{name} {company}, ms" for company in (ALONE, UNKNOWN)
                       for name, _ in PERCENTILES] + [RATE]
        found[EVICT] = EVICTED
        found[POOL] = cold_company.POOL_CELLS
        found[COMPANY] = [f"tables/s beside {name}"
                          for name in cold_company.COMPANY]
        found = {part: found[part] for part in cls.parts(options)}
        return [{"label": part + label, "part": part}
                for part, labels in found.items() for label in labels]

    @classmethod
    def server(cls, trees, variant, options, data=None):
        """A server on a copy of the data for its own variant."""
        tables = cls.tables(options)
        files = min(tables, descriptor_limit() - RESERVED_DESCRIPTORS)
        kinds = ["shared"] * options.cold_shared
        kinds += ["encrypted"] * options.cold_encrypted
        if options.cold_page_size != "16k":
            kinds.append(options.cold_page_size)
        directory = options.data / "-".join(["cold-open", *kinds, str(tables)])
        plugin = trees.absolute() / variant / "release/plugin/file_key_management"
        return Server(trees / variant, directory / (data or variant),
                      [f"--innodb-page-size={options.cold_page_size}",
                       *([f"--plugin-dir={plugin}",
                          "--plugin-load-add=file_key_management",
                          "--file-key-management-filename="
                          f"{directory.absolute() / 'keys'}",
                          "--innodb-encrypt-tables=ON",
                          # What is not encrypted stays so
                          "--innodb-encryption-threads=0"]
                         if options.cold_encrypted else []),
                       f"--table-definition-cache={tables + 400}",
                       f"--table-open-cache={tables + 400}",
                       "--open-files-limit=1048576", "--thread-cache-size=64",
                       f"--innodb-open-files={files}",
                       "--innodb-buffer-pool-size=" + str(
                           (256 << 20) + tables * cls.table_bytes(options)
                           // 4),
                       "--innodb-buffer-pool-load-at-startup=0",
                       "--innodb-buffer-pool-dump-at-shutdown=0",
                       # So that the page cache is used
                       "--innodb-flush-method=fsync"])

    @classmethod
    def prepare_program(cls, trees, options, progress):
        """Make the tables once, and a copy of them for each variant."""
        tables = cls.tables(options)
        server = cls.server(trees, "stock", options, "data")
        ready = server.datadir.parent / "ready"
        if ready.exists():
            return
        shutil.rmtree(server.datadir.parent, ignore_errors=True)
        server.create_datadir(f"--innodb-page-size={options.cold_page_size}")
        if options.cold_encrypted:
            (server.datadir.parent / "keys").write_text(KEYS, encoding="ascii")
        server.start("--innodb-flush-log-at-trx-commit=0", "--debug-no-sync",
                     "--skip-innodb-doublewrite", "--sync-frm=0",
                     "--innodb-stats-auto-recalc=0",
                     f"--innodb-file-per-table={int(not options.cold_shared)}")
        server.sql(f"CREATE DATABASE {DATABASE}")
        columns = COLUMNS + INDEXES * (not options.cold_shared)
        for begin in range(1, tables + 1, 500):
            progress("creating tables", begin - 1, tables)
            # CREATE TABLE stores statistics, too
            server.sql("".join(
                f"CREATE TABLE t{number} ({columns}) ENGINE=InnoDB; "
                f"INSERT INTO t{number} (title) VALUES ('a'),('b'),('c');\n"
                for number in range(begin, min(begin + 500, tables + 1))),
                DATABASE)
        server.stop()
        copy_for_each(server, [cls.server(trees, variant, options)
                               for variant in ("stock", "patched")], progress)

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        found = {}
        for name in (*order, CONTROL):
            server = cls.server(trees, "stock" if name == CONTROL else name,
                                options)
            (forget_files if options.cold_page_cache
             else read_files)(server.datadir)
            read_ms = READ_DELAY if part == SLOW else options.cold_read_ms
            if read_ms:
                server.environment = slow_disk(server.datadir.parent,
                                               read_ms=read_ms)
            if options.cold_read_ms:
                # disk.c does not delay the kernel's asynchronous reads
                server.options.append("--innodb-use-native-aio=0")
            if part == RANDOM:
                server.start(f"--table-definition-cache={DEFINITIONS}",
                             f"--table-open-cache={DEFINITIONS}")
                measured = cls.at_random(server, options)
            else:
                server.start(*(["--table-open-cache="
                                f"{cold_company.OPEN}"] if part == POOL
                               else []))
                measured = (cls.hot(server, options, part == SLOW)
                            if part in (BESIDE, SLOW) else
                            cls.evict(server, options) if part == EVICT else
                            cold_company.pool(server, DATABASE, touch,
                                              cls.tables(options))
                            if part == POOL else
                            cold_company.company(server, DATABASE, touch,
                                                 cls.tables(options))
                            if part == COMPANY else
                            cls.first_touch(server, part, options))
            server.stop()
            for label, value in measured.items():
                found.setdefault(part + label, {})[name] = value
        return found

    @classmethod
    def first_touch(cls, server, part, options):
        connections = int(part.partition(" ")[0])
        # Each connection from its own end, as sites of a host are apart
        clients = [(read_each, share) for share in
                   shares(range(1, cls.tables(options) + 1), connections)]
        found = rates((RATE, CPU, SWITCHES), *run(server, DATABASE, *clients))
        _, _, used = run(server, DATABASE, *clients)
        return {**found, AGAIN: 1e6 * used[0] / cls.tables(options)}

    @classmethod
    def at_random(cls, server, options):
        def read(seconds, seed):
            return run(server, DATABASE, *(
                (read_any, cls.tables(options), seconds, seed + number)
                for number in range(RANDOM_CONNECTIONS)))
        read(cls.seconds(options) / 2, 100)     # the caches fill up
        return rates(SELECTS, *read(cls.seconds(options), 200))

    @classmethod
    def hot(cls, server, options, slow):
        """The time that SELECTs from known tables take; on a slow disk, how
        many others are opened meanwhile, too."""
        known = range(1, 1 + HOT_TABLES if slow else 201)
        session = wire.Connection(server.socket, DATABASE)
        ask(session, known)
        cold = range(201, cls.tables(options) + 1)
        found = {}
        for company, tables in ((ALONE, ()), (KNOWN, known), (UNKNOWN, cold)):
            if slow and company == KNOWN:
                continue
            stop, seconds = multiprocessing.Event(), cls.seconds(options)
            answers, begin, _ = run(
                server, DATABASE,
                *((read_timed, seconds, stop, number)
                  for number in range(HOT)),
                *((keep_busy, share, seconds, stop, tables is known,
                   None if tables is known or not options.cold_rate
                   else options.cold_rate / COLD)
                  for share in (shares(tables, COLD) if tables else ())))
            elapsed = time.monotonic() - begin
            took = sorted(itertools.chain(*answers[:HOT]))
            for name, part in PERCENTILES:
                found[f"{name} {company}, ms"] = percentile(took, part)
            if slow and company == UNKNOWN:
                found[RATE] = sum(answers[HOT:]) / elapsed
        session.close()
        return found

    @classmethod
    def evict(cls, server, options):
        """The time that SELECTs from known tables take while InnoDB evicts
        nearly all definitions."""
        def memory():
            return server.status("Innodb_mem_dictionary")

        run(server, DATABASE, *((read_each, share) for share in
                      shares(range(1, cls.tables(options) + 1), CONNECTIONS[1])))
        full = memory()
        stop = multiprocessing.Event()
        answers, _, _ = run(
            server, DATABASE, (shrink, stop),
            *((read_timed, cls.seconds(options), stop, number)
              for number in range(EVICTING)))
        took = sorted(itertools.chain(*answers[1:]))
        return dict(zip(EVICTED, (percentile(took, 0.999), took[-1],
                                  memory() / full)))

    @staticmethod
    def remarks(results, options):
        if options.cold_shared or options.cold_parts:
            return []
        values = {cell["label"]: values for cell, values in results}
        said = []
        for label in [first(connections) + RATE for connections in CONNECTIONS
                      ] + [RANDOM + SELECTS[0]]:
            ratio = ratio_of_pairs(values[label]["stock"],
                                   values[label].get(CONTROL, []))
            if ratio:
                said.append(f"{label}: {CONTROL} is {ratio['median']:.2f} "
                            f"({ratio['low']:.2f} to {ratio['high']:.2f}) of "
                            "stock")
        for variant in ("stock", "patched"):
            one, many = ([median(values[first(connections) + what][variant])
                          for what in (RATE, CPU, AGAIN)]
                         for connections in CONNECTIONS)
            said.append(f"{variant}: {CONNECTIONS[1]} connections touch "
                        f"{many[0] / one[0]:.2f} times as many tables a "
                        f"second as one, for {many[1] / one[1]:.2f} times "
                        "the CPU time each; a SELECT from a known table "
                        f"takes {many[2] / one[2]:.2f} times the CPU time")
        return said
