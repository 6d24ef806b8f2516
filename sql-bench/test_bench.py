#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the benchmarks' computations; they start no server."""

import collections
import contextlib
import fnmatch
import hashlib
import io
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import bench                                            # noqa: E402
import scenarios                                        # noqa: E402
from scenarios import cold_open, ddl, give_back, hits, pages, warm_restart  # noqa: E402
from scenarios import wordpress as sites                # noqa: E402
from benchlib import (callgrind, disk, load, report,        # noqa: E402
                      signals, sysbench, usage, visitors, wire, wordpress)
from benchlib.preload import compile_library            # noqa: E402
from benchlib.scenario import (CONTROL, OneByOne, integers,  # noqa: E402
                               need_disk)
from benchlib.servers import BenchError, Server, make_once   # noqa: E402
from benchlib.statistics import percentile, ratio_of_pairs  # noqa: E402

SYSBENCH = """\
SQL statistics:
    transactions:                        1500   (123.45 per sec.)
General statistics:
    total time:                          2.5000s
         max:                                  205.33
"""
patch = unittest.mock.patch
Mock = unittest.mock.Mock


def parse(*words):
    return bench.parse(["--trees", "/nonexistent", *words])


def data(**more):
    """What a run keeps, of one scenario with one cell."""
    return dict({"scenario": "s",
                 "question": "Q?", "method": "M.", "caveat": "C.",
                 "unit": "u/s", "pairs": 5,
                 "settings": {"quick": False},
                 "date": "D", "versions": {}, "remarks": [],
                 "machine": {"cpus": 2, "cpu": "c", "memory_GiB": 1,
                             "kernel": "k"},
                 "cells": [{"label": "one", "values": {"stock": [1.0], "patched": [3.0]}},
                           {"label": "two", "values": {"stock": [1.0], "patched": []}}]}, **more)


def pair_of(scenario, *arguments):
    """{label: {variant: value}} of a pair that a scenario measures."""
    found = {}
    for label, variant, value in scenario.measure_pair(*arguments):
        found.setdefault(label, {})[variant] = value
    return found


