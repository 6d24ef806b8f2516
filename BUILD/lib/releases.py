# SPDX-License-Identifier: GPL-2.0-only
"""Ranges of MariaDB's releases.

    11.8            all releases of a series
    10.11<16        those before 10.11.16
    11.8>=9         11.8.9 and later ones
    10.11>=12<16    both

A release is named as in 10.11.14.  A series in its place stands for its newest
release.
"""

import re

from common import Problem

RANGE = re.compile(r"(\d+\.\d+)(?:>=(\d+))?(?:<(\d+))?")
NEWEST = 1 << 30


def release_of(version):
    """The release that a version is of: 11.8.9 of 1:11.8.9+ds-0+deb13u1; the
    empty string if it is none."""
    match = re.match(r"(?:\d+:)?(\d+\.\d+(?:\.\d+)?)", version)
    return match[1] if match else ""


def series_of(version):
    """The release series of a version: 11.8 of 1:11.8.6-0+deb13u1."""
    return ".".join(release_of(version).split(".")[:2])


def bounds(text):
    """(series, first, end) of a range: its point releases are [first, end)."""
    match = RANGE.fullmatch(text)
    if not match:
        raise Problem(f"{text!r} is no range of releases, like 10.11, 10.11<16 or 11.8>=9")
    return (match[1], int(match[2] or 0), int(match[3]) if match[3] else NEWEST + 1)


def has(text, release):
    """Whether a release is in a range."""
    series, first, end = bounds(text)
    point = release[len(series) + 1:]
    return (release == series or release.startswith(series + ".")) and (
        first <= (int(point) if point else NEWEST) < end)


def with_release(ranges, release):
    """Those that have a release, the one with the fewest releases first."""
    return sorted((each for each in ranges if has(each, release)),
                  key=lambda text: bounds(text)[2] - bounds(text)[1])
