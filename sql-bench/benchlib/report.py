# SPDX-License-Identifier: GPL-2.0-only
"""Write docs/PERFORMANCE.md and its plots from the raw data of scenarios."""

import argparse
import functools
import json
import os
import re

from .scenario import CONTROL
from .statistics import agree, interval, median, ratio_of_pairs

VARIANTS = ("stock", "patched")
# Middle tones, readable on a light and on a dark page
COLOURS = {"stock": "#8a8a8a", "patched": "#2f8fd0"}
PEERS = ("#c07a2c", "#5f9e50", "#a35fb0")
TEXT = "#767676"                # 4.5:1 on white
WHISKERS = "#505050"            # on a bar
FULL = 5                        # pairs of a full run, at least
# In the label of a cell that has a unit of its own
MORE_IS_BETTER = ("/s", "KiB in an extent", "results kept", "hits in")
AS_NAMED = "as named"           # the unit of each cell is in its label
# The release series whose results come first; the plots of another one are in a
# directory of its name
FIRST_SERIES = "10.11"
# The text before the first section in docs/, if there is any
OVERVIEW = "performance/overview.md"
# Of the plots, docs/ has these.  The report that a run writes beside its raw
# data has all
IN_DOCS = ("performance/forest", "performance/scale", "performance/11.8/forest")


def number(value):
    """Three digits that mean something, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    if 0 < value < 0.001:
        return f"{value:.6f}"
    return f"{value:.3g}"


def ratio_text(value):
    """Two decimals, or more where these would be noughts."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else number(value)


