"""Draws one cell per node, all on the same scales, or a band if there are many nodes.

The band is the spread of the nodes: the lowest, median and highest value at each time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from collector.node.metrics.requests import Operation
from exporters.charts import axes
from exporters.charts.axes import Scale, time_axis
from exporters.charts.gnuplot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page
from exporters.charts.gnuplot_panel import (
    END_PX,
    Line,
    LineStyle,
    Timeline,
    can_be_drawn,
    hover,
    plot,
    plot_panel,
    shared_timeline,
    stack,
    time_axis_commands,
    values_of,
)
from exporters.charts.plot_data import (
    Columns,
    PlotData,
    Values,
    gaps_of,
    has_isolated,
    node_columns,
    present,
    shown_operations,
    slowest,
    span_text,
    thinned,
)
from exporters.charts.plot_style import LANE_PX, OPERATION_STYLES, PERCENTILE_STYLES, TEXT_PT, heading, shortened

_BAND_PX = 190


@dataclass(frozen=True)
class _BandPanel:
    """A panel: the column in the data file, its label, and its style; `log` is whether its axis is logarithmic."""

    name: str
    label: str
    style: LineStyle
    log: bool


def _band_panels(run: PlotData) -> list[_BandPanel]:
    operations = shown_operations(run)
    styles = {operation: LineStyle(*OPERATION_STYLES[operation.word]) for operation in operations}
    panels = [_BandPanel(f"{one.plural}_per_s", f"{one.title}/s", style, log=False) for one, style in styles.items()]
    for operation, style in styles.items():
        label = f"{operation.title.removesuffix('s')} p99, ms"
        panels.append(_BandPanel(f"{operation.word}_p99_ms", label, style, log=True))
    return panels


def draw_band(page: Page) -> Drawing:
    run, panels = page.run, _band_panels(page.run)
    data = _band_data(run, 2 * page.width)
    timeline = shared_timeline(page)
    area = page.area(timeline.height)
    boxes = stack(area, len(panels))
    commands = [f"x(n) = column(n) + {run.zone_s}", *timeline.lines()]
    commands += [*page.labels(span_text(run)), *timeline.label_commands(area.top)]
    for panel, box in zip(panels, boxes, strict=True):
        commands += [
            "",
            f"# {panel.label}: lowest, median and highest node.",
            *time_axis_commands(timeline.axis, labels=box is boxes[-1]),
            *_band_panel(page, box, data, panel),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _band_data(run: PlotData, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    by_node = [node_columns(run, node) for node in run.nodes]
    for panel in _band_panels(run):
        times = [present(values) for values in zip(*(of_node[panel.name] for of_node in by_node), strict=True)]
        for statistic, of in (("min", min), ("median", median), ("max", max)):
            columns[f"{panel.name}_{statistic}"] = [of(values) if values else None for values in times]
    return thinned(columns, limit)


def _band_panel(page: Page, box: Box, data: Columns, panel: _BandPanel) -> list[str]:
    name, label, style, log = panel.name, panel.label, panel.style, panel.log
    low, middle, high = (data[f"{name}_{statistic}"] for statistic in ("min", "median", "max"))
    scale = (axes.logarithmic if log else axes.linear)([*present(low), *present(high)], box.height)
    edges = f"(column('{name}_min')):(column('{name}_max'))"
    # An isolated interval is visible only as a box.
    width = page.run.interval_s
    isolated = f"(column('{name}_median')):(x(1)-{width:g}):(x(1)):{edges} with boxxyerror"
    shape = isolated if has_isolated(middle) else f"{edges} with filledcurves"
    fill = f"fc rgb {style.colour} fs transparent solid 0.3 noborder"
    line = Line("median node", f"column('{name}_median')", middle, style)
    band = f"{page.data} using (x(1)):{shape} {fill} title 'lowest to highest'"
    parts = [band, line.plot(page), *hover(page, box, [line])] if can_be_drawn(line, log) else []
    return plot_panel(page, box, label, scale, parts, legend=box)


MAX_NODES = 12
_ROW_PX = 300
_BETWEEN_PX = 36
_NAME_PX = 20
_SLOWEST_STYLE = LineStyle(*PERCENTILE_STYLES["max"], width=0.8)
SLOWEST = "slowest_ms"


@dataclass(frozen=True)
class Cell:
    """One node's cell: its index, its box, and the edges of the plot that it touches."""

    index: int
    box: Box
    left: bool
    right: bool
    upper: bool
    lower: bool


def size(run: PlotData) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    if len(run.nodes) > MAX_NODES:
        return 1200, 140 + _BAND_PX * len(_band_panels(run))
    return 1200, 140 + _ROW_PX * max(2, _grid(len(run.nodes))[1])


