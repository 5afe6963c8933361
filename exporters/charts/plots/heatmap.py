"""Latency over time: one cell per bucket and interval, coloured by the number of operations."""

from exporters.charts import axes
from exporters.charts.gnuplot_page import Box, Drawing, Page, tics_text
from exporters.charts.gnuplot_panel import plot, shared_timeline, time_axis_commands
from exporters.charts.plot_data import Columns, cells, present, span_text
from exporters.charts.plot_style import SMALL_PT

# Approximate minimum width of a cell, in pixels: narrower cells would be indistinguishable and slow to draw.
_CELL_PX = 1.5


def draw(page: Page, operation: str) -> Drawing:
    """Draw the heat map of "read" or "write"."""
    run, timeline = page.run, shared_timeline(page)
    x_axis, box = timeline.axis, page.area(timeline.height)
    size = max(1, round(_CELL_PX * len(run.times) / box.width))
    data = cells(run, operation, size)
    scale = axes.logarithmic(present([*data["low_ms"], *data["high_ms"]]), box.height)
    drawn = "using (x(1)):3:(x(1)):(x(2) + wider):3:($4*higher):5 with boxxyerror fs solid noborder lc palette notitle"
    commands = [
        f"x(n) = column(n) + {run.zone_s}",
        *timeline.lines(),
        *time_axis_commands(x_axis, labels=True),
        *page.labels(span_text(run)),
        *timeline.label_commands(box.top),
        "",
        "# Each cell is half a pixel larger than its interval and its bucket, and the next cell covers the excess:",
        "# otherwise the background would show between cells.",
        f"wider = {0.5 * (x_axis.end_s - x_axis.begin_s) / box.width:.6g}",
        f"higher = {(scale.high / scale.low) ** (0.5 / box.height):.8g}",
        *page.margins(box),
        *page.axis(box, f"{operation} latency, ms", scale),
        *_colours(page, box, data, f"{operation}s per bucket in {size * run.interval_s:g} s"),
        *plot([f"{page.data} {drawn}"] if data["time"] else []),
    ]
    return Drawing(commands, {"": data})


def _colours(page: Page, box: Box, data: Columns, label: str) -> list[str]:
    counts = [count for count in data["count"] if count]
    low, high = min(counts, default=1.0), max(counts, default=10.0)
    tics = tics_text(axes.logarithmic([low, max(high, low * 10)], box.height))
    values = [
        "set logscale cb",
        f"set cbrange [{low:.6g}:{max(high, low * 10):.6g}]",
        f"set cbtics ({tics}) font ',{SMALL_PT}' tc rgb ink",
    ]
    return [*page.colour_box(box, values), *page.rotated_label(box, label, box.right + 84, 9003)]
