"""Plots throughput as a heat map over two parameters."""

from dataclasses import replace

from exporters.charts import axes
from exporters.charts.gnuplot_page import LEFT_PX, Box, Drawing, Page
from exporters.charts.gnuplot_panel import colour_box, plot, rotated_label, tics_text
from exporters.charts.plot_columns import Columns
from exporters.charts.plot_text import SMALL_PT, quoted
from exporters.charts.sweep_plots.swept_lines import category_axis
from exporters.results.sweep.sweep_rows import SweepTable

# In narrower cells, the numbers would overlap.
_NUMBER_PX, _NUMBER_HEIGHT_PX = 46.0, 16.0
_ROW_PX = 18.0


def draw(page: Page, table: SweepTable, horizontal: str, vertical: str) -> Drawing:
    box = replace(page.area(), left=LEFT_PX + 24)
    columns, rows = (list(dict.fromkeys(row.parameters[name] for row in table.rows)) for name in (horizontal, vertical))
    x_axis = category_axis("x", columns, box.width)
    y_axis = category_axis("y", rows, box.height * LEFT_PX / _ROW_PX, LEFT_PX)
    cells = highest_by_cell(table, horizontal, vertical)
    data: Columns = {
        horizontal: [x_axis.positions[x] for x, _ in cells],
        f"{vertical} ": [y_axis.positions[y] for _, y in cells],
        table.unit.column: list(cells.values()),
    }
    has_numbers = box.width / len(columns) >= _NUMBER_PX and box.height / len(rows) >= _NUMBER_HEIGHT_PX
    others = [name for name in table.parameters if name not in (horizontal, vertical)]
    subtitle = f"{table.unit.name}; the highest over {', '.join(others)}" if others else table.unit.name
    commands = [
        *page.labels(subtitle),
        *page.margins(box),
        *x_axis.commands,
        *y_axis.commands,
        "unset grid",
        f"set xlabel {quoted(horizontal)} tc rgb ink",
        *rotated_label(page, box, vertical, 16, 9001),
        *_colours(page, box, list(cells.values())),
        *plot(_parts(page, has_numbers=has_numbers) if cells else []),
        "set grid",
    ]
    return Drawing(commands, {"": data})


def highest_by_cell(table: SweepTable, horizontal: str, vertical: str) -> dict[tuple[str, str], float]:
    """Return the highest throughput for each pair of values; pairs without a known throughput are left out."""
    cells: dict[tuple[str, str], float] = {}
    for row in table.rows:
        if row.throughput is not None:
            cell = row.parameters[horizontal], row.parameters[vertical]
            cells[cell] = max(row.throughput, cells.get(cell, 0.0))
    return cells


def _colours(page: Page, box: Box, values: list[float]) -> list[str]:
    low = min(values, default=0.0)
    scale = axes.linear(values, box.height, low)
    commands = [f"set cbrange [{scale.low:.6g}:{scale.high:.6g}]", f"set cbtics ({tics_text(scale)})"]
    return [*colour_box(page, box, commands), f"middle = {(scale.low + scale.high) / 2:.6g}"]


def _parts(page: Page, *, has_numbers: bool) -> list[str]:
    parts = [
        f"{page.data} using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fs solid noborder lc palette"
        " notitle"
    ]
    if has_numbers:
        number = "(gprintf('%.1s%c', $3))"
        parts += [
            f"{page.data} using ($3 {compared} middle ? $1 : NaN):2:{number} with labels font ',{SMALL_PT}'"
            f" tc rgb '{colour}' notitle"
            for compared, colour in (("<", "#FFFFFF"), (">=", "#000000"))
        ]
    return parts