def draw(page: Page) -> Drawing:
    if len(page.run.nodes) > MAX_NODES:
        return draw_band(page)
    run = page.run
    data = _data(run, 2 * page.width)
    operations = shown_operations(run)
    lines = [_lines(data, operations, index) for index in range(len(run.nodes))]
    cells = _cells(page)
    height = cells[0].box.height / 2 if cells else 0
    scales = (
        axes.linear(values_of(line for of_rates, _ in lines for line in of_rates), height),
        axes.logarithmic(values_of(line for _, tails in lines for line in tails), height),
    )
    commands = [f"x(n) = column(n) + {run.zone_s}", *page.labels(_subtitle(run))]
    for cell in cells:
        commands += ["", f"# Node {cell.index + 1}.", *_node(page, cell, lines[cell.index], scales)]
    if not cells:
        commands += ["set xrange [0:1]; set yrange [0:1]", *plot([])]
    return Drawing(commands, {"": data})


def _subtitle(run: PlotData) -> str:
    shaded = "; grey: warm-up" if any(phase.warm_up for phase in run.phases) else ""
    return f"{span_text(run)}{shaded}; red: no data from the node; thin: slowest operation"


def _grid(nodes: int) -> tuple[int, int]:
    """Return the number of columns and the number of rows in the grid of cells."""
    columns = max(nodes, 1) if nodes <= 3 else 2 if nodes == 4 else 3 if nodes <= 9 else 4
    return columns, ceil(max(nodes, 1) / columns)


def _cells(page: Page) -> list[Cell]:
    nodes = len(page.run.nodes)
    columns, rows = _grid(nodes)
    top = page.inside.top + (LANE_PX + 4 if page.run.phases else 0) + _NAME_PX
    right, bottom = page.width - RIGHT_PX, page.inside.bottom - TIME_AXIS_PX
    width = (right - LEFT_PX - _BETWEEN_PX * (columns - 1)) / columns
    height = (bottom - top - 2 * _NAME_PX * (rows - 1)) / rows
    cells = []
    for index in range(nodes):
        row, column = divmod(index, columns)
        x, y = LEFT_PX + column * (width + _BETWEEN_PX), top + row * (height + 2 * _NAME_PX)
        box = Box(x, y, x + width, y + height)
        cells.append(Cell(index, box, column == 0, column == columns - 1, row == 0, index + columns >= nodes))
    return cells


def _data(run: PlotData, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    for number, node in enumerate(run.nodes, 1):
        values = {**node_columns(run, node), SLOWEST: slowest(run, node)}
        columns |= {f"{number} {heading(node)} {name}": column for name, column in values.items()}
    return thinned(columns, limit)


def _lines(data: Columns, operations: Sequence[Operation], index: int) -> tuple[list[Line], list[Line]]:
    """Return a node's rates, and its p99 latencies with the slowest operation."""
    styles = [(operation.title, LineStyle(*OPERATION_STYLES[operation.word])) for operation in operations]
    shown = [*styles, *styles, ("slowest operation", _SLOWEST_STYLE)]
    first = 1 + index * len(shown)
    values = list(data.values())[first:]
    lines = [
        Line(title, f"column({first + 1 + number})", values[number], style)
        for number, (title, style) in enumerate(shown)
    ]
    return lines[: len(operations)], lines[len(operations) :]


def _node(page: Page, cell: Cell, lines: tuple[list[Line], list[Line]], scales: tuple[Scale, Scale]) -> list[str]:
    run, box, node = page.run, cell.box, page.run.nodes[cell.index]
    x_axis = time_axis(run, box.left, box.right)
    marks = [mark for mark in run.marks if mark.node in ("", node)]
    name = shortened(node, TEXT_PT, box.width)
    commands = [
        "unset arrow; unset object",
        *Timeline(page, x_axis, run.phases, gaps_of(run, node), marks).lines(),
        page.label(name, (box.left + box.right) / 2, box.top - 8, "center tc rgb ink"),
        # Label only the phases, because there is no room for other labels.
        *(Timeline(page, x_axis, run.phases, (), ()).label_commands(box.top - _NAME_PX / 2) if cell.upper else ()),
        *(page.legend(Box(0, box.top, page.width - RIGHT_PX, 0)) if cell.index == 0 else ["unset key"]),
    ]
    for panel, drawn, scale, label in zip(
        stack(box, 2), lines, scales, ("operations/s", "p99 latency, ms"), strict=True
    ):
        times = cell.lower and scale.log
        commands += [
            *time_axis_commands(x_axis, labels=times, beyond_px=END_PX if cell.right else _BETWEEN_PX / 2 - 8),
            *page.margins(panel),
            *page.axis(panel, label if cell.left else "", scale, numbers=cell.left),
            *_plot(page, panel, drawn, scale),
            "unset label; unset key",
        ]
    return commands


def _plot(page: Page, panel: Box, lines: Sequence[Line], scale: Scale) -> list[str]:
    drawn = [line for line in lines if can_be_drawn(line, scale.log)]
    return plot([*(line.plot(page) for line in drawn), *hover(page, panel, drawn)])
