"""The amounts, by interval of the client results, from which throughput, errors and latency are compared."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from collector.load_results.client_result import NS_PER_S, ClientResult, Latency
from exporters.results.comparison.quantities import Percentile, Quantity, Ratio
from exporters.results.comparison.resampling import Array
from exporters.results.summary.client_span import (
    Intervals,
    TimeRange,
    amounts_within,
    client_span,
    intervals_of,
    lies_inside,
    middle_s,
    steps_of_span,
)
from exporters.results.summary.client_values import LATENCY_KINDS, PERCENTILES, column_name
from exporters.rows.columns import MS

ALL = "client"
"""The prefix of the columns of all operations together."""
_MS_PER_NS = MS / NS_PER_S
Counts = npt.NDArray[np.int64]
KINDS = (*LATENCY_KINDS, "")
"""The kinds of latency in the order of preference; "" stands for none."""


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
