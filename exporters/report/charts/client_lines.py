"""Throughput and p99 of client results over time, by the client's own intervals."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from collector.clients.client_result import ClientInterval, ClientResult
from exporters.report.charts.time_chart import MS, OPERATIONS_PER_S, TimeLine
from exporters.summary.client_values import TOLERANCE_S, combined_latency

_MS_PER_S = 1000.0
_P99 = 99.0


def client_lines(results: Sequence[ClientResult], begin_s: float, end_s: float, step_s: float) -> list[TimeLine]:
    """Return the client's throughput and p99 in a time range; [] if no result has intervals in it.

    A point covers consecutive intervals of the operation with the most intervals, or at other times those of the
    operation with the next most. Together, these last at least `step_s` unless a gap follows. The point also covers the
    intervals of other operations whose midpoints lie in this time. It has no p99 if the percentiles cannot be combined.
    """
    operations = [
        [interval for interval in operation.intervals if begin_s <= interval.begin_s and interval.end_s <= end_s]
        for result in results
        for operation in result.operations
    ]
    axis = _axis(operations)
    if not axis:
        return []
    times: list[float] = []
    rates: list[float | None] = []
    tails: list[float | None] = []
    last_s = axis[0].begin_s
    for chunk_begin_s, chunk_end_s in _chunks(axis, step_s):
        if chunk_begin_s > last_s + TOLERANCE_S:
            # A point without values breaks the line.
            times, rates, tails = [*times, chunk_begin_s], [*rates, None], [*tails, None]
        totals = [_within(intervals, chunk_begin_s, chunk_end_s) for intervals in operations]
        times.append(chunk_end_s)
        rates.append(sum(map(_rate, totals)))
        tails.append(_p99_ms(totals))
        last_s = chunk_end_s
    kind = "response" if any(interval.response for interval in axis) else "service"
    return [
        TimeLine("client operations", OPERATIONS_PER_S, "client", times, rates),
        TimeLine(f"client p99 ({kind} time)", MS, "client", times, tails),
    ]


def _axis(operations: Iterable[Sequence[ClientInterval]]) -> list[ClientInterval]:
    """Return intervals that do not overlap, in order: all of the operation with the most, and others between them."""
    axis: list[ClientInterval] = []
    for intervals in sorted(operations, key=len, reverse=True):
        ends_s = [interval.end_s for interval in axis]
        free = [interval for interval in intervals if not _overlaps(interval, axis, ends_s)]
        axis = sorted([*axis, *free], key=_middle_s)
    return axis


def _overlaps(interval: ClientInterval, axis: Sequence[ClientInterval], ends_s: Sequence[float]) -> bool:
    """Return whether an interval overlaps one of `axis`, which end at `ends_s`."""
    index = bisect_right(ends_s, interval.begin_s + TOLERANCE_S)
    return index < len(axis) and axis[index].begin_s < interval.end_s - TOLERANCE_S


def _chunks(intervals: Sequence[ClientInterval], step_s: float) -> Iterator[tuple[float, float]]:
    """Yield time ranges of consecutive intervals; a range is at least `step_s` long unless a gap ends it."""
    begin_s = intervals[0].begin_s
    for interval, following in zip(intervals, [*intervals[1:], None], strict=True):
        is_last = following is None or following.begin_s > interval.end_s + TOLERANCE_S
        if is_last or interval.end_s - begin_s >= step_s - TOLERANCE_S:
            yield begin_s, interval.end_s
            begin_s = following.begin_s if following else interval.end_s


def _within(intervals: Sequence[ClientInterval], begin_s: float, end_s: float) -> Sequence[ClientInterval]:
    first = bisect_left(intervals, begin_s, key=_middle_s)
    return intervals[first : bisect_left(intervals, end_s, key=_middle_s)]


def _middle_s(interval: ClientInterval) -> float:
    return (interval.begin_s + interval.end_s) / 2


def _rate(intervals: Sequence[ClientInterval]) -> float:
    length_s = sum(interval.end_s - interval.begin_s for interval in intervals)
    return sum(interval.completed for interval in intervals) / length_s if length_s > 0 else 0.0


def _p99_ms(totals: Sequence[Sequence[ClientInterval]]) -> float | None:
    _, latency = combined_latency(interval for intervals in totals for interval in intervals)
    value_s = latency.percentile_s(_P99) if latency else None
    return None if value_s is None else value_s * _MS_PER_S
