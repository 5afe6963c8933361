"""How long operations took in the whole run, by percentile: the tail is stretched, as HdrHistogram's plots have it."""

from math import floor, log10

from collector.model.histogram import Buckets, highest, merge, quantile
from exporters.gnuplot import value_axis
from exporters.gnuplot.data_files import Columns, known
from exporters.gnuplot.plot_data import Run
from exporters.gnuplot.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page, duration_text, span_text
from exporters.gnuplot.plot_panel import HOVER, axis, legend, plot
from exporters.gnuplot.text_escaping import quoted

_STEPS = 20
# 99.9999999 %: what lies beyond is lost in the arithmetic.
_MOST_DECADES = 9.0
_WORDS = (("read", "reads", 7), ("write", "writes", 9))
_NAMED = (0.0, 50.0, 90.0, 95.0)
_MS = 1000.0


def size(_: Run) -> tuple[int, int]:
    """Return how large the picture is when nobody says."""
    return 1200, 700


def draw(page: Page) -> Drawing:
    """Return the picture."""
    run, inside = page.run, page.inside
    box = Box(LEFT_PX, inside.top + 12, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX)
    merged = {word: _whole(run, word) for word, _, _ in _WORDS}
    data = _curves(merged)
    values = [value for word in merged for value in known(data[f"{word}_ms"])]
    last = max((_decades(buckets) for buckets in merged.values() if buckets), default=2.0)
    parts = [
        f"{page.data} using (-log10(1 - column('percentile')/100)):(column('{word}_ms')) with linespoints"
        f" lc rgb {colour} lw 2 pt {point} ps 0.9*dot pi {_STEPS // 2} title {quoted(_title(colour, buckets))}"
        for word, colour, point in _WORDS
        if (buckets := merged[word])
    ]
    parts += [
        f"for [i=1:hover] {page.data} using (-log10(1 - column('percentile')/100)):(column('{word}_ms'))"
        rf":(sprintf('%.7g %% of {words}:\n%.4g ms or less', column('percentile'), column('{word}_ms')))"
        f" with labels {HOVER} notitle"
        for word, words, _ in _WORDS
        if merged[word]
    ]
    commands = [
        *page.labels(f"{span_text(run)}; {_left_out(run)}{_most(merged)}"),
        *page.margins(box),
        f"set xrange [0:{last:.4f}]",
        f"set xtics ({', '.join(_tics(last))})",
        "set xlabel 'percentile, % of operations that took no longer' tc rgb ink",
        *axis(page, box, "latency, ms", value_axis.logarithmic(values, box.height)),
        *legend(page, box),
        *plot(parts),
    ]
    return Drawing(commands, {"": data})


def _whole(run: Run, word: str) -> Buckets | None:
    """Return what the intervals outside the warm-up hold together."""
    found = [
        buckets
        for time_s, buckets in zip(run.times, run.buckets.get(word, ()), strict=False)
        if buckets is not None and not in_warm_up(run, time_s)
    ]
    whole = merge(found) if found else None
    return whole if whole and whole.total > 0 else None


def in_warm_up(run: Run, time_s: float) -> bool:
    """Return whether the interval that ends then is not to be counted."""
    return any(
        phase.warm_up and time_s - run.interval_s < phase.end_s and time_s > phase.begin_s for phase in run.phases
    )


def _left_out(run: Run) -> str:
    seconds = sum(phase.end_s - phase.begin_s for phase in run.phases if phase.warm_up)
    return f"without the warm-up of {duration_text(seconds)}" if seconds > 0 else "no warm-up left out"


def _most(merged: dict[str, Buckets | None]) -> str:
    found = [
        f"{word}s {value_axis.short(most * _MS)} ms"
        for word, buckets in merged.items()
        if buckets and (most := highest(buckets)) is not None
    ]
    return f"; longest: {', '.join(found)}" if found else ""


def _decades(buckets: Buckets) -> float:
    """Return how far to the right the percentiles of so many values go."""
    return min(max(log10(buckets.total), 1.0), _MOST_DECADES)


def _curves(merged: dict[str, Buckets | None]) -> Columns:
    far = max((_decades(buckets) for buckets in merged.values() if buckets), default=0.0)
    # Finer at the beginning, where nearly all of the operations are.
    steps = [*(step / 200 for step in range(10)), *(step / _STEPS for step in range(1, floor(far * _STEPS) + 1))]
    ends = {_decades(buckets) for buckets in merged.values() if buckets}
    found: dict[str, list[float | None]] = {"percentile": [], **{f"{word}_ms": [] for word in merged}}
    for at in sorted({*steps, *ends} if ends else ()):
        q = 1 - 10**-at
        found["percentile"].append(100 * q)
        for word, buckets in merged.items():
            value = quantile(buckets, q) if buckets and at <= _decades(buckets) else None
            found[f"{word}_ms"].append(None if value is None else value * _MS)
    return dict(found)


def _title(word: str, buckets: Buckets) -> str:
    return f"{word}: {buckets.total:,.0f}"


def _tics(last: float) -> list[str]:
    percents = [*_NAMED, *(100 * (1 - 10.0**-nines) for nines in range(2, floor(last + 1e-9) + 1))]
    return [f"'{percent:.10g} %%' {-log10(1 - percent / 100):.6g}" for percent in percents]
