"""Verdicts on the steps of a search: whether steps at a rate meet the objectives, and achieved the rate.

A verdict depends on the evidence of each step: the column's value, and the amounts from which it is tested. They are
tested with confidence intervals from batch means: the intervals of a step are autocorrelated, so they are divided into
a few long batches whose means are almost independent (Law, Kelton: Simulation Modeling and Analysis).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt

import numpy as np

from collector.model.histogram import Buckets
from collector.node.metrics.requests import COUNTED, OPERATIONS
from exporters.results.comparison.amounts import ALL, ClientBins, Counts, ServerInterval, row_ratios
from exporters.results.comparison.inference import LEVEL, Array, critical_value
from exporters.results.summary.client_values import PERCENTILES
from exporters.results.summary.conditions import OPERATORS, Condition
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


MIN_ACHIEVED = 0.99
"""The share of the target rate that the load generator must achieve; many miss it by less than 1% by design."""
REFUTED_LEVEL = 0.001
"""Every step is tested, so a false alarm must be rare."""
NO_RESULTS = "no client results"
THIRDS, MIN_BINS = 3, 9
DEVIATIONS = 3.0
"""The number of operations that are due at random times differs from its mean by this many standard deviations."""
_REFUSED = (*(f"{operation.word}_timeouts" for operation in COUNTED), "requests_discarded")


class Failure(IntEnum):
    """Why a step does not meet the objectives. Of several failures, the highest certain one counts.

    NO_RESULT  it has no values that could be judged.
    OBJECTIVE  it misses an objective.
    RATE       the load generator did not achieve its rate, which may be why it misses objectives as well.
    """

    NO_RESULT = 0
    OBJECTIVE = 1
    RATE = 2


@dataclass(frozen=True)
class Verdict:
    """Whether a step meets an objective, or all of them.

    is_certain  whether the limit is outside the confidence interval, or the column cannot be tested.
    reason      why the step does not meet the objectives; otherwise "".
    failure     the kind of the reason, if there is one.
    """

    is_met: bool
    is_certain: bool = True
    reason: str = ""
    failure: Failure = Failure.OBJECTIVE

    @property
    def text(self) -> str:
        return f"{'ok' if self.is_met else self.reason}{'' if self.is_certain else ' (uncertain)'}"


def step_verdict(objectives: Sequence[Condition], steps: Sequence[StepData], rate: float) -> Verdict:
    verdicts = [verdict_on(objective, [evidence_of(objective, step) for step in steps]) for objective in objectives]
    return combined([*verdicts, achieved_verdict(steps, rate), refused_verdict(steps[-1].values)])


def combined(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all objectives: certain if one is certainly not met, or if all are certainly met."""
    known = list(verdicts)
    failed = [verdict for verdict in known if not verdict.is_met]
    if failed:
        certain = [verdict for verdict in failed if verdict.is_certain]
        failure = max(verdict.failure for verdict in certain or failed)
        return Verdict(False, bool(certain), "; ".join(verdict.reason for verdict in failed), failure)
    return Verdict(True, all(verdict.is_certain for verdict in known))


def verdict_on(objective: Condition, steps: Sequence[Evidence]) -> Verdict:
    """Return whether steps at the same rate meet an objective, from the intervals of all steps together.

    A column that cannot be tested is judged by its value in the last step.
    """
    last = steps[-1]
    if last.value is None:
        return Verdict(False, reason=f"no value for {objective.column}", failure=Failure.NO_RESULT)
    reason = f"{objective.column} is {measured_text(last.value, 6)}"
    amounts = [step.amounts for step in steps if step.amounts is not None and len(step.amounts)]
    if len(amounts) < len(steps):
        is_met = OPERATORS[objective.operator](last.value, objective.limit)
        return Verdict(is_met, reason="" if is_met else reason)
    numerator, denominator = (sum(float(part[:, column].sum()) for part in amounts) for column in (0, 1))
    is_met = OPERATORS[last.operator](numerator, last.limit * denominator)
    if OPERATORS[objective.operator](last.value, objective.limit):
        reason = f"{objective.text} is not met by all {len(steps)} steps at this rate together"
    interval = ratio_interval(amounts, is_count=last.is_count)
    is_certain = interval is not None and not interval.low <= last.limit <= interval.high
    return Verdict(is_met, is_certain, "" if is_met else reason)


