"""The lines of a plot against one parameter: one for each combination of the others.

All plots against a parameter have the same lines, in the same order and styles.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from exporters.charts.gnuplot_panel import MAX_RUNS, LineStyle, style_of, title_of
from exporters.charts.plot_text import heading, quoted
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable


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
