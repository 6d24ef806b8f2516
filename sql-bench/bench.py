#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measure the stock and the patched server in turn (called by BUILD/bench).

Every scenario (sql-bench/scenarios) is a list of cells.  For every pair, each cell is measured
on the stock and on the patched server; which of the two goes first alternates.  The result is
the median of the pairs' ratios, shown with an interval that has it with a probability of 95 %.

A scenario that fails says so, and the other scenarios run all the same.

After each measurement the raw data is saved as JSON, so an interrupted run keeps what it has.
Exit status: 0 done, 1 failed or interrupted, 2 wrong usage.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import resource
import shutil
import sys
import time
import traceback

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP / "sql-bench"), str(TOP / "BUILD/lib")]
sys.dont_write_bytecode = True

from benchlib import report                            # noqa: E402
from benchlib.program import only_one                       # noqa: E402
from benchlib.scenario import need_disk, positive           # noqa: E402
from benchlib.servers import VERSIONS, BenchError, said, stop_all  # noqa: E402
from benchlib.signals import obey_signals, whole           # noqa: E402
from everything import revision                             # noqa: E402
import scenarios                                            # noqa: E402

VARIANTS = ("stock", "patched")
RESULTS = TOP / "sql-bench/results"
CLAIMS = TOP / "sql-bench/claims"
# Files that no benchmark reads, beside documents, as git's patterns
UNREAD = ("mysql-test/**", "**/mysql-test/**", "unittest/**")


class Progress:
    """One line on a terminal, a line every half minute elsewhere."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.last = 0.0
        self.end = None         # when all will be done, if that is known

    def show(self, text):
        now = time.monotonic()
        if self.end:
            text += f", {max(0, self.end - now) / 60:.0f} min left"
        if self.terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self.last >= 30:
            print(text, file=sys.stderr, flush=True)
            self.last = now

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def machine():
    """The machine on which the numbers were measured."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)),
            "memory_GiB": round(memory / 1024 ** 3, 1),
            "kernel": platform.release(), "sysbench": said("sysbench", "--version").strip()
            if shutil.which("sysbench") else "", "revision": revision(TOP, UNREAD)}


class Run:
    """All measurements of one scenario."""

    def __init__(self, scenario, options, progress):
        self.scenario = scenario
        self.options = options
        self.progress = progress
        self.pairs = options.pairs or (1 if options.quick else scenario.pairs)
        self.file = options.output / f"{scenario.name}.json"
        settings = {name: getattr(options, name) for name in scenario.defaults()}
        self.data = {
            "scenario": scenario.name, "question": scenario.question,
            "method": scenario.method, "caveat": scenario.caveat, "unit": scenario.unit,
            "settings": dict(settings, quick=options.quick), "pairs": self.pairs,
            "date": datetime.date.today().isoformat(),
            "machine": machine(), "versions": {},
            "cells": [dict(cell, values={v: [] for v in VARIANTS})
                      for cell in scenario.cells(options)],
            "remarks": []}
        self.cells = {cell["label"]: cell for cell in self.data["cells"]}
        # The raw data of an earlier run stays, under another name, until this one has some
        self.earlier = self.file.exists()

    def save(self):
        if self.earlier:
            self.file.replace(self.file.with_suffix(".json.old"))
            self.earlier = False
        temporary = self.file.with_suffix(".new")
        temporary.write_text(json.dumps(self.data, indent=1) + "\n")
        temporary.rename(self.file)

    def missing(self):
        """How many measurements are still to be made."""
        variants = (*self.scenario.turns, *self.scenario.besides(self.options))
        return sum(max(0, self.pairs - len(cell["values"].get(variant, ())))
                   for cell in self.cells.values() for variant in variants)

    def preparing(self, text, done, total):
        self.progress.show(f"{self.scenario.name}: {text}, {done} of {total}")

    def append(self, label, variant, measured):
        """Take a measurement in: a number, or a dictionary with its "value" and details."""
        cell = self.cells[label]
        if isinstance(measured, dict):
            details = dict(measured)
            measured = details.pop("value")
            cell.setdefault("details", {}).setdefault(variant, []).append(details)
        cell["values"].setdefault(variant, []).append(measured)
        if variant in VERSIONS:
            self.data["versions"][variant] = VERSIONS[variant]

    def run(self):
        self.progress.end = None
        self.scenario.prepare(self.options.trees, self.options, self.preparing)
        begin, all_missing = time.monotonic(), self.missing()
        for pair in range(self.pairs):
            place = f"{self.scenario.name}: pair {pair + 1} of {self.pairs}"
            for part in self.scenario.parts(self.options):
                self.progress.show(place + (f", {part.rstrip(' ,:')}" if part else ""))
                for label, variant, measured in self.scenario.measure_pair(
                        self.options.trees, self.options, part,
                        in_turn(self.scenario.turns, pair)):
                    with whole():
                        self.append(label, variant, measured)
                        self.save()
                    now, missing = time.monotonic(), self.missing()
                    self.progress.end = now + missing * (now - begin) / (all_missing - missing)
                    self.progress.show(f"{place}, {variant}, {label}: done")

    def finish(self):
        """Print the table and the scenario's remarks, and keep them beside the raw data."""
        results = [(cell, cell["values"]) for cell in self.data["cells"]]
        if not any(found for _, values in results for found in values.values()):
            print(f"\n{self.scenario.name}: nothing was measured")
            return
        if all(values[variant] for _, values in results for variant in VARIANTS):
            self.data["remarks"] = self.scenario.remarks(results, self.options)
        lines = report.table(self.data)
        if missing := self.missing():
            lines.append(f"  {missing} measurements were not made")
        self.save()
        self.file.with_suffix(".txt").write_text("\n".join(lines) + "\n")
        print("", *lines, f"raw data: {self.file}", sep="\n", flush=True)


