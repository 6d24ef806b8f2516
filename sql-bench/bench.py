#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measure the stock and the patched server in turn (called by BUILD/bench).

Every scenario (sql-bench/scenarios) is a list of cells.  For every pair, each
cell is measured on the stock and on the patched server; which of the two goes
first alternates.  What counts is the median of the pairs' ratios, shown with
the lowest and the highest.

After each measurement the raw data is saved as JSON, so an interrupted run
keeps what it has, and --resume continues it.
Exit status: 0 done, 1 failed or interrupted, 2 wrong usage.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from benchlib import report                            # noqa: E402
from benchlib.servers import BenchError, Server, stop_all   # noqa: E402
from benchlib.statistics import median, ratio_of_pairs      # noqa: E402
import scenarios                                            # noqa: E402

VARIANTS = ("stock", "patched")
DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
FREE_DISK = 3 * 1024 ** 3       # bytes wanted below the output directory


class Progress:
    """One line on a terminal, a line every half minute elsewhere."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.last = 0.0

    def show(self, text):
        now = time.monotonic()
        if self.terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self.last >= 30:
            print(text, file=sys.stderr, flush=True)
            self.last = now

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def machine():
    """What the numbers were measured on."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)),
            "memory_GiB": round(memory / 1024 ** 3, 1),
            "kernel": platform.release()}


