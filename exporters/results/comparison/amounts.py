"""The amounts, by interval of the client results and of the cluster, from which two groups of runs are compared."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import inf, log

import numpy as np
import numpy.typing as npt

from collector.load_results.client_result import NS_PER_S, ClientResult, Latency
from collector.merge.grid import ClusterSample
from collector.model import histogram
from collector.model.histogram import GROWTH, Buckets
from collector.node.metrics.requests import ERRORS, OPERATIONS, Operation
from exporters.results.comparison.inference import Array, Percentile, Quantity, Ratio
from exporters.results.summary.client_values import (
    LATENCY_KINDS,
    PERCENTILES,
    Intervals,
    TimeRange,
    amounts_within,
    client_span,
    column_name,
    intervals_of,
    lies_inside,
    middle_s,
    steps_of_span,
)
from exporters.results.summary.phase_summary import phase_values
from exporters.rows.columns import MS, cell_number
from exporters.rows.merged_rows import Row
from exporters.rows.operation_columns import TOTAL_RATE, Operations

ALL = "client"
"""The prefix of the columns of all operations together."""
_MS_PER_NS = MS / NS_PER_S
Counts = npt.NDArray[np.int64]
KINDS = (*LATENCY_KINDS, "")
"""The kinds of latency in the order of preference; "" stands for none."""
RESOURCES = ("cpu_busy_pct", "gc_pct", "disk_util_pct", "net_rx_kbit_per_s", "net_tx_kbit_per_s")
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""The pooled percentiles whose nearest bucket bounds divide fast requests from slow ones."""


@dataclass(frozen=True, eq=False)
class ClientBins:
    """What all clients saw in a phase of a run, in bins, which are short periods.

    lengths_s, completed, failed  the length of each bin, and its numbers of operations.
    counts                        the bin, the latency in nanoseconds and the number of operations, as three rows; None
                                  if the latencies of some operations have no counts.
    """

    lengths_s: Array
    completed: Array
    failed: Array
    counts: Counts | None

    @cached_property
    def values_ns(self) -> Counts:
        """The latencies that occurred, in ascending order."""
        return np.unique(self._known_counts[1])

    @property
    def _known_counts(self) -> Counts:
        return np.empty((3, 0), np.int64) if self.counts is None else self.counts

    @property
    def latency_sums(self) -> Array:
        """The sum of the latencies in milliseconds, and the number of operations, by bin."""
        rows, latencies_ns, numbers = self._known_counts
        bins = len(self.lengths_s)
        sums_ns = np.bincount(rows, latencies_ns.astype(float) * numbers, bins)
        return np.column_stack((sums_ns * _MS_PER_NS, np.bincount(rows, numbers, bins)))

    def counts_of(self, values_ns: Counts) -> Array:
        """Return the number of operations by bin and latency; `values_ns` must contain all latencies that occurred."""
        rows, latencies_ns, numbers = self._known_counts
        shape = len(self.lengths_s), len(values_ns)
        cells = rows * shape[1] + np.searchsorted(values_ns, latencies_ns)
        return np.asarray(np.bincount(cells, numbers, shape[0] * shape[1]).reshape(shape), dtype=float)


@dataclass(frozen=True)
class ClientColumn:
    """A column and its quantity; `values_ns` has the latencies of a percentile, and is None for a ratio."""

    name: str
    quantity: Quantity
    values_ns: Counts | None = None

    @property
    def needs_counts(self) -> bool:
        return self.name.endswith("_ms")

    def amounts(self, phase: ClientBins) -> Array:
        """Return the amounts of each bin; those of a percentile are the counts of `values_ns`."""
        if self.values_ns is not None:
            return phase.counts_of(self.values_ns)
        if self.needs_counts:
            return phase.latency_sums
        if self.name.endswith("_ops_per_s"):
            return np.column_stack((phase.completed, phase.lengths_s))
        return np.column_stack((phase.failed, phase.completed + phase.failed))


def client_columns(prefix: str, phases: Sequence[ClientBins]) -> Iterator[ClientColumn]:
    """Yield the columns of all operations or of one; `phases` contains the bins of all runs and phases."""
    for suffix in ("ops_per_s", "error_share", "mean_ms"):
        yield ClientColumn(f"{prefix}_{suffix}", Ratio())
    values_ns = np.unique(np.concatenate([phase.values_ns for phase in phases]))
    values_ms = tuple((values_ns * _MS_PER_NS).tolist())
    for name, percentage in PERCENTILES.items():
        yield ClientColumn(f"{prefix}_{name}_ms", Percentile(percentage, values_ms), values_ns)