def in_turn(names, pair):
    """In which order servers are measured: each name is at each place equally
    often. Of three or more, each also follows each other one equally often."""
    lap, first = divmod(pair, len(names))
    order = names[first:] + names[:first]
    return order[::-1] if len(names) > 2 and lap % 2 else order


def series_of(trees):
    """The directory in sql-bench/results: 10.11, or 10.11+PART of a part's trees,
    which BUILD/common.sh makes."""
    part = trees.resolve().parent
    return trees.name + f"+{part.name}" * (part.parent.name == "part")


def parse(words):
    parser = argparse.ArgumentParser(
        prog="BUILD/bench", usage="%(prog)s [SCENARIO]... [OPTION]...",
        description="Measure the stock and the patched server in turn.",
        epilog="Without SCENARIO, or with 'all': " + ", ".join(scenarios.ALL))
    parser.add_argument("names", nargs="*", metavar="SCENARIO")
    parser.add_argument("--trees", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=positive,
                        help="stock/patched pairs a cell (default 5, of some scenarios "
                        "fewer; quick 1)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer cells and one pair: to see whether all works")
    parser.add_argument("--control", action="store_true",
                        help="measure the stock server a second time in each "
                        "turn: what its ratio to itself shows is noise")
    parser.add_argument("--report", action="store_true",
                        help="keep the raw data that is there, and write "
                        "docs/PERFORMANCE.md from all that is kept, without measuring")
    parser.add_argument("--output", type=pathlib.Path,
                        help="directory of the raw data (default: out/BASE/bench)")
    parser.add_argument("--data", type=pathlib.Path, metavar="DIR",
                        help="where the servers' data directories are made, "
                        "in a directory BASE, on the file system that is to "
                        "be measured (default: out/BASE/bench)")
    parser.add_argument("--parse-only", action="store_true", help=argparse.SUPPRESS)
    for scenario in scenarios.ALL.values():
        scenario.add_arguments(parser.add_argument_group(scenario.name))
    options = parser.parse_args(words)
    options.trees = options.trees.resolve()
    options.output = options.output or options.trees / "bench"
    # Another source's server must not start with this one's data
    try:
        place = options.trees.relative_to((TOP / "out").resolve())
    except ValueError:
        place = options.trees.name
    options.data = (options.data / place if options.data else options.trees / "bench").resolve()
    options.results = RESULTS / series_of(options.trees)
    if options.names == ["all"]:
        options.names = []
    for name in options.names:
        if name not in scenarios.ALL:
            parser.error(f"unknown scenario '{name}'; there are " + ", ".join(scenarios.ALL))
    options.names = options.names or list(scenarios.ALL)
    for name in options.names:
        try:
            scenarios.ALL[name].cells(options)
        except BenchError as error:
            parser.error(f"{name}: {error}")
    return options


def check(chosen, options):
    """Fail before anything starts where the machine cannot run a scenario."""
    for scenario in chosen:
        for program in scenario.programs:
            if not shutil.which(program):
                raise BenchError(f"{program} is missing; apt-get install {program}, or "
                                 "name the scenarios that you want")
        try:
            scenario.check(options)
        except BenchError as error:
            raise BenchError(f"{scenario.name}: {error}") from None
    # The tables of all stay in the data directories
    need_disk(options, (3 << 30) + sum(scenario.disk(options) for scenario in chosen))


def need_raw_data(directory):
    if not any((directory / f"{name}.json").exists() for name in scenarios.ALL):
        raise BenchError(f"no raw data of a benchmark in {directory}; let "
                         "BUILD/bench measure first, or name its --output")


def run_all(runs, progress):
    """Run the scenarios; return what went wrong, as sentences."""
    failed = []

    def attempt(run, what):
        try:
            what()
        except BenchError as error:
            failed.append(f"{run.scenario.name}: {error}")
        except Exception as error:              # pylint: disable=W0718
            traceback.print_exc()
            failed.append(f"{run.scenario.name}: {error!r}")

    for run in runs:
        try:
            attempt(run, run.run)
        finally:
            progress.clear()
            attempt(run, stop_all)
            attempt(run, run.finish)
    return failed


def main():
    options = parse(sys.argv[1:])
    if options.parse_only:
        return
    if options.report:
        need_raw_data(options.output)
        if options.output.resolve() != options.results:
            for name in scenarios.ALL:
                report.keep(options.output, options.results, name)
        report.write_claims(TOP / "docs" / "PERFORMANCE.md", RESULTS,
                            scenarios.ALL, report.read_claims(CLAIMS))
        print(f"wrote {TOP / 'docs' / 'PERFORMANCE.md'}")
        return
    obey_signals()
    # For sysbench, which needs one for each connection
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    chosen = [scenarios.ALL[name] for name in options.names]
    check(chosen, options)
    with contextlib.ExitStack() as locks:
        # The first one keeps benchmarks of two release series apart
        for directory in {path.resolve() for path in (
                TOP / "out", options.trees / "bench", options.data,
                options.output)}:
            locks.enter_context(only_one(directory))
        measure(chosen, options)


def measure(chosen, options):
    begin = time.monotonic()
    progress = Progress()
    failed = run_all([Run(scenario, options, progress) for scenario in chosen], progress)
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes")
    if failed:
        raise BenchError("\n".join(failed))


if __name__ == "__main__":
    try:
        main()
    except (BenchError, report.ClaimError) as error:
        print(f"BUILD/bench: error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nBUILD/bench: interrupted", file=sys.stderr)
        sys.exit(1)
