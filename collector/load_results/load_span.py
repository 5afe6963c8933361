"""When a load generator ran its load, as far as its result and its command show: the span of a client result.

A result's intervals are its span. They begin when its first operation began, or one mean time between operations before
that ended, and end when the last one did, so the time in which a load generator starts or exits is not part of it.
Times in which nothing completed are:

- Between operations, always.
- At the end, if the load generator was to run longer: until the load's stated duration has passed, until casstat ended
  the command or, if a command whose result was written while it ran is left with nothing completed for more than
  MAX_EXIT_S, until the command's end.

The part of a phase that several results cover is defined in `exporters.results.summary.client_values`.

If the load generator's clock was set back while it ran, it shows some times twice. The operations of such a time belong
to two parts of the run, so their intervals are joined to one that covers both: it has all their operations, and its
true length.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from statistics import fmean, median, pstdev

from collector.load_results.client_format import ClientFormatError, CommandTimes, ResultClock
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, total_of
from collector.load_results.result_checks import tolerance_s
from collector.merge.clock_correction import ClockPart
from collector.printable import local_time

MAX_EXIT_S = 5.0
"""How long a load generator may take to exit after its last operation."""
MIN_STALL_S = 1.0
"""A shorter time without operations at the end is not distinguished from their usual distance."""
MAX_OUTSIDE_S = 1.0
"""Times of results may differ by this much from those of the command, because clocks differ slightly."""
OUTSIDE = "lie outside of the run and are not included in its figures"
NOMINAL_S = 2.0
"""Intervals up to this length whose stated lengths are equal may be partly empty at the beginning and at the end."""
_NEIGHBOURS = 5
_MIN_INTERVALS = 4
_DEVIATIONS = 3.0
_SAME = 0.01


@dataclass(frozen=True)
class LoadTimes:
    """When a load ran, in seconds since the epoch on the run's clock.

    begin_s, end_s  the time range of the command.
    length_s        how long the load was to run; None if that is unknown.
    until_s         when casstat ended the command, although the load would have gone on; None if it did not.
    is_of_command   whether the result was written by the command, so that it must end about when the command does.
    """

    begin_s: float
    end_s: float
    length_s: float | None = None
    until_s: float | None = None
    is_of_command: bool = False


def empty_share(totals: Sequence[int]) -> float:
    """Return in which share of its first interval a load did not run, given the operations of equal intervals.

    The load is assumed to have the same rate as in the intervals that follow. A first interval that is empty, or about
    as full as these, counts completely.
    """
    following = totals[1 : min(len(totals) - 1, 1 + _NEIGHBOURS)] if len(totals) >= _MIN_INTERVALS else ()
    if not totals[0] or not following:
        return 0.0
    mean = fmean(following)
    return 1 - totals[0] / mean if totals[0] < mean - max(_DEVIATIONS * pstdev(following), 1.0) else 0.0


def with_true_edges(operation: Operation) -> Operation:
    """Return the operation with the true lengths of its first and last intervals, whose stated ones are only nominal.

    Only formats whose rows are for whole seconds need this: of the others, the lengths are true, and a slow beginning
    is part of the load.
    """
    intervals = operation.intervals
    lengths_s = [interval.end_s - interval.begin_s for interval in intervals]
    if len(intervals) < _MIN_INTERVALS or not max(lengths_s) - min(lengths_s) <= _SAME * min(lengths_s):
        return operation
    if max(lengths_s) > NOMINAL_S:
        return operation
    totals = [interval.attempted for interval in intervals]
    first, *others, last = intervals
    before_s = empty_share(totals) * (first.end_s - first.begin_s)
    after_s = empty_share(totals[::-1]) * (last.end_s - last.begin_s)
    first = replace(first, begin_s=first.begin_s + before_s)
    return replace(operation, intervals=(first, *others, replace(last, end_s=last.end_s - after_s)))


def with_stall(result: ClientResult, times: LoadTimes) -> ClientResult:
    """Return the result with the time at the end in which nothing completed although the load ran, and a note."""
    span_s = result.span_s
    if span_s is None or result.estimated_clock or not all(operation.intervals for operation in result.operations):
        return result
    begin_s, end_s = span_s
    until_s = _load_end_s(begin_s, end_s, times)
    typical_s = max(
        median(interval.end_s - interval.begin_s for interval in operation.intervals) for operation in result.operations
    )
    if until_s - end_s <= max(MIN_STALL_S, 1.5 * typical_s):
        return result
    stall = _empty_intervals(end_s, until_s, typical_s)
    operations = tuple(
        replace(operation, intervals=(*operation.intervals, *_until(operation, end_s), *stall))
        for operation in result.operations
    )
    text = f"no operation ended in the last {until_s - end_s:.1f} s of the load: this time is counted as a stall"
    return replace(result, operations=operations, notes=(*result.notes, text))


def _load_end_s(begin_s: float, end_s: float, times: LoadTimes) -> float:
    """Return when the load ended at the earliest, given the span of its result."""
    if not times.begin_s - MAX_OUTSIDE_S <= begin_s <= end_s <= times.end_s + MAX_OUTSIDE_S:
        return end_s
    known = [end_s]
    if times.length_s is not None:
        # The load generator may count its start.
        known.append(min(times.begin_s + times.length_s, times.end_s))
    if times.until_s is not None and times.is_of_command:
        known.append(min(times.until_s, times.end_s))
    if times.is_of_command and times.end_s - end_s > MAX_EXIT_S:
        known.append(times.end_s)
    return max(known)


def _until(operation: Operation, end_s: float) -> list[ClientInterval]:
    """Return an empty interval from an operation's last one to `end_s`, if the operation ended earlier."""
    last_s = operation.intervals[-1].end_s
    return [ClientInterval(last_s, end_s, 0)] if last_s < end_s else []


