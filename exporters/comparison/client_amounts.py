"""The amounts, by interval of the client results, from which throughput, errors and latency are compared."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
import numpy.typing as npt

from collector.clients.client_latency import NS_PER_S, Latency
from collector.clients.client_result import ClientInterval, ClientResult, Operation
from exporters.comparison.quantities import Percentile, Quantity, Ratio
from exporters.comparison.resampling import Array
from exporters.line.columns import MS
from exporters.summary.client_values import PERCENTILES, column_name

ALL = "client"
"""The prefix of the columns of all operations together."""
_MS_PER_NS = MS / NS_PER_S


@dataclass(frozen=True)
class ClientBin:
    """What all clients saw in a short period; `counts` is None if the latencies of some operations have no counts."""

    length_s: float
    completed: int
    failed: int
    counts: Mapping[int, int] | None


@dataclass(frozen=True, eq=False)
class ClientBins:
    """The bins of a phase of a run."""

    bins: tuple[ClientBin, ...]

    @cached_property
    def has_counts(self) -> bool:
        """Whether the latencies of all bins have counts."""
        return all(part.counts is not None for part in self.bins)

    @cached_property
    def values_ns(self) -> npt.NDArray[np.int64]:
        """The latencies that occurred, in ascending order."""
        return np.array(sorted({value for part in self.bins for value in part.counts or ()}), dtype=np.int64)

    @cached_property
    def _counts(self) -> npt.NDArray[np.int64]:
        """The bin, the latency and the number of operations of each count, as three columns."""
        rows = [(row, *pair) for row, part in enumerate(self.bins) for pair in (part.counts or {}).items()]
        return np.array(rows, dtype=np.int64).reshape(len(rows), 3)

    def counts_of(self, values_ns: npt.NDArray[np.int64]) -> Array:
        """Return the number of operations by bin and latency; `values_ns` must contain all latencies that occurred."""
        counts = np.zeros((len(self.bins), len(values_ns)))
        rows, latencies_ns, numbers = self._counts.T
        counts[rows, np.searchsorted(values_ns, latencies_ns)] = numbers
        return counts


@dataclass(frozen=True)
class ClientColumn:
    """A column and its quantity; `values_ns` has the latencies of a percentile, and is None for a ratio."""

    name: str
    quantity: Quantity
    values_ns: npt.NDArray[np.int64] | None = None

    @property
    def needs_counts(self) -> bool:
        return self.name.endswith("_ms")

    def amounts(self, phase: ClientBins) -> Array:
        """Return the amounts of each bin; those of a percentile are the counts of `values_ns`."""
        if self.values_ns is not None:
            return phase.counts_of(self.values_ns)
        rows = [self._ratio(part) for part in phase.bins]
        return np.array(rows, dtype=float).reshape(len(rows), 2)

    def _ratio(self, part: ClientBin) -> tuple[float, float]:
        if self.name.endswith("_ops_per_s"):
            return part.completed, part.length_s
        if self.name.endswith("_error_share"):
            return part.failed, part.completed + part.failed
        counts = part.counts or {}
        return sum(value * count for value, count in counts.items()) * _MS_PER_NS, sum(counts.values())


def client_columns(prefix: str, phases: Sequence[ClientBins]) -> Iterator[ClientColumn]:
    """Yield the columns of all operations or of one; `phases` contains the bins of all runs and phases."""
    for suffix in ("ops_per_s", "error_share", "mean_ms"):
        yield ClientColumn(f"{prefix}_{suffix}", Ratio())
    values_ns = np.unique(np.concatenate([phase.values_ns for phase in phases]))
    values_ms = tuple((values_ns * _MS_PER_NS).tolist())
    for name, percentage in PERCENTILES.items():
        yield ClientColumn(f"{prefix}_{name}_ms", Percentile(percentage, values_ms), values_ns)


def latency_kind(results: Iterable[ClientResult]) -> str:
    """Return the kind of latency that all results have: "response", "service", or "" if there is none."""
    operations = [operation for result in results for operation in result.operations]
    active = [interval for operation in operations for interval in _intervals(operation) if interval.completed]
    kinds = ("response", "service")
    return next((kind for kind in kinds if all(getattr(interval, kind) is not None for interval in active)), "")


def client_bins(
    results: Sequence[ClientResult], kind: str, begin_s: float, end_s: float, step_s: float
) -> dict[str, ClientBins]:
    """Return the bins of a time range, by the prefix of their columns; bins are at least `step_s` long.

    A bin contains the intervals whose midpoints are in it. Only intervals completely inside the time range count.
    """
    inside: defaultdict[str, list[list[ClientInterval]]] = defaultdict(list)
    for result in results:
        for operation in result.operations:
            intervals = [part for part in _intervals(operation) if begin_s <= part.begin_s and part.end_s <= end_s]
            if intervals:
                name = column_name(operation.name)
                for prefix in (ALL, f"{ALL}_{name}") if name else (ALL,):
                    inside[prefix].append(intervals)
    return {prefix: ClientBins(_bins(operations, kind, begin_s, step_s)) for prefix, operations in inside.items()}


def _intervals(operation: Operation) -> tuple[ClientInterval, ...]:
    return operation.intervals or tuple(filter(None, [operation.total]))


def _bins(
    operations: Sequence[Sequence[ClientInterval]], kind: str, begin_s: float, step_s: float
) -> tuple[ClientBin, ...]:
    """Return the bins of operations that ran at the same time."""
    step_s = max(step_s, *(part.end_s - part.begin_s for intervals in operations for part in intervals))
    parts: defaultdict[int, list[ClientInterval]] = defaultdict(list)
    lengths_s: defaultdict[int, list[float]] = defaultdict(list)
    for intervals in operations:
        length_s: dict[int, float] = {}
        for part in intervals:
            index = floor(((part.begin_s + part.end_s) / 2 - begin_s) / step_s)
            length_s[index] = length_s.get(index, 0.0) + part.end_s - part.begin_s
            parts[index].append(part)
        for index, total_s in length_s.items():
            lengths_s[index].append(total_s)
    return tuple(_bin(parts[index], kind, max(lengths_s[index])) for index in sorted(parts))


def _bin(parts: Sequence[ClientInterval], kind: str, length_s: float) -> ClientBin:
    counts: Counter[int] | None = Counter()
    for part in parts:
        latency: Latency | None = getattr(part, kind) if kind else None
        if part.completed and (latency is None or not latency.counts):
            counts = None
            break
        if latency is not None and counts is not None:
            counts.update(latency.counts)
    completed, failed = sum(part.completed for part in parts), sum(part.failed for part in parts)
    return ClientBin(length_s, completed, failed, counts)