def style():
    """matplotlib, told to draw for light and dark pages."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "table-cache", "svg.fonttype": "none",
        "font.sans-serif": ["DejaVu Sans"], "path.simplify": False,
        "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT,
        "axes.titlecolor": TEXT, "axes.titlesize": 9,
        "xtick.color": TEXT, "ytick.color": TEXT, "font.size": 9})
    from matplotlib import pyplot
    return pyplot


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
        found.update(dict.fromkeys(name for name, values
                                   in cell["values"].items() if values))
    return list(found)


def spread(values):
    """Distances of the lowest and the highest from the median."""
    middle = median(values)
    return middle - min(values), max(values) - middle


def colour(name, index):
    return COLOURS.get(name, PEERS[index % len(PEERS)])


def strokes(axes, pairs, width, **how):
    """Draw lines, each ((x, x), (y, y)), as one path of the SVG; one without
    length is a dot, as wide as the line."""
    nothing = float("nan")
    axes.plot([one for x, _ in pairs for one in (*x, nothing)],
              [one for _, y in pairs for one in (*y, nothing)],
              linewidth=width, solid_capstyle="round", **how)


def bars(pyplot, data):
    """A bar for each cell and server."""
    cells, servers = complete(data), names(data)
    figure, axes = pyplot.subplots(
        figsize=(8, 0.8 + 0.17 * len(servers) * len(cells)))
    height = 0.8 / len(servers)
    for number, name in enumerate(servers):
        have = [(index, cell["values"][name]) for index, cell
                in enumerate(cells) if cell["values"].get(name)]
        axes.barh([-index + 0.4 - height * (number + 0.5)
                   for index, _ in have],
                  [median(values) for _, values in have],
                  height=height, color=colour(name, number), label=name,
                  xerr=list(zip(*(spread(values) for _, values in have))),
                  ecolor=WHISKERS)
    axes.set_yticks([-index for index in range(len(cells))],
                    [cell["label"] for cell in cells])
    better = "more" if data["higher_is_better"] else "less"
    axes.set_xlabel(f"{data['unit']} ({better} is better)")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False)
    return figure


def lines(pyplot, data):
    """A line for each server, over the cells' value of x, in panels; cells
    without such a value are in the table only."""
    x, by = data["plot"]["x"], data["plot"].get("panel", ())
    panels = {}
    for cell in complete(data):
        if x in cell:
            panels.setdefault(tuple(cell[key] for key in by), []).append(cell)
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(rows, columns, squeeze=False,
                                   figsize=(8, 0.6 + 2.2 * rows))
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    for axes, (values, cells) in zip(grid.flat, panels.items()):
        for number, name in enumerate(names(data)):
            have = [(cell[x], cell["values"][name]) for cell in cells
                    if cell["values"].get(name)]
            if have:
                # Points of two servers do not cover each other
                aside = 2 ** (0.12 * (number - (len(names(data)) - 1) / 2))
                have = [(at * aside, found) for at, found in have]
                shade = {"color": colour(name, number)}
                strokes(axes, [((at, at), (value, value)) for at, found in have
                               for value in found], 2, alpha=0.5, **shade)
                strokes(axes, [((at, at), (min(found), max(found)))
                               for at, found in have], 0.8, **shade)
                middles = [(at, median(found)) for at, found in have]
                strokes(axes, [((at, at), (value, value))
                               for at, value in middles], 4, **shade)
                axes.plot(*zip(*middles), label=name, linewidth=1.2, **shade)
        axes.set_title(", ".join(
            str(value) if isinstance(value, str) else f"{key}: {value}"
            for key, value in zip(by, values)))
        axes.set_xscale("log", base=2)
        ticks = sorted({cell[x] for cell in cells})
        axes.set_xticks(ticks, [f"{tick}" for tick in ticks],
                        rotation=45 if len(ticks) > 4 else 0)
        axes.minorticks_off()
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        axes.set_xlabel(data["plot"].get("xlabel", x))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    grid.flat[0].legend(frameon=False)
    figure.supylabel(data["plot"].get("ylabel", data["unit"]), fontsize=9)
    return figure


def plot(data, path):
    """The plot of one scenario. Where each cell has a unit of its own, values
    cannot share an axis, but ratios can; unless the scenario names the unit of
    the cells that have a place on the axis."""
    pyplot = style()
    lined = data.get("plot") or {}
    if data["unit"] == AS_NAMED and "ylabel" not in lined and gains(data):
        figure = forest(pyplot, [data])
    else:
        figure = (lines if lined else bars)(pyplot, data)
    save(pyplot, figure, path)


def repeated(data, again):
    """What a second run says of the ratios of the first."""
    second = {cell["label"]: cell["values"] for cell in complete(again)}
    same, others = 0, []
    for cell in complete(data):
        values = second.get(cell["label"])
        pair = [ratio_of_pairs(run["stock"], run["patched"])
                for run in (cell["values"], values) if run]
        if len(pair) < 2 or None in pair:
            continue
        if agree(*pair):
            same += 1
        else:
            others.append(f"{cell['label']} "
                          f"{ratio_text(pair[1]['median'])} ("
                          f"{ratio_text(pair[1]['low'])} to "
                          f"{ratio_text(pair[1]['high'])})")
    if not same and not others:
        return []
    return ["", f"A second run: {same} of {same + len(others)} ratios agree, "
            "one run's median being in the other's spread"
            + ("; not " + ", ".join(others) if others else "") + "."]


def command(data, scenario, series=FIRST_SERIES):
    """The command that repeats a measurement, with the options that differ
    from the defaults."""
    parser = argparse.ArgumentParser(add_help=False)
    scenario.add_arguments(parser)
    defaults = vars(parser.parse_args([]))
    words = ["BUILD/bench", data["scenario"]]
    if data["quick"]:
        words.append("--quick")
    starts = data.get("starts", 1)
    if not data["quick"] and data["pairs"] != scenario.pairs * starts:
        words += ["--pairs", str(data["pairs"] // starts)]
    if starts > 1:
        words += ["--starts", str(starts)]
    # Scenarios that start servers of their own always have a control
    if CONTROL in names(data) and scenario.needs_servers:
        words.append("--control")
    for name, value in sorted(data["settings"].items()):
        if name == "quick" or value in (None, defaults.get(name)):
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(f"{value:g}" if isinstance(value, float)
                         else str(value))
    if series != FIRST_SERIES:
        words += ["--base", series]
    return " ".join(words)


def likely(values, name, starts):
    """The interval of a server's ratios to stock, as text."""
    found = interval(values["stock"], values.get(name, []), starts)
    return " to ".join(map(ratio_text, found)) if found else "-"


