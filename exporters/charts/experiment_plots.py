"""The plots of experiments: of a sweep, and of a search for the capacity.

To add a plot of a sweep, add a function that draws it, and a row to `sweep_plots`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import log10

from exporters.charts import axes
from exporters.charts.all_plots import Plot
from exporters.charts.axes import Scale
from exporters.charts.gnuplot_page import LEFT_PX, Box, Drawing, Page, tics_text
from exporters.charts.gnuplot_panel import plot, plot_panel, side_by_side, value_axis
from exporters.charts.plot_data import Columns
from exporters.charts.plot_style import PERCENTILE_STYLES, SMALL_PT, quoted, shortened
from exporters.charts.swept_lines import category_axis, draw_latency, draw_throughput
from exporters.results.capacity.search import SearchResult
from exporters.results.capacity.step_verdict import rate_text
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable


def sweep_plots(table: SweepTable) -> Sequence[Plot]:
    """Return the plots; a parameter with only one value has none."""
    varied = [name for name in table.parameters if len({row.parameters[name] for row in table.rows}) > 1]
    lines = "a line for each combination of the other parameters"
    plots = []
    for kind, about, draw in (
        ("throughput", "throughput", draw_throughput),
        ("latency", "median and p95", draw_latency),
    ):
        for name in varied:
            of_name = partial(draw, table=table, parameter=name)
            plots.append(Plot(f"{kind}_{name}", f"{about} against {name}, {lines}", of_name))
    about = "p95 and p99 against throughput, with the Pareto front"
    plots.append(Plot("pareto", about, partial(draw_pareto, table=table)))
    for first, second in combinations(varied, 2):
        of_both = partial(draw_heatmap, table=table, horizontal=first, vertical=second)
        plots.append(Plot(f"heatmap_{first}_{second}", f"throughput by {first} and {second}", of_both))
    return plots


# A label's width, and the smallest vertical distance between two labels.
_LABEL_PX, _LABEL_HEIGHT_PX = 80, 14
_PERCENTILES = tuple((name, PERCENTILE_STYLES[name][0], point) for name, point in (("p95", 6), ("p99", 8)))


def draw_pareto(page: Page, table: SweepTable) -> Drawing:
    area = page.area()
    boxes = side_by_side(area, len(_PERCENTILES))
    rows = [row for row in table.rows if row.throughput is not None]
    latencies = [value for row in rows for value in (row.p95_ms, row.p99_ms) if value is not None]
    x_scale = axes.linear([row.throughput for row in rows if row.throughput is not None], boxes[0].width / 2.5)
    x_axis = value_axis(x_scale, table.unit.axis_label)
    scale = axes.logarithmic(latencies, area.height)
    names = [name for name, *_ in _PERCENTILES]
    files = {"": _pareto_data(table, rows, names)}
    commands = page.labels(
        "one point per combination; the line joins those that no other one surpasses in both;"
        f" labels: {'/'.join(table.parameters)}"
    )
    for (name, colour, point), box in zip(_PERCENTILES, boxes, strict=True):
        front = pareto_front(rows, name)
        files[f"front_{name}"] = _pareto_data(table, front, [name])
        parts = _pareto_parts(page, table.unit.column, name, colour, point) if front else []
        before, legend = _labels(front, name, scale, box), box if name == names[-1] else None
        drawn = plot_panel(page, box, f"{name} latency, ms", scale, parts, x_axis=x_axis, before=before, legend=legend)
        commands += ["", f"# {name}.", *drawn, "unset label"]
    return Drawing(commands, files)


def _pareto_data(table: SweepTable, rows: Sequence[SweepRow], percentiles: Sequence[str]) -> Columns:
    latencies: Columns = {f"{name}_ms": [row.latency_ms(name) for row in rows] for name in percentiles}
    return {table.unit.column: [row.throughput for row in rows], **latencies}


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


def _pareto_parts(page: Page, column: str, name: str, colour: str, point: int) -> list[str]:
    return [
        f"{page.data_of(f'front_{name}')} using 1:2 with lines lc rgb faint lw 1.3 title 'Pareto front'",
        f"{page.data} using (column('{column}')):(column('{name}_ms')) with points pt {point} ps 1.0*dot"
        f" lc rgb {colour} title 'combinations'",
    ]


# In narrower cells, the numbers would overlap.
_NUMBER_PX, _NUMBER_HEIGHT_PX = 46.0, 16.0
_ROW_PX = 18.0


def draw_heatmap(page: Page, table: SweepTable, horizontal: str, vertical: str) -> Drawing:
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
        *page.rotated_label(box, vertical, 16, 9001),
        *_colours(page, box, list(cells.values())),
        *plot(_heatmap_parts(page, has_numbers=has_numbers) if cells else []),
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
    return [*page.colour_box(box, commands), f"middle = {(scale.low + scale.high) / 2:.6g}"]


def _heatmap_parts(page: Page, *, has_numbers: bool) -> list[str]:
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


def capacity_plots(result: SearchResult) -> Sequence[Plot]:
    """Return the plots of a search; none without steps that have a latency."""
    if not result.curve:
        return []
    return [Plot("capacity", "latency against rate", partial(draw_capacity, result=result))]


def draw_capacity(page: Page, result: SearchResult) -> Drawing:
    box = page.area()
    limits = [objective.limit for objective in result.objectives if objective.column == result.latency_column]
    rates, latencies = [rate for rate, _ in result.curve], [latency for _, latency in result.curve]
    scale = axes.logarithmic([*latencies, *limits], box.height)
    x_axis = value_axis(axes.linear(rates, box.width / 2.5), "rate, operations/s")
    is_met = {step.step.rate: step.verdict.is_met for step in result.steps}
    steps: Columns = {
        "rate": rates,
        "met_ms": [latency if is_met[rate] else None for rate, latency in result.curve],
        "missed_ms": [None if is_met[rate] else latency for rate, latency in result.curve],
    }
    curve: Columns = {"rate": rates, "latency_ms": latencies}
    arrows = [
        f"set arrow from graph 0, first {limit:.6g} to graph 1, first {limit:.6g} nohead lc rgb faint dt 2"
        for limit in limits
    ]
    parts = [
        f"{page.data_of('curve')} using 1:2 with lines lc rgb faint lw 1.3 notitle",
        f"{page.data} using 1:2 with points pt 7 ps 1.1*dot lc rgb tail title 'objectives met'",
        f"{page.data} using 1:3 with points pt 9 ps 1.1*dot lc rgb vermillion title 'not met'",
    ]
    label, before = f"{result.latency_column.removesuffix('_ms')}, ms", [*arrows, *_band(result)]
    drawn = plot_panel(page, box, label, scale, parts, x_axis=x_axis, before=before, legend=box)
    return Drawing([*page.labels(_subtitle(result)), *drawn], {"": steps, "curve": curve})


def _band(result: SearchResult) -> list[str]:
    """Return the commands that shade the confidence interval, and mark the knee."""
    known, commands = result.bracket, []
    if known.low is not None and known.high is not None:
        commands.append(
            f"set object rectangle from first {known.low:.6g}, graph 0 to first {known.high:.6g}, graph 1 behind"
            " fc rgb faint fs transparent solid 0.2 noborder"
        )
    if result.knee is not None:
        commands.append(f"set arrow from first {result.knee:.6g}, graph 0 rto 0, graph 1 nohead lc rgb faint dt 3")
    return commands


def _subtitle(result: SearchResult) -> str:
    parts = ["dashed: objective"]
    if result.bracket.low is not None and result.bracket.high is not None:
        parts.append("shaded: 95% interval of the capacity")
    if result.knee is not None:
        parts.append(f"dotted: knee, {rate_text(result.knee)}/s")
    return "; ".join(parts)
