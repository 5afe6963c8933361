"""Plots throughput against one parameter: a line for each combination of the others."""

from collections.abc import Mapping, Sequence

from exporters.gnuplot import value_axis
from exporters.gnuplot.data_files import Columns
from exporters.gnuplot.overlay.run_styles import MAX_RUNS, style_of, title_of
from exporters.gnuplot.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page
from exporters.gnuplot.plot_panel import axis, legend, plot
from exporters.gnuplot.text_escaping import heading, quoted
from exporters.sweep.plots.parameter_axis import parameter_axis
from exporters.sweep.sweep_rows import SweepRow, SweepTable

# The columns of a line: the throughput, and the limits of its confidence interval.
_COLUMNS = 3


def draw(page: Page, table: SweepTable, parameter: str) -> Drawing:
    inside = page.inside
    box = Box(LEFT_PX, inside.top + 12, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX)
    lines = lines_of(table, parameter)
    shown = sorted(lines, key=lambda others: -_highest(lines[others]))[:MAX_RUNS]
    is_complete = len(shown) == len(lines)
    lines = {others: rows for others, rows in lines.items() if others in shown}
    values = list(dict.fromkeys(row.parameters[parameter] for row in table.rows))
    x_axis = parameter_axis("x", values, box.width)
    data: Columns = {parameter: list(x_axis.positions.values())}
    for index, (others, rows) in enumerate(lines.items(), 1):
        ordered = [rows.get(value) for value in x_axis.positions]
        name = f"{index} {heading('/'.join(others))}".rstrip()
        data[f"{name} ops/s"] = [None if row is None else row.ops_per_s for row in ordered]
        data[f"{name} low"] = [None if row is None else row.low for row in ordered]
        data[f"{name} high"] = [None if row is None else row.high for row in ordered]
    limits = [row.high or row.ops_per_s for rows in lines.values() for row in rows.values()]
    scale = value_axis.linear([limit for limit in limits if limit is not None], box.height)
    subtitle = "95% confidence intervals" if any(row.low is not None for row in table.rows) else "one run each"
    other_names = [name for name in table.parameters if name != parameter]
    if other_names:
        subtitle += f"; lines: {'/'.join(other_names)}"
    if not is_complete:
        subtitle += f", the {len(shown)} with the highest throughput"
    commands = [
        *page.labels(subtitle),
        *page.margins(box),
        *x_axis.commands,
        f"set xlabel {quoted(parameter)} tc rgb ink",
        *axis(page, box, "throughput, operations/s", scale),
        *(legend(page, box) if len(lines) > 1 else ["unset key"]),
        *plot([part for index, others in enumerate(lines) for part in _parts(page, index, others, data)]),
    ]
    return Drawing(commands, {"": data})


def lines_of(table: SweepTable, parameter: str) -> dict[tuple[str, ...], dict[str, SweepRow]]:
    """Return the rows with a throughput by the values of the other parameters and by that of `parameter`."""
    lines: dict[tuple[str, ...], dict[str, SweepRow]] = {}
    for row in table.rows:
        if row.ops_per_s is not None:
            lines.setdefault(_others(row.parameters, parameter), {})[row.parameters[parameter]] = row
    return lines


def _others(values: Mapping[str, str], parameter: str) -> tuple[str, ...]:
    return tuple(value for name, value in values.items() if name != parameter)


def _highest(rows: Mapping[str, SweepRow]) -> float:
    return max(row.ops_per_s or 0.0 for row in rows.values())


def _parts(page: Page, index: int, others: Sequence[str], data: Columns) -> Sequence[str]:
    """Return the parts of the `plot` command for a line and its confidence intervals."""
    style, first = style_of(index), 2 + index * _COLUMNS
    title = f"title {quoted(title_of('/'.join(others)))}" if others else "notitle"
    colour = f"lc rgb {style.colour}"
    parts = [
        f"{page.data} using 1:{first} with linespoints {colour} lw {style.width} dt {style.dash} pt {style.point}"
        f" ps 0.8*dot pi 1 {title}"
    ]
    if any(value is not None for value in list(data.values())[first]):
        limits = f"{page.data} using 1:{first}:{first + 1}:{first + 2} with yerrorbars"
        parts.insert(0, f"{limits} {colour} pt {style.point} ps 0 notitle")
    return parts