def cpu_time(cell, name="patched"):
    """The median ratio of the server's CPU time a statement to stock's, as
    text."""
    details = cell.get("details", {})
    found = ratio_of_pairs(*(
        [one["cpu_us"] for one in details.get(variant, ()) if "cpu_us" in one]
        for variant in ("stock", name)))
    return ratio_text(found["median"]) if found else "-"


def section(data, scenario, again=None, series=FIRST_SERIES, image=()):
    """The lines of one scenario; again: the data of a second run, image: lines
    that show its plot."""
    machine = data["machine"]
    peers = names(data)[len(VARIANTS):]
    title = scenario.title + of_series(series)
    # Steadier than rates where CPUs are shared
    has_cpu = any(cpu_time(cell) != "-" for cell in complete(data))
    result = [f"## {title}", "", data["question"], "",
              *headed("What was done", data["method"]), "",
              *headed("What came out", outcome(data)), "",
              *image,
              f"| {data['unit']} | stock | patched | ratio | 95 % | pairs |"
              + " ratio of CPU time |" * has_cpu
              + "".join(f" {peer} |" for peer in peers)
              + f" {CONTROL}, 95 % |" * (CONTROL in peers),
              "|---" + "|---:" * (5 + has_cpu + len(peers)
                                  + (CONTROL in peers)) + "|"]
    for cell in complete(data):
        values = cell["values"]
        ratio = ratio_of_pairs(values["stock"], values["patched"])
        shown = ([ratio_text(ratio["median"]),
                  likely(values, "patched", data.get("starts", 1)),
                  str(ratio["pairs"])] if ratio else ["-", "-", "-"])
        shown += [cpu_time(cell)] * has_cpu
        shown += [number(median(values[peer])) if values.get(peer) else "-"
                  for peer in peers]
        if CONTROL in peers:
            shown.append(likely(values, CONTROL, data.get("starts", 1)))
        result.append("| " + " | ".join(
            [cell["label"]] + [number(median(values[v])) for v in VARIANTS]
            + shown) + " |")
    if data["remarks"]:
        result += ["", *(f"- {remark}" for remark in data["remarks"])]
    if again:
        result += repeated(data, again)
    absent = [cell["label"] for cell in data["cells"]
              if cell not in complete(data)]
    if absent:
        result += ["", "Not measured: " + "; ".join(absent) + "."]
    if data.get("caveat"):
        result += ["", *headed("Limits", data["caveat"])]
    taken = min((len(cell["values"][variant]) for cell in complete(data)
                 for variant in VARIANTS), default=0)
    facts = [f"Repeat it with `{command(data, scenario, series)}`. The question "
             f"comes from: {data['source']}. "
             f"Measured {data['date']} on {machine['cpus']} CPUs "
             f"({machine['cpu']}), {machine['memory_GiB']} GiB, Linux "
             f"{machine['kernel']}"]
    facts += [f"{name} {version}" for name, version
              in sorted(data["versions"].items())]
    facts += [machine[key] if key == "sysbench" else f"revision {machine[key]}"
              for key in ("sysbench", "revision") if machine.get(key)]
    if data["quick"]:
        facts.append("a quick run")
    elif taken < max(FULL, data["pairs"]):
        facts.append(f"{taken} pair{'s' * (taken != 1)} only, not a full run")
    return result + ["", "; ".join(facts) + ".", ""]


