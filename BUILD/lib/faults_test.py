#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Kills, and random statements compared with stock (called by BUILD/test faults).

Runs the programs of sql-bench that kill a server, and on release builds those that compare its
answers with a stock server's, each for a share of the minutes. Prints PASS, FAIL or
SKIP for each data directory of crash_random.py and for each other program. SKIP is for
a directory that ended with an error of MariaDB's that has a name in docs/ERRORS.md.

What a failure leaves is in out/BASE/faults: the problems, the statements, and the
command with the seed that repeats it.

Exit status: 0 nothing failed, 1 something failed, 2 wrong usage.
"""

import argparse
import pathlib
import random
import re
import sys

import common
import run_tests
from common import TOP

MINUTES = 30
# crash_random.py says of each data directory what came of it
DIRECTORY = re.compile(r"(seed \d+, [^:]*): (.*?)(?:; (known: .*|\d+ problems))?$")
# In these statements Aria has no atomic TRUNCATE and CREATE: docs/ERRORS.md
ATOMIC = ("drop", "drop-many", "rename", "rename-many", "swap", "drop-database")


def outcome_of(line):
    """(PASS, FAIL or SKIP, name and why) of a line of crash_random.py, or None."""
    match = DIRECTORY.fullmatch(line)
    if not match:
        return None
    name = f"random kills, {match[1]}"
    if not match[3]:
        return "PASS", name
    return "SKIP" if match[3].startswith("known") else "FAIL", f"{name}: {match[3]}"


def programs(trees, variant, build_type, minutes, seed):
    """(name, words) of each program, without the random kills."""
    server = [trees / variant, f"--type={build_type}"]
    kept = [f"--keep={trees / 'faults'}"]
    points = f"--points={max(2, int(minutes / 8))}"
    found = [
        ("kills at steps of DDL, InnoDB",
         ["crash_ddl.py", *server, "--only-kill", "--binary-log", points]),
        ("kills at steps of DDL, Aria and InnoDB",
         # argparse wants the statements beside the tree
         ["crash_ddl.py", server[0], *ATOMIC, server[1], "--only-kill",
          "--engines=Aria+InnoDB", points]),
        ("power loss at steps of DDL", ["crash_ddl.py", *server, points])]
    if build_type == "release" and variant == "patched":
        found.append(
            ("random answers", ["stress/random_answers.py", trees, *kept, f"--seed={seed}",
                                f"--statements={int(1000 * minutes)}"]))
    return found


def run(words, each_line=lambda line: None):
    """Show what a program prints; return its exit status and its last line."""
    last = ""

    def hear(line):
        nonlocal last
        last = line.rstrip("\n") or last
        each_line(last)

    return run_tests.stream([sys.executable, *map(str, words)], TOP / "sql-bench", hear), last


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--variant", choices=("stock", "patched"), default="patched")
    parser.add_argument("--type", default="release", help="of the build")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    args = parser.parse_args()
    trees, failed = args.trees.resolve(), []

    def say(outcome, text):
        failed.extend([text] * (outcome == "FAIL"))
        print(f"{outcome} {text}", flush=True)

    def each_line(line):
        if found := outcome_of(line):
            say(*found)

    before = len(failed)
    status, last = run(
        ["stress/crash_random.py", trees / args.variant, f"--type={args.type}",
         f"--minutes={args.minutes / 2}", "--directories=1000000", f"--seed={args.seed}",
         f"--keep={trees / 'faults'}"], each_line)
    if status and len(failed) == before:
        say("FAIL", f"random kills: exit status {status}: {last[:200]}")
    for name, words in programs(trees, args.variant, args.type, args.minutes, args.seed):
        print(f"-- {name}", flush=True)
        status, last = run(words)
        say(*(("FAIL", f"{name}: {last[:200]}") if status else ("PASS", name)))
    return int(bool(failed))


if __name__ == "__main__":
    common.end("faults", main)