def _empty_intervals(begin_s: float, end_s: float, step_s: float) -> list[ClientInterval]:
    """Return intervals without operations, which are at most `step_s` long."""
    number = max(ceil((end_s - begin_s) / max(step_s, MIN_STALL_S)), 1)
    bounds_s = [begin_s + index * (end_s - begin_s) / number for index in range(number + 1)]
    return [ClientInterval(first_s, second_s, 0) for first_s, second_s in pairwise(bounds_s)]


def with_outside_note(result: ClientResult, times: LoadTimes) -> ClientResult:
    """Return the result with a note if operations lie outside of the command's time range."""
    begin_s, end_s = times.begin_s - MAX_OUTSIDE_S, times.end_s + MAX_OUTSIDE_S
    span_s = result.span_s
    if span_s is None or (begin_s <= span_s[0] and span_s[1] <= end_s):
        return result
    parts = [interval for operation in result.operations for interval in operation.intervals or operation.parts]
    total = sum(part.attempted for part in parts)
    outside = sum(part.attempted for part in parts if not begin_s <= (part.begin_s + part.end_s) / 2 <= end_s)
    if not outside:
        return result
    text = f"{outside:,} of {total:,} operations {OUTSIDE}"
    return replace(result, notes=(*result.notes, f"{text} {_hint(span_s, times)}"))


def outside_notes(results: Iterable[ClientResult]) -> list[str]:
    """Return the notes of `with_outside_note`, each with the result's source."""
    return [f"{result.source}: {text}" for result in results for text in result.notes if OUTSIDE in text]


def _hint(span_s: tuple[float, float], times: LoadTimes) -> str:
    if span_s[1] - span_s[0] > times.end_s - times.begin_s + 2 * MAX_OUTSIDE_S:
        return "(hint: the result is longer than the run, so check whether the file contains other runs)"
    return f"(hint: if the client's clock was wrong, use --client-clock {span_s[0] - times.begin_s:.1f})"


_HINT = "(hint: if its clock was not set, 'casstat import' with --client-clock SECONDS states how far it was ahead)"

# Changes of a clock that are shorter than this part of the load's time are neglected.
_SMALL = 0.01
# The number of intervals from which it is estimated how full the first one is, and by how much their lengths differ.
_COMPARED, _ROUNDING = 7, 0.05


