# SPDX-License-Identifier: GPL-2.0-only
"""Percentiles, ratios and their spread over pairs of measurements."""

import random
import statistics


def percentile(values, part):
    """The value that a part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def ratio_of_pairs(stock, patched, rounds=2000):
    """(median, low, high) of patched/stock over pairs taken in turn: the median lies between
    the other two with a probability of 95 %, by bootstrap.

    A pair is measured within minutes, so a slow phase of the machine hits
    both; the median of the pairs' ratios suffers less from noise than the
    ratio of the medians.  None without pairs, and where stock has a zero or
    less: to leave out these pairs would favour one side.
    """
    pairs = list(zip(stock, patched))
    if not pairs or not all(a > 0 for a, _ in pairs):
        return None
    ratios = [b / a for a, b in pairs]
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios)))
                     for _ in range(rounds))
    return statistics.median(ratios), medians[rounds // 40], medians[-1 - rounds // 40]