class Case(unittest.TestCase):
    """One with a directory of its own."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def script(self, path, text, shell="#!/bin/sh"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{shell}\n{text}")
        path.chmod(0o755)

    def assertSays(self, text, error, call, *arguments):
        with self.assertRaises(error) as raised:
            call(*arguments)
        self.assertIn(text, str(raised.exception))


class StatisticsTest(unittest.TestCase):
    def test_ratio_is_of_pairs_not_of_medians(self):
        for stock, patched, wanted in (
                ([1.0, 10.0, 100.0], [2.0, 10.0, 50.0], (1.0, 0.5, 2.0)),
                ([1.0, 1.0], [2.0], (2.0, 2.0, 2.0)),       # not complete
                ([0.5, 1.0], [0.0, 1.0], (0.5, 0.0, 1.0)),
                ([0.0, 1.0], [1.0, 1.0], None), ([-0.1, 1.0], [90.0, 1.0], None),
                ([1.0], [], None)):
            self.assertEqual(ratio_of_pairs(stock, patched), wanted)

    def test_interval_is_wide_if_pairs_differ(self):
        stock = 20 * [1.0]
        _, low, high = ratio_of_pairs(stock, 5 * [0.5, 0.8, 1.2, 1.5])
        self.assertTrue(0.5 <= low <= 0.8 and 1.2 <= high <= 1.5, (low, high))
        self.assertEqual(ratio_of_pairs(stock, 20 * [2.0]), (2.0, 2.0, 2.0))

    def test_percentile_is_one_of_the_values(self):
        values = list(range(1000, 0, -1))
        self.assertEqual([percentile(values, part) for part in (0.0, 0.5, 0.999, 1.0)],
                         [1, 501, 1000, 1000])


class SysbenchTest(Case):
    def test_rate_is_of_the_total_time(self):
        self.assertEqual(sysbench.read("x", SYSBENCH),
                         {"rate": 600.0, "events": 1500, "longest": 205.33})
        with self.assertRaises(BenchError):
            sysbench.read("x", "FATAL: something")

    def test_cpu_time_is_of_the_time_after_connecting(self):
        self.script(self.work / "sysbench", "echo connecting\n"
                    f"echo 'Threads started!'\ncat <<'END'\n{SYSBENCH}\nEND\n")
        times = iter((5.0, 7.5))
        with patch.dict(os.environ, {"PATH": f"{self.work}:{os.environ['PATH']}"}):
            found = sysbench.run(Mock(socket="s"), "x", "d", 1, server_cpu=lambda: next(times))
        self.assertEqual((found["cpu_seconds"], found["events"]), (2.5, 1500))


class HitsTest(unittest.TestCase):
    def test_each_server_is_measured_for_each_label(self):
        options = parse("hits", "--hits-connections", "1,8", "--hits-tables", "4")
        servers, cpus, allowed = [], {}, os.sched_getaffinity(0)

        def start(server):
            servers.append(server.variant)
            server.process = Mock(pid=os.getpid())

        def run(server, script, database, threads, *, command="run", server_cpu=None, **more):
            if command == "run":
                cpus.setdefault(threads, set()).add(len(os.sched_getaffinity(0)))
            return {"rate": 10.0, "events": 4, "cpu_seconds": 1e-5}

        with patch.multiple(hits.Server, start=start, stop=lambda server: None), \
             patch.object(sysbench, "run", run):
            found = pair_of(hits.Hits, pathlib.Path("/none"), options, None,
                            ("patched", "stock"))
        self.assertEqual(servers, ["patched", "stock", CONTROL])
        self.assertEqual(cpus, {1: {1}, 8: {len(allowed)}})
        self.assertEqual(os.sched_getaffinity(0), allowed)
        self.assertEqual(list(found), [cell["label"] for cell in hits.Hits.cells(options)])
        for label, value in ((hits.RATE, 10.0), (hits.CPU, 2.5)):
            self.assertEqual(found["text, 4 tables, 8 connections: " + label],
                             {"patched": value, "stock": value,
                              CONTROL: value})


class CallgrindTest(Case):
    DUMP = ("version: 1\npositions: line\nevents: Ir\nsummary: 4100\n\n"
            "fn=(1) main\n0 100\n\ntotals: 4100\n")

    def test_instructions_are_those_of_the_busiest_thread(self):
        counted = callgrind.Counted(Mock(datadir=self.work, options=[]))
        executed = []

        def control(*command):
            if command[0] == "dump":
                for thread, text in ((1, ""), (2, self.DUMP)):
                    (self.work / f"callgrind.out.{counted.dumps}-0{thread}").write_text(text)

        counted.control = control
        self.assertEqual(counted.each(10, executed.append), 410)
        self.assertEqual(executed, list(range(callgrind.WARM + 10)))


class OptionsTest(Case):
    def fails(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit) as raised:
                parse(*words)
        self.assertEqual(raised.exception.code, 2)
        return said.getvalue()

    def test_values_that_make_no_sense(self):
        for word in ("--pairs=0", "--tables=0", "--sysbench-rows=-1",
                     "--rate-states=hot"):
            self.fails(word)
        with self.assertRaises(BenchError):
            integers("64,x")

    def test_cache_beyond_descriptors_is_refused(self):
        self.assertSays("ulimit -Hn", BenchError, scenarios.ALL["open-tables"].check,
                        parse("--cache=100000000", "open-tables"))

    def test_tables_that_do_not_fit_on_the_disk_are_refused(self):
        for option, name in (("tables", "open-tables"),
                             ("is-tables", "information-schema"),
                             ("schema-tables", "working-set"),
                             ("files-tables", "innodb-open-files"),
                             ("frag-tables", "file-fragmentation"),
                             ("memory-tables", "memory"),
                             ("sysbench-rows", "sysbench")):
            options = parse(f"--{option}=10000000000", name)
            options.data = self.work / "new"
            self.assertSays("GiB of disk are needed", BenchError, need_disk, options,
                            scenarios.ALL[name].disk(options))

    def test_report_without_raw_data_leaves_the_old_one(self):
        with self.assertRaises(BenchError):
            bench.need_raw_data(self.work)
        (self.work / "sysbench.json").write_text("{}")
        bench.need_raw_data(self.work)


class Fake(OneByOne):
    name, question, method, unit = "fake", "Q?", "M.", "u"
    pairs = 2

    def __init__(self, stop_after=99, error=KeyboardInterrupt):
        self.left, self.error = stop_after, error
        self.done = []

    def cells(self, options):
        return [{"label": "first"}, {"label": "second"}]

    @staticmethod
    def prepare(trees, options, progress):
        pass

    @staticmethod
    def server(trees, variant, options):
        return contextlib.nullcontext(Mock(variant=variant))

    def measure_pair(self, *arguments):
        return OneByOne.measure_pair.__func__(self, *arguments)

    def measure(self, server, cell, options):
        if not self.left:
            raise self.error
        self.left -= 1
        self.done.append((server.variant, cell["label"]))
        return {"value": 1.0, "number": len(self.done)}


class RunTest(Case):
    def start(self, scenario, *words):
        options = parse(f"--output={self.work}", *words)
        options.trees = options.output
        run = bench.Run(scenario, options, bench.Progress())
        run.progress.show = lambda text: None
        return run

    def interrupted(self, scenario):
        run = self.start(scenario)
        with self.assertRaises(KeyboardInterrupt):
            run.run()
        return run

    def test_earlier_raw_data_stays_until_there_is_new(self):
        file = self.work / "fake.json"
        self.start(Fake()).run()
        before = file.read_text()
        run = self.interrupted(Fake(stop_after=0))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run.finish()
        self.assertIn("nothing was measured", said.getvalue())
        self.assertEqual(file.read_text(), before)
        self.start(Fake()).run()
        self.assertEqual((self.work / "fake.json.old").read_text(), before)

    def test_the_table_is_printed_and_kept(self):
        run = self.interrupted(Fake(stop_after=6))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run.finish()
        kept = (self.work / "fake.txt").read_text()
        self.assertIn(kept, said.getvalue())
        self.assertRegex(kept, r"\nfirst +1 +1  1\.00 \(1\.00 to 1\.00, 1 pairs\)\n")
        self.assertIn("2 measurements were not made", kept)

    def test_control_is_measured_after_each_pair(self):
        scenario = Fake()
        run = self.start(scenario, "--control", "--pairs", "2")
        run.run()
        self.assertEqual([variant for variant, label in scenario.done if label == "first"],
                         ["stock", "patched", CONTROL, "patched", "stock", CONTROL])
        self.assertEqual(run.missing(), 0)

    def test_scenario_that_fails_does_not_end_the_others(self):
        for error in (BenchError("no"), ConnectionError("gone")):
            other = Fake()
            with contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                runs = [self.start(Fake(0, error)), self.start(other)]
                failed = bench.run_all(runs, runs[0].progress)
            self.assertEqual(len(failed), 1)
            self.assertTrue(failed[0].startswith("fake: "))
            self.assertEqual(len(other.done), 8)

    def test_a_third_measurement_is_kept_beside_the_pair(self):
        class Third(Fake):
            name = "third"
            prepared = []

            @staticmethod
            def cells(options):
                return [{"label": "one"}]

            @classmethod
            def prepare(cls, trees, options, progress):
                cls.prepared.append(trees)

            @staticmethod
            def measure_pair(trees, options, part, order):
                yield "one", "stock", 1.0
                yield "one", "patched", 2.0
                yield "one", "again", {"value": 3.0, "more": "of it"}

        with patch.object(bench, "machine", dict):
            self.start(Third, "--pairs", "2").run()
        cell, = json.loads((self.work / "third.json").read_text())["cells"]
        self.assertEqual(cell["values"], {"stock": [1.0, 1.0], "patched": [2.0, 2.0],
                                          "again": [3.0, 3.0]})
        self.assertEqual(cell["details"], {"again": [{"more": "of it"}] * 2})
        self.assertEqual(len(Third.prepared), 1)

    def test_servers_take_turns(self):
        self.assertEqual([bench.in_turn(("a", "b"), pair)[0]
                          for pair in range(4)], ["a", "b", "a", "b"])
        # Each is at each place, and follows each other one
        orders = [bench.in_turn(("a", "b", "c"), pair) for pair in range(6)]
        self.assertEqual(len(set(orders)), 6)
        for lap in (orders[:3], orders[3:]):
            for place in zip(*lap):
                self.assertEqual(set(place), {"a", "b", "c"})


class SignalsTest(unittest.TestCase):
    def setUp(self):
        for number in signals.ENDING:
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        signals.obey_signals()

    def test_what_must_be_whole_is_done_first(self):
        done = []
        with self.assertRaises(KeyboardInterrupt):
            with signals.whole():
                with signals.whole():
                    os.kill(os.getpid(), signal.SIGTERM)
                    done.append("inner")
                done.append("outer")
        self.assertEqual(done, ["inner", "outer"])

    def test_who_asks_twice_to_end_does_not_wait(self):
        with self.assertRaises(KeyboardInterrupt):
            with signals.whole():
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)
                self.fail("went on")
        with signals.whole():           # not a third time
            pass


class MakeOnceTest(Case):
    def servers(self, *names):
        return [Mock(datadir=self.work / name, copy_datadir=lambda other, name=name:
                     shutil.copytree(other.datadir, self.work / name)) for name in names]

    def test_data_is_made_once_and_anew_if_that_was_interrupted(self):
        made, = self.servers("place/data")
        filled = []

        def fill(server):
            filled.append(server.datadir.exists())
            server.datadir.mkdir(parents=True)
            if len(filled) == 1:
                raise BenchError("interrupted")

        with self.assertRaises(BenchError):
            make_once(made, fill)
        for _ in range(2):
            make_once(made, fill)
        self.assertEqual(filled, [False, False])

    def test_each_server_gets_a_copy(self):
        made, one, two = self.servers("place/data", "place/one", "place/two")
        for _ in range(2):
            make_once(made, lambda server: server.datadir.mkdir(parents=True),
                      [one, two], lambda *_: None)
        self.assertEqual({path.name for path in (self.work / "place").iterdir()},
                         {"one", "two", "ready"})


class FakePages(pages.Pages):
    """Sites of which nothing is there; every page takes 10 ms."""

    name = made = "fake"
    closed_loop = "closed loop: "
    table_bytes = dict.fromkeys(("myisam", "aria", "innodb"), 1)

    def __init__(self, trees, *words):
        self.options = parse("wordpress", "--rate=20,50", *words)
        self.options.data = self.options.trees = trees
        self.directory(self.options, "aria").mkdir(parents=True)
        self.said = []
        pages.FULL_RATES.clear()

    rates, states = sites.Wordpress.rates, sites.Wordpress.states
    sites = seconds = classmethod(lambda cls, options: 2)
    engines = classmethod(lambda cls, options: ["aria"])
    caches = classmethod(lambda cls, options: [400])
    pages = classmethod(lambda cls, options, engine: {"page": (1, ["SELECT 1"])})
    forget_comments = classmethod(lambda cls, options, engine: "DELETE 1;")

    def measure(self, *order):
        said = self.said

        def ask(program, server, file, rate=None, **more):
            said.append((server.variant, rate))
            return {"pages": 100, "pages_a_second": rate or 1000.0, "p50": 10.0,
                    "p99": 20.0, "max": 30.0, "seconds": 2.0,
                    "own_cpu_seconds": 0.01,
                    "server_cpu_seconds": 0.1, "seconds_without_cpu": 0.0}

        with patch.multiple(pages.visitors, ask=ask,
                            compile_visitors=lambda directory: None), \
             patch.object(pages.Pages, "memory", lambda server: 1), \
             patch.multiple(
                 pages.Server, status=lambda server, name: 5,
                 start=lambda server, *more: said.append((server.variant, more)),
                 stop=lambda server: None,
                 sql=lambda server, text: said.append((server.variant, text))):
            part, = self.parts(self.options)
            return pair_of(self, self.options.trees, self.options, part, order)


class PagesTest(Case):
    def fake(self, *words):
        return FakePages(self.work / "-".join(("x", *words)), *words)

    def test_each_server_is_measured_for_each_cell(self):
        for words in ((), ("--rate-states=warm",), ("--rate-states=cold",),
                      ("--rate-states=cold,warm",)):
            fake = self.fake(*words)
            found = fake.measure("patched", CONTROL, "stock")
            self.assertEqual(set(found), {cell["label"] for cell
                                          in fake.cells(fake.options)}, words)
            for values in found.values():
                self.assertEqual(list(values), ["patched", CONTROL, "stock"])

    def test_rates_are_parts_of_what_stock_can_do(self):
        fake = self.fake()
        fake.measure("patched", "stock", CONTROL)
        # Stock is warmed up and measured in the closed loop, once
        self.assertEqual([one for one in fake.said if one[1] is None][:2], [("stock", None)] * 2)
        rates = [(variant, rate) for variant, rate in fake.said if isinstance(rate, float)]
        self.assertEqual(rates, [(variant, rate) for variant in ("patched", "stock", CONTROL)
                                 for rate in (200.0, 500.0) * 2])

    def test_a_restart_comes_before_each_rate_and_comments_go(self):
        fake = self.fake("--rate-states=cold")
        pages.FULL_RATES["fake", "aria, table_open_cache=400: "] = 1000.0
        fake.measure("stock")
        start = ("stock", ("--table-open-cache=400",))
        self.assertEqual(fake.said, [
            start, ("stock", 200.0), start, ("stock", 500.0),
            ("stock", "USE site1; DELETE 1;\nUSE site2; DELETE 1;\n")])

    def test_what_the_generator_took_is_said(self):
        def took(share):
            return [{"generator_cpu": share, "generator_waited": share / 10}]

        cells = [{"details": {"stock": took(0.1), "patched": took(share)}}
                 for share in (0.2, 0.15)]
        said, = pages.of_generator(cells)
        self.assertIn("12 % of the server's CPU time, 20 % at most", said)
        self.assertIn("in 1 % of the time, 2 % at most", said)
        self.assertNotIn("more than", said)
        cells[0]["details"]["patched"] = took(0.3)
        self.assertIn("more than 25 %", pages.of_generator(cells)[0])
        self.assertEqual(pages.of_generator([{"label": "of old data"}]), [])


class StubServer(socketserver.ThreadingUnixStreamServer):
    """Speaks as much of the protocol as a client needs who logs in and sends text;
    what it was sent is in said, a list for each connection."""

    request_queue_size = 64
    SALT = b"saltsaltsaltsaltsalt"
    # LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS,
    # SECURE_CONNECTION, MULTI_RESULTS, PLUGIN_AUTH
    CAPABILITIES = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x20000 | 0x80000
    HELLO = (b"\x0a10.11.1-MariaDB\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
             + struct.pack("<HBHHB10x", CAPABILITIES & 0xffff, 45, 2, CAPABILITIES >> 16, 21)
             + SALT[8:] + b"\0mysql_native_password\0")
    DONE = b"\0\0\0\2\0\0\0"
    END = b"\xfe\0\0\2\0"
    HEAD = b"\1", b"\3def\0\0\0\1a\0\x0c\x21\0\1\0\0\0\xfd\0\0\0\0\0", END
    ANSWERS = {b"SELECT wrong": [b"\xff\x7a\x04#42S02no such table"],
               # An error behind a row
               b"SELECT late": [*HEAD, b"\1x", b"\xff\x26\x05#HY000too late"]}

    def __init__(self, path):
        super().__init__(str(path), StubSession)
        self.said = []
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def close(self):
        """Return when said has all that the clients sent. They have ended."""
        self.shutdown()
        self.server_close()


class StubSession(socketserver.StreamRequestHandler):
    def read(self):
        head = self.rfile.read(4)
        if len(head) < 4:
            raise ConnectionError
        self.said.append(self.rfile.read(int.from_bytes(head[:3], "little")))
        return self.said[-1]

    def send(self, first, *payloads):
        self.wfile.write(b"".join(
            struct.pack("<I", len(one))[:3] + bytes((first + number,)) + one
            for number, one in enumerate(payloads)))

    def handle(self):
        self.said = []
        self.server.said.append(self.said)
        with contextlib.suppress(OSError):
            self.send(0, StubServer.HELLO)
            self.read()
            self.send(2, StubServer.DONE)
            while (command := self.read())[:1] != b"\1":
                text = command[1:]
                self.send(1, *StubServer.ANSWERS.get(
                    text, [*StubServer.HEAD, b"\3one", b"\xfb", StubServer.END]
                    if text.startswith(b"SELECT") else [StubServer.DONE]))


@unittest.skipUnless(shutil.which("mariadb_config"), "needs libmariadb-dev")
class VisitorsTest(Case):
    """The load generator, visitors.c."""

    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.program = visitors.compile_visitors(pathlib.Path(work.name))

    def run_it(self, *words, status=0,
               pages={"often": (3, ["SELECT 1"]), "seldom": (1, ["SELECT 2"])}):
        """What the program prints, and the lines of its --visits."""
        file, trace = self.work / "pages", self.work / "visits"
        visitors.write_pages(file, pages)
        done = subprocess.run([self.program, f"--pages={file}", f"--visits={trace}",
                               *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.error = done.stderr
        if not done.stdout:
            return None, None
        return json.loads(done.stdout), [
            line.split("\t") for line in trace.read_text().splitlines()]

    def sites(self, *words):
        """How often each site is asked for, {number: times}."""
        _, visits = self.run_it("--simulate=1", "--rate=10000", "--seconds=20", *words)
        return collections.Counter(int(site) for _, _, site, _, _ in visits)

    def test_chance_chooses_times_kinds_of_pages_and_items(self):
        said, visits = self.run_it("--simulate=1", "--rate=100", "--seconds=1000", "--items=4")
        times = [float(visit[0]) for visit in visits]
        self.assertEqual(said["pages"], len(times))
        self.assertAlmostEqual(len(times) / 100000, 1, delta=0.02)
        self.assertLess(max(times), 1000)
        gaps = [b - a for a, b in zip(times, times[1:])]
        # Of exponential gaps, a part of exp(-1) is longer than the mean, and one
        # of exp(-3) longer than three times the mean
        for factor in (1, 3):
            self.assertAlmostEqual(sum(gap > factor * 0.01 for gap in gaps)
                                   / len(gaps), math.exp(-factor), delta=0.005)
        often = sum(kind == "often" for *_, kind, _ in visits)
        self.assertAlmostEqual(often / len(visits), 0.75, delta=0.02)
        self.assertEqual({item for *_, item in visits}, {"1", "2", "3", "4"})

    def test_all_depends_on_the_seed(self):
        words = "--simulate=1", "--rate=100", "--sites=50"
        runs = [self.run_it(*words, f"--seed={seed}")[1] for seed in (1, 1, 2)]
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0], runs[2])

    def test_the_nth_site_is_asked_for_a_nth_part_as_often(self):
        often = self.sites("--sites=100").most_common()
        harmonic = sum(1 / n for n in range(1, 101))
        total = sum(times for _, times in often)
        for n in (1, 2, 5, 10, 20):
            self.assertAlmostEqual(often[n - 1][1] / total * n * harmonic, 1, delta=0.1)
        self.assertEqual(len(often), 100)
        # A warmed up server knows the sites of another seed, too
        other = self.sites("--sites=100", "--seed=2").most_common()
        self.assertEqual([site for site, _ in often[:5]], [site for site, _ in other[:5]])
        self.assertNotEqual(sorted(site for site, _ in often[:5]), [1, 2, 3, 4, 5])

    def test_hot_sites_have_their_share(self):
        times = self.sites("--sites=50", "--hot-every=5", "--hot-share=0.8")
        total = sum(times.values())
        self.assertEqual(set(times), set(range(1, 51)))
        hot = [times[site] for site in range(5, 51, 5)]
        self.assertAlmostEqual(sum(hot) / total, 0.8, delta=0.01)
        self.assertLess(max(hot) / min(hot), 1.2)
        cold = [number for site, number in times.items() if site % 5]
        self.assertLess(max(cold) / min(cold), 1.4)

    def test_a_page_takes_from_the_arrival_when_all_connections_are_busy(self):
        for connections in (1, 3):
            said, visits = self.run_it(
                "--simulate=10", f"--rate={95 * connections}",
                f"--connections={connections}", "--seconds=30")
            free = [0.0] * connections
            for arrival, took, *_ in visits:
                begin = max(float(arrival), min(free))
                free[free.index(min(free))] = begin + 0.01
                self.assertAlmostEqual(
                    float(took), 1000 * (begin + 0.01 - float(arrival)), delta=0.01)
            self.assertEqual(said["most_at_once"], connections)
            # Pages that arrived in time are completed
            self.assertAlmostEqual(said["seconds"], max(free), delta=0.001)
            took = [float(one) for _, one, *_ in visits]
            for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                self.assertAlmostEqual(said[name], percentile(took, part), places=3)
            self.assertGreater(said["p99"], 20)

    def test_who_finds_a_free_connection_does_not_wait(self):
        said, _ = self.run_it("--simulate=10", "--rate=5", "--connections=256", "--seconds=100")
        self.assertEqual((said["p50"], said["max"]), (10, 10))
        self.assertLess(said["most_at_once"], 5)

    def test_closed_loop_keeps_all_connections_busy(self):
        said, visits = self.run_it("--simulate=10", "--connections=16", "--seconds=2")
        self.assertEqual(said["pages"], 16 * 200)
        self.assertAlmostEqual(said["pages_a_second"], 1600, delta=1)
        self.assertEqual({took for _, took, *_ in visits}, {"10.000"})
        self.assertEqual(said["most_at_once"], 16)

    def test_wrong_usage_is_refused(self):
        for words in (("--rate=0",), ("--rate=x",), ("--hot-every=1",),
                      ("--sites=12", "--hot-every=5"), ("--sites=1.5",), ("more",)):
            self.run_it("--simulate=1", *words, status=2)
        self.run_it(status=2)           # no --socket
        self.run_it("--simulate=1", status=1, pages={})
        self.assertIn("no kind of page", self.error)

    def ask(self, *words, loop=("--rate=50",), **more):
        """Let visitors ask a stub; what they say, their visits, and what it heard."""
        path = self.work / "socket"
        path.unlink(missing_ok=True)
        server = StubServer(path)
        try:
            found = self.run_it(
                f"--socket={path}", "--user=site{site}", "--password=password {site}",
                "--database=db{site}", "--connections=2", "--seconds=0.2", *loop, *words,
                **more)
        finally:
            server.close()
        return *found, server.said

    def test_a_page_is_its_statements_in_the_database_of_the_site(self):
        said, visits, heard = self.ask(
            "--sites=30", pages={"post": (1, [
                "SELECT '\\n', {item},\n{site}", "= {x}", "INSERT {item}"])})
        self.assertEqual(said["pages"], len(visits))
        self.assertGreater(len(visits), 2)
        self.assertEqual(said["statements"], 3 * len(visits))
        expected = [
            [f"\2db{site}", f"\3SELECT '\\n', {item},\n{site}", "\3= {x}",
             f"\3INSERT {item}", "\1"] for _, _, site, _, item in visits]
        self.assertEqual(sorted([one.decode() for one in each[1:]] for each in heard),
                         sorted(expected))

    def test_password_is_shown_as_the_server_checks_it(self):
        *_, heard = self.ask()
        # Behind the capabilities and the like
        user, _, sent = heard[0][0][32:].partition(b"\0")
        self.assertEqual((user, sent[0]), (b"site1", 20))
        # The server knows the hash of the hash only
        twice = hashlib.sha1(hashlib.sha1(b"password 1").digest()).digest()
        once = bytes(a ^ b for a, b in zip(
            sent[1:21], hashlib.sha1(StubServer.SALT + twice).digest()))
        self.assertEqual(hashlib.sha1(once).digest(), twice)

    def test_connections_are_kept_if_that_is_asked_for(self):
        said, _, heard = self.ask("--user=u", "--password=p", "--database=d",
                                  "--keep-connections=1", loop=())
        self.assertEqual(len(heard), 2)
        sent = [one for each in heard for one in each[1:]]
        self.assertEqual(sent.count(b"\2d"), 2)
        self.assertEqual(len([one for one in sent if one[:1] == b"\3"]), said["pages"])

    def test_an_error_ends_all(self):
        for statement, number, text in (("wrong", 1146, "no such table"),
                                        ("late", 1318, "too late")):
            *_, heard = self.ask(status=1, pages={"page": (1, [
                "SELECT 1", f"SELECT {statement}", "SELECT 3"])})
            self.assertIn(f"page 'page' of site 1: error {number}: {text}", self.error)
            self.assertNotIn(b"\3SELECT 3", sum(heard, []))
        self.run_it("--socket=/nonexistent", status=1)
        self.assertIn("error 2002", self.error)

    def test_cpu_times_are_shown(self):
        said, *_ = self.ask(f"--server-pid={os.getpid()}")
        self.assertGreater(said["own_cpu_seconds"], 0)
        self.assertGreater(said["server_cpu_seconds"], 0)


class WireTest(unittest.TestCase):
    """Against a socket that answers what the test wants."""

    def connect(self, answers, piece):
        """A session whose answers come in pieces."""
        stream = b"".join(struct.pack("<I", len(answer))[:3] + b"\0" + answer
                          for answer in answers)
        pieces = [stream[at:at + piece] for at in range(0, len(stream), piece)]
        fake = Mock()
        fake.recv.side_effect = [*pieces, b""]
        with patch.object(wire.socket, "socket", return_value=fake):
            return wire.Connection("path")

    def test_results_that_come_in_pieces(self):
        end = b"\xfe\0\0\0\0"
        answers = [StubServer.HELLO, b"\0ok", b"\2", b"column", b"column", end,
                   b"\3one\xfb", b"\0\3two", end, b"\0ok", b"\xff\x7a\x04"
                   b"#42S02no"]
        for piece in (1, 3, 7, 1000):
            session = self.connect(answers, piece)
            self.assertEqual(session.text("SELECT"), [["one", None], ["", "two"]])
            session.skip_result()
            with self.assertRaises(wire.Error) as raised:
                session.skip_result()
            self.assertEqual(raised.exception.code, 1146)
            with self.assertRaises(ConnectionError):
                session.skip_result()


class WordpressTest(Case):
    def test_statements_of_a_page_keep_their_order_or_are_refused(self):
        one = [b"7", b"Query", "SELECT 'é'".encode()]
        rows = [[b"7", b"Connect", b"wordpress@localhost"], [b"7", b"Init DB", b"wordpress"],
                one, [b"7", b"Query", b"SELECT 1"], [b"7", b"Quit", b""]]
        self.assertEqual(wordpress.of_one_connection(rows), ["SELECT 'é'", "SELECT 1"])
        for rows in ([], [one, [b"8", b"Query", b"SELECT 1"]],
                     [one, [b"7", b"Prepare", b"SELECT ?"]]):
            with self.assertRaises(BenchError):
                wordpress.of_one_connection(rows)

    def test_page_that_is_an_error_is_not_recorded(self):
        site = wordpress.Site(pathlib.Path("/none"), Mock())
        site.server.sql.return_value = [["5"]]
        for name, (method, _, shows) in wordpress.PAGES.items():
            right = (302, "") if method == "POST" else (200, f"<p>{shows}</p>")
            site.request = Mock(return_value=right)
            site.see(name)
            for wrong in ((404, right[1]), (500, ""), (200, "Not found")):
                site.request.return_value = wrong
                with self.assertRaises(BenchError):
                    site.see(name)

    def php(self, text):
        """A site whose PHP is a shell script."""
        self.script(self.work / "php", text)
        site = wordpress.Site(self.work, Mock(socket="s"))
        site.environment["PATH"] = f"{self.work}:{os.environ['PATH']}"
        return site

    def test_web_server_that_does_not_start_says_why(self):
        self.assertSays("no port", BenchError, self.php("echo no port; exit 1").__enter__)

    def test_web_server_ends_with_its_children_when_interrupted(self):
        file = self.work / "child"
        site = self.php(f"sleep 1000 & echo $! > {file}; wait")

        def interrupt(_):
            while not file.exists():
                pass
            raise KeyboardInterrupt

        with patch.object(wordpress.time, "sleep", interrupt):
            with self.assertRaises(KeyboardInterrupt):
                with site:
                    pass
        self.assertEqual(site.process.returncode, -signal.SIGKILL)
        # The signal has been sent; the child ends when it gets a CPU, and is a zombie until its
        # new parent has taken note of its end. If it had got none, this would not end
        status = pathlib.Path("/proc", file.read_text().strip(), "status")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            while "State:\tZ" not in status.read_text():
                pass


class ColdOpenTest(unittest.TestCase):
    def test_shares_are_all_tables_once(self):
        parts = load.shares(range(1, 24), 5)
        self.assertEqual([table for part in parts for table in part], list(range(1, 24)))
        self.assertEqual({len(part) for part in parts}, {4, 5})

    def test_a_cell_for_all_that_is_measured(self):
        """Each part measures what its labels say, of clients that take a second."""
        options = parse("cold-open")

        def run(server, database, *clients):
            answers = [[1.0, 3.0] if work is cold_open.read_timed else
                       5 if work is cold_open.touch_each else
                       None if work is cold_open.load_pool else (10, 1.0)
                       for work, *_ in clients]
            return answers, 0.0, 0.5

        server = Mock(datadir=pathlib.Path(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, server.datadir)
        server.__enter__ = server.__exit__ = Mock(return_value=None)
        server.status.return_value = 100
        server.sql.return_value = [["5"], ["7"]]
        with patch.multiple(cold_open, run=run, read_files=Mock(), wire=Mock(),
                            slow_disk=Mock()):
            found = {part + label: value for part in cold_open.ColdOpen.parts(options)
                     for label, value in cold_open.ColdOpen.measure_server(
                         server, options, part).items()}
        self.assertEqual(list(found), [cell["label"] for cell in
                                       cold_open.ColdOpen.cells(options)])
        self.assertEqual(found["1 connection: " + cold_open.CPU], 25.0)
        self.assertEqual(found[cold_open.POOL + cold_open.LONGEST_HOT], 3.0)
        self.assertEqual(found[cold_open.BESIDE + cold_open.LONGEST], 3.0)
        self.assertEqual((server.datadir / "ib_buffer_pool").read_text(), "5,3\n7,3\n")


class UsageTest(unittest.TestCase):
    def test_cpu_time_is_that_of_a_process(self):
        cpu = usage.cpu_time(os.getpid())
        while sum(os.times()[:2]) < cpu + 0.05:
            pass
        self.assertGreater(usage.cpu_time(os.getpid()), cpu)

    def test_the_benchmark_goes_first_only_while_it_has_to(self):
        said = []
        with patch.multiple(os, getpriority=lambda *_: 5,
                            setpriority=lambda _, process, nice: said.append(nice)):
            with self.assertRaises(BenchError), usage.ahead_of_others():
                self.assertEqual(said, [-19])
                raise BenchError("no")
        self.assertEqual(said, [-19, 5])

    def test_a_user_without_privileges_measures_too(self):
        done = False
        with patch.object(os, "setpriority", side_effect=PermissionError):
            with usage.ahead_of_others():
                done = True
        self.assertTrue(done)


class DiskTest(Case):
    def test_syncs_of_all_threads_count_and_interrupted_ones_once(self):
        self.assertEqual(ddl.count_syncs(
            "11 fdatasync(5)                      = 0\n12 fsync(7 <unfinished ...>\n"
            "11 fdatasync(5)                      = 0\n"
            "12 <... fsync resumed>)              = 0\n"), 3)

    def test_longest_update_is_of_the_database_that_is_dropped(self):
        cells = ddl.Ddl.cells(parse())
        for first, second in zip(cells[::2], cells[1::2]):
            self.assertEqual(first.get("engine"), second.get("engine"))

    def test_slow_disk_is_for_a_time_even_if_a_client_fails(self):
        server = Mock(environment={})
        with patch.object(ddl, "slow_disk", lambda directory, **ms: ms), \
             self.assertRaises(BenchError), ddl.on_slow_disk(server):
            self.assertEqual(server.environment, {"sync_ms": ddl.SYNC_DELAY})
            raise BenchError("no")
        self.assertEqual(server.environment, {})
        self.assertEqual([call[0] for call in server.method_calls], ["stop", "start"] * 2)

    def run_python(self, program, *words, **environment):
        return subprocess.run(
            [sys.executable, "-c", program, *map(str, words)], cwd=self.work,
            env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False)

    def test_slow_disk_delays_the_calls_of_a_program(self):
        program = ("import os, sys, time; fd = os.open(sys.argv[1], os.O_RDWR); "
                   "begin = time.monotonic(); {}; print(time.monotonic() - begin)")
        slow = disk.slow_disk(self.work, read_ms=30, sync_ms=50, files=(".ibd", ".MYI"))
        for call, name, least in (("os.fsync(fd)", "t", 0.05),
                                  ("os.fdatasync(fd)", "t", 0.05),
                                  ("os.read(fd, 4)", "t.MYI", 0.03),
                                  ("os.pread(fd, 4, 0)", "t.ibd", 0.03)):
            (self.work / name).write_bytes(b"page")
            took = self.run_python(program.format(call), name, **slow).stdout
            self.assertGreaterEqual(float(took), least, call)

    def test_what_was_not_synced_is_lost(self):
        program = ("import os; fd = os.open('data/t.ibd', os.O_RDWR | os.O_CREAT); "
                   "os.write(fd, b'x' * 8192); os.fsync(fd); os.pwrite(fd, b'y' * 4096, 4096); "
                   "other = os.open('data/other.ibd', os.O_RDWR | os.O_CREAT); os.write(other, "
                   "b'z'); os.fsync(other)")
        (self.work / "data").mkdir()
        lossy = disk.Disk(self.work / "disk")
        environment = lossy.environment(disk.build_layer(self.work), self.work / "data")
        self.run_python(program, **environment)
        self.assertEqual(lossy.lose_unsynced(), [("t.ibd", 4096)])
        self.assertEqual((self.work / "data/t.ibd").read_bytes(), b"x" * 8192)
        self.assertEqual((self.work / "data/other.ibd").read_bytes(), b"z")
        # A renamed file loses its own writes, and not those of one that had its name
        renames = ("import os\n"
                   "def write(name, text):\n"
                   "    fd = os.open(name, os.O_RDWR | os.O_CREAT)\n"
                   "    os.write(fd, text)\n"
                   "    return fd\n"
                   "write('data/old.ibd', b'old'); os.rename('data/old.ibd', 'data/away.ibd')\n"
                   "os.fsync(write('data/new.ibd', b'new'))\n"
                   "os.rename('data/new.ibd', 'data/old.ibd'); os.unlink('data/away.ibd')\n"
                   "fd = write('data/one.ibd', b'one'); os.rename('data/one.ibd', 'data/two.ibd')")
        self.run_python(renames, **environment)
        self.assertEqual(lossy.lose_unsynced()[0], ("two.ibd", 0))
        self.assertEqual((self.work / "data/old.ibd").read_bytes(), b"new")
        self.assertEqual((self.work / "data/two.ibd").read_bytes(), b"")
        # Killed before its second call, the sync
        (lossy.path / "kill").write_text("3")
        before = lossy.mark()
        self.assertEqual(self.run_python(program, **environment).returncode, -signal.SIGKILL)
        self.assertEqual([event[0] for event in lossy.events()[before:]
                          if event[0].startswith("step-")],
                         ["step-create", "step-write", "step-sync"])


class WarmRestartTest(Case):
    def test_first_seconds_are_apart(self):
        file = self.work / "visits"
        file.write_text("".join(
            f"{at}\t{took}\t1\tselect\t1\n" for at, took in (
                (0.5, 100.0), (2.0, 3.0), (1.9, 50.0), (9.0, 4.0), (9.5, 2.0))))
        self.assertEqual(
            warm_restart.WarmRestart.summary(visitors.read_visits(file)),
            {warm_restart.P50: 4.0, warm_restart.P99_FIRST: 100.0})


class GiveBackTest(unittest.TestCase):
    def test_the_buffer_pool_does_not_count(self):
        smaps = "".join(f"7f{n}-7f{n} rw-p 0 00:00 0\nSize: {size:10} kB\n"
                        f"KernelPageSize: 4 kB\nRss: {resident:10} kB\n"
                        for n, (size, resident) in enumerate(
                            ((132, 100), (1 << 20, 5000), (65536, 30))))
        self.assertEqual(give_back.resident_without_pool(smaps), 130 << 10)


class MemoryTest(Case):

    def test_what_a_program_allocates_and_frees_is_seen(self):
        program = ("import pathlib, time\ndef used():\n    time.sleep(0.2)\n"
                   "    return int(pathlib.Path('size').read_text())\nbefore = used()\n"
                   "blocks = [bytes(1000) for _ in range(1000)]\nlarge = bytes(1 << 20)\n"
                   "full = used()\ndel blocks, large\nprint(full - before, used() - before)")
        library = compile_library("heap_size", self.work)
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=self.work, text=True, check=True,
            stdout=subprocess.PIPE, env={
                **os.environ, "LD_PRELOAD": str(library), "HEAP_SIZE": "size",
                "MALLOC_ARENA_MAX": "1", "PYTHONMALLOC": "malloc"})
        full, freed = map(int, done.stdout.split())
        self.assertGreater(full, 1_000_000 + (1 << 20))
        self.assertLess(full, 1_100_000 + (1 << 20))
        self.assertLess(freed, 100_000)


class ScenariosTest(unittest.TestCase):
    def test_cells_have_labels_of_their_own(self):
        for words in ((), ("--quick",)):
            options = parse(*words)
            for name, scenario in scenarios.ALL.items():
                labels = [cell["label"] for cell in scenario.cells(options)]
                self.assertTrue(labels, name)
                self.assertEqual(len(labels), len(set(labels)), name)

    def test_the_page_shows_cells_that_a_scenario_measures_with_the_kept_settings(self):
        for series, name, claims in report.read_claims(bench.CLAIMS):
            settings = json.loads(
                (bench.RESULTS / series / f"{name}.json").read_text())["settings"]
            scenario = name.partition(".")[0]
            options = parse(scenario)
            self.assertLessEqual(set(settings), set(vars(options)), name)
            vars(options).update(settings)
            labels = [cell["label"] for cell in scenarios.ALL[scenario].cells(options)]
            for _, label, needed in claims:
                if needed:
                    self.assertTrue(fnmatch.filter(labels, label.replace("[", "[[]")),
                                    (name, label))


class ReportTest(Case):
    def test_times_better_inverts_times_and_pairs_alike(self):
        cell = {"label": "a wait, ms", "values": {
            "stock": [1.0, 1.0, 1.0], "patched": [0.5, 0.25, 9.0, 9.0],
            "stock again": [1.0, 1.0, 1.0, 1.0]}}
        found = report.paired(data(unit="as named", cells=[cell]))
        self.assertEqual(found["cells"][0]["values"]["patched"], [0.5, 0.25, 9.0])
        self.assertEqual(found["cells"][0]["values"]["stock again"], [1.0, 1.0, 1.0])
        (_, better, (low, high)), = report.gains(found)
        self.assertEqual((better, low, high), (2.0, 1 / 9, 4.0))
        # An even number of ratios: the inverse of the median, not the median of the inverses
        for values in cell["values"].values():
            del values[2:]
        (_, better, _), = report.gains(data(unit="as named", cells=[cell]))
        self.assertAlmostEqual(better, 1 / 0.375)
        cell["label"] = "pages/s"
        (_, better, _), = report.gains(data(unit="as named", cells=[cell]))
        self.assertAlmostEqual(better, 0.375)

    def test_command_names_what_differs_from_the_defaults(self):
        settings = vars(parse("--cache", "64,8192"))
        text = report.command(
            data(scenario="open-tables", settings={
                name: settings[name] for name in
                ("tables", "cache", "engines", "threads", "quick")}),
            scenarios.ALL["open-tables"])
        self.assertEqual(text, "BUILD/bench open-tables --cache 64,8192")
        again = {"label": "one", "values": {
            "stock": [1.0], "patched": [3.0], "stock again": [1.0]}}
        for more, words in (({"settings": {"quick": True}}, "--quick"),
                            ({"pairs": 3}, "--pairs 3"),
                            ({"cells": [again]}, "--pairs 5 --control")):
            self.assertEqual(report.command(data(**more), Fake()), f"BUILD/bench s {words}")

    def test_table_has_the_control_and_what_is_absent(self):
        cells = data()["cells"]
        cells[0]["values"][CONTROL] = [2.0]
        text = "\n".join(report.table(data(cells=cells, remarks=["Said."])))
        self.assertRegex(text, r"one +1 +3 +2  3\.00 \(3\.00 to 3\.00, 1 pairs\)\n"
                               r" +stock again: 2\.00 ")
        self.assertRegex(text, r"two +1 +- +-  -\n  Said\.$")

    CLAIMS = """\
