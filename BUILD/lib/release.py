#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print the version of the patch set that a clone has.

VERSION names the release that comes next, or that came last: a year, a month,
and a third number for another release of that month.  The commit of a release
has the tag tc-RELEASE.

  2026.11      at the tag
  2026.11~325  before it: 325 commits in all
  2026.11+3    after it: 3 commits since

dpkg sorts them so, and before 2026.12 and 2026.11.1.  The first line that is
not a comment counts.  Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import pathlib
import re

import common
from common import Problem, answer

RELEASE = r"\d{4}\.(?:0[1-9]|1[0-2])(?:\.[1-9]\d*)?"
VERSION = RELEASE + r"(?:[~+][1-9]\d*)?"


def release(top):
    """What VERSION says."""
    lines = [line for line in (top / "VERSION").read_text().splitlines()
             if line and not line.startswith("#")]
    if len(lines) != 1 or not re.fullmatch(RELEASE, lines[0]):
        raise Problem("VERSION does not name a release, as in 2026.11 or 2026.11.1")
    return lines[0]


def version(top):
    """The version of the commit that is checked out."""
    def git(*words):
        return answer(["git", "-C", top, *words], stderr=None)

    named = release(top)
    tag = f"refs/tags/tc-{named}"
    if git("rev-parse", "--is-shallow-repository") != (0, "false\n"):
        raise Problem("git cannot count the commits here; in a shallow clone, first: "
                      "git fetch --unshallow --tags")
    since = f"{tag}.." if git("rev-parse", "--quiet", "--verify", tag)[0] == 0 else ""
    if since and git("merge-base", "--is-ancestor", tag, "HEAD")[0]:
        raise Problem(f"the tag tc-{named} is not of a commit before this "
                      "one, but VERSION names it")
    count = git("rev-list", "--count", f"{since}HEAD")[1].strip()
    if not since:
        return f"{named}~{count}"
    return f"{named}+{count}" if count != "0" else named


def main():
    parser = argparse.ArgumentParser(
        description="Print the version of the patch set (called by BUILD/package).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--check", metavar="VERSION", help="only see whether this is one")
    arguments = parser.parse_args()
    if arguments.check is None:
        print(version(arguments.top))
    elif not re.fullmatch(VERSION, arguments.check):
        raise Problem(f"'{arguments.check}' is not a version, as in "
                      "2026.11, 2026.11~325 or 2026.11+3")


if __name__ == "__main__":
    common.end("release", main)
