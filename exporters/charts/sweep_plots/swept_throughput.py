"""Plots throughput against one parameter: a line for each combination of the others."""

from collections.abc import Sequence

from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import axis, legend, plot
from exporters.charts.plot_columns import Columns
from exporters.charts.plot_text import quoted
from exporters.charts.sweep_plots.swept_lines import SweptLine, parameter_axis, swept_lines
from exporters.results.sweep.sweep_rows import SweepTable

# The columns of a line: the throughput, and the limits of its confidence interval.
_COLUMNS = 3


def draw(page: Page, table: SweepTable, parameter: str) -> Drawing:
    box = page.area()
    swept = swept_lines(table, parameter)
    x_axis = parameter_axis("x", swept.values, box.width)
    data: Columns = {parameter: list(x_axis.positions.values())}
    for line in swept.lines:
        rows = [line.rows.get(value) for value in x_axis.positions]
        data[f"{line.heading} {table.unit.header}"] = [None if row is None else row.throughput for row in rows]
        data[f"{line.heading} low"] = [None if row is None else row.throughput_low for row in rows]
        data[f"{line.heading} high"] = [None if row is None else row.throughput_high for row in rows]
    limits = [row.throughput_high or row.throughput for line in swept.lines for row in line.rows.values()]
    scale = axes.linear([limit for limit in limits if limit is not None], box.height)
    runs = "95% confidence intervals" if any(row.low is not None for row in table.rows) else "one run each"
    commands = [
        *page.labels("; ".join(part for part in (runs, swept.note) if part)),
        *page.margins(box),
        *x_axis.commands,
        f"set xlabel {quoted(parameter)} tc rgb ink",
        *axis(page, box, table.unit.axis_label, scale),
        *(legend(page, box) if len(swept.lines) > 1 else ["unset key"]),
        *plot([part for line in swept.lines for part in _parts(page, line)]),
    ]
    return Drawing(commands, {"": data})


def _parts(page: Page, line: SweptLine) -> Sequence[str]:
    """Return the parts of the `plot` command for a line and its confidence intervals."""
    style, first = line.style, 2 + (line.number - 1) * _COLUMNS
    parts = [f"{page.data} using 1:{first} {line.linespoints}"]
    if any(row.low is not None for row in line.rows.values()):
        limits = f"{page.data} using 1:{first}:{first + 1}:{first + 2} with yerrorbars"
        parts.insert(0, f"{limits} lc rgb {style.colour} pt {style.point} ps 0 notitle")
    return parts
