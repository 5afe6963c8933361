"""Charts of latencies: by percentile, over time, and against throughput."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, log10

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets
from collector.node.metrics.requests import OPERATIONS, Operation
from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis, time_axis
from exporters.charts.plot_colours import OPERATION_STYLES, PERCENTILE_STYLES
from exporters.charts.plot_columns import Columns, Values, cells, curves, present, series, total_buckets
from exporters.charts.plot_data import CLUSTER, PlotData, in_warm_up, missing
from exporters.report.report_blocks import WIDTH, Chart, Panel, Points, Tic
from exporters.report.report_data import ReportData
from exporters.report.svg_chart import dots, line, y_of
from exporters.report.time_charts import MS, time_spans, time_tics
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, value_text

_PERCENTILES_PX = 260
_TITLES = {operation.word: operation.title for operation in OPERATIONS}
_STYLES = {operation.title: OPERATION_STYLES[operation.word][0] for operation in OPERATIONS}
_MS_PER_S = 1000.0
_DEFAULT_PERCENTAGES = (50.0, 90.0, 99.0, 99.9, 99.99)
_TIC_PERCENTAGES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999, 99.999999)
_HEAT_MAP_PX = 220
LEVELS = 8
"""The number of colours; level 0 is the lowest count."""
_MAX_COLUMNS = 150
_SCATTER_PX = 200
_QUANTILES = ("p95", "p99")


def percentile_chart(data: ReportData, client: Latency | None, client_kind: str) -> Chart | None:
    """Return the chart; `client` has the latencies of all operations of the clients, if they can be combined."""
    totals: dict[str, Buckets | None] = {word: total_buckets(data.merged, word) for word in _TITLES}
    columns = curves(totals)
    percentages = present(columns["percentile"])
    lines: dict[str, Values] = {title: columns[f"{word}_ms"] for word, title in _TITLES.items()}
    if client is not None and client.counts:
        name = f"client ({client_kind} time)"
        percentages = percentages or list(_DEFAULT_PERCENTAGES)
        lines = {name: _client_values(client, percentages), **(lines if columns["percentile"] else {})}
    lines = {name: values for name, values in lines.items() if present(values)}
    if not lines:
        return None
    last_nines = _nines(percentages[-1])
    x = [WIDTH * _nines(percentage) / last_nines for percentage in percentages]
    scale = axes.logarithmic([value for values in lines.values() for value in present(values)], _PERCENTILES_PX)
    styles = {name: _STYLES.get(name, "client") for name in lines}
    content = "".join(line(styles[name], x, values, scale, _PERCENTILES_PX) for name, values in lines.items())
    labels = [f"{percentage:.6g}% of operations" for percentage in percentages]
    return Chart(
        "percentiles",
        "Latency by percentile",
        "percentile, % of operations",
        [Panel("latency, ms", scale, _PERCENTILES_PX, styles, content)],
        [
            Tic(WIDTH * _nines(percentage) / last_nines, f"{percentage:.8g}%", index % 2 == 1)
            for index, percentage in enumerate(_TIC_PERCENTAGES)
            if _nines(percentage) <= last_nines
        ],
        [Points(x, lines, dict.fromkeys(lines, MS), labels)],
        _percentile_texts(totals, client, lines),
    )


def _nines(percentage: float) -> float:
    """Return the position on the axis: 1 for 90%, 2 for 99%, and so on."""
    return -log10(1 - percentage / 100)


def _client_values(client: Latency, percentages: Sequence[float]) -> list[float | None]:
    """Return the client's percentiles; None for those that are too high for the number of operations."""
    number = sum(client.counts.values())
    values = client.percentiles_s(percentages)
    return [
        value_s * _MS_PER_S if value_s is not None and 1 - percentage / 100 >= 0.999 / number else None
        for percentage, value_s in zip(percentages, values, strict=True)
    ]


def _percentile_texts(
    totals: Mapping[str, Buckets | None], client: Latency | None, lines: Mapping[str, Values]
) -> list[str]:
    counts = {_TITLES[word]: buckets.total for word, buckets in totals.items() if buckets}
    texts = [f"{name}: {counts[name]:,.0f} operations in complete intervals" for name in lines if name in counts]
    if client is not None and client.counts:
        texts.append(f"client: {sum(client.counts.values()):,} operations")
    return texts


def latency_heat_map(run: PlotData, operation: Operation) -> Chart | None:
    """Return the heat map of an operation; None if its latencies are unknown."""
    word, title = operation.word, operation.title
    singular = title.removesuffix("s")
    size = max(1, ceil(len(run.times) / _MAX_COLUMNS))
    drawn = cells(run, word, size)
    counts = present(drawn["count"])
    if not counts:
        return None
    axis = time_axis(run, 0.0, WIDTH)
    scale = axes.logarithmic(present([*drawn["low_ms"], *drawn["high_ms"]]), _HEAT_MAP_PX)
    names = {f"{singular} {q}": f"{word}_{q}_ms" for q in ("p50", "p95", "p99", "max")}
    lines = {name: series(run, CLUSTER, column) for name, column in names.items()}
    low, high = min(counts), max(counts)
    content = _heat_map_content(drawn, axis, scale, high)
    colours = f"darkest: {value_text(low)}, brightest: {value_text(high)} {title} per bucket"
    return Chart(
        f"heat-{word}",
        f"{singular[0].upper()}{singular[1:]} latency over time",
        f"local time; a cell covers {size * run.interval_s:g} s",
        [Panel(f"{singular} latency, ms; {colours}", scale, _HEAT_MAP_PX, {}, content)],
        time_tics(axis),
        [Points([*map(axis.px, run.times)], lines, dict.fromkeys(lines, MS))],
        [f"{_measured_text(run, operation)}; {colours}, on a logarithmic scale"],
        time_spans(run, axis, missing(run).gaps),
        (),
        axis,
    )


