"""The run's latency by percentile, without the warm-up; the tail is stretched, as in HdrHistogram's plots."""

from math import floor, log10

from collector.model.histogram import Buckets, highest
from collector.node.metrics.requests import OPERATIONS
from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import HOVER, plot_panel
from exporters.charts.plot_data import (
    CURVE_STEPS,
    PlotData,
    curves,
    decades,
    duration_text,
    present,
    span_text,
    total_buckets,
)
from exporters.charts.plot_style import OPERATION_STYLES, quoted

_TITLES = {operation.word: operation.title for operation in OPERATIONS}
_NAMED = (0.0, 50.0, 90.0, 95.0)
_MS = 1000.0


def draw(page: Page) -> Drawing:
    run, box = page.run, page.area()
    totals = {operation.word: total_buckets(run, operation.word) for operation in OPERATIONS}
    operations = [operation for operation in OPERATIONS if operation.is_usual or totals[operation.word]]
    merged = {operation.word: totals[operation.word] for operation in operations}
    data = curves(merged)
    values = [value for word in merged for value in present(data[f"{word}_ms"])]
    last = max((decades(buckets.total) for buckets in merged.values() if buckets), default=2.0)
    parts = [
        f"{page.data} using (-log10(1 - column('percentile')/100)):(column('{word}_ms')) with linespoints"
        f" lc rgb {colour} lw 2 pt {point} ps 0.9*dot pi {CURVE_STEPS // 2}"
        f" title {quoted(f'{operation.title}: {buckets.total:,.0f}')}"
        for operation in operations
        if (buckets := merged[word := operation.word])
        for colour, point in [OPERATION_STYLES[word]]
    ]
    parts += [
        f"for [i=1:hover] {page.data} using (-log10(1 - column('percentile')/100)):(column('{word}_ms'))"
        rf":(sprintf('%.7g%% of {operation.title}:\n%.4g ms or less', column('percentile'), column('{word}_ms')))"
        f" with labels {HOVER} notitle"
        for operation in operations
        if merged[word := operation.word]
    ]
    scale = axes.logarithmic(values, box.height)
    drawn = plot_panel(page, box, "latency, ms", scale, parts, x_axis=percentile_axis(last), legend=box)
    return Drawing([*page.labels(f"{span_text(run)}; {_warm_up_text(run)}{_longest(merged)}"), *drawn], {"": data})


def _warm_up_text(run: PlotData) -> str:
    seconds = sum(phase.end_s - phase.begin_s for phase in run.phases if phase.warm_up)
    return f"without the warm-up of {duration_text(seconds)}" if seconds > 0 else "including any warm-up"


def _longest(merged: dict[str, Buckets | None]) -> str:
    counted = [
        f"{_TITLES[word]} {axes.short(longest * _MS)} ms"
        for word, buckets in merged.items()
        if buckets and (longest := highest(buckets)) is not None
    ]
    return f"; longest: {', '.join(counted)}" if counted else ""


def percentile_axis(last: float, *, labels: bool = True) -> list[str]:
    """Return the commands for a horizontal axis of percentiles that ends at `last`, a number of nines."""
    percents = [*_NAMED, *(100 * (1 - 10.0**-nines) for nines in range(2, floor(last + 1e-9) + 1))]
    tics = (f"'{f'{percent:.10g}%%' if labels else ''}' {-log10(1 - percent / 100):.6g}" for percent in percents)
    return [
        f"set xrange [0:{last:.4f}]",
        f"set xtics ({', '.join(tics)})",
        f"set xlabel '{'percentile, % of operations' if labels else ''}' tc rgb ink",
    ]