class Run:
    """All measurements of one scenario."""

    def __init__(self, scenario, options):
        self.scenario = scenario
        self.options = options
        self.cells = scenario.cells(options)
        self.file = options.output / f"{scenario.name}.json"
        self.data = {
            "scenario": scenario.name, "title": scenario.title,
            "source": scenario.source, "question": scenario.question,
            "method": scenario.method, "unit": scenario.unit,
            "higher_is_better": scenario.higher_is_better,
            "quick": options.quick, "pairs": options.pairs,
            "date": datetime.date.today().isoformat(),
            "machine": machine(), "versions": {},
            "cells": [dict(cell, values={v: [] for v in VARIANTS})
                      for cell in self.cells],
            "remarks": []}
        if options.resume and self.file.exists():
            before = json.loads(self.file.read_text())
            same = [cell["label"] for cell in before["cells"]]
            if same != [cell["label"] for cell in self.cells]:
                raise BenchError(f"{self.file} is of other options; run "
                                 "without --resume")
            self.data["cells"] = before["cells"]
            self.data["versions"] = before["versions"]

    def save(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_suffix(".new")
        temporary.write_text(json.dumps(self.data, indent=1) + "\n")
        temporary.rename(self.file)

    def values(self, index, variant):
        return self.data["cells"][index]["values"][variant]

    def server(self, variant):
        # Servers that run at the same time need a data directory each
        name = f"data-{variant}" if self.scenario.both_running else "data"
        return Server(self.options.trees / variant,
                      self.options.trees / "bench" / name,
                      self.scenario.server_options(self.options))

    def order(self, pair):
        return VARIANTS if pair % 2 == 0 else VARIANTS[::-1]

    def measure(self, server, index, pair, progress):
        values = self.values(index, server.variant)
        if len(values) > pair:
            return                      # of the run that is resumed
        done = sum(len(self.values(i, v)) for i in range(len(self.cells))
                   for v in VARIANTS)
        total = len(self.cells) * len(VARIANTS) * self.options.pairs
        left = ""
        if done > self.done_before:
            seconds = ((time.monotonic() - self.begin) * (total - done)
                       / (done - self.done_before))
            left = f", {seconds / 60:.0f} min left"
        progress.show(f"{self.scenario.name} {done + 1}/{total}: "
                      f"{server.variant}, {self.cells[index]['label']}{left}")
        values.append(self.scenario.measure(server, self.cells[index],
                                            self.options))
        self.save()

    def run(self, progress):
        self.done_before = sum(len(self.values(i, v))
                               for i in range(len(self.cells))
                               for v in VARIANTS)
        self.begin = time.monotonic()

        def preparing(text, done, total):
            progress.show(f"{self.scenario.name}: {text}, {done} of {total}")

        if not self.scenario.needs_servers:
            for pair in range(len(self.values(0, "stock")),
                              self.options.pairs):
                progress.show(f"{self.scenario.name}: pair {pair + 1} of "
                              f"{self.options.pairs}")
                measured = self.scenario.measure_pair(self.options.trees,
                                                      self.options)
                for index, cell in enumerate(self.cells):
                    for variant in VARIANTS:
                        self.values(index, variant).append(
                            measured[cell["label"]][variant])
                self.save()
            progress.clear()
            return

        servers = {variant: self.server(variant) for variant in VARIANTS}
        prepared = ([servers["stock"]] if not self.scenario.both_running
                    else servers.values())
        for server in prepared:
            # Only the set-up does without durability
            server.start("--innodb-flush-log-at-trx-commit=0",
                         "--skip-innodb-doublewrite", "--sync-frm=0",
                         "--debug-no-sync")
            self.scenario.prepare(server, self.options, preparing)
            server.stop()
        if self.scenario.both_running:
            for server in servers.values():
                server.start()
                self.data["versions"][server.variant] = server.version()
            for pair in range(self.options.pairs):
                for index in range(len(self.cells)):
                    for variant in self.order(pair + index):
                        self.measure(servers[variant], index, pair, progress)
            for server in servers.values():
                server.stop()
        else:
            for pair in range(self.options.pairs):
                for variant in self.order(pair):
                    with servers[variant] as server:
                        self.data["versions"][variant] = server.version()
                        for index in range(len(self.cells)):
                            self.measure(server, index, pair, progress)
        progress.clear()

    def finish(self):
        """Print the table; return the scenario's remarks."""
        results = [(cell, self.data["cells"][index]["values"])
                   for index, cell in enumerate(self.cells)]
        print(f"\n{self.scenario.title}, {self.scenario.unit}")
        width = max(len(cell["label"]) for cell in self.cells)
        print(f"{'':{width}} {'stock':>10} {'patched':>10}  ratio (spread)")
        for cell, values in results:
            shown = [f"{median(values[v]):10.4g}" if values[v]
                     else f"{'-':>10}" for v in VARIANTS]
            ratio = ratio_of_pairs(values["stock"], values["patched"])
            text = (f"{ratio['median']:.2f} ({ratio['low']:.2f} to "
                    f"{ratio['high']:.2f}, {ratio['pairs']} pairs)"
                    if ratio else "-")
            print(f"{cell['label']:{width}} {shown[0]} {shown[1]}  {text}")
        if all(values[v] for _, values in results for v in VARIANTS):
            self.data["remarks"] = self.scenario.remarks(results, self.options)
            for remark in self.data["remarks"]:
                print(f"  {remark}")
        self.save()
        print(f"raw data: {self.file}")


def parse(words):
    parser = argparse.ArgumentParser(
        prog="BUILD/bench",
        description="Measure the stock and the patched server in turn.",
        epilog="Without SCENARIO, all: " + ", ".join(scenarios.ALL))
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--trees", type=pathlib.Path, required=True,
                        help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int,
                        help="stock/patched pairs a cell (default 5; quick 1)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer cells and one pair: minutes, not hours")
    parser.add_argument("--resume", action="store_true",
                        help="continue an interrupted run")
    parser.add_argument("--report", action="store_true",
                        help="write docs/PERFORMANCE.md from the raw data that "
                        "is there, without measuring")
    parser.add_argument("--output", type=pathlib.Path,
                        help="directory of the raw data (default: "
                        "out/BASE/bench)")
    for scenario in scenarios.ALL.values():
        scenario.add_arguments(parser.add_argument_group(scenario.name))
    options = parser.parse_args(words)
    options.pairs = options.pairs or (1 if options.quick else 5)
    options.output = options.output or options.trees / "bench"
    for name in options.names:
        if name not in scenarios.ALL:
            parser.error(f"unknown scenario '{name}'; there are "
                         + ", ".join(scenarios.ALL))
    options.names = options.names or list(scenarios.ALL)
    return options


def main():
    options = parse(sys.argv[1:])
    options.output.mkdir(parents=True, exist_ok=True)
    if options.report:
        report.write(options.output, DOCS, list(scenarios.ALL))
        print(f"wrote {DOCS / 'PERFORMANCE.md'}")
        return
    chosen = [scenarios.ALL[name] for name in options.names]
    free = shutil.disk_usage(options.output).free
    if free < FREE_DISK:
        raise BenchError(f"{free / 1024 ** 3:.1f} GiB are free in "
                         f"{options.output}, {FREE_DISK / 1024 ** 3:.0f} are "
                         "needed; free some, or name another --output")
    for scenario in chosen:
        scenario.check(options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = Progress()
    for scenario in chosen:
        run = Run(scenario, options)
        try:
            run.run(progress)
        finally:
            progress.clear()
            stop_all()
            run.finish()


if __name__ == "__main__":
    try:
        main()
    except BenchError as error:
        print(f"BUILD/bench: error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nBUILD/bench: interrupted; --resume continues",
              file=sys.stderr)
        sys.exit(1)
