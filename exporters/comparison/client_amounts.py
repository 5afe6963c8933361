"""The amounts in the intervals of client results from which throughput, errors and latency are compared."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

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


@dataclass(frozen=True)
class ClientColumn:
    """A column and its quantity; the amounts of `amounts` are those of the quantity."""

    name: str
    quantity: Quantity
    needs_counts: bool = False

    def amounts(self, bins: Sequence[ClientBin]) -> Array:
        """Return the amounts of each bin."""
        if isinstance(self.quantity, Percentile):
            index = {value: position for position, value in enumerate(self.quantity.values)}
            dense = np.zeros((len(bins), len(index)))
            for row, part in zip(dense, bins, strict=True):
                for value, count in (part.counts or {}).items():
                    row[index[value * _MS_PER_NS]] += count
            return dense
        rows = [self._ratio(part) for part in bins]
        return np.array(rows, dtype=float).reshape(len(rows), 2)

    def _ratio(self, part: ClientBin) -> tuple[float, float]:
        if self.name.endswith("_ops_per_s"):
            return part.completed, part.length_s
        if self.name.endswith("_error_share"):
            return part.failed, part.completed + part.failed
        counts = part.counts or {}
        return sum(value * count for value, count in counts.items()) * _MS_PER_NS, sum(counts.values())


def client_columns(prefix: str, bins: Iterable[ClientBin]) -> Iterator[ClientColumn]:
    """Yield the columns of all operations or of one; `bins` are those of all runs."""
    yield ClientColumn(f"{prefix}_ops_per_s", Ratio())
    yield ClientColumn(f"{prefix}_error_share", Ratio())
    yield ClientColumn(f"{prefix}_mean_ms", Ratio(), needs_counts=True)
    values_ns: set[int] = set()
    for part in bins:
        values_ns.update(part.counts or ())
    values = tuple(value * _MS_PER_NS for value in sorted(values_ns))
    for name, percentage in PERCENTILES.items():
        yield ClientColumn(f"{prefix}_{name}_ms", Percentile(percentage, values), needs_counts=True)


def latency_kind(results: Iterable[ClientResult]) -> str:
    """Return the kind of latency that all results have: "response", "service", or "" if there is none."""
    operations = [operation for result in results for operation in result.operations]
    active = [interval for operation in operations for interval in _intervals(operation) if interval.completed]
    kinds = ("response", "service")
    return next((kind for kind in kinds if all(getattr(interval, kind) is not None for interval in active)), "")


def client_bins(
    results: Sequence[ClientResult], kind: str, begin_s: float, end_s: float, step_s: float
) -> dict[str, list[ClientBin]]:
    """Return the bins of a time range, by the prefix of their columns; they are at least `step_s` long.

    A bin has the intervals whose middle is in it. Only intervals that lie completely inside the time range count.
    """
    inside: defaultdict[str, list[list[ClientInterval]]] = defaultdict(list)
    for result in results:
        for operation in result.operations:
            intervals = [part for part in _intervals(operation) if begin_s <= part.begin_s and part.end_s <= end_s]
            if intervals:
                name = column_name(operation.name)
                for prefix in (ALL, f"{ALL}_{name}") if name else (ALL,):
                    inside[prefix].append(intervals)
    return {prefix: _bins(operations, kind, begin_s, step_s) for prefix, operations in inside.items()}


def _intervals(operation: Operation) -> tuple[ClientInterval, ...]:
    return operation.intervals or tuple(filter(None, [operation.total]))


def _bins(operations: Sequence[Sequence[ClientInterval]], kind: str, begin_s: float, step_s: float) -> list[ClientBin]:
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
    return [_bin(parts[index], kind, max(lengths_s[index])) for index in sorted(parts)]


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
