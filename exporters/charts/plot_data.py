"""The run that plots show: rows on a common time grid, buckets, marks, the footer, and where nodes are missing.

Its columns are series of the run, percentiles, and the cells of heat maps.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import groupby
from math import floor, isfinite, isinf, log10
from statistics import fmean

from collector.load_results.client_result import Latency
from collector.model.histogram import GROWTH, Buckets, merge, quantile
from collector.node.metrics.requests import OPERATIONS, Operation
from collector.printable import count_text
from exporters.texts import shown

CLUSTER = "cluster"
Row = Mapping[str, float | str | None]
"""A node's cells for one interval, keyed by column name (see `exporters.rows.view`)."""
_OPERATIONS = ("reads_per_s", "writes_per_s")
_NAMES_LETTERS = 26


@dataclass(frozen=True)
class Mark:
    """An event on a node at one moment. If `node` is "", the event concerns all nodes."""

    time_s: float
    node: str
    kind: str
    text: str


@dataclass(frozen=True)
class Phase:
    """A named part of the run. If it is a warm-up, plots exclude it from their totals."""

    begin_s: float
    end_s: float
    name: str
    warm_up: bool = False


@dataclass(frozen=True)
class ClientSeries:
    """What the clients of a run saw; unknown values are None, and kinds of latency without values are left out.

    times          the end of each of the clients' intervals, ascending; their lengths may differ.
    mean_ms        mean latency, keyed by kind of latency ("response", "service").
    p99_ms         keyed by kind of latency.
    distributions  keyed by kind of latency: the latencies of all operations outside the warm-up, as counts.
    """

    times: Sequence[float] = ()
    ops_per_s: Sequence[float | None] = ()
    mean_ms: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    p99_ms: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    distributions: Mapping[str, Latency] = field(default_factory=dict)


@dataclass(frozen=True)
class PlotData:
    """A merged run.

    name      the run's name, which is also the title of its plots.
    times     the end of each interval of the grid, in seconds since the epoch, ascending and `interval_s` apart.
    rows      keyed by node, including CLUSTER: one row for each time, None where the node has no data.
    buckets   keyed by `Operation.word`, such as "read": each interval's merged latency histogram, None where unknown.
    marks     events to mark along the time axis.
    phases    named parts of the run, which do not overlap.
    zone_s    offset of local time from UTC, in seconds.
    footer    versions, interval, lost samples, largest clock error.
    clients   only if several runs are overlaid: keyed by run, without runs that have no client results.
    """

    name: str
    interval_s: float
    times: Sequence[float]
    rows: Mapping[str, Sequence[Row | None]]
    buckets: Mapping[str, Sequence[Buckets | None]] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    phases: Sequence[Phase] = ()
    zone_s: int = 0
    footer: Sequence[str] = ()
    clients: Mapping[str, ClientSeries] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, excluding CLUSTER."""
        return [name for name in self.rows if name != CLUSTER]


def number(value: object) -> float | None:
    """Return a cell's value if it is a finite number, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    return None


@dataclass(frozen=True)
class Gap:
    """A time range in which the same nodes are missing; `count` also includes those whose names are unknown."""

    begin_s: float
    end_s: float
    nodes: tuple[str, ...]
    count: int

    def text(self, of: int) -> str:
        """Return the gap's label; `of` is the number of nodes in the cluster."""
        if self.count == of > 1:
            return f"all {of} nodes missing"
        names = ", ".join(self.nodes)
        if len(self.nodes) == self.count and (self.count == 1 or len(names) <= _NAMES_LETTERS):
            return f"{shown(names, _NAMES_LETTERS)} missing"
        return f"{self.count} of {of} nodes missing"


@dataclass(frozen=True)
class MissingNodes:
    """A run's gaps in chronological order, and, for each timestamp in the run, whether any node is missing."""

    gaps: tuple[Gap, ...]
    incomplete: tuple[bool, ...]


