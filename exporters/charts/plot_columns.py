"""The columns that plots and charts show: series of a run, percentiles, and the cells of heat maps."""

from collections.abc import Collection, Sequence
from math import floor, isinf, log10
from statistics import fmean

from collector.model.histogram import GROWTH, Buckets, merge, quantile
from collector.node.metrics.requests import OPERATIONS, Operation
from exporters.charts.plot_data import CLUSTER, PlotData, in_warm_up, number

Values = Sequence[float | None]
Columns = dict[str, Values]
"""The columns of a data file, keyed by heading; all have the same length."""
_MS = 1000.0
# The points of a curve by percentile from one number of nines to the next.
CURVE_STEPS = 20
# Maximum length of the axis, in decades: nine decades end at 99.9999999% (all but one of a billion operations).
_MAX_DECADES = 9.0


def series(run: PlotData, node: str, column: str) -> list[float | None]:
    """Return a node's column: one value for each timestamp in the run."""
    rows = run.rows.get(node) or [None] * len(run.times)
    return [None if row is None else number(row.get(column)) for row in rows]


def other_operations(run: PlotData) -> list[Operation]:
    """Return the operations other than reads and writes that occur."""
    return [
        operation
        for operation in OPERATIONS
        if not operation.is_usual and any(series(run, CLUSTER, f"{operation.plural}_per_s"))
    ]


def shown_operations(run: PlotData) -> list[Operation]:
    """Return reads and writes, and the other operations that occur."""
    return [*(operation for operation in OPERATIONS if operation.is_usual), *other_operations(run)]


def node_columns(run: PlotData, node: str) -> dict[str, Values]:
    """Return a node's rates of the shown operations, followed by their p99 latencies, by column name."""
    operations = shown_operations(run)
    columns = {f"{operation.plural}_per_s": rates(run, node, operation) for operation in operations}
    return {**columns, **{name: series(run, node, name) for name in (f"{one.word}_p99_ms" for one in operations)}}


def rates(run: PlotData, node: str, operation: Operation) -> Values:
    """Return an operation's rate on a node, or in the cluster.

    One that is neither a read nor a write has a rate of 0 where reads have one.
    """
    values = series(run, node, f"{operation.plural}_per_s")
    if operation.is_usual:
        return values
    is_known = [reads is not None for reads in series(run, node, "reads_per_s")]
    return [0.0 if value is None and known else value for value, known in zip(values, is_known, strict=True)]


def present(values: Values) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def has_isolated(values: Values) -> bool:
    """Return whether any value has no neighbour on either side, so that a line would not show it."""
    padded = [None, *values, None]
    return any(
        here is not None and before is None and after is None
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )


def slowest(run: PlotData, node: str) -> Values:
    """Return the latency of a node's, or the cluster's, slowest operation in each interval, in ms.

    The intervals of a long run are long, and their percentiles hide short peaks; the maximum does not.
    """
    columns = [series(run, node, f"{operation.word}_max_ms") for operation in OPERATIONS]
    return [max(present(row), default=None) for row in zip(*columns, strict=True)]


def thinned(columns: Columns, limit: int, mean: Collection[str] = ()) -> Columns:
    """Return the columns with at most about `limit` rows, as many as a plot can show; the first column contains times.

    Rows that share a pixel become two rows, with each column's lowest and highest value in their original order. For
    the columns named in `mean`, which are stacked, both rows have the mean instead, because extremes do not add up. If
    any of a column's combined values is missing, one of the two values is missing as well, to keep the gap visible.
    """
    names = list(columns)
    length = len(columns[names[0]])
    size = -(-2 * length // limit)
    if size <= 2:
        return columns
    kept: dict[str, list[float | None]] = {name: [] for name in names}
    for start in range(0, length, size):
        for name in names:
            part = columns[name][start : start + size]
            if name == names[0]:
                kept[name] += [part[len(part) // 2], part[-1]]
            else:
                kept[name] += _pair(part, name in mean)
    return {name: kept[name] for name in names}


def _pair(part: Values, mean: bool) -> list[float | None]:
    values = present(part)
    if not values:
        return [None, None]
    if mean:
        first = second = fmean(values)
    else:
        low, high = min(values), max(values)
        first, second = (low, high) if part.index(low) <= part.index(high) else (high, low)
    if len(values) == len(part):
        return [first, second]
    # Only one value fits beside the gap: keep the second, which is the later extreme or the mean.
    return [second, None] if part[-1] is None else [None, second]


def total_buckets(run: PlotData, word: str) -> Buckets | None:
    """Return the merged buckets of all intervals outside the warm-up; None if they contain no operations."""
    counted = [
        buckets
        for time_s, buckets in zip(run.times, run.buckets.get(word, ()), strict=False)
        if buckets is not None and not in_warm_up(run, time_s)
    ]
    total = merge(counted) if counted else None
    return total if total and total.total > 0 else None


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
        *(step / CURVE_STEPS for step in range(1, floor(max(ends, default=0) * CURVE_STEPS) + 1)),
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


def cells(run: PlotData, operation: str, size: int) -> Columns:
    """Return the non-empty cells; each spans `size` intervals."""
    buckets = run.buckets.get(operation) or [None] * len(run.times)
    columns: dict[str, list[float | None]] = {name: [] for name in ("time", "end", "low_ms", "high_ms", "count")}
    for start in range(0, len(run.times), size):
        parts = [part for part in buckets[start : start + size] if part is not None]
        times = run.times[start : start + size]
        if parts:
            for low, high, count in _filled(merge(parts)):
                cell = (times[0] - run.interval_s, times[-1], low * _MS, high * _MS, count)
                for name, value in zip(columns, cell, strict=True):
                    columns[name].append(value)
    return dict(columns)


def _filled(buckets: Buckets) -> list[tuple[float, float, float]]:
    """Return the lower bound, the upper bound and the count of each non-empty bucket.

    The bounds are positive and finite, as a logarithmic axis requires.
    """
    lows = (buckets.low, *buckets.upper_bounds[:-1])
    filled = []
    for low, high, count in zip(lows, buckets.upper_bounds, buckets.counts, strict=True):
        if count > 0 and high > 0:
            filled.append((low or high / GROWTH, low * GROWTH if isinf(high) else high, count))
    return filled
