"""Plots the spread of many nodes: the lowest, median and highest value at each time."""

from dataclasses import dataclass
from statistics import median

from exporters.charts import axes
from exporters.charts.gnuplot_page import Box, Drawing, Page
from exporters.charts.gnuplot_panel import (
    Line,
    LineStyle,
    axis,
    can_be_drawn,
    hover,
    legend,
    plot,
    shared_timeline,
    stack,
    time_axis_commands,
)
from exporters.charts.plot_colours import OPERATION_STYLES
from exporters.charts.plot_columns import (
    Columns,
    Values,
    has_isolated,
    node_columns,
    present,
    shown_operations,
    thinned,
)
from exporters.charts.plot_data import PlotData, span_text

_PANEL_PX = 190


@dataclass(frozen=True)
class Panel:
    """A panel: the column in the data file, its label, and its style; `log` is whether its axis is logarithmic."""

    name: str
    label: str
    style: LineStyle
    log: bool


def size(run: PlotData) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 140 + _PANEL_PX * len(_panels(run))


def _panels(run: PlotData) -> list[Panel]:
    operations = shown_operations(run)
    styles = {operation: LineStyle(*OPERATION_STYLES[operation.word]) for operation in operations}
    panels = [Panel(f"{one.plural}_per_s", f"{one.title}/s", style, log=False) for one, style in styles.items()]
    for operation, style in styles.items():
        label = f"{operation.title.removesuffix('s')} p99, ms"
        panels.append(Panel(f"{operation.word}_p99_ms", label, style, log=True))
    return panels


def draw(page: Page) -> Drawing:
    run, panels = page.run, _panels(page.run)
    data = _data(run, 2 * page.width)
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
            *_panel(page, box, data, panel),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _data(run: PlotData, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    by_node = [node_columns(run, node) for node in run.nodes]
    for panel in _panels(run):
        times = [present(values) for values in zip(*(of_node[panel.name] for of_node in by_node), strict=True)]
        for statistic, of in (("min", min), ("median", median), ("max", max)):
            columns[f"{panel.name}_{statistic}"] = [of(values) if values else None for values in times]
    return thinned(columns, limit)


def _panel(page: Page, box: Box, data: Columns, panel: Panel) -> list[str]:
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
    return [
        *page.margins(box),
        *axis(page, box, label, scale),
        *legend(page, box),
        *plot([band, line.plot(page), *hover(page, box, [line])] if can_be_drawn(line, log) else []),
    ]