def headed(heading, text):
    """The lines of a part of a section; a list begins below its heading."""
    lines = text.split("\n")
    if lines[0].startswith("- "):
        return [f"**{heading}.**", "", *lines]
    return [f"**{heading}.** {lines[0]}", *lines[1:]]


def outcome(data):
    """One line on all cells of a scenario, as summary() has it."""
    found = gains(data)
    if not found:
        return "The table has the values; none has a ratio."
    times = [middle for _, middle, _, _ in found]
    spread = (f"median {ratio_text(median(times))}, from "
              f"{ratio_text(min(times))} to {ratio_text(max(times))}")
    judged = any((ratio_of_pairs(cell["values"]["stock"],
                                 cell["values"]["patched"]) or {}
                  ).get("pairs", 0) >= 3 for cell in complete(data))
    if not judged:
        return ("Fewer than three pairs, so no cell counts as a gain or a loss. "
                f"How many times better than stock: {spread}.")
    gain, loss = (sum(verdict == wanted for *_, verdict in found)
                  for wanted in ("gain", "loss"))
    return (f"Better than stock: {gain} of {len(found)} cells; worse: {loss}. The "
            f"others cannot be told from it. How many times better: {spread}.")


def is_rate(data, cell):
    """Whether more is better: where each cell has a unit of its own, its label
    tells."""
    if data["unit"] != AS_NAMED:
        return data["higher_is_better"]
    return any(word in cell["label"] for word in MORE_IS_BETTER)


def gains(data):
    """(label, times better than stock, the interval of that, verdict) of each
    cell that has a ratio; a time that is halved is 2 times better.

    Verdict: "gain" or "loss" if the interval leaves out 1 and, where there is
    a control, the ratio is not in the interval of stock to itself; "same"
    otherwise, and of less than three pairs.
    """
    found = []
    for cell in complete(data):
        def better(name):
            pairs = cell["values"]["stock"], cell["values"].get(name, [])
            ratio = ratio_of_pairs(*pairs)
            if not ratio or not ratio["median"]:
                return None
            found = (ratio["median"], *(interval(*pairs, data.get("starts", 1))
                                        or (ratio["median"],) * 2))
            if not is_rate(data, cell):
                # The inverse of the ratio that the section's table shows
                middle, low, high = (1 / max(one, 1e-6) for one in found)
                found = middle, high, low
            middle, low, high = found
            return middle, max(low, 1e-3), high, ratio["pairs"]

        measured, control = better("patched"), better(CONTROL)
        if not measured:
            continue
        middle, low, high, pairs = measured
        verdict = ("same" if pairs < 3 or low <= 1 <= high or
                   control and control[1] <= middle <= control[2]
                   else "gain" if middle > 1 else "loss")
        found.append((cell["label"], middle, (low, high), verdict))
    return found


def of_series(series):
    """What distinguishes the headings of another series."""
    return "" if series == FIRST_SERIES else f", MariaDB {series}"


def plots_of(series):
    """Where a series has plots, relative to the report."""
    return ("performance" if series == FIRST_SERIES
            else f"performance/{series}")


