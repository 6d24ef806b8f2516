# SPDX-License-Identifier: GPL-2.0-only
"""What got worse since the raw data in sql-bench/results was measured.

Two runs measure ratios of patched to stock, so a slower machine does not count.
A cell got worse if both hold:

1. The 95 % intervals of the two ratios are apart.
2. The new ratio lies below the former one by more than stock, measured a second
   time in the new run, lies below itself.

So noise that a run finds in stock alone does not count either.  A cell with fewer
than PAIRS pairs, in either run, has no interval: nothing can be said of it.  Counts
that do not depend on time, such as instructions, need one pair.  A loss of less than
3 % does not count: stock's numbers differ by as much from run to run.
"""

import json

from .report import gains, ratio_text
from .scenario import CONTROL
from .statistics import ratio_of_pairs


PAIRS = 3
ALWAYS = 1.03                   # stock may seem so many times worse than itself


def control_spread(cell):
    """How many times worse than itself stock may seem, at least 1."""
    ratio = ratio_of_pairs(cell["values"]["stock"], cell["values"].get(CONTROL, []))
    if not ratio:
        return 1.0
    _, low, high = ratio
    return max(1.0, high, 1 / max(low, 1e-6))


def pairs_of(cell):
    """How many pairs of stock and patched a cell has."""
    return sum(None not in pair for pair in
               zip(cell["values"].get("stock", []), cell["values"].get("patched", [])))


def worse(before, now, pairs=PAIRS):
    """(label, ratio before, ratio now, spread of stock) of each cell of a scenario that got
    worse; how many cells were compared; and how many were not, because they have fewer pairs.

    A ratio here is how many times better than stock.
    """
    former = {label: found for label, *found in gains(before)}
    cells = {cell["label"]: cell for cell in now["cells"]}
    few = {cell["label"] for run in (before, now) for cell in run["cells"]
           if pairs_of(cell) < pairs}
    found, compared, skipped = [], 0, 0
    for label, ratio, (_, high) in gains(now):
        if label not in former:
            continue
        if label in few:
            skipped += 1
            continue
        compared += 1
        before_ratio, (before_low, _) = former[label]
        spread = max(control_spread(cells[label]), ALWAYS)
        if high < before_low and ratio * spread < before_ratio:
            found.append((label, before_ratio, ratio, spread))
    return found, compared, skipped


def table(directory, results, names, repeatable=()):
    """Lines that compare the raw data of scenarios with those in results.
    repeatable: scenarios whose numbers do not depend on time."""
    lines, compared, number, few, others = [], 0, 0, 0, {}
    for name in names:
        files = results / f"{name}.json", directory / f"{name}.json"
        if not files[1].exists():
            lines.append(f"{name}: nothing was measured")
            continue
        if not files[0].exists():
            lines.append(f"{name}: sql-bench/results has no data to compare with")
            continue
        before, now = (json.loads(file.read_text()) for file in files)
        differ = [key for key, value in now["settings"].items()
                  if before["settings"].get(key, value) != value]
        if differ:
            lines.append(f"{name}: measured with other {', '.join(differ)}")
        processors = [run.get("machine", {}).get("cpu") for run in (before, now)]
        if processors[0] != processors[1]:
            others.setdefault("{}, now {}".format(*processors), []).append(name)
        rows, both, skipped = worse(before, now, 1 if name in repeatable else PAIRS)
        compared += both
        few += skipped
        number += len(rows)
        lines += [f"WORSE: {name}: {label}: {ratio_text(ratio)} times as good "
                  f"as stock, {ratio_text(former)} before; stock against "
                  f"itself differs by {ratio_text(spread)}"
                  for label, former, ratio, spread in rows]
    lines.append(f"{number} of {compared} cells got worse than in {results}, "
                 "beyond the spread of stock against itself")
    if few:
        lines.append(f"{few} more were not compared: fewer than {PAIRS} pairs, now or then")
    # How much faster than stock a server is depends on the processor's caches
    lines += [f"measured on another processor ({processors}): {', '.join(names)}"
              for processors, names in others.items()]
    return lines
