"""Which intervals of a node are missing in a time range, and why: the node did not answer, or it was not sampled.

A node's readings are the ticks in which Cassandra answered with counters that have rates. Between two readings, the
node was silent if they are further apart than its interval. Counters that go on after a silence include its operations,
but the times of these operations are unknown, so the intervals count as missing.

A time range contains the same readings as its summary (`SpanGrid`): those whose rates lie completely inside it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile
from math import floor, inf, isfinite
from typing import NamedTuple

from collector.merge.grid import Grid
from collector.model.snapshot import Event
from collector.recording.header import SLOWEST_S, Header

NO_ANSWER, NOT_SAMPLED = "no_answer", "not_sampled"
"""Why intervals are missing: Cassandra did not answer, or nothing was recorded, for example without an agent."""
# Two readings that are further apart than this number of intervals have missed one.
_LONGEST = 1.5
# The share of an interval by which the length of an ordinary reading's rates may exceed it.
_TOLERANCE = 0.1
# The resolution of recorded times.
_RESOLUTION_S = 0.001


class NodeTick(NamedTuple):
    """A recorded tick of a node.

    time_s      its time on the reference clock.
    interval_s  the time between two ticks.
    covered_s   the time that Cassandra's rates cover; 0 if there are none.
    has_failed  whether Cassandra did not answer, or not completely.
    restarted   whether Cassandra's counters began again.
    """

    time_s: float
    interval_s: float
    covered_s: float
    has_failed: bool = False
    restarted: bool = False


def has_failed(head: Header, events: Iterable[Event]) -> bool:
    """Return whether a tick's events state that a source of Cassandra did not answer completely."""
    return any(event.kind == "no_answer" and event.text.partition(": ")[0] in head.sources for event in events)


@dataclass(frozen=True)
class Gap:
    """A time in which a node has no readings.

    cause      NO_ANSWER or NOT_SAMPLED.
    intervals  the number of missing intervals.
    restarted  whether Cassandra restarted in this time.
    is_open    whether the gap lasts until the end of the time range.
    """

    begin_s: float
    end_s: float
    cause: str
    intervals: int
    restarted: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class NodeCoverage:
    """The intervals of a node in a time range.

    intervals  the number of intervals that lie completely inside the time range.
    missing    how many of them are missing.
    problem    why nothing was recorded; "" if something was.
    """

    node: str
    interval_s: float | None
    intervals: int
    missing: int
    gaps: tuple[Gap, ...] = ()
    problem: str = ""

    @property
    def answered(self) -> int:
        """The number of intervals that are not missing."""
        return self.intervals - self.missing


class _Silence(NamedTuple):
    """The time between two consecutive readings that are too far apart; None for one that does not exist.

    again_s  when Cassandra answered without a rate, after a restart of its process or of the agent, and from then on
             in every interval; None if it did not.
    """

    before: NodeTick | None
    after: NodeTick | None
    inside: Sequence[NodeTick]
    again_s: float | None

    @property
    def begin_s(self) -> float:
        return -inf if self.before is None else self.before.time_s

    @property
    def end_s(self) -> float:
        """When the node was known to answer again."""
        if self.again_s is not None and self.after is not None:
            return self.again_s
        return inf if self.after is None else self.after.time_s


def coverage_of(
    node: str, ticks: Sequence[NodeTick], spans: Sequence[tuple[float, float]], *, paced: bool = False
) -> list[NodeCoverage]:
    """Return the coverage of each time range; `ticks` are in the order in which they were recorded.

    A `paced` node answers at its own pace, so it is silent only if a reading fails, or for longer than SLOWEST_S.
    """
    silences = list(_silences(ticks, paced=paced))
    return [_within(node, ticks, silences, *span, paced=paced) for span in spans]


def not_recorded(node: str, interval_s: float | None, span: tuple[float, float], problem: str) -> NodeCoverage:
    intervals = _whole(span[1] - span[0], interval_s) if interval_s else 0
    return NodeCoverage(node, interval_s, intervals, intervals, (), problem)


