"""Plots the cluster's operations, latency, GC, compactions, CPU, disk and network on one time axis."""

from collections.abc import Sequence

from collector.node.metrics.requests import Operation
from exporters.charts.axes import linear
from exporters.charts.gnuplot_page import Box, Drawing, Page
from exporters.charts.gnuplot_panel import (
    Line,
    LineStyle,
    column,
    lines_panel,
    plot_panel,
    shared_timeline,
    stack,
    time_axis_commands,
)
from exporters.charts.plot_data import (
    CLUSTER,
    Columns,
    PlotData,
    Values,
    has_isolated,
    other_operations,
    present,
    series,
    span_text,
    thinned,
)
from exporters.charts.plot_style import OPERATION_STYLES, PERCENTILE_STYLES, heading

# With more nodes, the lines of individual nodes would be unreadable; the `nodes` plot shows their range instead.
MAX_NODES = 12
PANELS = 7
# The dashes and the width of each percentile's line; with gaps in a line, short peaks would hardly be visible.
_LINES = {"p50": ("solid", 1.3), "p95": ("solid", 1.3), "p99": ("solid", 1.8), "max": ("solid", 0.8)}
_LATENCY = tuple((name, LineStyle(*PERCENTILE_STYLES[name], *line)) for name, line in _LINES.items())
# The parts of the CPU stack from bottom to top, each with its colour.
_CPU = (("user", "blue"), ("nice", "yellow"), ("system", "vermillion"), ("iowait", "sky"), ("steal", "ink"))
_DISK = ("disk_read_mb_per_s", "disk_write_mb_per_s")
_NETWORK = ("net_rx_kbit_per_s", "net_tx_kbit_per_s")
_OPERATIONS = ("reads_per_s", "writes_per_s")
_COLUMNS = (
    *("nodes", *_OPERATIONS),
    *(f"{word}_{statistic}_ms" for word in ("read", "write") for statistic, _ in _LATENCY),
    *("gc_pct", "compactions_pending"),
    *(f"cpu_{part}_pct" for part, _ in _CPU),
    *(*_DISK, *_NETWORK),
)


def size(run: PlotData) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 1700 if other_operations(run) else 1500


def draw(page: Page) -> Drawing:
    run = page.run
    data = _data(run, 2 * page.width)
    timeline = shared_timeline(page)
    x_axis, area = timeline.axis, page.area(timeline.height)
    others = other_operations(run)
    boxes = iter(stack(area, PANELS + bool(others)))
    panels = [
        ("Operations; the sum over all nodes is bold.", _operations(page, next(boxes), data, others)),
        ("Read latency across all nodes.", _latency(page, next(boxes), data, "read")),
        ("Write latency across all nodes.", _latency(page, next(boxes), data, "write")),
        *([("p99 of other operations across all nodes.", _tails(page, next(boxes), data, others))] if others else []),
        ("Garbage collection and pending compactions.", _upkeep(page, next(boxes), data)),
        ("CPU, stacked.", _cpu(page, next(boxes), data)),
        ("Disk.", _machine(page, next(boxes), data, "disk, MiB/s", _DISK, ("read", "written"))),
        ("Network.", _machine(page, next(boxes), data, "network, Mbit/s", _NETWORK, ("received", "sent"))),
    ]
    commands = [f"x(n) = column(n) + {run.zone_s}", *timeline.lines(), *time_axis_commands(x_axis, labels=False)]
    for index, (about, panel) in enumerate(panels):
        commands += ["", f"# {about}"]
        if index == 0:
            commands += [*page.labels(span_text(run)), *timeline.label_commands(area.top)]
        if index == len(panels) - 1:
            commands += time_axis_commands(x_axis, labels=True)
        commands += panel
        if index == 0:
            commands.append("unset label")
    return Drawing(commands, {"": data})


