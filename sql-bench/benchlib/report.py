# SPDX-License-Identifier: GPL-2.0-only
"""Write docs/PERFORMANCE.md, and the table of a run, from the raw data of scenarios."""

import fnmatch
import json
import os
import re
from statistics import geometric_mean, median

from .scenario import CONTROL
from .statistics import ratio_of_pairs

VARIANTS = ("stock", "patched")
AS_NAMED = "as named"           # the unit of each cell is in its label
# The release series whose results come first
FIRST_SERIES = "10.11"
METHOD = """\
`BUILD/bench --report` writes this page from the raw data in [{where}]({where}),
which has every value, and what was done, in full. `sql-bench/claims` says which
cells are shown. *Stock* is MariaDB without the patches. Both servers are built from
the same source with the same flags, and take turns in one run, on two CPUs that they
share with the clients.

- *better*: how many times as good as stock: of rates patched / stock, of times and
  costs stock / patched. 0.5× is half as good. It is the median over the pairs; a pair
  is one measurement of each server, one after the other. So it is not always the
  quotient of the two medians in its row. Of several cells it is the geometric mean.
- *95 %*: that number lies in this interval with a probability of 95 % (bootstrap over
  the pairs). An interval that includes 1 shows no difference. Of few pairs it is too
  narrow. Fewer than three pairs show a tendency only. Of several cells it says the
  least and the greatest.
- *stock again*: the stock server, measured a second time in each turn. What differs
  from stock there is noise.

Each row is of the revision that is named below, not of the newest one, and of a server
with all parts, where the heading does not name one."""


class ClaimError(Exception):
    """A line of sql-bench/claims that names nothing."""


def number(value):
    """Three digits that mean something, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    if 0 < value < 0.001:
        return f"{value:.6f}"
    return f"{value + 0.0:.3g}"         # without the sign of a nought


def ratio_text(value):
    """Two decimals, or more where these would be noughts."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else number(value)


def complete(data):
    """The cells that were measured on both."""
    return [cell for cell in data["cells"]
            if all(cell["values"][variant] for variant in VARIANTS)]


def paired(data):
    """Take what a run that was cut short has of a pair it did not finish out of
    the data, so that medians and ratios are of the same measurements."""
    for cell in data["cells"]:
        pairs = min(len(cell["values"][variant]) for variant in VARIANTS)
        for kind in ("values", "details"):
            for measured in cell.get(kind, {}).values():
                del measured[pairs:]
    return data


def names(data):
    """stock, patched and the peers that there are."""
    found = dict.fromkeys(VARIANTS)
    for cell in data["cells"]:
        found.update(dict.fromkeys(name for name, values in cell["values"].items() if values))
    return list(found)


def command(data, scenario, series=FIRST_SERIES):
    """The command that repeats a measurement, with the options that differ from the defaults."""
    defaults = scenario.defaults()
    words = ["BUILD/bench", data["scenario"]]
    if data["settings"]["quick"]:
        words.append("--quick")
    elif data["pairs"] != scenario.pairs:
        words += ["--pairs", str(data["pairs"])]
    if CONTROL in names(data) and scenario.asks_for_control:
        words.append("--control")
    for name, value in sorted(data["settings"].items()):
        if name == "quick" or value in (None, defaults.get(name)):
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(f"{value:g}" if isinstance(value, float) else str(value))
    base, _, part = series.partition("+")
    if base != FIRST_SERIES:
        words += ["--base", base]
    if part:
        words += ["--part", part]
    return " ".join(words)


def table(data):
    """The lines of all cells of a run, and its remarks."""
    shown = [*VARIANTS, *(name for name in names(data) if name not in VARIANTS)]
    width = max(len(cell["label"]) for cell in data["cells"])
    lines = [f"{data['scenario']}, {data['unit']}",
             f"{'':{width}} " + " ".join(f"{name:>10}" for name in shown)
             + "  ratio (95 % interval)"]
    for cell in data["cells"]:
        values = cell["values"]
        lines.append(f"{cell['label']:{width}} " + " ".join(
            f"{median(values[name]):10.4g}" if values.get(name) else f"{'-':>10}"
            for name in shown) + f"  {likely(values, 'patched')}")
        if values.get(CONTROL):
            lines.append(f"{'':{width}} {' ' * 11 * len(shown)} {CONTROL}: "
                         + likely(values, CONTROL))
    return lines + [f"  {remark}" for remark in data["remarks"]]


def likely(values, name):
    """The ratio of a server's values to those of stock, as text."""
    pairs = values["stock"], values.get(name, [])
    ratio = ratio_of_pairs(*pairs)
    if not ratio:
        return "-"
    return "{:.2f} ({:.2f} to {:.2f}, {} pairs)".format(*ratio, min(map(len, pairs)))


def is_rate(data, cell):
    """Whether more is better: of rates, and of the part of something that is given back."""
    unit = cell["label"] if data["unit"] == AS_NAMED else data["unit"]
    return "/s" in unit or unit.startswith("%")


def gains(data):
    """(label, times better than stock, the interval of that) of each cell that has a
    ratio; a time that is halved is 2 times better."""
    found = []
    for cell in complete(data):
        ratio = ratio_of_pairs(cell["values"]["stock"], cell["values"]["patched"])
        if not ratio or not ratio[0]:
            continue
        middle, low, high = ratio
        if not is_rate(data, cell):
            # The inverse of the ratio, which is of an even number of pairs, too
            middle, high, low = (1 / max(one, 1e-6) for one in (middle, low, high))
        found.append((cell["label"], middle, (max(low, 1e-3), high)))
    return found