def summary(all_data, scenarios, series=FIRST_SERIES):
    """The lines of the table with a line for each scenario."""
    lines = [f"## Summary{of_series(series)}", "",
             "How many times better than stock: rates as they are, times and "
             "costs inverted. A cell is a",
             "gain or a loss if it has three pairs or more, its interval "
             "leaves out 1, and the control's",
             "interval, where there is one, does not have it.", "",
             "| experiment | cells | gain | same | loss | median | least | "
             "most |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for data in all_data:
        found = gains(data)
        if found:
            times = [middle for _, middle, _, _ in found]
            counts = [sum(verdict == wanted for *_, verdict in found)
                      for wanted in ("gain", "same", "loss")]
            lines.append("| " + " | ".join(
                [scenarios[data["scenario"]].title, str(len(found)),
                 *map(str, counts), ratio_text(median(times)),
                 ratio_text(min(times)), ratio_text(max(times))]) + " |")
    return [*lines, ""]


def forest(pyplot, all_data):
    """All ratios with their intervals, on a logarithmic axis."""
    rows = []
    for data in all_data:
        found = gains(data)
        if found:
            if len(all_data) > 1:
                rows.append((data["title"], None, None, None))
            rows += found
    shades = {"gain": COLOURS["patched"], "same": COLOURS["stock"],
              "loss": PEERS[0]}
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.16 * len(rows)))
    for verdict, shade in shades.items():
        found = [(middle, limits, -index) for index, (_, middle, limits, this)
                 in enumerate(rows) if this == verdict]
        strokes(axes, [(limits, (y, y)) for _, limits, y in found], 1,
                color=shade)
        strokes(axes, [((middle, middle), (y, y)) for middle, _, y in found], 4,
                color=shade)
    axes.axvline(1, color=TEXT, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks([-index for index in range(len(rows))],
                    [label for label, *_ in rows], fontsize=6)
    for text, row in zip(axes.get_yticklabels(), rows):
        if row[1] is None:
            text.set_fontweight("bold")
    axes.set_ylim(-len(rows), 1)
    axes.set_xlabel("times better than stock")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", left=False)
    return figure


def save(pyplot, figure, path):
    """As an SVG without a background."""
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    path.write_text(compact(path.read_text()).replace(
        "<svg ", "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n<svg ", 1))


def compact(svg):
    """The same picture in an SVG of fewer bytes: a line for each path and text,
    coordinates to a tenth of a point, nothing that is not drawn."""
    svg = re.sub(r"\s*\n\s*", " ", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE.*?>| ?standalone"
                 r'="no"| id="(?:figure|axes|patch|text|line2d|matplotlib'
                 r'|[xy]tick|legend|[A-Z][A-Za-z]*Collection)[_.\w]*"', "", svg)

    def rounded(match):
        return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}"
                      .removesuffix(".0"), match[0])

    svg = re.sub(r' (?:d|x|y|points)="[^"]*"|(?:translate|rotate)\([^)]*\)',
                 rounded, svg)
    svg = re.sub(r"(?<=[A-Za-z\d]) +(?=[MLQCz]\b)|(?<=[MLQCz]) +(?=[-\d])", "",
                 svg)
    svg = re.sub(r' "|; (?=")', '"', re.sub(r"> +<", "><", svg))
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    # Groups that have neither attributes nor an effect
    kept, groups = [], []
    for tag in re.split(r"(</?g\b[^>]*>)", svg):
        if tag.startswith("<g"):
            groups.append(tag != "<g>")
        if not (tag == "<g>" or tag == "</g>" and not groups.pop()):
            kept.append(tag)
    svg = re.sub("<defs></defs>", "", "".join(kept))
    # Write a style that several elements have only once
    styles = re.findall(r' style="([^"]*)"', svg)
    often = [look for look in dict.fromkeys(styles) if styles.count(look) > 2]
    for number, look in enumerate(often):
        svg = svg.replace(f' style="{look}"', f' class="c{number}"')
        svg = svg.replace("</style>", f" .c{number}{{{look}}}</style>")
    return re.sub(r"(?<=[^\n])(?=</?(?:svg|path|text|g|use|style|defs)\b)"
                  r"(?!</(?:text|style|defs))", "\n", svg.strip()) + "\n"


