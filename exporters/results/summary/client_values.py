"""What clients saw in one phase: throughput, errors and latency, as the columns of a summary and over time.

The columns of all operations begin with `client_`, those of one operation with `client_OPERATION_`:

    client_ops_per_s     completed operations per second.
    client_errors_per_s  failed operations per second.
    client_error_share   failed operations as a share of all operations.
    client_mean_ms, client_p50_ms, client_p95_ms, client_p99_ms, client_p999_ms
                         latency: the response time if all results have it, otherwise the service time.
    client_count         the number of these latencies.
    client_latency       which of these it is: "response" or "service".

Everything that states a throughput measures it over the same part of the phase (see `client_span`). Of an interval that
crosses the begin or end of that part, operations count in proportion. Latencies belong to intervals, so they are those
of all intervals that lie completely inside the phase.

The end of a time range belongs to it, its begin to the range before: an interval without length, and the midpoint of an
interval, lie in one of two consecutive ranges.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from collector.load_results.client_result import (
    ClientInterval,
    ClientResult,
    Latency,
    Operation,
    merged_latency,
    total_of,
)
from collector.load_results.result_checks import TOLERANCE
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.rows.columns import MS, Cell, rounded, times

UNKNOWN_RATE = "the clients' throughput is unknown, because no time is covered by whole intervals of all client results"
LATENCY_KINDS = ("response", "service")
"""The kinds of latency in the order of preference."""
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_P99 = 99.0
Intervals = Sequence[ClientInterval]
TimeRange = tuple[float, float]
"""A beginning and an end, in seconds since the epoch."""
# Summed lengths of intervals are inexact.
TOLERANCE_S = 0.001
MAX_STAGGER_S = 5.0
MAX_STAGGER_SHARE = 0.2


def with_client_values(summaries: Sequence[PhaseSummary], results: Sequence[ClientResult]) -> list[PhaseSummary]:
    """Return the summaries with the columns and the notes of client results."""
    notes = tuple(f"{result.source}: {text}" for result in results for text in result.notes)
    return [_with_client_values(summary, results, notes) for summary in summaries]


def _with_client_values(summary: PhaseSummary, results: Sequence[ClientResult], notes: tuple[str, ...]) -> PhaseSummary:
    values = client_values(results, summary.begin_s, summary.end_s)
    if results and "client_ops_per_s" not in values:
        notes += (UNKNOWN_RATE,)
    return replace(summary, values={**summary.values, **values}, client_notes=notes)


def client_values(results: Sequence[ClientResult], begin_s: float, end_s: float) -> dict[str, Cell]:
    """Return the columns of a phase; {} if no interval lies completely inside it.

    Rates are those of the results' span in the phase (see `client_span`).
    """
    parts = phase_operations(results, begin_s, end_s)
    if not any(part.total for part in parts):
        return {}
    values = _columns("client", parts)
    by_name: defaultdict[str, list[PhaseOperation]] = defaultdict(list)
    for part in parts:
        by_name[part.name].append(part)
    for name, of_name in by_name.items():
        if name and any(part.total for part in of_name):
            values |= _columns(f"client_{name}", of_name)
    return values


@dataclass(frozen=True)
class PhaseOperation:
    """An operation of a result in a phase.

    name       the part of its columns' names; "" if there is none.
    length_s   the length of the span of all results; 0 if there is no span.
    completed  the number of operations in the span that succeeded.
    failed     the number of operations in the span that failed.
    total      the total of the intervals that lie completely inside the phase; None if there are none.
    """

    name: str
    length_s: float
    completed: float
    failed: float
    total: ClientInterval | None


def phase_operations(results: Sequence[ClientResult], begin_s: float, end_s: float) -> list[PhaseOperation]:
    """Return all operations of several results in a phase."""
    span = client_span(results, begin_s, end_s) or (begin_s, begin_s)
    parts = []
    for operation in (operation for result in results for operation in result.operations):
        amounts = amounts_within(intervals_of(operation), *span)
        total = total_within(operation, begin_s, end_s)
        parts.append(PhaseOperation(column_name(operation.name), span[1] - span[0], *amounts, total))
    return parts


def rate_of(parts: Sequence[PhaseOperation]) -> float | None:
    """Return the completed operations per second of operations in one phase; None if they are unknown."""
    length_s = parts[0].length_s if parts else 0.0
    return sum(part.completed for part in parts) / length_s if length_s else None


def column_name(operation: str) -> str:
    """Return an operation's name as a part of a column's name; "" if it has no letters or digits."""
    return _NOT_IN_NAMES.sub("_", operation.lower()).strip("_")


def total_within(operation: Operation, begin_s: float, end_s: float) -> ClientInterval | None:
    """Return the total of an operation's intervals that lie completely inside a time range; None if there are none.

    If all intervals lie inside the range, latencies that cannot be computed from them are taken from the total that the
    load generator states.
    """
    intervals = intervals_of(operation)
    inside = [interval for interval in intervals if lies_inside(interval, begin_s, end_s)]
    total = total_of(inside)
    if total is not None and operation.total is not None and len(inside) == len(intervals):
        return replace(
            total, response=total.response or operation.total.response, service=total.service or operation.total.service
        )
    return total


def _columns(prefix: str, parts: Sequence[PhaseOperation]) -> dict[str, Cell]:
    values: dict[str, Cell] = {}
    rate = rate_of(parts)
    if rate is not None:
        completed, failed = (sum(part.completed for part in parts), sum(part.failed for part in parts))
        values = {f"{prefix}_ops_per_s": rounded(rate), f"{prefix}_errors_per_s": rounded(failed / parts[0].length_s)}
        if completed + failed:
            values[f"{prefix}_error_share"] = failed / (completed + failed)
    totals = [part.total for part in parts if part.total]
    kind, latency = combined_latency(totals)
    if latency is not None:
        values[f"{prefix}_latency"] = kind
        values[f"{prefix}_count"] = sum(latency.counts.values()) or sum(total.completed for total in totals)
        values[f"{prefix}_mean_ms"] = rounded(times(MS, latency.mean_s))
        percentiles = latency.percentiles_s(PERCENTILES.values())
        for name, value_s in zip(PERCENTILES, percentiles, strict=True):
            values[f"{prefix}_{name}_ms"] = rounded(times(MS, value_s))
    return values


def combined_latency(totals: Iterable[ClientInterval]) -> tuple[str, Latency | None]:
    """Return the latencies of several operations and their kind; None if they cannot be combined."""
    parts = list(totals)
    for kind in LATENCY_KINDS:
        combined = latency_of_kind(parts, kind)
        if combined is not None:
            return kind, combined
    return "", None


def latency_of_kind(totals: Iterable[ClientInterval], kind: str) -> Latency | None:
    """Return the latencies of several operations; `kind` is one of LATENCY_KINDS. None if they cannot be combined."""
    return merged_latency([getattr(total, kind) for total in totals if total.completed])


@dataclass(frozen=True)
class ClientPoint:
    """What all clients of a run saw in a time range; a value that is unknown is absent.

    ops_per_s  completed operations per second.
    mean_ms    mean latency, keyed by kind of latency, which is one of LATENCY_KINDS.
    p99_ms     keyed like `mean_ms`.
    """

    begin_s: float
    end_s: float
    ops_per_s: float | None = None
    mean_ms: Mapping[str, float] = field(default_factory=dict)
    p99_ms: Mapping[str, float] = field(default_factory=dict)


def client_points(results: Iterable[ClientResult], begin_s: float, end_s: float, step_s: float) -> list[ClientPoint]:
    """Return the points of the intervals that lie completely inside a time range.

    A point covers consecutive intervals of the operation with the longest intervals, or at other times those of the
    operation with the next longest. Together, these last about `step_s` or longer unless a gap follows.

    An interval that only partly lies in a point contributes a proportional part of its operations to the throughput;
    its latencies belong to the point that contains its midpoint. The mean of a kind is the sum of these latencies
    divided by their number; it is unknown if an operation lacks this kind or has no counts. The p99 of a kind is
    unknown if an operation lacks this kind or if the percentiles cannot be combined. There is no point while an
    operation has an interval that lies only partly inside the time range, or if only its total is known.
    """
    known = [operation for result in results for operation in result.operations]
    operations = [[part for part in operation.intervals if lies_inside(part, begin_s, end_s)] for operation in known]
    unknown = [
        *(interval for operation in known for interval in operation.intervals if _crosses(interval, begin_s, end_s)),
        *(operation.total for operation in known if operation.total and not operation.intervals),
    ]
    axis = _time_axis(filter(None, operations))
    complete = [part for part in axis if not any(_overlaps(interval, *part) for interval in unknown)]
    return [_point(operations, *chunk) for chunk in _in_steps(complete, step_s)]


def without_rests(points: Iterable[ClientPoint], step_s: float) -> list[ClientPoint]:
    """Return the points without those that a gap makes shorter than half of `step_s`.

    In a chart, the few operations of such a point would have the same weight as those of a complete one.
    """
    return [point for point in points if point.end_s - point.begin_s >= step_s / 2]


def with_breaks(points: Iterable[ClientPoint]) -> list[ClientPoint]:
    """Return the points with a point without values at the end of each gap, which interrupts a line there."""
    joined: list[ClientPoint] = []
    for point in points:
        if joined and point.begin_s > joined[-1].end_s + TOLERANCE_S:
            joined.append(ClientPoint(point.begin_s, point.begin_s))
        joined.append(point)
    return joined


def _point(operations: Iterable[Intervals], begin_s: float, end_s: float) -> ClientPoint:
    completed, inside = 0.0, list[ClientInterval]()
    for intervals in operations:
        completed += amounts_within(intervals, begin_s, end_s)[0]
        inside += _within(intervals, begin_s, end_s)
    latencies = {kind: latency for kind in LATENCY_KINDS if (latency := latency_of_kind(inside, kind))}
    means_s = {kind: latency.mean_s for kind, latency in latencies.items()}
    p99s_s = {kind: latency.percentile_s(_P99) for kind, latency in latencies.items()}
    return ClientPoint(begin_s, end_s, completed / (end_s - begin_s), _known_ms(means_s), _known_ms(p99s_s))


def _known_ms(values_s: Mapping[str, float | None]) -> dict[str, float]:
    """Return the known values in milliseconds."""
    return {kind: value_s * MS for kind, value_s in values_s.items() if value_s is not None}


def _overlaps(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    """Return whether an interval and a time range overlap by more than the tolerance for rounded times."""
    return _shared_s(interval, begin_s, end_s) > TOLERANCE * min(interval.end_s - interval.begin_s, end_s - begin_s)


def _within(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals whose midpoints lie in a time range; its end belongs to it, its begin does not."""
    first = bisect_right(intervals, begin_s, key=middle_s)
    return intervals[first : bisect_right(intervals, end_s, key=middle_s)]


