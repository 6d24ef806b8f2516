# SPDX-License-Identifier: GPL-2.0-only
"""What got worse since the raw data in sql-bench/results was measured.

Two runs measure ratios of patched to stock, so a slower machine does not count.
A cell got worse if both hold:

1. The 95 % intervals of the two ratios are apart.
2. The new ratio lies below the former one by more than stock, measured a second
   time in the new run, lies below itself.

So noise that a run finds in stock alone does not count either.
"""

import json

from .report import gains, ratio_text
from .scenario import CONTROL
from .statistics import interval, ratio_of_pairs


def settings_of(directory, name):
    """The settings of a scenario that were measured there, {} if none were."""
    file = directory / f"{name}.json"
    return json.loads(file.read_text())["settings"] if file.exists() else {}


def control_spread(cell):
    """How many times worse than itself stock may seem, at least 1."""
    pairs = cell["values"]["stock"], cell["values"].get(CONTROL, [])
    ratio = ratio_of_pairs(*pairs)
    if not ratio:
        return 1.0
    low, high = interval(*pairs) or (ratio["low"], ratio["high"])
    return max(1.0, high, 1 / max(low, 1e-6))


def worse(before, now):
    """(label, ratio before, ratio now, spread of stock) of each cell of a
    scenario that got worse; and how many cells both have.

    A ratio here is how many times better than stock.
    """
    former = {label: found for label, *found in gains(before)}
    cells = {cell["label"]: cell for cell in now["cells"]}
    found, compared = [], 0
    for label, ratio, (_, high), _ in gains(now):
        if label not in former:
            continue
        compared += 1
        before_ratio, (before_low, _), _ = former[label]
        spread = control_spread(cells[label])
        if high < before_low and ratio * spread < before_ratio:
            found.append((label, before_ratio, ratio, spread))
    return found, compared


def table(directory, results, names):
    """Lines that compare the raw data of scenarios with those in results."""
    lines, compared, number = [], 0, 0
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
        rows, both = worse(before, now)
        compared += both
        number += len(rows)
        lines += [f"WORSE: {name}: {label}: {ratio_text(ratio)} times as good "
                  f"as stock, {ratio_text(former)} before; stock against "
                  f"itself differs by {ratio_text(spread)}"
                  for label, former, ratio, spread in rows]
    lines.append(f"{number} of {compared} cells got worse than in {results}, "
                 "beyond the spread of stock against itself")
    return lines
