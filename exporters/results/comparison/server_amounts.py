"""The amounts, by interval, from which the cluster's throughput, errors, latency and resources are compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np

from collector.merge.cluster_sample import ClusterSample
from collector.model import histogram
from collector.model.histogram import GROWTH, Buckets
from collector.node.metrics.requests import ERRORS, OPERATIONS, Operation
from exporters.results.comparison.resampling import Array
from exporters.results.summary.phase_summary import phase_values
from exporters.rows.columns import MS
from exporters.rows.merged_rows import Choice, Row, table_of
from exporters.rows.operation_columns import TOTAL_RATE

RESOURCES = ("cpu_busy_pct", "gc_pct", "disk_util_pct", "net_rx_kbit_per_s", "net_tx_kbit_per_s")
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""The pooled percentiles whose nearest bucket bounds divide fast requests from slow ones."""


@dataclass(frozen=True)
class ServerInterval:
    """The cluster's row in an interval, and its latency histograms by `Operation.word`."""

    row: Row
    buckets: dict[str, Buckets]


def server_intervals(choice: Choice, samples: Sequence[ClusterSample], nodes: int) -> list[ServerInterval]:
    """Return the intervals in which the operations of the largest number of nodes are known.

    As in the summary, a node that was down served nothing. In the other intervals, the sums would be too low, because
    a node was not sampled, or because a later interval includes its operations.
    """
    max_known = known_nodes(samples)
    operations = table_of(choice).view.operations
    intervals = [
        ServerInterval(
            phase_values(choice, sample, nodes) | (_nothing_served(sample) if not sample.answered else {}),
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
            if (weight := _number(interval.row, self.weight))
            and len(parts := [part for name in self.parts if (part := _number(interval.row, name)) is not None])
            == len(self.parts)
        ]
        return np.array(rows, dtype=float).reshape(len(rows), 2)


def _number(row: Row, name: str) -> float | None:
    cell = row.get(name)
    return float(cell) if isinstance(cell, int | float) else None


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