def intervals_of(operation: Operation) -> Intervals:
    """Return the intervals of an operation or, if it has none, its total."""
    return operation.intervals or tuple(filter(None, [operation.total]))


def lies_inside(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    return begin_s <= interval.begin_s and begin_s < interval.end_s <= end_s


def _crosses(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    """Return whether it is unknown how many of an interval's operations ended inside a time range."""
    is_crossing = interval.begin_s < begin_s < interval.end_s or interval.begin_s < end_s < interval.end_s
    return is_crossing and not _is_empty(interval)


def _is_empty(interval: ClientInterval) -> bool:
    return not (interval.completed or interval.errors)


def client_span(results: Iterable[ClientResult], begin_s: float, end_s: float) -> TimeRange | None:
    """Return the span of results in a phase; None if there is none, because all intervals are too long.

    The span of one result is when its load ran (`collector.load_results.load_span`). The span of several in a phase is
    the time for which the state of each is known:

    - An interval that lies only partly inside the phase is left out, since how many of its operations ended inside is
      unknown: the span begins when the last interval ends that crosses the phase's begin, and ends when the first one
      begins that crosses its end. Intervals without operations may be cut anywhere.
    - Load generators that are started together do not begin and end at the same moment. If one begins after another
      one by at most MAX_STAGGER_S and MAX_STAGGER_SHARE of the time in which any ran, the span begins with the later
      one; its end is found likewise.
    - In all other times, a client without intervals had no operations, so loads that follow one another add up
      correctly.
    """
    edges = [_edges(result, begin_s, end_s) for result in results]
    known = [edge for edge in edges if edge is not None]
    if not known:
        return None
    whole_s = max(at_s for _, at_s, *_ in known) - min(at_s for at_s, *_ in known)
    stagger_s = min(MAX_STAGGER_S, MAX_STAGGER_SHARE * max(whole_s, 0.0))
    first_s = _first_s([(at_s, is_crossing) for at_s, _, is_crossing, _ in known], begin_s, stagger_s)
    last_s = -_first_s([(-at_s, is_crossing) for _, at_s, _, is_crossing in known], -end_s, stagger_s)
    return (first_s, last_s) if last_s - first_s >= TOLERANCE_S else None


def _edges(result: ClientResult, begin_s: float, end_s: float) -> tuple[float, float, bool, bool] | None:
    """Return where a result's known part of a phase begins and ends, and whether intervals cross these times.

    Returns None if the result has no interval in the phase.
    """
    parts = [
        part
        for operation in result.operations
        for part in intervals_of(operation)
        if part.end_s > begin_s and part.begin_s < end_s and part.end_s > part.begin_s
    ]
    if not parts:
        return None
    at_begin = [part.end_s for part in parts if part.begin_s < begin_s and not _is_empty(part)]
    at_end = [part.begin_s for part in parts if part.end_s > end_s and not _is_empty(part)]
    first_s = max(at_begin) if at_begin else max(min(part.begin_s for part in parts), begin_s)
    last_s = min(at_end) if at_end else min(max(part.end_s for part in parts), end_s)
    return first_s, last_s, bool(at_begin), bool(at_end)


def _first_s(edges: Sequence[tuple[float, bool]], begin_s: float, stagger_s: float) -> float:
    """Return the begin of the span, given where each result's known part begins and whether an interval crosses it."""
    crossing = [at_s for at_s, is_crossing in edges if is_crossing]
    others = [at_s for at_s, is_crossing in edges if not is_crossing]
    reference_s = begin_s if crossing else min(others)
    together = [at_s for at_s in others if at_s <= reference_s + stagger_s]
    return max((*crossing, *together))


def amounts_within(intervals: Intervals, begin_s: float, end_s: float) -> tuple[float, float]:
    """Return the numbers of operations of consecutive intervals that succeeded and that failed in a time range."""
    completed = failed = 0.0
    for interval in _touching(intervals, begin_s, end_s):
        length_s = interval.end_s - interval.begin_s
        share = _shared_s(interval, begin_s, end_s) / length_s if length_s else 1.0
        completed += interval.completed * share
        failed += interval.failed * share
    return completed, failed


def _shared_s(interval: ClientInterval, begin_s: float, end_s: float) -> float:
    """Return how long an interval and a time range overlap."""
    return max(min(interval.end_s, end_s) - max(interval.begin_s, begin_s), 0.0)


def _touching(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals that end after a time range begins, and begin before it ends or when it does."""
    first = bisect_right(intervals, begin_s, key=lambda interval: interval.end_s)
    return intervals[first : bisect_right(intervals, end_s, key=lambda interval: interval.begin_s)]


def middle_s(interval: ClientInterval) -> float:
    return (interval.begin_s + interval.end_s) / 2


def _time_axis(operations: Iterable[Intervals]) -> list[TimeRange]:
    """Return the time ranges of intervals, in order: all of the operation with the longest, and others between them.

    With shorter intervals, most ranges would lack the latencies of the operation with the longest. The midpoint of
    every interval with a length lies in a time range.
    """
    axis: list[TimeRange] = []
    for intervals in sorted(operations, key=lambda intervals: (-_typical_length_s(intervals), -len(intervals))):
        ends_s = [end_s for _, end_s in axis]
        axis = sorted([*axis, *filter(None, (_uncovered(interval, axis, ends_s) for interval in intervals))])
    return axis


def _typical_length_s(intervals: Intervals) -> float:
    # Rounding makes lengths equal that differ only because times are inexact.
    return round(median(interval.end_s - interval.begin_s for interval in intervals), 2)


def _uncovered(interval: ClientInterval, axis: Sequence[TimeRange], ends_s: Sequence[float]) -> TimeRange | None:
    """Return the part of an interval between the ranges of `axis`, which end at `ends_s`.

    Returns None if a range contains the interval's midpoint, or if the interval has no length.
    """
    index = bisect_left(ends_s, middle_s(interval))
    before_s = ends_s[index - 1] if index else interval.begin_s
    last_s = min(interval.end_s, axis[index][0]) if index < len(axis) else interval.end_s
    first_s = max(interval.begin_s, before_s)
    return (first_s, last_s) if first_s < middle_s(interval) <= last_s else None


def _in_steps(axis: Sequence[TimeRange], step_s: float) -> Iterator[TimeRange]:
    """Yield consecutive ranges of `axis` as one that lasts about `step_s` or longer, unless a gap ends it."""
    first_s = axis[0][0] if axis else 0.0
    for (_, end_s), following in zip(axis, [*axis[1:], None], strict=False):
        is_last = following is None or following[0] > end_s + TOLERANCE_S
        if is_last or end_s - first_s >= step_s * (1 - TOLERANCE):
            yield first_s, end_s
            first_s = following[0] if following else end_s


def steps_of_span(operations: Iterable[Intervals], span: TimeRange, step_s: float) -> list[TimeRange]:
    """Return the consecutive ranges, about `step_s` or longer, into which intervals divide a span.

    Together they are the span: times in which no client has an interval are ranges, too.
    """
    begin_s, end_s = span
    clipped = [
        (max(first_s, begin_s), min(last_s, end_s))
        for first_s, last_s in _time_axis(list(filter(None, operations)))
        if first_s < end_s - TOLERANCE_S and last_s > begin_s + TOLERANCE_S
    ]
    whole: list[TimeRange] = []
    for first_s, last_s in [*clipped, (end_s, end_s)]:
        known_s = whole[-1][1] if whole else begin_s
        if first_s > known_s:
            whole.append((known_s, first_s))
        if last_s > first_s:
            whole.append((max(first_s, known_s), last_s))
    return list(_in_steps(whole, step_s))
