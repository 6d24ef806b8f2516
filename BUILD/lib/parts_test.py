#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Build and test each part by itself (called by BUILD/test parts).

A part is what BUILD/parts lists.  Its topics, and those that they need, are built
in trees of their own, and their tests run, by BUILD/test suite --part NAME.  The
build of a part that has passed is removed; ccache has it.  The end prints a
table.

Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import argparse
import functools
import pathlib
import re
import resource
import shutil

import common
import pages
import run_tests
import topics

say = functools.partial(print, "-- parts:", flush=True)


def cpu_minutes():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def main():
    parser = argparse.ArgumentParser(
        description="Build and test each part by itself (called by BUILD/test parts).")
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--type", default="release")
    arguments = parser.parse_args()
    top, trees = common.TOP, arguments.trees.resolve()
    all_topics = topics.read_topics(top)
    table = []
    failed = False
    for part in topics.read_parts(top):
        names = topics.closure(all_topics, {
            topic.name for topic in all_topics if topic.part == part})
        counts = []

        def each_line(line, counts=counts):
            match = re.match(r"(\d+) passed, (\d+) failed", line)
            if match:
                counts[:] = match.groups()

        begin = cpu_minutes()
        status = run_tests.stream(
            [str(top / "BUILD/test"), "suite", "--base", trees.name,
             "--type", arguments.type, "--part", part], top, each_line)
        passed = counts[0] if counts else "0"
        what = f"{part} ({arguments.type})"
        print(f"FAIL {what}: exit status {status}" if status else f"PASS {what}", flush=True)
        failed |= bool(status)
        lines, edited = pages.size(top, all_topics, set(names))
        table.append(f"| {part} | {len(names)} | {lines:,} | {edited} | {passed} "
                     f"| {cpu_minutes() - begin:.0f} |")
        build = trees.parent / "part" / part / trees.name / "patched"
        if not status:
            shutil.rmtree(build / arguments.type, ignore_errors=True)
    say("what each part is, with what it needs")
    print("| part | topics | lines | MariaDB's files edited | tests passed "
          "| CPU minutes |\n|---|---:|---:|---:|---:|---:|\n" + "\n".join(table))
    return failed


if __name__ == "__main__":
    common.end("parts", main)