def write(output, docs, scenarios, second=None, series=FIRST_SERIES,
          results=None, drawn=None):
    """Keep the raw data output/NAME.json of each scenario that is there, and
    write the report docs/PERFORMANCE.md from all that is kept: a scenario that
    output lacks, and other series, stay as they were.

    scenarios: {name: scenario}
    second: likewise of a second run, which the ratios are compared with
    series: MariaDB's release series that output has
    results: where raw data is kept, as SERIES/NAME.json; by default docs/results
    drawn: the plots that the report has, as in IN_DOCS; by default all
    """
    results = results or docs / "results"
    own = results / series
    own.mkdir(parents=True, exist_ok=True)
    for name in scenarios:
        kept = own / f"{name}.json"
        before = kept.read_text() if kept.exists() else None
        if keep(output, own, name) and kept.read_text() != before:
            # It was compared with the first run that has been replaced
            (own / f"{name}.second.json").unlink(missing_ok=True)
        if second:
            keep(second, own, name, ".second")
    where = os.path.relpath(results, docs)
    text = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->",
            "# Performance, stock against patched", "",
            "`BUILD/bench --report` writes this page from the raw data of the "
            "benchmarks, which is in",
            f"[{where}]({where}). *Stock* is MariaDB without the patches. Both "
            "servers are built from the",
            "same source with the same flags, and take turns in one run.", ""]
    overview = docs / OVERVIEW
    if overview.exists():
        # It is worded by hand, for README's readers.  What is before its first
        # heading is for those who read it by itself
        by_hand = overview.read_text()
        text += [*by_hand[by_hand.index("## "):].splitlines(), ""]
    text += ["## How to read the tables", "",
             "- *ratio*: the median over the pairs of patched / stock. Each pair "
             "is one measurement of both servers.",
             "- *95 %*: the ratio lies in this interval with a probability of 95 % "
             "(bootstrap over the servers'",
             "  starts and the pairs of each). With one start only, the interval is "
             "too narrow.",
             "- *stock again*: the stock server, measured a second time in each "
             "turn. What differs from stock",
             "  there is noise.",
             "- *Limits*: what the numbers do not show.", ""]
    for found in sorted({path.name for path in results.iterdir()
                         if path.is_dir()},
                        key=lambda name: (name != FIRST_SERIES, name)):
        text += write_series(docs, results / found, scenarios, found, drawn)
    (docs / "PERFORMANCE.md").write_text("\n".join(text).rstrip() + "\n")


def write_series(docs, results, scenarios, series, drawn):
    """Draw the plots of a series; return its lines of the report."""
    def load(name):
        file = results / f"{name}.json"
        return paired(json.loads(file.read_text())) if file.exists() else None

    kept = {name: load(name) for name in scenarios}
    kept = {name: data for name, data in kept.items()
            if data and complete(data)}
    text = []

    def image(name, title, draw):
        path = f"{plots_of(series)}/{name}"
        if drawn is not None and path not in drawn:
            return []
        draw(docs / f"{path}.svg")
        return [f"![{title}{of_series(series)}]({path}.svg)", ""]

    def draw_forest(path):
        pyplot = style()
        save(pyplot, forest(pyplot, kept.values()), path)

    if any(gains(data) for data in kept.values()):
        text += summary(kept.values(), scenarios, series)
        text += image("forest", "All ratios", draw_forest)
    for name, data in kept.items():
        text += section(data, scenarios[name], load(f"{name}.second"), series,
                        image(name, scenarios[name].title,
                              functools.partial(plot, data)))
    return text


def keep(directory, results, name, run=""):
    """Copy a scenario's raw data to the results; return it, if there is any."""
    file = directory / f"{name}.json"
    if not file.exists():
        return None
    data = {"SPDX-License-Identifier": "GPL-2.0-only",
            **json.loads(file.read_text())}
    (results / f"{name}{run}.json").write_text(in_lines(data))
    return data


def in_lines(data):
    """Raw data as JSON with a line for each fact, each cell and each remark, so
    that a difference shows what was measured anew."""
    def list_of_lines(found):
        return ("[\n  " + ",\n  ".join(map(json.dumps, found)) + "\n ]"
                if found else "[]")

    return "{\n " + ",\n ".join(
        f"{json.dumps(name)}: "
        + (list_of_lines(value) if isinstance(value, list)
           else json.dumps(value)) for name, value in data.items()) + "\n}\n"
