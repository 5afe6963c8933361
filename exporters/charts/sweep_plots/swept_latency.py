"""Plots the median and p95 against one parameter: a line for each combination of the others."""

from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import axis, legend, plot, side_by_side
from exporters.charts.plot_columns import Columns, present
from exporters.charts.plot_text import quoted
from exporters.charts.sweep_plots.swept_lines import SweptLine, parameter_axis, swept_lines
from exporters.results.sweep.sweep_output import source_text
from exporters.results.sweep.sweep_rows import SweepTable

# A line has a column for each of them.
_PERCENTILES = ("p50", "p95")


def draw(page: Page, table: SweepTable, parameter: str) -> Drawing:
    area = page.area()
    boxes = side_by_side(area, len(_PERCENTILES))
    swept = swept_lines(table, parameter)
    x_axis = parameter_axis("x", swept.values, boxes[0].width)
    data: Columns = {parameter: list(x_axis.positions.values())}
    for line in swept.lines:
        rows = [line.rows.get(value) for value in x_axis.positions]
        for name in _PERCENTILES:
            data[_heading(line, name)] = [None if row is None else row.latency_ms(name) for row in rows]
    shown = [line for line in swept.lines if any(_can_be_drawn(line, name) for name in _PERCENTILES)]
    drawn = [name for name in _PERCENTILES if any(_can_be_drawn(line, name) for line in shown)]
    columns = [data[_heading(line, name)] for line in shown for name in _PERCENTILES]
    scale = axes.logarithmic([value for column in columns for value in present(column)], area.height)
    source = f"measured by {source_text(table)}" if shown else ""
    commands = page.labels("; ".join(part for part in (source, swept.note) if part))
    # A panel without lines cannot have the legend.
    with_legend = drawn[:1] if len(shown) > 1 else []
    for name, box in zip(_PERCENTILES, boxes, strict=True):
        commands += [
            "",
            f"# {name}.",
            *page.margins(box),
            *x_axis.commands,
            f"set xlabel {quoted(parameter)} tc rgb ink",
            *axis(page, box, f"{name} latency, ms", scale),
            *(legend(page, area) if name in with_legend else ["unset key"]),
            # Each panel has all lines, because they share a legend.
            *plot([_part(page, line, name) for line in shown] if name in drawn else []),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _heading(line: SweptLine, percentile: str) -> str:
    return f"{line.heading} {percentile}_ms"


def _can_be_drawn(line: SweptLine, percentile: str) -> bool:
    """Return whether a logarithmic axis can show any of the line's values."""
    return any((row.latency_ms(percentile) or 0.0) > 0 for row in line.rows.values())


def _part(page: Page, line: SweptLine, percentile: str) -> str:
    column = 2 + (line.number - 1) * len(_PERCENTILES) + _PERCENTILES.index(percentile)
    return f"{page.data} using 1:{column} {line.linespoints}"
