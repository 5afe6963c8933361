"""Latency against throughput: one point per interval."""

from collections.abc import Sequence
from math import log10

from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import HOVER, plot_panel, side_by_side, value_axis
from exporters.charts.plot_data import CLUSTER, Columns, Values, in_warm_up, present, series, span_text
from exporters.charts.plot_style import PERCENTILE_STYLES
from exporters.rows.operation_columns import TOTAL_RATE

_COUNTED, _WARM_UP, _INCOMPLETE = 0.0, 1.0, 2.0
_QUANTILES = tuple((name, PERCENTILE_STYLES[name][0], point) for name, point in (("p95", 6), ("p99", 8)))
# With more than `_MANY` rows, a row is left out if each of its points lies within about 1/200 of a decade of a point
# from an earlier row.
_MANY, _STEPS_PER_DECADE = 3000, 200
_HOVERS = 600


def draw(page: Page) -> Drawing:
    run, area, data = page.run, page.area(), _data(page)
    columns = [data[f"{word}_{q}_ms"] for word in ("read", "write") for q, _, _ in _QUANTILES]
    boxes = side_by_side(area, 2)
    x_scale = axes.linear(present(data["operations_per_s"]), boxes[0].width / 2.5)
    x_axis = value_axis(x_scale, "operations/s of the cluster")
    scale = axes.logarithmic([value for column in columns for value in present(column)], area.height)
    commands = [f"x(n) = column(n) + {run.zone_s}", *page.labels(f"{span_text(run)}; one point per interval")]
    for word, box in zip(("read", "write"), boxes, strict=True):
        legend = box if word == "write" else None
        parts = _plots(page, data, word)
        drawn = plot_panel(page, box, f"{word} latency, ms", scale, parts, x_axis=x_axis, legend=legend)
        commands += ["", f"# {word.capitalize()}s.", *drawn, "unset label"]
    return Drawing(commands, {"": data})


def _data(page: Page) -> Columns:
    run = page.run
    fewer = page.missing.incomplete
    state = [
        _INCOMPLETE if fewer[index] else _WARM_UP if in_warm_up(run, time_s) else _COUNTED
        for index, time_s in enumerate(run.times)
    ]
    columns: dict[str, Values] = {"time": list(run.times), "state": state, TOTAL_RATE: series(run, CLUSTER, TOTAL_RATE)}
    for word in ("read", "write"):
        for q, _, _ in _QUANTILES:
            columns[f"{word}_{q}_ms"] = series(run, CLUSTER, f"{word}_{q}_ms")
    return _visible(columns)


def _visible(columns: Columns) -> Columns:
    """Return the rows; if there are many, omit those whose points all lie close to earlier points of the same kind."""
    rows = list(zip(*columns.values(), strict=True))
    if len(rows) <= _MANY:
        return columns
    covered: set[tuple[object, ...]] = set()
    kept = []
    for row in rows:
        _, state, operations, *latencies = row
        points = {
            (state, index, *(round(_STEPS_PER_DECADE * log10(value)) for value in (operations, latency)))
            for index, latency in enumerate(latencies)
            if operations and latency and operations > 0 and latency > 0
        }
        if points - covered:
            covered |= points
            kept.append(row)
    return dict(zip(columns, map(list, zip(*kept, strict=True)), strict=True)) if kept else columns


def _plots(page: Page, data: Columns, word: str) -> Sequence[str]:
    plots = []
    for state, suffix, colour, points in (
        (_INCOMPLETE, ", fewer nodes", "alarm", (1, 2)),
        (_WARM_UP, ", warm-up", "faint", (6, 8)),
        (_COUNTED, "", "", (6, 8)),
    ):
        for (q, own_colour, _), point in zip(_QUANTILES, points, strict=True):
            name = f"{word}_{q}_ms"
            rows = zip(data["state"], data[name], data["operations_per_s"], strict=True)
            if any(at == state and value and operations is not None for at, value, operations in rows):
                x = f"(column('state') == {state:g} ? column('operations_per_s') : NaN)"
                style = f"pt {point} ps 0.7*dot lc rgb {colour or own_colour}"
                plots.append(f"{page.data} using {x}:(column('{name}')) with points {style} title '{q}{suffix}'")
    return [
        *plots,
        *(_hover(page, f"{word}_{q}_ms", f"{word} {q}", len(data["time"])) for q, _, _ in _QUANTILES if plots),
    ]


def _hover(page: Page, name: str, title: str, rows: int) -> str:
    every = -(-rows // _HOVERS)
    words = rf"'\n%.5g operations/s\n{title} %.5g ms'"
    return (
        f"for [i=1:hover] {page.data} every {every} using (column('operations_per_s')):(column('{name}'))"
        f":(clock(0).sprintf({words}, column('operations_per_s'), column('{name}')))"
        f" with labels {HOVER} notitle"
    )