class UnplacedResultError(ClientFormatError):
    """A result cannot be put on the run's clock."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not imported, because the clock was set during the load, and {reason} {_HINT}")


def on_run_clock(
    result: ClientResult, parts: Sequence[ClockPart], times: CommandTimes, clock: ResultClock
) -> ClientResult:
    """Return a result of the load generator that ran within `times`, on the run's clock. Raises ClientFormatError.

    `parts` describe the machine's clock, and `clock` states how the result depends on it.
    """
    parts = parts_within(parts, times)
    if _is_about_steady(parts, times):
        return result if result.estimated_clock else result.shifted(-parts[0].ahead_s)
    if result.estimated_clock:
        if clock != ResultClock.STEADY:
            raise UnplacedResultError("its length was measured with that clock")
        return result
    if clock == ResultClock.DELAYED:
        raise UnplacedResultError("its times follow that clock with an unknown delay")
    # As if the result's times went on steadily, from a clock as in one of the parts.
    steady = [result.shifted(-part.ahead_s) for part in _by_begin(result, parts) if _fits(result, part, times)]
    possible = steady
    with suppress(_ImpossibleTimeError):
        possible = [_Placement(parts, times).placed(result), *steady]
    if not possible:
        raise UnplacedResultError("its times are not those that the clock showed")
    if clock == ResultClock.EITHER and any(placed.operations != possible[0].operations for placed in possible):
        raise UnplacedResultError("its times fit the run whether or not they follow that clock")
    if clock == ResultClock.STEADY and steady:
        return steady[0]
    return possible[0]


def parts_within(parts: Sequence[ClockPart], times: CommandTimes) -> Sequence[ClockPart]:
    """Return the parts of a clock that overlap the time of a command."""
    return [part for part in parts if part.begin_s <= times.end_s and times.begin_s <= part.end_s] or parts[:1]


def _is_about_steady(parts: Sequence[ClockPart], times: CommandTimes) -> bool:
    """Return whether the changes of a clock are small enough to be neglected in the load's length and place."""
    ahead_s = [part.ahead_s for part in parts]
    return max(ahead_s) - min(ahead_s) <= min(_SMALL * (times.end_s - times.begin_s), MAX_OUTSIDE_S)


def _by_begin(result: ClientResult, parts: Sequence[ClockPart]) -> list[ClockPart]:
    """Return the parts in order, but first the one in which the result begins."""
    begin_s = result.span_s[0] if result.span_s else 0.0
    return sorted(parts, key=lambda part: not part.begin_s <= begin_s - part.ahead_s <= part.end_s)


def _fits(result: ClientResult, part: ClockPart, times: CommandTimes) -> bool:
    """Return whether a result lies within the time of the command, if its clock was always as in `part`."""
    begin_s, end_s = result.span_s or (0.0, 0.0)
    return (
        times.begin_s - MAX_OUTSIDE_S <= begin_s - part.ahead_s and end_s - part.ahead_s <= times.end_s + MAX_OUTSIDE_S
    )


class _ImpossibleTimeError(Exception):
    """A result has an operation at a time that the clock never showed."""


