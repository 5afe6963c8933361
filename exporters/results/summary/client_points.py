"""Throughput, mean latency and p99 of client results over time, by the clients' own intervals."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.result_checks import TOLERANCE
from exporters.results.summary.client_span import (
    TOLERANCE_S,
    Intervals,
    amounts_within,
    crosses,
    in_steps,
    lies_inside,
    middle_s,
    shared_s,
    time_axis,
)
from exporters.results.summary.client_values import LATENCY_KINDS, latency_of_kind
from exporters.rows.columns import MS

_P99 = 99.0


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
        *(interval for operation in known for interval in operation.intervals if crosses(interval, begin_s, end_s)),
        *(operation.total for operation in known if operation.total and not operation.intervals),
    ]
    axis = time_axis(filter(None, operations))
    complete = [part for part in axis if not any(_overlaps(interval, *part) for interval in unknown)]
    return [_point(operations, *chunk) for chunk in in_steps(complete, step_s)]


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
    return shared_s(interval, begin_s, end_s) > TOLERANCE * min(interval.end_s - interval.begin_s, end_s - begin_s)


def _within(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals whose midpoints lie in a time range; its end belongs to it, its begin does not."""
    first = bisect_right(intervals, begin_s, key=middle_s)
    return intervals[first : bisect_right(intervals, end_s, key=middle_s)]