def unknown_times(
    ticks: Sequence[NodeTick], grid: Grid, rows: Sequence[int], observed: tuple[float, float], *, paced: bool = False
) -> dict[int, float]:
    """Return for how many seconds a node's counters are unknown, by the index of the interval, unless it is 0.

    rows      the indices of the node's intervals on the grid, in ascending order; others are left out.
    observed  the time range in which the node should have been sampled; an infinite limit is that of its ticks.

    The counters are unknown during a silence. If they went on, the reading after it covers it, and they are unknown
    only in the interval of the reading before it, unless that is the same interval.

    A silence of a single tick does not count, because the readings around it are a good estimate: a tick may be late.
    """
    unknown_s: dict[int, float] = {}
    if not rows:
        return unknown_s
    first_s, last_s = (limit(tick.time_s for tick in ticks) for limit in (min, max))
    observed = (observed[0] if isfinite(observed[0]) else first_s, observed[1] if isfinite(observed[1]) else last_s)
    for silence in _silences(ticks, paced=paced):
        before, after = silence.before, silence.after
        covered_from_s, index_after = inf, None
        index_before = None if before is None else grid.index_of(before.time_s, before.interval_s, before.covered_s)
        if after is not None:
            covered_from_s = after.time_s - after.covered_s + after.interval_s / 2
            index_after = grid.index_of(after.time_s, after.interval_s, after.covered_s)
        if not any(islice(_expected(silence, *observed), 1, None)):
            continue
        for index in _between(rows, grid, silence, observed):
            interval_s = (after or before or ticks[-1]).interval_s
            begin_s, end_s = grid.begin_of(index) - interval_s, grid.end_of(index) + interval_s
            # A reading that belongs to no interval covers a part of another time range.
            is_covered = index == index_after or (index_after is not None and index != index_before)
            missing = sum(
                grid.index_of(time_s, interval_s) == index and (time_s < covered_from_s or not is_covered)
                for time_s in _expected(silence, max(begin_s, observed[0]), min(end_s, observed[1]))
            )
            missing += after is not None and index != index_after and index == grid.index_of(after.time_s, interval_s)
            if missing:
                unknown_s[index] = unknown_s.get(index, 0.0) + missing * interval_s
    return unknown_s


def _between(rows: Sequence[int], grid: Grid, silence: "_Silence", observed: tuple[float, float]) -> Sequence[int]:
    """Return those of `rows` that may contain a part of a silence."""
    end_s = inf if silence.after is None else silence.after.time_s
    indices = grid.indices_between(max(silence.begin_s, observed[0]), min(end_s, observed[1]))
    return rows[bisect_left(rows, indices.start) : bisect_left(rows, indices.stop)]


def _silences(ticks: Sequence[NodeTick], *, paced: bool) -> Iterator[_Silence]:
    readings = [index for index, tick in enumerate(ticks) if tick.covered_s]
    for first, second in pairwise([-1, *readings, len(ticks)]):
        if not paced and second - first == 1 and 0 <= first < len(ticks) - 1:
            between_s = ticks[second].time_s - ticks[first].time_s
            if between_s <= _LONGEST * max(ticks[first].interval_s, ticks[second].interval_s):
                # The usual case, decided first because there are many readings.
                continue
        before = ticks[first] if first >= 0 else None
        after = ticks[second] if second < len(ticks) else None
        inside = ticks[first + 1 : second]
        silence = _Silence(before, after, inside, _again_s(inside, after, paced=paced))
        if before is None or after is None:
            if before is None or not paced or any(tick.has_failed for tick in inside):
                yield silence
            continue
        length_s = after.time_s - before.time_s
        if paced:
            is_silent = any(tick.has_failed for tick in inside) or length_s > SLOWEST_S
        else:
            is_silent = length_s > _LONGEST * max(before.interval_s, after.interval_s)
        if is_silent:
            yield silence