class _Placement:
    """Places intervals whose times are those that a clock with several parts showed."""

    def __init__(self, parts: Sequence[ClockPart], times: CommandTimes) -> None:
        self._parts, self._times = parts, times

    def placed(self, result: ClientResult) -> ClientResult:
        """Return the result on the run's clock, with a note. Raises UnplacedResultError and _ImpossibleTimeError."""
        self._require_known_edges(result)
        joined: list[tuple[float, float]] = []
        operations = [self._operation(operation, joined) for operation in result.operations]
        return replace(result, operations=_with_edges(operations), notes=(*result.notes, _note(joined)))

    def _operation(self, operation: Operation, joined: list[tuple[float, float]]) -> Operation:
        placed = [each for interval in operation.intervals if (each := self._interval(interval)) is not None]
        intervals = []
        for group in _overlapping(sorted(placed, key=lambda interval: interval.begin_s)):
            total = total_of(group)
            assert total is not None  # noqa: S101 - no group is empty
            intervals.append(replace(total, end_s=max(interval.end_s for interval in group)))
            if sum(interval.attempted > 0 for interval in group) > 1:
                joined.append((intervals[-1].begin_s, intervals[-1].end_s))
        total = None if operation.total is None else self._interval(operation.total)
        return replace(operation, intervals=tuple(intervals), total=total)

    def _interval(self, interval: ClientInterval) -> ClientInterval | None:
        """Return an interval that covers all times at which the clock may have shown those of `interval`.

        Returns None if there are none, and no operations. Raises _ImpossibleTimeError.
        """
        spans = self._spans(interval.begin_s, interval.end_s)
        if not spans:
            if interval.attempted:
                raise _ImpossibleTimeError
            return None
        return replace(interval, begin_s=min(begin_s for begin_s, _ in spans), end_s=max(end_s for _, end_s in spans))

    def _spans(self, begin_s: float, end_s: float) -> list[tuple[float, float]]:
        """Return when the clock may have shown the times from `begin_s` to `end_s`.

        Clocks and times differ slightly, so a time just outside of the command's is used if there is no other one.
        """
        first_s, last_s = self._times.begin_s - MAX_OUTSIDE_S, self._times.end_s + MAX_OUTSIDE_S
        spans = [
            (max(begin_s - part.ahead_s, part.begin_s, first_s), min(end_s - part.ahead_s, part.end_s, last_s))
            for part in self._parts
        ]
        spans = [span for span in spans if span[0] < span[1] or (begin_s == end_s and span[0] == span[1])]
        inside = [span for span in spans if span[0] <= self._times.end_s and self._times.begin_s <= span[1]]
        return inside or spans

    def _require_known_edges(self, result: ClientResult) -> None:
        """Raise UnplacedResultError if the load may have begun or ended at two times. Raises _ImpossibleTimeError."""
        placed = [(each, part) for part in result.parts if part.attempted and (each := self._interval(part))]
        if not placed:
            return
        _, first = min(placed, key=lambda pair: pair[0].begin_s)
        _, last = max(placed, key=lambda pair: pair[0].end_s)
        for part, edge_s in ((first, first.begin_s), (last, last.end_s)):
            spans = self._spans(part.begin_s, part.end_s)
            has_gap = any(following[0] > span[1] for span, following in pairwise(spans))
            if has_gap or len(self._spans(edge_s, edge_s)) > 1:
                raise UnplacedResultError("it showed the time at which the load began or ended twice")


def _with_edges(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return operations that begin with the first operation of any of them, and end with the last one.

    If the clock was set back, that is not where the times in the file begin and end. A format then takes the first and
    the last second of the load for complete ones, and the time before and after them for a pause.
    """
    attempts: dict[tuple[float, float], int] = defaultdict(int)
    for operation in operations:
        for interval in operation.intervals:
            attempts[interval.begin_s, interval.end_s] += interval.attempted
    spans = sorted(attempts)
    busy = [index for index, span in enumerate(spans) if attempts[span]]
    if not busy:
        return tuple(operations)
    spans = spans[busy[0] : busy[-1] + 1]
    begin_s = spans[0][0] + _empty_s(spans, attempts)
    end_s = max(last_s for _, last_s in spans) - _empty_s(spans[::-1], attempts)
    return tuple(
        replace(
            operation,
            intervals=tuple(
                replace(interval, begin_s=max(interval.begin_s, begin_s), end_s=min(interval.end_s, end_s))
                for interval in operation.intervals
                if interval.begin_s < end_s and interval.end_s > begin_s
            ),
        )
        for operation in operations
    )


def _empty_s(spans: Sequence[tuple[float, float]], attempts: Mapping[tuple[float, float], int]) -> float:
    """Return for how long the load did not run in the first of several intervals."""
    spans = spans[:_COMPARED]
    lengths_s = [end_s - begin_s for begin_s, end_s in spans]
    if max(lengths_s) > NOMINAL_S or lengths_s[0] < (1 - _ROUNDING) * median(lengths_s):
        return 0.0
    return empty_share([attempts[span] for span in spans]) * lengths_s[0]


def _overlapping(intervals: Sequence[ClientInterval]) -> list[list[ClientInterval]]:
    """Return the intervals, which are in the order of their begin, in groups that overlap by more than rounding."""
    groups: list[list[ClientInterval]] = []
    latest: ClientInterval | None = None
    for interval in intervals:
        if latest is None or latest.end_s - interval.begin_s <= tolerance_s(latest, interval):
            groups.append([])
            latest = interval
        groups[-1].append(interval)
        latest = max(latest, interval, key=lambda each: each.end_s)
    return groups


def _note(joined: Sequence[tuple[float, float]]) -> str:
    text = "the clock was set during the load, and the times are corrected"
    if not joined:
        return text
    begin_s, end_s = min(begin_s for begin_s, _ in joined), max(end_s for _, end_s in joined)
    return f"{text}; the operations from {local_time(begin_s)} to {local_time(end_s, '%H:%M:%S')} are one interval"
