"""Throughput, mean latency and p99 of client results over time, by the clients' own intervals."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from collector.clients.client_result import ClientInterval, ClientResult
from collector.clients.sound_results import TOLERANCE
from exporters.line.columns import MS
from exporters.summary.client_values import LATENCY_KINDS, TOLERANCE_S, latency_of_kind

_P99 = 99.0
Intervals = Sequence[ClientInterval]
TimeRange = tuple[float, float]
"""A beginning and an end, in seconds since the epoch."""


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
    operations = [
        [interval for interval in operation.intervals if begin_s <= interval.begin_s < interval.end_s <= end_s]
        for operation in known
    ]
    unknown = [
        *(interval for operation in known for interval in operation.intervals if _crosses(interval, begin_s, end_s)),
        *(operation.total for operation in known if operation.total and not operation.intervals),
    ]
    axis = _axis(filter(None, operations))
    complete = [part for part in axis if not any(_overlaps(interval, *part) for interval in unknown)]
    return [_point(operations, *chunk) for chunk in _chunks(complete, step_s)]


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


def _axis(operations: Iterable[Intervals]) -> list[TimeRange]:
    """Return the time ranges of intervals, in order: all of the operation with the longest, and others between them.

    With shorter intervals, most points would lack the latencies of the operation with the longest. Every interval's
    midpoint lies in a time range.
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

    Returns None if a range contains the interval's midpoint.
    """
    index = bisect_right(ends_s, _middle_s(interval))
    before_s = ends_s[index - 1] if index else interval.begin_s
    after_s = axis[index][0] if index < len(axis) else interval.end_s
    if after_s <= _middle_s(interval):
        return None
    return max(interval.begin_s, before_s), min(interval.end_s, after_s)


def _chunks(axis: Sequence[TimeRange], step_s: float) -> Iterator[TimeRange]:
    """Yield consecutive ranges of `axis` as one that lasts about `step_s` or longer, unless a gap ends it."""
    first_s = axis[0][0] if axis else 0.0
    for (_, end_s), following in zip(axis, [*axis[1:], None], strict=False):
        is_last = following is None or following[0] > end_s + TOLERANCE_S
        if is_last or end_s - first_s >= step_s * (1 - TOLERANCE):
            yield first_s, end_s
            first_s = following[0] if following else end_s


def _point(operations: Iterable[Intervals], begin_s: float, end_s: float) -> ClientPoint:
    completed, inside = 0.0, list[ClientInterval]()
    for intervals in operations:
        completed += sum(
            _completed_within(interval, begin_s, end_s) for interval in _touching(intervals, begin_s, end_s)
        )
        inside += _within(intervals, begin_s, end_s)
    latencies = {kind: latency for kind in LATENCY_KINDS if (latency := latency_of_kind(inside, kind))}
    means_s = {kind: latency.mean_s for kind, latency in latencies.items()}
    p99s_s = {kind: latency.percentile_s(_P99) for kind, latency in latencies.items()}
    return ClientPoint(begin_s, end_s, completed / (end_s - begin_s), _known_ms(means_s), _known_ms(p99s_s))


def _known_ms(values_s: Mapping[str, float | None]) -> dict[str, float]:
    """Return the known values in milliseconds."""
    return {kind: value_s * MS for kind, value_s in values_s.items() if value_s is not None}


def _crosses(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    """Return whether an interval lies partly inside a time range and partly outside."""
    return interval.begin_s < begin_s < interval.end_s or interval.begin_s < end_s < interval.end_s


def _overlaps(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    """Return whether an interval and a time range overlap by more than the tolerance for rounded times."""
    return _shared_s(interval, begin_s, end_s) > TOLERANCE * min(interval.end_s - interval.begin_s, end_s - begin_s)


def _shared_s(interval: ClientInterval, begin_s: float, end_s: float) -> float:
    return max(min(interval.end_s, end_s) - max(interval.begin_s, begin_s), 0.0)


def _completed_within(interval: ClientInterval, begin_s: float, end_s: float) -> float:
    """Return the part of an interval's completed operations that falls into a time range, if they are uniform."""
    return interval.completed * _shared_s(interval, begin_s, end_s) / (interval.end_s - interval.begin_s)


def _touching(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals that overlap a time range."""
    first = bisect_right(intervals, begin_s, key=lambda interval: interval.end_s)
    return intervals[first : bisect_left(intervals, end_s, key=lambda interval: interval.begin_s)]


def _within(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals whose midpoints lie in a time range."""
    first = bisect_left(intervals, begin_s, key=_middle_s)
    return intervals[first : bisect_left(intervals, end_s, key=_middle_s)]


def _middle_s(interval: ClientInterval) -> float:
    return (interval.begin_s + interval.end_s) / 2
