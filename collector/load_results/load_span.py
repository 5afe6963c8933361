"""When a load generator ran its load, as far as its result and its command show: the span of a client result.

A result's intervals are its span. They begin when its first operation began, or one mean time between operations before
that ended, and end when the last one did, so the time in which a load generator starts or exits is not part of it.
Times in which nothing completed are:

- Between operations, always.
- At the end, if the load generator was to run longer: until the load's stated duration has passed, until casstat ended
  the command or, if a command whose result was written while it ran is left with nothing completed for more than
  MAX_EXIT_S, until the command's end.

The part of a phase that several results cover is defined in `exporters.results.summary.client_values`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from statistics import fmean, median, pstdev

from collector.load_results.client_result import ClientInterval, ClientResult, Operation

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
    parts = [
        interval
        for operation in result.operations
        for interval in (operation.intervals or filter(None, [operation.total]))
    ]
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
