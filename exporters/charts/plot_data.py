"""The run that plots show: rows on a common time grid, buckets, marks, the footer, and where nodes are missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import groupby
from math import isfinite

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets
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