def _again_s(inside: Sequence[NodeTick], after: NodeTick | None, *, paced: bool) -> float | None:
    """Return `_Silence.again_s`."""
    since = takewhile(lambda tick: not tick.has_failed, reversed(inside))
    again = next((tick for tick in since if tick.restarted or not paced), None)
    if again is None or after is None:
        return None
    longest_s = SLOWEST_S if paced else _LONGEST * after.interval_s
    return again.time_s if after.time_s - again.time_s <= longest_s else None


def _within(
    node: str, ticks: Sequence[NodeTick], silences: Sequence[_Silence], begin_s: float, end_s: float, *, paced: bool
) -> NodeCoverage:
    interval_s = ticks[-1].interval_s if ticks else None
    gaps = [gap for silence in silences if (gap := _gap(silence, begin_s, end_s)) is not None]
    missing = sum(gap.intervals for gap in gaps)
    if paced and interval_s:
        intervals = max(_whole(end_s - begin_s, interval_s), missing)
    else:
        intervals = missing + sum(tick.covered_s > 0 and _is_inside(tick, begin_s, end_s) for tick in ticks)
    return NodeCoverage(node, interval_s, intervals, missing, tuple(gap for gap in gaps if gap.intervals))


def _gap(silence: _Silence, begin_s: float, end_s: float) -> Gap | None:
    """Return the part of a silence in a time range; None if there is none."""
    from_s, to_s = max(silence.begin_s, begin_s), min(silence.end_s, end_s)
    if from_s >= to_s:
        return None
    count = sum(1 for _ in _expected(silence, begin_s, end_s)) + _is_cut(silence, begin_s, end_s)
    sampled = [tick for tick in silence.inside if from_s <= tick.time_s <= end_s]
    # Cassandra can restart between two ticks, so that none of them fails.
    unanswered = sum(tick.has_failed or tick.restarted for tick in sampled)
    cause = NO_ANSWER if unanswered and 2 * unanswered >= count else NOT_SAMPLED
    after = (silence.after,) if silence.after is not None else ()
    restarted = any(tick.restarted and tick.time_s <= end_s for tick in (*silence.inside, *after))
    return Gap(from_s, to_s, cause, count, restarted, silence.end_s > end_s)


def _expected(silence: _Silence, begin_s: float, end_s: float) -> Iterator[float]:
    """Yield the times of the ticks between two readings, inside a time range, at which readings were expected."""
    anchor = silence.after or silence.before or next(reversed(silence.inside), None)
    if anchor is None:
        return
    interval_s = anchor.interval_s
    first_s = max(silence.begin_s + interval_s / 2, begin_s + interval_s - _RESOLUTION_S)
    last_s = end_s + _RESOLUTION_S
    if silence.after is not None:
        last_s = min(last_s, silence.after.time_s - interval_s / 2)
    # The number, counted from the anchor, of the first tick from `first_s` on.
    number = -floor((anchor.time_s - first_s) / interval_s)
    while (time_s := anchor.time_s + number * interval_s) <= last_s:
        yield time_s
        number += 1


def _is_cut(silence: _Silence, begin_s: float, end_s: float) -> bool:
    """Return whether the reading after a silence does not count because its rates begin before the time range."""
    after = silence.after
    if after is None or after.covered_s <= (1 + _TOLERANCE) * after.interval_s or _is_inside(after, begin_s, end_s):
        return False
    return begin_s - _RESOLUTION_S <= after.time_s - after.interval_s and after.time_s <= end_s


def _is_inside(tick: NodeTick, begin_s: float, end_s: float) -> bool:
    return begin_s <= tick.time_s - max(tick.interval_s, tick.covered_s) and tick.time_s <= end_s


def _whole(length_s: float, interval_s: float) -> int:
    return max(0, floor((length_s + _RESOLUTION_S) / interval_s))