def load(file):
    """The raw data of a scenario, None if it has no complete cell."""
    data = paired(json.loads(file.read_text())) if file.exists() else None
    return data if data and complete(data) else None


def read_claims(file):
    """[(series, name of the raw data, [(claim, label, whether it must be there)])] of
    sql-bench/claims, whose head explains it."""
    found = []
    for line in file.read_text().splitlines():
        if line.startswith("  "):
            claim, _, label = (word.strip() for word in line.rpartition(" | "))
            found[-1][2].append((claim.removeprefix("? "), label,
                                 not claim.startswith("? ")))
        elif line and not line.startswith("#"):
            series, name = line.split()
            found.append((series, name, []))
    return found


def times(value):
    """How many times as good, as text."""
    return (f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10
            else ratio_text(value))


def claim_row(name, data, claim, label):
    """The row of a claim, None if no cell has its label."""
    cells = [cell for cell in complete(data) if fnmatch.fnmatchcase(
        cell["label"], label.replace("[", "[[]"))]
    if not cells:
        return None
    part = dict(data, cells=cells)
    better = [middle for _, middle, _ in gains(part)]
    shown = ["-"] * 5
    if "*" in label:
        shown[2:4] = [f"{times(geometric_mean(better))}×",
                      f"cells: {times(min(better))} to {times(max(better))}"]
    else:
        values = cells[0]["values"]
        shown[:2] = [number(median(values[variant])) for variant in VARIANTS]
        if better:
            _, middle, (low, high) = gains(part)[0]
            shown[2] = f"{times(middle)}×"
            if low < high:
                shown[3] = f"{times(low)} to {times(high)}"
        if values.get(CONTROL):
            shown[4] = number(median(values[CONTROL]))
    return f"| {name} | {claim} | " + " | ".join(shown) + " |"


def anchor_of(series, name):
    """open-tables, open-tables-11.8, open-tables-myisam-aria"""
    base, _, part = series.partition("+")
    return "-".join([name, *([base] if base != FIRST_SERIES else []),
                     *([part] if part else [])])


def write_claims(file, results, scenarios, claims):
    """Write docs/PERFORMANCE.md: a row for each claim, then how each scenario was measured.

    results: where raw data is kept, as SERIES/NAME.json, and as
        SERIES+PART/NAME.json if the server has this part alone
    claims: what read_claims() returns
    """
    where = os.path.relpath(results, file.parent)
    text = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->",
            "# Performance, stock against patched", "",
            *METHOD.format(where=where).splitlines(), ""]
    measured, questions, last = [], {}, None
    for series, name, rows in claims:
        data = load(results / series / f"{name}.json")
        if not data:
            raise ClaimError(f"sql-bench/claims: no raw data {series}/{name}")
        if series != last:
            base, _, part = series.partition("+")
            text += [*([""] if last else []),
                     f"## MariaDB {base}" + f", the part {part} alone" * bool(part), "",
                     f"| measured by | what | stock | patched | better | 95 % | "
                     f"{CONTROL} |", "|---|---|---:|---:|---:|---|---:|"]
            last = series
        scenario = name.partition(".")[0]
        questions.setdefault(
            scenario, f"- **{scenario}**: {data['question']} " + " ".join(data["caveat"].split()))
        anchor = anchor_of(series, name)
        first = f'<a id="{anchor}"></a>[{name}]({where}/{series}/{name}.json)'
        for claim, label, needed in rows:
            row = claim_row(first, data, claim, label)
            if row:
                text.append(row)
                first = name
            elif needed:
                raise ClaimError(f"sql-bench/claims: {series} {name} has no cell '{label}'")
        machine = data["machine"]
        pairs = median([len(cell["values"]["stock"]) for cell in complete(data)])
        measured.append(
            f"| `{command(data, scenarios[scenario], series)}` | "
            f"{re.split('[-+]', data['versions'].get('stock', series))[0]} | "
            f"{data['date']} | {machine['cpu']} | {machine['revision']} | "
            f"{pairs:.0f} |")
    text += ["", "## How each was measured", "",
             "| command | MariaDB | date | processor | revision | pairs |",
             "|---|---|---|---|---|---|", *measured, "",
             "## What is asked, and what the numbers do not show", "", *questions.values()]
    file.write_text("\n".join(text) + "\n")


def keep(directory, results, name):
    """Copy a scenario's raw data to the results; return it, if there is any."""
    file = directory / f"{name}.json"
    if not file.exists():
        return None
    data = {"SPDX-License-Identifier": "GPL-2.0-only",
            **json.loads(file.read_text())}
    results.mkdir(parents=True, exist_ok=True)
    (results / file.name).write_text(in_lines(data))
    return data


def in_lines(data):
    """Raw data as JSON with a line for each fact, each cell and each remark, so
    that a difference shows what was measured anew."""
    def list_of_lines(found):
        return "[\n  " + ",\n  ".join(map(json.dumps, found)) + "\n ]" if found else "[]"

    return "{\n " + ",\n ".join(
        f"{json.dumps(name)}: "
        + (list_of_lines(value) if isinstance(value, list)
           else json.dumps(value)) for name, value in data.items()) + "\n}\n"
