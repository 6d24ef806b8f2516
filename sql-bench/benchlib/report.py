# SPDX-License-Identifier: GPL-2.0-only
"""Write docs/PERFORMANCE.md and its plots from the raw data of scenarios."""

import json

from .statistics import median, ratio_of_pairs

VARIANTS = ("stock", "patched")
# Middle tones, readable on a light and on a dark page
COLOURS = {"stock": "#8a8a8a", "patched": "#2f8fd0"}
TEXT = "#808080"


def number(value):
    """Three digits that mean something, without an exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def plot(data, path):
    """Horizontal bars, a pair for each cell; an SVG without a background."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "table-cache", "svg.fonttype": "none",
        "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT,
        "xtick.color": TEXT, "ytick.color": TEXT, "font.size": 9})
    from matplotlib import pyplot

    cells = [cell for cell in data["cells"]
             if all(cell["values"][variant] for variant in VARIANTS)]
    figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.34 * len(cells)))
    for offset, variant in zip((0.2, -0.2), VARIANTS):
        middle = [median(cell["values"][variant]) for cell in cells]
        spread = [[m - min(cell["values"][variant])
                   for m, cell in zip(middle, cells)],
                  [max(cell["values"][variant]) - m
                   for m, cell in zip(middle, cells)]]
        axes.barh([-index + offset for index in range(len(cells))], middle,
                  height=0.38, color=COLOURS[variant], label=variant,
                  xerr=spread, ecolor=TEXT)
    axes.set_yticks([-index for index in range(len(cells))],
                    [cell["label"] for cell in cells])
    better = "more" if data["higher_is_better"] else "less"
    axes.set_xlabel(f"{data['unit']} ({better} is better)")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None})
    pyplot.close(figure)
    text = path.read_text()
    path.write_text(text.replace(
        "<svg ", "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n<svg ", 1))


def section(data):
    """The lines of one scenario."""
    machine = data["machine"]
    lines = [f"## {data['title']}", "", f"`BUILD/bench {data['scenario']}`, "
             f"after: {data['source']}.", "", data["question"], "",
             data["method"], "",
             f"![{data['title']}](performance/{data['scenario']}.svg)", "",
             f"| {data['unit']} | stock | patched | ratio | spread | pairs |",
             "|---|---:|---:|---:|---:|---:|"]
    for cell in data["cells"]:
        values = cell["values"]
        if not all(values[variant] for variant in VARIANTS):
            continue
        ratio = ratio_of_pairs(values["stock"], values["patched"])
        shown = ([f"{ratio['median']:.2f}",
                  f"{ratio['low']:.2f} to {ratio['high']:.2f}",
                  str(ratio["pairs"])] if ratio else ["-", "-", "-"])
        lines.append("| " + " | ".join(
            [cell["label"]] + [number(median(values[v])) for v in VARIANTS]
            + shown) + " |")
    lines += [""] + [f"- {remark}" for remark in data["remarks"]]
    lines += ["", f"Measured {data['date']} on {machine['cpus']} CPUs "
              f"({machine['cpu']}), {machine['memory_GiB']} GiB, Linux "
              f"{machine['kernel']}; "
              + ", ".join(f"{variant}: {version}" for variant, version
                          in sorted(data["versions"].items()))
              + ("" if data["pairs"] >= 5 else
                 f"; {data['pairs']} pairs only, not a full run") + ".", ""]
    return lines


def write(output, docs, names):
    """Write the report from output/NAME.json of each name that is there."""
    plots = docs / "performance"
    plots.mkdir(parents=True, exist_ok=True)
    lines = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->",
             "# Performance, stock against patched", "",
             "Written by `BUILD/bench --report` from the raw data of the "
             "benchmarks. Both servers",
             "are built from the same source with the same flags and take "
             "turns in one run. The",
             "ratio is the median over the pairs of patched / stock; the "
             "spread is the lowest and",
             "the highest of them. `BUILD/bench` repeats all of it.", ""]
    for name in names:
        file = output / f"{name}.json"
        if file.exists():
            data = json.loads(file.read_text())
            plot(data, plots / f"{name}.svg")
            lines += section(data)
    (docs / "PERFORMANCE.md").write_text("\n".join(lines).rstrip() + "\n")
