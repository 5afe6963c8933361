"""Latency over time: one cell per bucket and time, coloured by the number of operations."""

from collections import defaultdict
from dataclasses import replace
from math import ceil, log10

from collector.node.metrics.requests import Operation
from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis, time_axis
from exporters.charts.plot_columns import Columns, cells, present, series
from exporters.charts.plot_data import CLUSTER, Run, in_warm_up, missing
from exporters.report.charts.chart import WIDTH, Chart, Panel, Points, TimeRange
from exporters.report.charts.svg_shapes import y_of
from exporters.report.charts.time_chart import MS, time_spans, time_tics
from exporters.texts import value_text

HEIGHT_PX = 220
LEVELS = 8
"""The number of colours; level 0 is the lowest count."""
MAX_COLUMNS = 150


def latency_heat_map(run: Run, operation: Operation) -> Chart | None:
    """Return the heat map of an operation; None if its latencies are unknown."""
    word, title = operation.word, operation.title
    singular = title.removesuffix("s")
    size = max(1, ceil(len(run.times) / MAX_COLUMNS))
    drawn = cells(run, word, size)
    counts = present(drawn["count"])
    if not counts:
        return None
    axis = time_axis(run, 0.0, WIDTH)
    scale = axes.logarithmic(present([*drawn["low_ms"], *drawn["high_ms"]]), HEIGHT_PX)
    names = {f"{singular} {q}": f"{word}_{q}_ms" for q in ("p50", "p95", "p99", "max")}
    lines = {name: series(run, CLUSTER, column) for name, column in names.items()}
    low, high = min(counts), max(counts)
    colours = f"darkest: {value_text(low)}, brightest: {value_text(high)} {title} per bucket"
    return Chart(
        f"heat-{word}",
        f"{singular[0].upper()}{singular[1:]} latency over time",
        f"local time; a cell covers {size * run.interval_s:g} s",
        [Panel(f"{singular} latency, ms; {colours}", scale, HEIGHT_PX, {}, _content(drawn, axis, scale, high))],
        time_tics(axis),
        [Points([*map(axis.px, run.times)], lines, dict.fromkeys(lines, MS))],
        [f"{_measured_text(run, operation)}; {colours}, on a logarithmic scale"],
        time_spans(run, axis, missing(run).gaps),
        (),
        TimeRange(axis.begin_s, axis.end_s, run.zone_s),
    )


def _measured_text(run: Run, operation: Operation) -> str:
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


def _content(columns: Columns, axis: TimeAxis, scale: Scale, highest: float) -> str:
    """Return one path per level; the coordinates are integers, so that no background is visible between cells."""
    paths: defaultdict[int, list[str]] = defaultdict(list)
    for begin_s, end_s, low, high, count in zip(*(present(values) for values in columns.values()), strict=True):
        left, right = round(axis.px(begin_s)), round(axis.px(end_s))
        top, bottom = (round(y_of(scale, value, HEIGHT_PX) or 0) for value in (high, low))
        level = _level(count, highest)
        paths[level].append(f"M{left} {top}h{right - left}v{max(bottom - top, 1)}H{left}")
    drawn_paths = {level: "".join(paths[level]) for level in sorted(paths)}
    return "".join(f'<path class="cell c{level}" d="{drawn}"/>' for level, drawn in drawn_paths.items())


def _level(count: float, highest: float) -> int:
    """Return the level of a count on a logarithmic scale from 1 to the highest count."""
    if count <= 1 or highest <= 1:
        return 0
    return min(int(LEVELS * log10(count) / log10(highest)), LEVELS - 1)
