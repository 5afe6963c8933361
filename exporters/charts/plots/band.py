"""Plots the spread of many nodes: the lowest, median and highest value at each time."""

from statistics import median

from exporters.charts import value_axis
from exporters.charts.data_files import Columns, Values, has_isolated, present, series, thinned
from exporters.charts.plot_data import Run
from exporters.charts.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page, span_text
from exporters.charts.plot_panel import Line, LineStyle, axis, can_be_drawn, hover, legend, plot, stack
from exporters.charts.time_axis import time_axis
from exporters.charts.timeline import Timeline

SIZE = (1200, 900)
_PANELS = (
    ("reads_per_s", "reads/s", LineStyle("reads", 7), False),
    ("writes_per_s", "writes/s", LineStyle("writes", 9), False),
    ("read_p99_ms", "read p99, ms", LineStyle("reads", 7), True),
    ("write_p99_ms", "write p99, ms", LineStyle("writes", 9), True),
)


def draw(page: Page) -> Drawing:
    run, inside = page.run, page.inside
    data = _data(run, 2 * page.width)
    x_axis = time_axis(run, LEFT_PX, page.width - RIGHT_PX)
    timeline = Timeline(page, x_axis, run.phases, page.missing.gaps, run.marks)
    top = inside.top + timeline.height
    boxes = stack(Box(LEFT_PX, top, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX), len(_PANELS))
    commands = [f"x(n) = column(n) + {run.zone_s}", *timeline.lines()]
    commands += [*page.labels(span_text(run)), *timeline.label_commands(top)]
    for (name, label, style, log), box in zip(_PANELS, boxes, strict=True):
        commands += [
            "",
            f"# {label}: lowest, median and highest node.",
            *x_axis.commands(labels=box is boxes[-1]),
            *_panel(page, box, data, name, label, style, log=log),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _data(run: Run, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    for name, *_ in _PANELS:
        times = [present(values) for values in zip(*(series(run, node, name) for node in run.nodes), strict=True)]
        for statistic, of in (("min", min), ("median", median), ("max", max)):
            columns[f"{name}_{statistic}"] = [of(values) if values else None for values in times]
    return thinned(columns, limit)


def _panel(page: Page, box: Box, data: Columns, name: str, label: str, style: LineStyle, *, log: bool) -> list[str]:
    low, middle, high = (data[f"{name}_{statistic}"] for statistic in ("min", "median", "max"))
    scale = (value_axis.logarithmic if log else value_axis.linear)([*present(low), *present(high)], box.height)
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
