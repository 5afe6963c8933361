"""The run's latency by percentile, without the warm-up; the tail is stretched, as in HdrHistogram's plots."""

from collections.abc import Collection
from math import floor, log10

from collector.model.histogram import Buckets, highest, merge, quantile
from collector.node.metrics.requests import OPERATIONS
from exporters.charts import axes
from exporters.charts.data_files import Columns, present
from exporters.charts.plot_colours import OPERATION_STYLES
from exporters.charts.plot_data import Run
from exporters.charts.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page, duration_text, span_text
from exporters.charts.plot_panel import HOVER, axis, legend, plot
from exporters.charts.text_escaping import quoted

_STEPS = 20
# Maximum length of the axis, in decades: nine decades end at 99.9999999% (all but one of a billion operations).
_MAX_DECADES = 9.0
_TITLES = {operation.word: operation.title for operation in OPERATIONS}
_NAMED = (0.0, 50.0, 90.0, 95.0)
_MS = 1000.0


def size(_: Run) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 700


def draw(page: Page) -> Drawing:
    run, inside = page.run, page.inside
    box = Box(LEFT_PX, inside.top + 12, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX)
    totals = {operation.word: total_buckets(run, operation.word) for operation in OPERATIONS}
    operations = [operation for operation in OPERATIONS if operation.is_usual or totals[operation.word]]
    merged = {operation.word: totals[operation.word] for operation in operations}
    data = curves(merged)
    values = [value for word in merged for value in present(data[f"{word}_ms"])]
    last = max((decades(buckets) for buckets in merged.values() if buckets), default=2.0)
    parts = [
        f"{page.data} using (-log10(1 - column('percentile')/100)):(column('{word}_ms')) with linespoints"
        f" lc rgb {colour} lw 2 pt {point} ps 0.9*dot pi {_STEPS // 2} title {quoted(_title(operation.title, buckets))}"
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
    commands = [
        *page.labels(f"{span_text(run)}; {_warm_up_text(run)}{_longest(merged)}"),
        *page.margins(box),
        f"set xrange [0:{last:.4f}]",
        f"set xtics ({', '.join(tics(last))})",
        "set xlabel 'percentile, % of operations' tc rgb ink",
        *axis(page, box, "latency, ms", axes.logarithmic(values, box.height)),
        *legend(page, box),
        *plot(parts),
    ]
    return Drawing(commands, {"": data})


def total_buckets(run: Run, word: str) -> Buckets | None:
    """Return the merged buckets of all intervals outside the warm-up; None if they contain no operations."""
    counted = [
        buckets
        for time_s, buckets in zip(run.times, run.buckets.get(word, ()), strict=False)
        if buckets is not None and not in_warm_up(run, time_s)
    ]
    total = merge(counted) if counted else None
    return total if total and total.total > 0 else None


def in_warm_up(run: Run, time_s: float) -> bool:
    """Return whether the interval that ends at `time_s` overlaps a warm-up."""
    return overlaps_warm_up(run, time_s - run.interval_s, time_s)


def overlaps_warm_up(run: Run, begin_s: float, end_s: float) -> bool:
    """Return whether a time range overlaps a warm-up."""
    return any(phase.warm_up and begin_s < phase.end_s and end_s > phase.begin_s for phase in run.phases)


def _warm_up_text(run: Run) -> str:
    seconds = sum(phase.end_s - phase.begin_s for phase in run.phases if phase.warm_up)
    return f"without the warm-up of {duration_text(seconds)}" if seconds > 0 else "including any warm-up"


def _longest(merged: dict[str, Buckets | None]) -> str:
    counted = [
        f"{_TITLES[word]} {axes.short(longest * _MS)} ms"
        for word, buckets in merged.items()
        if buckets and (longest := highest(buckets)) is not None
    ]
    return f"; longest: {', '.join(counted)}" if counted else ""


def decades(buckets: Buckets) -> float:
    """Return the highest percentile that the number of operations supports, as a number of nines (3 means 99.9%)."""
    return decades_of(buckets.total)


def decades_of(operations: float) -> float:
    """Return `decades` of this number of operations, which is positive."""
    return min(max(log10(operations), 1.0), _MAX_DECADES)


def axis_steps(ends: Collection[float]) -> list[float]:
    """Return the positions of points, as numbers of nines, for curves that end at `ends`; these are included."""
    # Near zero, each step spans more operations, so the steps are finer there.
    steps = [
        *(step / 200 for step in range(10)),
        *(step / _STEPS for step in range(1, floor(max(ends, default=0) * _STEPS) + 1)),
    ]
    return sorted({*steps, *ends}) if ends else []


def curves(merged: dict[str, Buckets | None]) -> Columns:
    """Return the percentiles of each histogram: a column KEY_ms for each key, and the column "percentile"."""
    ends = {decades(buckets) for buckets in merged.values() if buckets}
    counted: dict[str, list[float | None]] = {"percentile": [], **{f"{word}_ms": [] for word in merged}}
    for at in axis_steps(ends):
        q = 1 - 10**-at
        counted["percentile"].append(100 * q)
        for word, buckets in merged.items():
            value = quantile(buckets, q) if buckets and at <= decades(buckets) else None
            counted[f"{word}_ms"].append(None if value is None else value * _MS)
    return dict(counted)


def _title(word: str, buckets: Buckets) -> str:
    return f"{word}: {buckets.total:,.0f}"


def tics(last: float, *, labels: bool = True) -> list[str]:
    """Return the tics of a percentile axis that ends at `last`, a number of nines."""
    percents = [*_NAMED, *(100 * (1 - 10.0**-nines) for nines in range(2, floor(last + 1e-9) + 1))]
    return [f"'{f'{percent:.10g}%%' if labels else ''}' {-log10(1 - percent / 100):.6g}" for percent in percents]