def latency_kinds(results: Iterable[ClientResult]) -> list[str]:
    """Return the kinds of latency that all results have, the preferred one first; the last one, "", stands for none."""
    operations = [operation for result in results for operation in result.operations]
    active = [interval for operation in operations for interval in intervals_of(operation) if interval.completed]
    return [kind for kind in KINDS if not kind or all(getattr(interval, kind) is not None for interval in active)]


def client_bins(
    results: Sequence[ClientResult], kind: str, begin_s: float, end_s: float, step_s: float
) -> dict[str, ClientBins]:
    """Return the bins of a phase, by the prefix of their columns; bins are at least `step_s` long.

    The bins divide the results' span in the phase (see `client_span`), so that they have its rate. The latencies of an
    interval belong to the bin that contains its midpoint or is next to it. Returns {} if there is no span.
    """
    span = client_span(results, begin_s, end_s)
    if span is None:
        return {}
    by_prefix: defaultdict[str, list[Intervals]] = defaultdict(list)
    for operation in (operation for result in results for operation in result.operations):
        intervals = intervals_of(operation)
        if any(lies_inside(part, begin_s, end_s) for part in intervals):
            name = column_name(operation.name)
            for prefix in (ALL, f"{ALL}_{name}") if name else (ALL,):
                by_prefix[prefix].append(intervals)
    inside = [[part for part in intervals if lies_inside(part, begin_s, end_s)] for intervals in by_prefix[ALL]]
    ranges = steps_of_span(inside, span, step_s)
    return {prefix: _bins(of_prefix, kind, (begin_s, end_s), ranges) for prefix, of_prefix in by_prefix.items()}


def _bins(operations: Sequence[Intervals], kind: str, phase: TimeRange, ranges: Sequence[TimeRange]) -> ClientBins:
    """Return a bin for each range, with the operations that ran at the same time."""
    completed, failed = np.zeros(len(ranges)), np.zeros(len(ranges))
    latencies: list[list[Latency | None]] = [[] for _ in ranges]
    ends_s = [last_s for _, last_s in ranges]
    for intervals in operations:
        for index, range_s in enumerate(ranges):
            amounts = amounts_within(intervals, *range_s)
            completed[index] += amounts[0]
            failed[index] += amounts[1]
        for part in intervals:
            if part.completed and lies_inside(part, *phase):
                index = min(bisect_left(ends_s, middle_s(part)), len(ranges) - 1)
                latencies[index].append(getattr(part, kind, None))
    return ClientBins(np.array([last_s - first_s for first_s, last_s in ranges]), completed, failed, _counts(latencies))


def _counts(latencies: Sequence[Sequence[Latency | None]]) -> Counts | None:
    """Return the latencies of bins as in `ClientBins.counts`."""
    known = [(row, latency.counts) for row, bin_ in enumerate(latencies) for latency in bin_ if latency is not None]
    if len(known) < sum(map(len, latencies)) or not all(counts for _, counts in known):
        return None
    lengths = np.array([len(counts) for _, counts in known], np.int64)
    total = int(lengths.sum())
    return np.stack(
        (
            np.repeat(np.array([row for row, _ in known], np.int64), lengths),
            np.fromiter(chain.from_iterable(counts for _, counts in known), np.int64, total),
            np.fromiter(chain.from_iterable(counts.values() for _, counts in known), np.int64, total),
        )
    )


@dataclass(frozen=True)
class ServerInterval:
    """The cluster's row in an interval, and its latency histograms by `Operation.word`."""

    row: Row
    buckets: dict[str, Buckets]


def server_intervals(operations: Operations, samples: Sequence[ClusterSample], nodes: int) -> list[ServerInterval]:
    """Return the intervals in which the operations of the largest number of nodes are known.

    As in the summary, a node that was down served nothing. In the other intervals, the sums would be too low, because
    a node was not sampled, or because a later interval includes its operations.
    """
    max_known = known_nodes(samples)
    intervals = [
        ServerInterval(
            phase_values(operations, sample, nodes) | (_nothing_served(sample) if not sample.answered else {}),
            {
                operation.word: buckets
                for operation in OPERATIONS
                if (buckets := operations.buckets(sample.sample, operation.scope)) is not None
            },
        )
        for sample in samples
        if sample.answered + sample.down == max_known
    ]
    for operation in OPERATIONS:
        name = f"{operation.plural}_per_s"
        first = next((number for number, part in enumerate(intervals) if part.row.get(name) is not None), 0)
        for part in intervals[:first]:
            # As in the summary, a counter that appears in the phase counts from then on, for all of the phase.
            part.row[name] = 0.0
    return intervals


