# SPDX-License-Identifier: GPL-2.0-only
"""How long visitors of the farm wait when they come at a given rate."""

import itertools
import multiprocessing
import random
import time

from benchlib.load import read_files, run
from benchlib.scenario import CONTROL, integers
from benchlib.servers import BenchError
from benchlib.statistics import median, percentile

from .farm import CPU, TABLES, Farm, Visitor

# More pages than that at once wait for a client; from their arrival on
CLIENTS = 64
WARM, COLD = "warm", "after a restart"
STATES = {"warm": WARM, "cold": COLD}
PAGES, P50, P99 = ("pages/s", "p50 from the arrival, ms",
                   "p99 from the arrival, ms")
LABELS = (PAGES, P50, P99, CPU)


def arrivals(rate, seconds, seed):
    """Times of visitors who know nothing of each other, in seconds: gaps are
    distributed exponentially."""
    chance = random.Random(seed)
    times = itertools.accumulate(chance.expovariate(rate)
                                 for _ in itertools.count())
    return list(itertools.takewhile(lambda at: at < seconds, times))


def receive(_, visitor, times, shared):
    """Take the next arrival until there is none; of each page when the visitor
    came and how many ms passed until its end, and the time when the first
    visitor comes.

    shared: how many were taken, and when the first one comes
    """
    took = []
    while True:
        with shared.get_lock():
            if not shared[1]:
                shared[1] = time.monotonic() + 0.05
            begin, number = shared[1], int(shared[0])
            shared[0] += 1
        if number >= len(times):
            return took, begin
        wait = begin + times[number] - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        visitor.see_page()
        took.append((times[number],
                     1000 * (time.monotonic() - begin - times[number])))


def receive_as(session, socket, sites, seed, times, shared):
    """receive(), as a client of benchlib.load."""
    return receive(session, Visitor(socket, sites, seed), times, shared)


class FarmRate(Farm):
    name = "farm-rate"
    title = "The farm of sites, at a given rate of visitors"
    question = (
        "How long does a visitor wait for a page when the server is not fully "
        "loaded?")
    method = (
        "Sites and pages are like those of the farm (the number of sites is named "
        "below), but visitors come by chance. Their average rate is a given part "
        "of the rate that the stock server shows with these sites when it is warm "
        "and its clients are all busy. That rate is measured once for each engine "
        "and cache, and is the same for each server and start. A page takes from "
        "the visitor's arrival to its end, so a stall counts for all who wait. At "
        f"most {CLIENTS} pages are shown at once.\n\n"
        "- 'warm': before, all clients were busy for as long as is measured.\n"
        "- 'after a restart': the server has shown no page before.")
    caveat = (
        "The clients are Python programs on the same CPUs, and take about as much "
        "of them as the server. All files are in the page cache. A start differs "
        "from the next one by more than two pairs of one start do.")
    weight = 10
    also_options = ("farm_sites", "farm_engines", "farm_caches",
                    "farm_definitions", "farm_seconds")
    capacity = {}               # pages/s of stock, by part of the farm

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--rate", metavar="N,N...", default="20,50,80",
                            help="visitors, in %% of what stock can do (default "
                            "20,50,80); the options of farm hold, too")
        parser.add_argument("--rate-states", default="warm,cold",
                            help="warm, cold (after a restart), or both")

    @staticmethod
    def states(options):
        names = options.rate_states.split(",")
        for name in names:
            if name not in STATES:
                raise BenchError(f"--rate-states: '{name}' is not one of "
                                 + ", ".join(STATES))
        return [STATES[name] for name in names]

    @classmethod
    def check(cls, options):
        super().check(options)
        cls.states(options)
        integers(options.rate)

    @classmethod
    def cells(cls, options):
        return [{"label": f"{part}{state}, {rate} %: {label}", "part": part}
                for part in cls.parts(options)
                for state in cls.states(options)
                for rate in integers(options.rate) for label in LABELS]

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        _, engine, cache = next(setting for setting in cls.settings(options)
                                if setting[0] == part)
        if part not in cls.capacity:
            server = cls.begin(trees, "stock", options, engine, cache)
            cls.visits(server, options, 100)
            answers, begin, _ = cls.visits(server, options, 200)
            server.stop()
            cls.capacity[part] = (sum(len(took) for took, _ in answers)
                                  / (max(end for _, end in answers) - begin))
        found = {}
        for name in (*order, CONTROL):
            for state in cls.states(options):
                server = None
                for number, rate in enumerate(integers(options.rate)):
                    if not server:
                        server = cls.begin(
                            trees, "stock" if name == CONTROL else name,
                            options, engine, cache)
                        if state == WARM:
                            cls.visits(server, options, 100)
                    measured = cls.receive(
                        server, options, cls.capacity[part] * rate / 100,
                        300 + 100 * number)
                    for label, value in zip(LABELS, measured):
                        found.setdefault(f"{part}{state}, {rate} %: {label}",
                                         {})[name] = value
                    if state == COLD:
                        server.stop()
                        server = None
                if server:
                    server.stop()
        return found

    @classmethod
    def begin(cls, trees, variant, options, engine, cache):
        server = cls.server(trees, variant, options, engine)
        read_files(server.datadir)
        return server.start(f"--table-open-cache={cache}")

    @classmethod
    def receive(cls, server, options, rate, seed):
        times = arrivals(rate, cls.seconds(options), seed)
        if not times:
            raise BenchError(f"no visitor comes in {cls.seconds(options)} s at "
                             f"{rate:.2f} a second; raise --farm-seconds")
        shared = multiprocessing.Array("d", 2)
        answers, _, used = run(server, None, *(
            (receive_as, server.socket, cls.sites(options), seed + number,
             times, shared) for number in range(CLIENTS)))
        took = sorted(ms for pages, _ in answers for _, ms in pages)
        return (len(took) / cls.seconds(options), percentile(took, 0.5),
                percentile(took, 0.99), 1000 * used[0] / len(took))

    @classmethod
    def remarks(cls, results, options):
        sites = cls.sites(options)
        said = [f"{sites:,} sites, {sites * len(TABLES):,} tables"]
        values = {cell["label"]: values for cell, values in results}
        for label in values:
            if label.endswith(P99):
                p50 = values[label.replace(P99, P50)]
                names = ("stock", "patched", CONTROL)
                said.append(f"{label[:-len(P99)]}a page takes " + ", ".join(
                    f"{name} {median(p50[name]):.1f} ms (p99 "
                    f"{median(values[label][name]):.1f})" for name in names
                    if p50.get(name)))
        return said