def _measured_text(run: PlotData, operation: Operation) -> str:
    """Return the number of operations in the measured phases, and the range of their latencies."""
    measured = [
        None if in_warm_up(run, time_s) else buckets
        for time_s, buckets in zip(run.times, run.buckets[operation.word], strict=True)
    ]
    found = cells(replace(run, buckets={operation.word: measured}), operation.word, len(run.times))
    lows, highs, counts = (present(found[name]) for name in ("low_ms", "high_ms", "count"))
    if not counts:
        return f"{operation.title}: none in the measured phases"
    return (
        f"{operation.title}: {sum(counts):,.0f} in buckets from {value_text(min(lows))} to {value_text(max(highs))} ms"
    )


def _heat_map_content(columns: Columns, axis: TimeAxis, scale: Scale, highest: float) -> str:
    """Return one path per level; the coordinates are integers, so that no background is visible between cells."""
    paths: defaultdict[int, list[str]] = defaultdict(list)
    for begin_s, end_s, low, high, count in zip(*(present(values) for values in columns.values()), strict=True):
        left, right = round(axis.px(begin_s)), round(axis.px(end_s))
        top, bottom = (round(y_of(scale, value, _HEAT_MAP_PX) or 0) for value in (high, low))
        level = _level(count, highest)
        paths[level].append(f"M{left} {top}h{right - left}v{max(bottom - top, 1)}H{left}")
    drawn_paths = {level: "".join(paths[level]) for level in sorted(paths)}
    return "".join(f'<path class="cell c{level}" d="{drawn}"/>' for level, drawn in drawn_paths.items())


def _level(count: float, highest: float) -> int:
    """Return the level of a count on a logarithmic scale from 1 to the highest count."""
    if count <= 1 or highest <= 1:
        return 0
    return min(int(LEVELS * log10(count) / log10(highest)), LEVELS - 1)


def scatter_chart(run: PlotData) -> Chart | None:
    """Return p95 and p99 of reads and of writes against the operations per second of the cluster.

    Intervals outside measured phases, and those in which a node is missing, are left out.
    """
    incomplete = missing(run).incomplete
    rates = series(run, CLUSTER, TOTAL_RATE)
    kept = sorted(
        (rate, index)
        for index, (rate, time_s) in enumerate(zip(rates, run.times, strict=True))
        if rate is not None and not incomplete[index] and not in_warm_up(run, time_s)
    )
    lines: dict[str, Values] = {}
    for word in ("read", "write"):
        for q in _QUANTILES:
            values = series(run, CLUSTER, f"{word}_{q}_ms")
            lines[f"{word} {q}"] = [values[index] for _, index in kept]
    lines = {name: values for name, values in lines.items() if present(values)}
    if not lines:
        return None
    x_scale = axes.linear([rate for rate, _ in kept], WIDTH / 5)
    width = x_scale.high - x_scale.low
    x = [WIDTH * (rate - x_scale.low) / width for rate, _ in kept]
    labels = [f"{value_text(rate)} operations/s at {clock_text(run.times[index], run.zone_s)}" for rate, index in kept]
    return Chart(
        "scatter",
        "Latency against throughput",
        f"operations/s of the cluster; a dot covers {run.interval_s:g} s",
        [panel for word in ("read", "write") for panel in _scatter_panels(word, lines, x)],
        [
            Tic(WIDTH * (tic - x_scale.low) / width, axes.short(tic), index % 2 == 1)
            for index, tic in enumerate(x_scale.tics)
        ],
        [Points(x, lines, dict.fromkeys(lines, MS), labels)],
        [
            f"{name}: {value_text(min(present(values)))} to {value_text(max(present(values)), MS)} at"
            f" {value_text(kept[0][0])} to {value_text(kept[-1][0])} operations/s"
            for name, values in lines.items()
        ],
    )


def _scatter_panels(word: str, lines: dict[str, Values], x: list[float]) -> list[Panel]:
    """Return the panel of an operation; [] if its latencies are unknown."""
    styles = {f"{word} {q}": PERCENTILE_STYLES[q][0] for q in _QUANTILES}
    drawn = {name: style for name, style in styles.items() if name in lines}
    if not drawn:
        return []
    scale = axes.logarithmic([value for name in drawn for value in present(lines[name])], _SCATTER_PX)
    content = "".join(dots(style, x, lines[name], scale, _SCATTER_PX) for name, style in drawn.items())
    return [Panel(f"{word} latency, ms", scale, _SCATTER_PX, drawn, content)]