def known_nodes(samples: Iterable[ClusterSample]) -> int:
    """Return the largest number of nodes whose operations are known in one of these intervals."""
    return max((sample.answered + sample.down for sample in samples), default=0)


def _nothing_served(sample: ClusterSample) -> Row:
    """Return the rates in an interval in which all nodes were down; none if none was."""
    rates = (TOTAL_RATE, *(f"{operation.plural}_per_s" for operation in OPERATIONS))
    return {"interval_s": sample.down_s, **dict.fromkeys(rates, 0.0)} if sample.down else {}


@dataclass(frozen=True)
class RowRatio:
    """A column as a quotient of two sums over rows.

    parts   the columns that are added to give the numerator.
    weight  the column that is the denominator.
    scaled  whether the numerator is multiplied by the weight, because the column is a mean or a rate.
    """

    column: str
    parts: tuple[str, ...]
    weight: str
    scaled: bool

    def amounts(self, intervals: Iterable[ServerInterval]) -> Array:
        """Return the numerator and the denominator of each interval that has both."""
        rows = [
            (sum(parts) * (weight if self.scaled else 1.0), weight)
            for interval in intervals
            if (weight := cell_number(interval.row.get(self.weight)))
            and len(parts := [part for name in self.parts if (part := cell_number(interval.row.get(name))) is not None])
            == len(self.parts)
        ]
        return np.array(rows, dtype=float).reshape(len(rows), 2)


def row_ratios(operations: Sequence[Operation] = OPERATIONS) -> Iterator[RowRatio]:
    """Yield the columns of these operations and of resources, other than percentiles, in the order of output.

    If there are operations other than reads and writes, the rate of all operations comes first.
    """
    totals = [] if all(operation.is_usual for operation in operations) else [TOTAL_RATE]
    for name in (*totals, *(f"{operation.plural}_per_s" for operation in operations)):
        yield RowRatio(name, (name,), "interval_s", True)
    for operation in operations:
        errors = tuple(f"{operation.word}_{error}" for error in ERRORS)
        yield RowRatio(f"{operation.word}_error_share", errors, operation.plural, False)
    for operation in operations:
        yield RowRatio(f"{operation.word}_mean_ms", (f"{operation.word}_mean_ms",), operation.plural, True)
    for name in RESOURCES:
        yield RowRatio(name, (name,), "interval_s", True)


@dataclass(frozen=True)
class Bound:
    """A bucket bound that separates fast requests from slow ones, and the column with the share of slow requests.

    operation  the operation's `Operation.word`.
    """

    operation: str
    column: str
    bound_s: float

    def amounts(self, intervals: Iterable[ServerInterval]) -> Array:
        """Return the number of requests above the bound, and the number of all requests, in each interval."""
        rows = [
            (buckets.total - buckets.cumulative[buckets.upper_bounds.index(self.bound_s)], buckets.total)
            for interval in intervals
            if (buckets := interval.buckets.get(self.operation)) is not None
        ]
        return np.array(rows, dtype=float).reshape(len(rows), 2)

    @property
    def text(self) -> str:
        return f">{self.bound_s * MS:.3g}ms"


def bounds(intervals: Sequence[ServerInterval]) -> Iterator[Bound]:
    """Yield the bound nearest to each pooled percentile, unless no bound that all intervals share is near it."""
    for operation in (operation.word for operation in OPERATIONS):
        parts = [buckets for interval in intervals if (buckets := interval.buckets.get(operation)) is not None]
        if not sum(part.total for part in parts):
            continue
        layouts = {part.upper_bounds for part in parts}
        common = [bound for bound in set.intersection(*map(set, layouts)) if 0 < bound < inf]
        pooled = histogram.merge(parts)
        for name, share in SHARES.items():
            quantile_s = histogram.quantile(pooled, share) or 0.0
            near = [bound for bound in common if quantile_s / GROWTH <= bound <= quantile_s * GROWTH]
            if near:
                bound_s = min(near, key=lambda bound: abs(log(bound / quantile_s)))
                yield Bound(operation, f"{operation}_above_{name}_share", bound_s)
