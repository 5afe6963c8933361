"""Refuses results whose values are impossible, and notes what is doubtful, whichever format they were read from."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median_high

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, StatedTotals
from collector.load_results.parsing.field_values import MAX_TIME_S
from collector.load_results.parsing.labels import MAX_LABELS

# Because times are rounded, intervals may overlap or leave gaps of up to this fraction of an interval.
TOLERANCE = 0.1
# Larger numbers do not fit into the arrays with which results are compared.
MAX_NUMBER = (1 << 63) - 1
# Latencies below this are rarer than values in microseconds that are read as nanoseconds.
MIN_MEDIAN_S = 10e-6
# The relative difference that rounding allows between a stated rate or length and that of what was read.
STATED_TOLERANCE = 0.02

_UNIT = "(hint: check the unit of the file's latencies)"


def require_sound(result: ClientResult) -> None:
    """Raise ClientFormatError if a time or a count is impossible, or if there are too many operations."""
    # The operation without a name does not count.
    if len(result.operations) > MAX_LABELS + 1:
        raise ClientFormatError(f"{len(result.operations)} operations (at most {MAX_LABELS} are supported)")
    for operation in result.operations:
        for interval in operation.parts:
            require_values(interval)
        _require_order(operation)


def require_values(interval: ClientInterval) -> None:
    """Raise ClientFormatError if a time, a count or a latency is impossible."""
    if not 0 <= interval.begin_s <= interval.end_s < MAX_TIME_S:
        raise ClientFormatError(f"invalid time range: {interval.begin_s:.3f} s to {interval.end_s:.3f} s")
    if min(interval.completed, *interval.errors.values(), 0) < 0:
        raise ClientFormatError(f"negative number of operations at {interval.begin_s:.3f} s")
    known = [latency for latency in (interval.response, interval.service) if latency]
    if not all(0 <= value_s < MAX_TIME_S for latency in known for value_s in latency.stated_s.values()):
        raise ClientFormatError(f"impossible latency at {interval.begin_s:.3f} s")
    if max(interval.completed, *interval.errors.values(), 0) > MAX_NUMBER:
        raise ClientFormatError(f"impossible number of operations at {interval.begin_s:.3f} s")
    if not all(_are_possible(latency.counts) for latency in known if latency.counts):
        raise ClientFormatError(f"impossible counts of latencies at {interval.begin_s:.3f} s")


def _are_possible(counts: Mapping[int, int]) -> bool:
    numbers = counts.values()
    return min(counts) >= 0 and max(counts) <= MAX_NUMBER and min(numbers) >= 0 and 0 < sum(numbers) <= MAX_NUMBER


def _require_order(operation: Operation) -> None:
    for interval, following in pairwise(operation.intervals):
        require_no_overlap(operation.name, interval, following)


def require_no_overlap(name: str, interval: ClientInterval, following: ClientInterval) -> None:
    """Raise ClientFormatError if an interval of the operation `name` begins before the previous one has ended."""
    if following.begin_s - interval.end_s < -tolerance_s(interval, following):
        of_name = f" of {name}" if name else ""
        raise ClientFormatError(f"intervals{of_name} overlap at {following.begin_s:.3f} s")


def tolerance_s(interval: ClientInterval, following: ClientInterval) -> float:
    """Return the overlap or gap that is allowed between two intervals, in seconds."""
    return TOLERANCE * min(interval.end_s - interval.begin_s, following.end_s - following.begin_s)


def doubts(result: ClientResult) -> list[str]:
    """Return notes: where a result contradicts the totals that its file states, and latencies that are unlikely."""
    return [*_contradictions(result), *_unlikely_latencies(result)]


def _contradictions(result: ClientResult) -> list[str]:
    notes = []
    totals_of_operations = [
        StatedTotals(operation.name, operation.total.completed, operation.total.failed)
        for operation in result.operations
        if operation.total and operation.intervals
    ]
    for stated in (*totals_of_operations, *result.stated):
        totals = [
            operation.summary
            for operation in result.operations
            if operation.summary and stated.operation in (None, operation.name)
        ]
        of_name = f" of {stated.operation}" if stated.operation else ""
        notes += [f"{text}{of_name}" for text in _differences(stated, totals)]
    return notes


def _differences(stated: StatedTotals, totals: Sequence[ClientInterval]) -> Iterator[str]:
    completed, failed = sum(total.completed for total in totals), sum(total.failed for total in totals)
    for number, count, name in (
        (stated.attempted, completed + failed, "operations"),
        (stated.completed, completed, "completed operations"),
        (stated.failed, failed, "failed operations"),
    ):
        if number is not None and number != count:
            yield f"the file states {number:,} {name}, but has {count:,}"
    length_s = max(total.end_s for total in totals) - min(total.begin_s for total in totals) if totals else 0.0
    # Tools round their rates and lengths to whole numbers.
    if stated.length_s is not None and abs(stated.length_s - length_s) > STATED_TOLERANCE * length_s + 1:
        yield f"the file states a duration of {stated.length_s:,.0f} s, but has {length_s:,.0f} s"
    rate = stated.attempted_per_s
    if (
        rate is not None
        and length_s
        and abs(rate * length_s - completed - failed) > (STATED_TOLERANCE * (completed + failed) + rate + length_s)
    ):
        yield f"the file states {rate:,.0f} operations/s, but has {(completed + failed) / length_s:,.0f}/s"


def _unlikely_latencies(result: ClientResult) -> list[str]:
    span_s = result.span_s
    latencies = [latency for part in result.parts for latency in (part.response, part.service) if latency]
    longest_s = max((latency.longest_s for latency in latencies), default=0.0)
    # A wrong unit affects all parts of an operation, so one unusual interval means nothing.
    medians_s = [
        median_high(known_s)
        for operation in result.operations
        for kind in zip(*((part.response, part.service) for part in operation.parts), strict=True)
        if (known_s := [at_50_s for latency in kind if latency and (at_50_s := latency.percentile_s(50)) is not None])
    ]
    notes = []
    if span_s and longest_s > (span_s[1] - span_s[0]) + 1:
        length_s = span_s[1] - span_s[0]
        notes.append(
            f"warning: a latency of {longest_s:,.1f} s exceeds the result's length of {length_s:,.1f} s {_UNIT}"
        )
    if any(0 < median_s < MIN_MEDIAN_S for median_s in medians_s):
        notes.append(f"warning: a median latency of {min(medians_s) * 1e6:.3g} µs is unlikely {_UNIT}")
    return notes
