"""Plots p95 and p99 against throughput, with the Pareto front: the combinations that no other one surpasses in both."""

from collections.abc import Sequence
from math import log10

from exporters.charts import axes
from exporters.charts.axes import Scale
from exporters.charts.gnuplot_page import Box, Drawing, Page
from exporters.charts.gnuplot_panel import axis, legend, plot, scale_commands, side_by_side
from exporters.charts.plot_colours import PERCENTILE_STYLES
from exporters.charts.plot_columns import Columns
from exporters.charts.plot_text import SMALL_PT, quoted, shortened
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable

# A label's width, and the smallest vertical distance between two labels.
_LABEL_PX, _LABEL_HEIGHT_PX = 80, 14
_PERCENTILES = tuple((name, PERCENTILE_STYLES[name][0], point) for name, point in (("p95", 6), ("p99", 8)))


def draw(page: Page, table: SweepTable) -> Drawing:
    area = page.area()
    boxes = side_by_side(area, len(_PERCENTILES))
    rows = [row for row in table.rows if row.throughput is not None]
    latencies = [value for row in rows for value in (row.p95_ms, row.p99_ms) if value is not None]
    x_axis = axes.linear([row.throughput for row in rows if row.throughput is not None], boxes[0].width / 2.5)
    scale = axes.logarithmic(latencies, area.height)
    fronts = {name: pareto_front(rows, name) for name, _, _ in _PERCENTILES}
    data: Columns = {
        table.unit.column: [row.throughput for row in rows],
        **{f"{name}_ms": [row.latency_ms(name) for row in rows] for name, _, _ in _PERCENTILES},
    }
    files = {"": data}
    commands = page.labels(
        "one point per combination; the line joins those that no other one surpasses in both;"
        f" labels: {'/'.join(table.parameters)}"
    )
    for (name, colour, point), box in zip(_PERCENTILES, boxes, strict=True):
        front = fronts[name]
        files[f"front_{name}"] = {
            table.unit.column: [row.throughput for row in front],
            f"{name}_ms": [row.latency_ms(name) for row in front],
        }
        commands += [
            "",
            f"# {name}.",
            *page.margins(box),
            *scale_commands("x", x_axis),
            f"set xlabel {quoted(table.unit.axis_label)} tc rgb ink",
            *axis(page, box, f"{name} latency, ms", scale),
            *(legend(page, box) if name == _PERCENTILES[-1][0] else ["unset key"]),
            *_labels(front, name, scale, box),
            *plot(_parts(page, table.unit.column, name, colour, point) if front else []),
            "unset label",
        ]
    return Drawing(commands, files)


def pareto_front(rows: Sequence[SweepRow], percentile: str) -> list[SweepRow]:
    """Return the rows, by ascending throughput, with a lower latency than all rows with an equal or higher one."""
    known = [row for row in rows if row.throughput is not None and row.latency_ms(percentile) is not None]
    front: list[SweepRow] = []
    lowest = float("inf")
    for row in sorted(known, key=lambda row: (-(row.throughput or 0.0), row.latency_ms(percentile) or 0.0)):
        latency = row.latency_ms(percentile)
        if latency is not None and latency < lowest:
            front.append(row)
            lowest = latency
    return front[::-1]


def _labels(front: Sequence[SweepRow], percentile: str, scale: Scale, box: Box) -> list[str]:
    """Return the commands that write the values of the parameters below the points of the front, where no points are.

    A label that would overlap that of a point with a higher throughput is left out.
    """
    commands: list[str] = []
    lowest_px = float("inf")
    for row in reversed(front):
        latency = row.latency_ms(percentile)
        if not latency or row.throughput is None:
            continue
        height_px = box.height * log10(latency / scale.low) / log10(scale.high / scale.low)
        if height_px <= lowest_px - _LABEL_HEIGHT_PX:
            lowest_px = height_px
            text = shortened("/".join(row.parameters.values()), SMALL_PT, _LABEL_PX)
            commands.append(
                f"set label {quoted(text)} at first {row.throughput:.6g}, first {latency:.6g} left"
                f" offset character 1,-0.5 font ',{SMALL_PT}' tc rgb ink"
            )
    return commands


def _parts(page: Page, column: str, name: str, colour: str, point: int) -> list[str]:
    front = f"'{page.name}.front_{name}.tsv'"
    return [
        f"{front} using 1:2 with lines lc rgb faint lw 1.3 title 'Pareto front'",
        f"{page.data} using (column('{column}')):(column('{name}_ms')) with points pt {point} ps 1.0*dot"
        f" lc rgb {colour} title 'combinations'",
    ]