def _data(run: PlotData, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    others = [
        name
        for operation in other_operations(run)
        for name in (f"{operation.plural}_per_s", f"{operation.word}_p99_ms")
    ]
    columns |= {name: series(run, CLUSTER, name) for name in (*_COLUMNS, *others)}
    if 1 < len(run.nodes) <= MAX_NODES:
        for name in _OPERATIONS:
            for number, node in enumerate(run.nodes, 1):
                columns[f"{number} {heading(node)} {name}"] = series(run, node, name)
    return thinned(columns, limit, [f"cpu_{part}_pct" for part, _ in _CPU])


def _other_style(operation: Operation) -> LineStyle:
    return LineStyle(*OPERATION_STYLES[operation.word])


def _tails(page: Page, box: Box, data: Columns, others: Sequence[Operation]) -> list[str]:
    names = {operation: f"{operation.word}_p99_ms" for operation in others}
    lines = [Line(op.title, column(name), data[name], _other_style(op)) for op, name in names.items()]
    return lines_panel(page, box, "other p99, ms", lines, log=True)


def _operations(page: Page, box: Box, data: Columns, others: Sequence[Operation]) -> list[str]:
    first = 1 + len(_COLUMNS) + 2 * len(others)
    node_items = list(data.items())[first:]
    lines = []
    for number, (_, values) in enumerate(node_items):
        word = "reads" if 2 * number < len(node_items) else "writes"
        title = f"{word}, each node" if 2 * number in (0, len(node_items)) else ""
        style = LineStyle(word, dash="solid" if word == "reads" else "'-'", width=0.7)
        lines.append(Line(title, f"column({1 + first + number})", values, style))
    for name, point in zip(_OPERATIONS, (7, 9), strict=True):
        word = name.partition("_")[0]
        lines.append(Line(f"{word}, sum", column(name), data[name], LineStyle(word, point, width=2.4)))
    for operation in others:
        name = f"{operation.plural}_per_s"
        lines.append(Line(f"{operation.title}, sum", column(name), data[name], _other_style(operation)))
    return lines_panel(page, box, "operations/s", lines)


def _latency(page: Page, box: Box, data: Columns, word: str) -> list[str]:
    lines = [
        Line(statistic, column(f"{word}_{statistic}_ms"), data[f"{word}_{statistic}_ms"], style)
        for statistic, style in _LATENCY
    ]
    return lines_panel(page, box, f"{word} latency, ms", lines[::-1], log=True)


def _upkeep(page: Page, box: Box, data: Columns) -> list[str]:
    pending = "compactions_pending"
    lines = [
        Line("GC", column("gc_pct"), data["gc_pct"], LineStyle("vermillion", 5)),
        Line("pending", column(pending), data[pending], LineStyle("green", 9, "'-'", 1.6), second=True),
    ]
    return lines_panel(page, box, "GC, % of time", lines, second_label="compactions")


def _cpu(page: Page, box: Box, data: Columns) -> list[str]:
    parts = [(part, colour) for part, colour in _CPU if present(data[f"cpu_{part}_pct"])]
    isolated = any(has_isolated(data[f"cpu_{part}_pct"]) for part, _ in parts)
    width = page.run.interval_s
    sums, plots, below = [], [], ""
    for part, colour in parts:
        top = f"cpu_{part}(0)"
        sums.append(f"cpu_{part}(n) = {below}{column(f'cpu_{part}_pct')}")
        below = f"cpu_{part}(n) + "
        # An isolated interval is visible only as a box.
        shape = (
            f"(0):(x(1)-{width:g}):(x(1)):(0):({top}) with boxxyerror" if isolated else f"({top}) with filledcurves y=0"
        )
        plots.append(f"{page.data} using (x(1)):{shape} fc rgb {colour} fs solid noborder title '{part}'")
    return plot_panel(page, box, "CPU, %", linear([100.0], box.height), plots[::-1], before=sums, legend=box)


def _machine(
    page: Page, box: Box, data: Columns, label: str, names: tuple[str, str], titles: tuple[str, str]
) -> list[str]:
    # Network rates are recorded in kbit/s and shown in Mbit/s.
    factor, by = ("/1000", 1 / 1000) if "kbit" in names[0] else ("", 1.0)
    lines = []
    for name, title, colour, point in zip(names, titles, ("reads", "writes"), (7, 9), strict=True):
        values = [None if value is None else value * by for value in data[name]]
        lines.append(Line(title, column(name, factor), values, LineStyle(colour, point)))
    return lines_panel(page, box, label, lines)
