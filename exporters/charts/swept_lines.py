"""Plots against one parameter: its axis, and the lines, one for each combination of the other parameters.

All plots against a parameter have the same lines, in the same order and styles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page, scale_commands
from exporters.charts.gnuplot_panel import MAX_RUNS, LineStyle, plot_panel, side_by_side, style_of, title_of
from exporters.charts.plot_data import Columns, present
from exporters.charts.plot_style import SMALL_PT, heading, quoted, shortened
from exporters.results.sweep.sweep_output import source_text
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable, number_of

# With a greater ratio of the highest to the lowest value, the axis is logarithmic.
_LOGARITHMIC_RATIO = 50.0
_LABEL_PX = 60.0
_TIC_WIDTH = 2.0


@dataclass(frozen=True)
class ParameterAxis:
    """The positions of a parameter's values, in ascending order, and the gnuplot commands of the axis."""

    positions: Mapping[str, float]
    commands: Sequence[str]


def numbers_of(values: Sequence[str]) -> dict[str, float] | None:
    """Return the values as numbers; None if one of them is not a decimal number, or if two are equal."""
    numbers = {value: number for value in values if (number := number_of(value)) is not None}
    return numbers if len(set(numbers.values())) == len(set(values)) else None


def parameter_axis(values: Sequence[str], length_px: float) -> ParameterAxis:
    """Return the horizontal axis of a parameter that is drawn as a line."""
    numbers = numbers_of(values)
    if numbers is None or len(numbers) < 2:
        return category_axis("x", values, length_px)
    ordered = dict(sorted(numbers.items(), key=lambda item: item[1]))
    low, high = min(numbers.values()), max(numbers.values())
    if low > 0 and high / low >= _LOGARITHMIC_RATIO:
        scale = axes.logarithmic(numbers.values(), length_px / _TIC_WIDTH)
    else:
        scale = axes.linear(numbers.values(), length_px / _TIC_WIDTH, low)
    return ParameterAxis(ordered, scale_commands("x", scale))


