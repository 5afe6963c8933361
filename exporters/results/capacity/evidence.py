"""What a step of a search shows about an objective: the column's value, and the amounts from which it is tested.

The amounts are tested with confidence intervals from batch means: the intervals of a step are autocorrelated, so they
are divided into a few long batches whose means are almost independent (Law, Kelton: Simulation Modeling and Analysis).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from collector.model.histogram import Buckets
from collector.node.metrics.requests import OPERATIONS
from exporters.results.comparison.amounts import ClientBins, Counts, ServerInterval, row_ratios
from exporters.results.comparison.inference import LEVEL, Array
from exporters.results.comparison.student_t import critical_value
from exporters.results.summary.client_values import PERCENTILES
from exporters.results.summary.conditions import Condition
from exporters.results.summary.phase_summary import CLIENT_ERROR_SHARE, ERROR_SHARE
from exporters.rows.columns import MS, Cell, cell_number

_NS_PER_MS = 1e6
# A percentile is at most the limit if the share of operations above the limit is at most that of the percentile.
_TESTED = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
BATCHES, MIN_BATCHES = 10, 5
INTERVALS_OF_BATCH = 2
"""Batches of fewer intervals are not independent."""
MIN_INTERVALS = INTERVALS_OF_BATCH * MIN_BATCHES
RULE_OF_THREE = 3.0
"""If no event was observed, the expected number of events is at most this with a confidence of 95%."""


@dataclass(frozen=True)
class StepData:
    """The measured phase of a step.

    values  the columns of its summary.
    client  the clients' bins by the prefix of their columns.
    server  the cluster's intervals.
    """

    values: Mapping[str, Cell]
    client: Mapping[str, ClientBins]
    server: Sequence[ServerInterval] = ()


@dataclass(frozen=True)
class Evidence:
    """What a step shows about an objective.

    value     the column's value in the whole step; None if it is unknown.
    amounts   the numerators and denominators of a ratio in consecutive intervals; None if the column cannot be tested.
    operator  how the ratio must compare with the limit.
    limit     the limit of the ratio.
    is_count  whether the numerators are numbers of operations.
    """

    value: float | None
    amounts: Array | None = None
    operator: str = ""
    limit: float = 0.0
    is_count: bool = False


def evidence_of(objective: Condition, data: StepData) -> Evidence:
    """Return what a step shows about an objective.

    A percentile is tested by the share of operations above the limit: it is below the limit if the share is below that
    of the percentile.
    """
    value = cell_number(data.values.get(objective.column))
    if value is None or objective.operator not in _TESTED or not objective.limit:
        return Evidence(value)
    return _of_client(objective, value, data.client) or _of_server(objective, value, data.server) or Evidence(value)


def _percentile(objective: Condition, value: float, amounts: Array, percentage: float) -> Evidence:
    return Evidence(value, amounts, _TESTED[objective.operator], 1 - percentage / 100, is_count=True)


def _of_client(objective: Condition, value: float, client: Mapping[str, ClientBins]) -> Evidence | None:
    """Return the evidence from the client results; None if they do not have the column, or not its distribution."""
    column = CLIENT_ERROR_SHARE if objective.column == ERROR_SHARE else objective.column
    # The columns of all operations come last, because `client` is also the beginning of the other prefixes.
    for prefix, bins in sorted(client.items(), key=lambda item: -len(item[0])):
        if not column.startswith(f"{prefix}_"):
            continue
        suffix = column.removeprefix(f"{prefix}_")
        ratios = {
            "ops_per_s": (bins.completed, bins.lengths_s),
            "errors_per_s": (bins.failed, bins.lengths_s),
            "error_share": (bins.failed, bins.completed + bins.failed),
        }
        if suffix in ratios:
            return Evidence(value, np.column_stack(ratios[suffix]), objective.operator, objective.limit, is_count=True)
        if bins.counts is None:
            return None
        if suffix == "mean_ms":
            return Evidence(value, bins.latency_sums, objective.operator, objective.limit)
        percentage = PERCENTILES.get(suffix.removesuffix("_ms"))
        if percentage is not None:
            return _percentile(objective, value, _slower(bins.counts, len(bins.lengths_s), objective.limit), percentage)
    return None


def _slower(counts: Counts, count: int, limit_ms: float) -> Array:
    """Return the number of operations above a latency, and the number of all operations, in each of `count` bins."""
    rows, latencies_ns, numbers = counts
    above = np.bincount(rows, np.where(latencies_ns > limit_ms * _NS_PER_MS, numbers, 0), count)
    return np.column_stack((above, np.bincount(rows, numbers, count)))


def _of_server(objective: Condition, value: float, intervals: Sequence[ServerInterval]) -> Evidence | None:
    for ratio in row_ratios():
        if ratio.column == objective.column:
            return Evidence(value, ratio.amounts(intervals), objective.operator, objective.limit)
    for operation in (operation.word for operation in OPERATIONS):
        for name, percentage in PERCENTILES.items():
            if objective.column == f"{operation}_{name}_ms":
                rows = [
                    (_above(buckets, objective.limit / MS), buckets.total)
                    for interval in intervals
                    if (buckets := interval.buckets.get(operation)) is not None
                ]
                return _percentile(objective, value, np.array(rows, dtype=float).reshape(len(rows), 2), percentage)
    return None


def _above(buckets: Buckets, limit: float) -> float:
    """Return the number of values above a limit; values are assumed to be evenly spread within their bucket."""
    lower, above = 0.0, buckets.total
    for bound, count in zip(buckets.upper_bounds, buckets.counts, strict=True):
        if bound >= limit:
            inside = (limit - lower) / (bound - lower) if bound > lower else 1.0
            return above - count * inside
        lower, above = bound, above - count
    return above


@dataclass(frozen=True)
class ConfidenceInterval:
    """A confidence interval of a ratio."""

    low: float
    high: float


def ratio_interval(parts: Sequence[Array], *, is_count: bool, level: float = LEVEL) -> ConfidenceInterval | None:
    """Return the interval of the ratio of two sums; None if there are too few intervals or the denominator is 0.

    Each of `parts` has the numerators and the denominators of consecutive intervals, as the shape (intervals, 2).
    `is_count` states that numerators are numbers of events: then an absence of events has an upper limit, too. The
    interval does not contain the true ratio with the probability `level`.
    """
    intervals = sum(map(len, parts))
    totals = sum((part.sum(axis=0) for part in parts), np.zeros(2))
    if intervals < MIN_INTERVALS or totals[1] <= 0:
        return None
    wanted = min(BATCHES, intervals // INTERVALS_OF_BATCH)
    batches = np.array([batch.sum(axis=0) for part in parts for batch in _batches(part, wanted / intervals)])
    ratio = totals[0] / totals[1]
    residuals = batches[:, 0] - ratio * batches[:, 1]
    count = len(batches)
    error = sqrt(float(residuals @ residuals) * count / (count - 1)) / totals[1]
    margin = critical_value(level, count - 1) * error
    if is_count and not totals[0]:
        return ConfidenceInterval(0.0, RULE_OF_THREE / totals[1])
    return ConfidenceInterval(ratio - margin, ratio + margin)


def _batches(part: Array, per_interval: float) -> Sequence[Array]:
    """Divide a part into batches, which are about as long in all parts."""
    return np.array_split(part, max(round(per_interval * len(part)), 1)) if len(part) else []
