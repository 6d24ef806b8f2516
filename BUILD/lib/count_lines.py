#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Count the lines of this repository by kind.

Usage: BUILD/lib/count_lines.py [REVISION]...

Prints a table with a column for each revision (default: HEAD).  The first kind
whose pattern fits a path has it.
"""

import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# In an earlier layout the tools were in cmake/, stress programs beside the
# benchmarks, and raw data and plots in docs/performance
KINDS = [(kind, re.compile(pattern)) for kind, pattern in (
    ("raw data of benchmarks", r"\.json$"),
    ("plots", r"\.svg$"),
    ("documents", r"^docs/|^[^/]*\.md$|^COPYING$"),
    ("mtr results", r"/mysql-test/.*\.result$|^mysql-test/.*\.result$"),
    ("mtr tests", r"(^|/)mysql-test/"),
    ("unit tests of the server", r"(^|/)unittest/"),
    ("edits of MariaDB's files", r"^((base/|only-)[\d.]+/)?"
     r"(include|libmysqld|mysys|sql|storage|plugin)/.*\.patch$"),
    ("new source files", r"^((base/|only-)[\d.]+/)?"
     r"(include|libmysqld|mysys|sql|storage|plugin)/"),
    ("stress programs", r"^sql-bench/(stress/|stress_|crash_)"),
    ("benchmarks", r"^sql-bench/"),
    ("tests of the tools", r"^(BUILD/lib/tests|cmake)/(.*/)?test_\w+\.py$"),
    ("messages of the topics", r"^BUILD/topics/"),
    ("tools and build", r"^(BUILD|cmake|\.ci)/|^[^/]*$"),
)]


def kind_of(path):
    return next((kind for kind, pattern in KINDS if pattern.search(path)),
                "other")


def lines_of(revision, top=TOP):
    """{kind: number of lines} of a revision's files."""
    def git(*words, data=None):
        return subprocess.run(["git", "-C", str(top), *words], input=data,
                              stdout=subprocess.PIPE, check=True).stdout

    entries = [entry.split("\t") for entry in
               git("ls-tree", "-r", "-z", revision).decode().split("\0")
               if entry]
    content = git("cat-file", "--batch", data="".join(
        facts.split()[2] + "\n" for facts, _ in entries).encode())
    counts = {}
    at = 0
    for _, path in entries:
        end = content.index(b"\n", at) + 1
        size = int(content[at:end].split()[2])
        kind = kind_of(path)
        counts[kind] = (counts.get(kind, 0)
                        + content.count(b"\n", end, end + size))
        at = end + size + 1
    return counts


def main():
    revisions = sys.argv[1:] or ["HEAD"]
    if any(revision.startswith("-") for revision in revisions):
        print(__doc__.strip())
        return 0 if revisions == ["--help"] else 2
    found = [lines_of(revision) for revision in revisions]
    kinds = sorted({kind for counts in found for kind in counts},
                   key=lambda kind: -found[-1].get(kind, 0))
    print(f"{'':26}" + "".join(f"{name[:15]:>16}" for name in revisions))
    for kind in kinds:
        print(f"{kind:26}" + "".join(f"{counts.get(kind, 0):16,}"
                                     for counts in found))
    print(f"{'all':26}" + "".join(f"{sum(counts.values()):16,}"
                                  for counts in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