def category_axis(axis: str, values: Sequence[str], length_px: float, room_px: float = _LABEL_PX) -> ParameterAxis:
    """Return an axis with the values at equal distances; numbers are in ascending order, texts as they were given."""
    numbers = numbers_of(values)
    ordered = list(values) if numbers is None else sorted(values, key=numbers.__getitem__)
    every = -(-len(ordered) // max(1, int(length_px // room_px)))
    tics = ", ".join(
        f"{quoted(shortened(value, SMALL_PT, room_px))} {index}"
        for index, value in enumerate(ordered)
        if index % every == 0
    )
    commands = [f"unset logscale {axis}", f"set {axis}range [-0.5:{len(ordered) - 0.5:g}]", f"set {axis}tics ({tics})"]
    return ParameterAxis({value: float(index) for index, value in enumerate(ordered)}, commands)


@dataclass(frozen=True)
class SweptLine:
    """The rows of one combination of the other parameters.

    number  the number of the line in its plot, from 1.
    others  the values of the other parameters; empty if there are none.
    rows    keyed by the value of the plot's parameter; rows without a throughput are left out.
    """

    number: int
    others: tuple[str, ...]
    rows: Mapping[str, SweepRow]

    @property
    def style(self) -> LineStyle:
        return style_of(self.number - 1)

    @property
    def heading(self) -> str:
        """The beginning of the headings of the line's columns in the data file."""
        return f"{self.number} {heading('/'.join(self.others))}".rstrip()

    @property
    def linespoints(self) -> str:
        """The style and title of the line in a `plot` command."""
        style = self.style
        title = f"title {quoted(title_of('/'.join(self.others)))}" if self.others else "notitle"
        return (
            f"with linespoints lc rgb {style.colour} lw {style.width} dt {style.dash} pt {style.point}"
            f" ps 0.8*dot pi 1 {title}"
        )


@dataclass(frozen=True)
class SweptLines:
    """The lines of a plot against a parameter.

    values  the values of the parameter, in the order of the table.
    note    what the lines stand for, as a part of the subtitle; "" if there are no other parameters.
    """

    values: tuple[str, ...]
    lines: tuple[SweptLine, ...]
    note: str


def swept_lines(table: SweepTable, parameter: str) -> SweptLines:
    """Return the lines in the order of the table; if there are too many, those with the highest throughput."""
    rows = rows_by_line(table, parameter)
    shown = sorted(rows, key=lambda others: -_highest(rows[others]))[:MAX_RUNS]
    ordered = [others for others in rows if others in shown]
    other_names = [name for name in table.parameters if name != parameter]
    note = f"lines: {'/'.join(other_names)}" if other_names else ""
    if len(shown) < len(rows):
        note += f", the {len(shown)} with the highest throughput"
    return SweptLines(
        tuple(dict.fromkeys(row.parameters[parameter] for row in table.rows)),
        tuple(SweptLine(number, others, rows[others]) for number, others in enumerate(ordered, 1)),
        note,
    )


def rows_by_line(table: SweepTable, parameter: str) -> dict[tuple[str, ...], dict[str, SweepRow]]:
    """Return the rows with a throughput by the values of the other parameters and by that of `parameter`."""
    lines: dict[tuple[str, ...], dict[str, SweepRow]] = {}
    for row in table.rows:
        if row.throughput is not None:
            others = tuple(value for name, value in row.parameters.items() if name != parameter)
            lines.setdefault(others, {})[row.parameters[parameter]] = row
    return lines


def _highest(rows: Mapping[str, SweepRow]) -> float:
    return max(row.throughput or 0.0 for row in rows.values())


# The columns of a line: the throughput, and the limits of its confidence interval.
_COLUMNS = 3


def draw_throughput(page: Page, table: SweepTable, parameter: str) -> Drawing:
    box = page.area()
    swept = swept_lines(table, parameter)
    x_axis = parameter_axis(swept.values, box.width)
    horizontal = [*x_axis.commands, f"set xlabel {quoted(parameter)} tc rgb ink"]
    data: Columns = {parameter: list(x_axis.positions.values())}
    for line in swept.lines:
        rows = [line.rows.get(value) for value in x_axis.positions]
        data[f"{line.heading} {table.unit.header}"] = [None if row is None else row.throughput for row in rows]
        data[f"{line.heading} low"] = [None if row is None else row.throughput_low for row in rows]
        data[f"{line.heading} high"] = [None if row is None else row.throughput_high for row in rows]
    limits = [row.throughput_high or row.throughput for line in swept.lines for row in line.rows.values()]
    scale = axes.linear([limit for limit in limits if limit is not None], box.height)
    runs = "95% confidence intervals" if any(row.low is not None for row in table.rows) else "one run each"
    parts = [part for line in swept.lines for part in _parts(page, line)]
    legend = box if len(swept.lines) > 1 else None
    drawn = plot_panel(page, box, table.unit.axis_label, scale, parts, x_axis=horizontal, legend=legend)
    return Drawing([*page.labels("; ".join(part for part in (runs, swept.note) if part)), *drawn], {"": data})


def _parts(page: Page, line: SweptLine) -> Sequence[str]:
    """Return the parts of the `plot` command for a line and its confidence intervals."""
    style, first = line.style, 2 + (line.number - 1) * _COLUMNS
    parts = [f"{page.data} using 1:{first} {line.linespoints}"]
    if any(row.low is not None for row in line.rows.values()):
        limits = f"{page.data} using 1:{first}:{first + 1}:{first + 2} with yerrorbars"
        parts.insert(0, f"{limits} lc rgb {style.colour} pt {style.point} ps 0 notitle")
    return parts


# A line has a column for each of them.
_PERCENTILES = ("p50", "p95")


def draw_latency(page: Page, table: SweepTable, parameter: str) -> Drawing:
    area = page.area()
    boxes = side_by_side(area, len(_PERCENTILES))
    swept = swept_lines(table, parameter)
    x_axis = parameter_axis(swept.values, boxes[0].width)
    horizontal = [*x_axis.commands, f"set xlabel {quoted(parameter)} tc rgb ink"]
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
        # Each panel has all lines, because they share a legend.
        parts = [_part(page, line, name) for line in shown] if name in drawn else []
        legend = area if name in with_legend else None
        commands += [
            "",
            f"# {name}.",
            *plot_panel(page, box, f"{name} latency, ms", scale, parts, x_axis=horizontal, legend=legend),
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