# a remark
10.11 s
  what is shown: pages/s | a, 1 connection
  ? what is not measured | a, 2 connections
  all of b: [us] | b [*
11.8 s
  the same | a, 1 connection
11.8 s.more
  of a second run | a, 1 connection
10.11+low s
  of a part | a, 1 connection
"""

    def claims(self, text):
        """The page that is written of some claims."""
        cells = [{"label": label, "values": {
            "stock": [200.0, 200.0, 200.0], "patched": patched,
            "stock again": [200.0, 200.0, 201.0]}} for label, patched in (
                ("a, 1 connection", [400.0, 2e6, 410.0]),
                ("b [1]", [100.0] * 3), ("b [2]", [400.0] * 3))]
        for series in ("10.11", "11.8", "10.11+low"):
            (self.work / "results" / series).mkdir(parents=True, exist_ok=True)
            for name in ("s", "s.more"):
                (self.work / "results" / series / f"{name}.json").write_text(json.dumps(data(
                    cells=cells, machine=dict(data()["machine"], revision="r"))))
        (self.work / "claims").write_text(text)
        report.write_claims(self.work / "PAGE.md", self.work / "results",
                            {"s": Fake()}, report.read_claims(self.work / "claims"))
        return (self.work / "PAGE.md").read_text()

    def test_claims_are_rows_of_the_page(self):
        text = self.claims(self.CLAIMS)
        for wanted in (
                '<a id="s"></a>[s](results/10.11/s.json) | what is shown: pages/s | '
                "200 | 410 | 2.05× | 2.00 to 10,000 | 200 |",
                '<a id="s-11.8"></a>[s](results/11.8/s.json) | the same |',
                '<a id="s.more-11.8"></a>[s.more](results/11.8/s.more.json) | of a second run |',
                "| s | all of b: [us] | - | - | 1.00× | cells: 0.50 to 2.00 | - |",
                "| `BUILD/bench s --pairs 5 --control --base 11.8` | 11.8 | D | c | r | 3 |",
                "## MariaDB 10.11, the part low alone",
                '<a id="s-low"></a>[s](results/10.11+low/s.json) | of a part |',
                "| `BUILD/bench s --pairs 5 --control --part low` | 10.11 |",
                "- **s**: Q? C."):
            self.assertIn(wanted, text)
        self.assertNotIn("not measured", text)

    def test_results_of_a_part_are_kept_apart(self):
        out = pathlib.Path("/nowhere/out")
        self.assertEqual(bench.series_of(out / "10.11"), "10.11")
        self.assertEqual(bench.series_of(out / "part/low/10.11"), "10.11+low")

    def test_claims_name_cells_that_there_are(self):
        for before, after in (("| a, 1", "| c, 1"), ("11.8 s", "11.8 t"),
                              ("| b [*", "| c*")):
            with self.assertRaises(report.ClaimError):
                self.claims(self.CLAIMS.replace(before, after))

    def test_raw_data_is_kept_whole(self):
        results = self.work / "results"
        found = data(remarks=["one", "two"])
        found["cells"] *= 2
        (self.work / "one.json").write_text(json.dumps(found, indent=1))
        kept = report.keep(self.work, results, "one")
        text = (results / "one.json").read_text()
        self.assertEqual(json.loads(text), kept)
        self.assertEqual(dict(kept, **found), kept)
        # A line each: of the braces, fields, brackets, cells and remarks
        self.assertEqual(text.count("\n"), 2 + len(kept) + 2
                         + len(kept["cells"]) + len(kept["remarks"]))
        self.assertIsNone(report.keep(self.work, results, "two"))

    def test_report_of_this_repository_is_that_of_its_raw_data(self):
        page = bench.TOP / "docs/PERFORMANCE.md"
        # The links in it are relative to its place
        file, results = self.work / "docs/PERFORMANCE.md", self.work / "sql-bench/results"
        file.parent.mkdir()
        shutil.copytree(bench.RESULTS, results)
        report.write_claims(file, results, scenarios.ALL, report.read_claims(bench.CLAIMS))
        self.assertEqual(file.read_text(), page.read_text(),
                         "run BUILD/bench --report --output sql-bench/results/10.11")
        for name in re.findall(r"\]\(([^#)]+)\)", page.read_text()):
            self.assertTrue((page.parent / name).exists(), name)
        for file in bench.RESULTS.rglob("*.json"):
            self.assertEqual(report.in_lines(json.loads(file.read_text())),
                             file.read_text(), file)


class ServerTest(Case):
    def test_server_that_does_not_start_says_why(self):
        tree = self.work / "stock"
        (tree / "data").mkdir(parents=True)
        self.script(tree / "release/sql/mariadbd", "echo no such engine\nexit 1\n")
        self.assertSays("no such engine", BenchError, Server(tree, tree / "data").start)

    def test_server_ends_when_the_benchmark_is_killed(self):
        tree, ended = self.work / "stock", self.work / "ended"
        (tree / "data").mkdir(parents=True)
        self.script(tree / "release/sql/mariadbd", f"trap 'echo ended > {ended}; exit' TERM\n"
                    "for word; do case $word in --pid-file=*) "
                    "echo $$ > ${word#*=} ;; esac; done\n"
                    "while :; do sleep 0.05; done\n", "#!/bin/bash")
        # A version, and a variable with its value
        self.script(tree / "release/client/mariadb", "printf '10.11.18\\tvalue\\n'\n")
        program = (
            "import os, pathlib, signal, sys\n"
            f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
            "from benchlib.servers import Server\n"
            f"tree = pathlib.Path({str(tree)!r})\nServer(tree, tree / 'data').start()\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n")
        done = subprocess.run([sys.executable, "-c", program], check=False,
                              env={**os.environ, "TMPDIR": str(self.work)})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        for _ in range(100):
            if ended.exists():
                break
            subprocess.run(["sleep", "0.05"], check=True)
        self.assertTrue(ended.exists())


if __name__ == "__main__":
    unittest.main()
