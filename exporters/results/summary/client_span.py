"""The part of a phase over which the throughput of clients is measured, for everything that states it.

The span of one result is when its load ran (`collector.load_results.load_span`). The span of several in a phase is the
time for which the state of each is known:

- An interval that lies only partly inside the phase is left out, since how many of its operations ended inside is
  unknown: the span begins when the last interval ends that crosses the phase's begin, and ends when the first one
  begins that crosses its end. Intervals without operations may be cut anywhere.
- Load generators that are started together do not begin and end at the same moment. If one begins after another one
  by at most MAX_STAGGER_S and MAX_STAGGER_SHARE of the time in which any ran, the span begins with the later one; its
  end is found likewise.
- In all other times, a client without intervals had no operations, so loads that follow one another add up correctly.

Of an interval that crosses the span's begin or end, operations count in proportion. Latencies belong to intervals, so
they are those of all intervals that lie completely inside the phase.

The end of a time range belongs to it, its begin to the range before: an interval without length, and the midpoint of an
interval, lie in one of two consecutive ranges.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.load_results.result_checks import TOLERANCE

Intervals = Sequence[ClientInterval]
TimeRange = tuple[float, float]
"""A beginning and an end, in seconds since the epoch."""
# Summed lengths of intervals are inexact.
TOLERANCE_S = 0.001
MAX_STAGGER_S = 5.0
MAX_STAGGER_SHARE = 0.2


def intervals_of(operation: Operation) -> Intervals:
    """Return the intervals of an operation or, if it has none, its total."""
    return operation.intervals or tuple(filter(None, [operation.total]))


def lies_inside(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    return begin_s <= interval.begin_s and begin_s < interval.end_s <= end_s


def crosses(interval: ClientInterval, begin_s: float, end_s: float) -> bool:
    """Return whether it is unknown how many of an interval's operations ended inside a time range."""
    is_crossing = interval.begin_s < begin_s < interval.end_s or interval.begin_s < end_s < interval.end_s
    return is_crossing and not is_empty(interval)


def is_empty(interval: ClientInterval) -> bool:
    return not (interval.completed or interval.errors)


def client_span(results: Iterable[ClientResult], begin_s: float, end_s: float) -> TimeRange | None:
    """Return the span of results in a phase; None if there is none, because all intervals are too long."""
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
    at_begin = [part.end_s for part in parts if part.begin_s < begin_s and not is_empty(part)]
    at_end = [part.begin_s for part in parts if part.end_s > end_s and not is_empty(part)]
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
    for interval in touching(intervals, begin_s, end_s):
        length_s = interval.end_s - interval.begin_s
        share = shared_s(interval, begin_s, end_s) / length_s if length_s else 1.0
        completed += interval.completed * share
        failed += interval.failed * share
    return completed, failed


def shared_s(interval: ClientInterval, begin_s: float, end_s: float) -> float:
    """Return how long an interval and a time range overlap."""
    return max(min(interval.end_s, end_s) - max(interval.begin_s, begin_s), 0.0)


def touching(intervals: Intervals, begin_s: float, end_s: float) -> Intervals:
    """Return the intervals that end after a time range begins, and begin before it ends or when it does."""
    first = bisect_right(intervals, begin_s, key=lambda interval: interval.end_s)
    return intervals[first : bisect_right(intervals, end_s, key=lambda interval: interval.begin_s)]


def middle_s(interval: ClientInterval) -> float:
    return (interval.begin_s + interval.end_s) / 2


def time_axis(operations: Iterable[Intervals]) -> list[TimeRange]:
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


def in_steps(axis: Sequence[TimeRange], step_s: float) -> Iterator[TimeRange]:
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
        for first_s, last_s in time_axis(list(filter(None, operations)))
        if first_s < end_s - TOLERANCE_S and last_s > begin_s + TOLERANCE_S
    ]
    whole: list[TimeRange] = []
    for first_s, last_s in [*clipped, (end_s, end_s)]:
        known_s = whole[-1][1] if whole else begin_s
        if first_s > known_s:
            whole.append((known_s, first_s))
        if last_s > first_s:
            whole.append((max(first_s, known_s), last_s))
    return list(in_steps(whole, step_s))