def refused_verdict(values: Mapping[str, Cell]) -> Verdict:
    """Return whether no request timed out or was discarded, if the load generator states only service times.

    Service times of an overloaded cluster may look healthy, because they do not include queueing.
    """
    if values.get("client_latency") == "response":
        return Verdict(True)
    refused = [
        f"{name} is {measured_text(cell)}"
        for name in _REFUSED
        if isinstance(cell := values.get(name), int | float) and cell
    ]
    return Verdict(not refused, reason=", ".join(refused))


def achieved_verdict(steps: Sequence[StepData], rate: float) -> Verdict:
    """Return whether the load generator achieved its target rate, including failed operations.

    It is certain that it did if the lower end of the confidence interval of the achieved rate reaches MIN_ACHIEVED or,
    with response times, if the backlog of the last step does not grow (see `backlog_growth`): then operations are
    missing only because they were due at random times, or are waiting at the step's end. It is certain that it did not
    if the upper end is below that share, or if the backlog grows. Otherwise, the achieved rate decides.
    """
    parts = [
        np.column_stack((bins.completed + bins.failed, bins.lengths_s))
        for step in steps
        if (bins := step.client.get(ALL)) is not None
    ]
    if len(parts) < len(steps):
        return Verdict(False, reason=NO_RESULTS, failure=Failure.NO_RESULT)
    totals = sum((part.sum(axis=0) for part in parts), np.zeros(2))
    achieved, least = float(totals[0] / totals[1]), MIN_ACHIEVED * rate
    together = f" in all {len(steps)} steps at this rate together" if len(steps) > 1 else ""
    reason = f"{measured_text(achieved)} of {rate_text(rate)} operations per second were achieved{together}"
    likely = ratio_interval(parts, is_count=True)
    possible = ratio_interval(parts, is_count=True, level=REFUTED_LEVEL)
    growth = backlog_growth(steps[-1])
    if growth is not None and growth > 1 - MIN_ACHIEVED:
        return Verdict(False, reason=f"{reason}, and the backlog grew until the end", failure=Failure.RATE)
    if possible is not None and possible.high < least:
        return Verdict(False, reason=reason, failure=Failure.RATE)
    if likely is not None and likely.low >= least:
        return Verdict(True)
    if growth is not None and _is_explained(steps[-1].client[ALL], rate):
        return Verdict(True)
    return Verdict(True, False) if achieved >= least else Verdict(False, False, reason, Failure.RATE)


def backlog_growth(step: StepData) -> float | None:
    """Return by which share of the rate the backlog (operations due, but not completed) grew at least.

    An operation's response time is the time for which the backlog in front of it lasts. In an overloaded system it
    therefore grows in each second by the share of the rate that is not achieved. A burst of operations or a pause makes
    it rise and fall, so the lowest values in the first and the last third of the step are compared: if the backlog
    was as short as before at least once in the last third, it does not grow.

    Returns None without response times or with fewer than MIN_BINS bins.
    """
    bins = step.client[ALL]
    if step.values.get("client_latency") != "response" or bins.counts is None or len(bins.lengths_s) < MIN_BINS:
        return None
    sums_ms, numbers = bins.latency_sums.T
    ends_s = np.cumsum(bins.lengths_s)
    known = numbers > 0
    third_s = ends_s[-1] / THIRDS
    first, last = known & (ends_s <= third_s), known & (ends_s > ends_s[-1] - third_s)
    if not last.any():
        return 1.0
    if not first.any():
        return None
    response_s = np.divide(sums_ms, numbers, out=np.full(len(numbers), np.inf), where=known) / MS
    lowest = [int(np.flatnonzero(part)[response_s[part].argmin()]) for part in (first, last)]
    return float((response_s[lowest[1]] - response_s[lowest[0]]) / (ends_s[lowest[1]] - ends_s[lowest[0]]))


def _is_explained(bins: ClientBins, rate: float) -> bool:
    """Return whether operations that are missing were due at random times, or may still be waiting."""
    due = rate * float(bins.lengths_s.sum())
    missing = MIN_ACHIEVED * due - float((bins.completed + bins.failed).sum())
    sums_ms, numbers = bins.latency_sums[-1]
    waiting = rate * sums_ms / numbers / MS if numbers else 0.0
    return missing <= DEVIATIONS * sqrt(due) + waiting


def rate_text(rate: float) -> str:
    """Return a target rate as commands receive it, without an exponent, thousands separators or trailing zeros."""
    return f"{rate:.9f}".rstrip("0").rstrip(".")


def measured_text(value: float, digits: int = 4) -> str:
    """Return a measured value with at least this many significant digits."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:.0f}"