def missing(run: PlotData) -> MissingNodes:
    """Return a run's missing nodes; consecutive times with the same missing nodes form one gap."""
    missing_by_time = _missing(run)
    return MissingNodes(tuple(_gaps(run, missing_by_time)), tuple(count > 0 for _, count in missing_by_time))


def gaps_of(run: PlotData, node: str) -> list[Gap]:
    return list(_gaps(run, [(names, len(names)) for _, names in _absent(run, [node])]))


def _missing(run: PlotData) -> list[tuple[tuple[str, ...], int]]:
    missing_by_time = []
    for cluster_row, names in _absent(run, run.nodes):
        in_sum = number(cluster_row.get("nodes")) if cluster_row else None
        uncounted = len(run.nodes) - int(in_sum) if in_sum is not None else 0
        missing_by_time.append((names, max(len(names), uncounted)))
    return missing_by_time


def _absent(run: PlotData, nodes: Sequence[str]) -> Iterator[tuple[Row | None, tuple[str, ...]]]:
    """Yield the cluster's row at each time, and which of the nodes have none, or none of the cluster's rates."""
    cluster = run.rows.get(CLUSTER) or [None] * len(run.times)
    rows = [(node, run.rows[node]) for node in nodes]
    for index, cluster_row in enumerate(cluster):
        rates = [name for name in _OPERATIONS if cluster_row is not None and number(cluster_row.get(name)) is not None]
        yield cluster_row, tuple(node for node, of_node in rows if _is_absent(of_node[index], rates))


def _is_absent(row: Row | None, rates: Sequence[str]) -> bool:
    """Return whether there is no row, or it has none of the rates, if there are any."""
    return row is None or (bool(rates) and all(number(row.get(name)) is None for name in rates))


def _gaps(run: PlotData, missing: list[tuple[tuple[str, ...], int]]) -> Iterator[Gap]:
    for (nodes, count), group in groupby(zip(run.times, missing, strict=True), key=lambda pair: pair[1]):
        times = [time_s for time_s, _ in group]
        if count:
            yield Gap(times[0] - run.interval_s, times[-1], nodes, count)


def span_text(run: PlotData) -> str:
    """Return the run's time range, duration, number of nodes and interval."""
    nodes = len(run.nodes)
    of = f"{count_text(nodes, 'node')}, interval {run.interval_s:g} s"
    if not run.times:
        return of
    begin_s, end_s = run.times[0] - run.interval_s, run.times[-1]
    try:
        zone = timezone(timedelta(seconds=run.zone_s))
        begin, end = (datetime.fromtimestamp(time_s, zone) for time_s in (begin_s, end_s))
    except (OverflowError, ValueError, OSError):
        return of
    until = f"{end:%H:%M:%S}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {until} (UTC{begin.isoformat()[-6:]}), {duration_text(end_s - begin_s)}, {of}"


def duration_text(seconds: float) -> str:
    """Return a readable duration, such as 45 s, 10 min or 1 h 5 min."""
    if seconds < 120:
        return f"{seconds:.4g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if not hours else 0, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def in_warm_up(run: PlotData, time_s: float) -> bool:
    """Return whether the interval that ends at `time_s` overlaps a warm-up."""
    return overlaps_warm_up(run, time_s - run.interval_s, time_s)


def overlaps_warm_up(run: PlotData, begin_s: float, end_s: float) -> bool:
    """Return whether a time range overlaps a warm-up."""
    return any(phase.warm_up and begin_s < phase.end_s and end_s > phase.begin_s for phase in run.phases)


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


def decades(operations: float) -> float:
    """Return the highest percentile that a number of operations supports, as a number of nines (3 means 99.9%)."""
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
    ends = {decades(buckets.total) for buckets in merged.values() if buckets}
    counted: dict[str, list[float | None]] = {"percentile": [], **{f"{word}_ms": [] for word in merged}}
    for at in axis_steps(ends):
        q = 1 - 10**-at
        counted["percentile"].append(100 * q)
        for word, buckets in merged.items():
            value = quantile(buckets, q) if buckets and at <= decades(buckets.total) else None
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
