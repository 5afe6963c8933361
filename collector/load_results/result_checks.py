"""Refuses impossible results, notes what is doubtful, and finds results that have the same operations."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, median_high

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, StatedTotals, merged_latency
from collector.load_results.parsing import MAX_LABELS, MAX_TIME_S
from collector.model.histogram import is_supported

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
        for interval, following in pairwise(operation.intervals):
            require_no_overlap(operation.name, interval, following)


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
    if span_s and longest_s > (length_s := span_s[1] - span_s[0]) + 1:
        notes.append(
            f"warning: a latency of {longest_s:,.1f} s exceeds the result's length of {length_s:,.1f} s {_UNIT}"
        )
    if any(0 < median_s < MIN_MEDIAN_S for median_s in medians_s):
        notes.append(f"warning: a median latency of {min(medians_s) * 1e6:.3g} µs is unlikely {_UNIT}")
    return notes


# Whether two results have the same operations, because a load generator wrote them to several files. Two files of one
# format have the same operations only if everything that they state is equal: load generators that run side by side may
# have equal numbers of operations and even equal latencies, but not equal times. Files of different formats have
# rounded times, other names and other percentiles, so these may differ slightly.

SAME_S = 1e-4
"""How much the times of equal results of one format may differ."""
ROUNDED_S = 1.0
"""How much the times of equal results of different formats may differ, at least."""
ESTIMATED_S = 10.0
"""The same if the position of a result in the run is an estimate."""
SAME_COUNT = 0.005
SAME_LATENCY = 0.03
_MIN_DIFFERENCE_S = 0.0002
_PERCENTAGES = (50.0, 95.0, 99.0)
_KINDS = ("response", "service")


def have_same_operations(a: ClientResult, b: ClientResult) -> bool:
    """Return whether two results have the same operations, or the operations of one name that both have."""
    if a.span_s is None or b.span_s is None:
        return False
    if a.format == b.format and not _are_two_measurements(a, b):
        return _are_close(a.span_s, b.span_s, SAME_S) and _counts(a) == _counts(b)
    if names := _totals(a).keys() & _totals(b).keys() - {""}:
        a, b = (_only(result, names) for result in (a, b))
    return (
        _are_close(a.span_s or (0.0, 0.0), b.span_s or (0.0, 0.0), max(_tolerance_s(a), _tolerance_s(b)))
        and _have_similar_numbers(a, b)
        and _have_similar_latencies(a, b)
    )


def _are_two_measurements(a: ClientResult, b: ClientResult) -> bool:
    """Return whether one result has only response times and the other only service times, as two logs of YCSB have."""
    kinds = [{kind for kind in _KINDS if any(_latencies(result, kind))} for result in (a, b)]
    return len(kinds[0]) == len(kinds[1]) == 1 and kinds[0] != kinds[1] and _totals(a).keys() == _totals(b).keys()


def _latencies(result: ClientResult, kind: str) -> list[Latency | None]:
    return [getattr(total, kind) for total in _totals(result).values() if total.completed]


def _only(result: ClientResult, names: Collection[str]) -> ClientResult:
    return replace(result, operations=tuple(each for each in result.operations if each.name.lower() in names))


def _are_close(a: tuple[float, float], b: tuple[float, float], tolerance_s: float) -> bool:
    return abs(a[0] - b[0]) <= tolerance_s and abs(a[1] - b[1]) <= tolerance_s


def _tolerance_s(result: ClientResult) -> float:
    lengths_s = [part.end_s - part.begin_s for operation in result.operations for part in operation.intervals]
    return max(ROUNDED_S, median(lengths_s or [0.0]), ESTIMATED_S if result.estimated_clock else 0.0)


def _counts(result: ClientResult) -> list[tuple[object, ...]]:
    """Return everything that a result states about its operations, except for times."""
    return [
        (operation.name, part.completed, tuple(sorted(part.errors.items())), part.response, part.service)
        for operation in sorted(result.operations, key=lambda operation: operation.name)
        for part in operation.parts
    ]


def _totals(result: ClientResult) -> dict[str, ClientInterval]:
    return {each.name.lower(): total for each in result.operations if (total := each.summary) is not None}


def _have_similar_numbers(a: ClientResult, b: ClientResult) -> bool:
    """Return whether the numbers of operations are about equal, and those of common names, too.

    A result that ends earlier may lack the operations of that time.
    """
    lengths_s = [end_s - begin_s for begin_s, end_s in filter(None, (a.span_s, b.span_s))]
    tolerance = SAME_COUNT + 1 - min(lengths_s) / max(*lengths_s, 1e-9)
    return any(_are_similar(one, other, tolerance) for one, other in _numbers(a, b))


def _are_similar(a: Counter[str], b: Counter[str], tolerance: float) -> bool:
    pairs = [(a.total(), b.total())]
    if a.keys() == b.keys():
        pairs += [(number, b[name]) for name, number in a.items()]
    return all(max(pair) and abs(pair[0] - pair[1]) <= tolerance * max(pair) + 1 for pair in pairs)


def _numbers(*results: ClientResult) -> Iterator[list[Counter[str]]]:
    """Yield the numbers of operations of each result by name: of all, and of those that succeeded.

    Some results do not distinguish failed operations, and others lack them.
    """
    for with_failed in (True, False):
        yield [
            Counter({name: total.completed + total.failed * with_failed for name, total in _totals(result).items()})
            for result in results
        ]


def _have_similar_latencies(a: ClientResult, b: ClientResult) -> bool:
    """Return whether the percentiles that both results have are about equal.

    If they have none in common, the numbers of operations must be equal, and there must be more than a few.
    """
    known = [
        (first_s, second_s)
        for kind in _KINDS
        for first_s, second_s in zip(_percentiles_s(a, kind), _percentiles_s(b, kind), strict=True)
        if first_s is not None and second_s is not None
    ]
    if known:
        return all(abs(pair[0] - pair[1]) <= SAME_LATENCY * max(pair) + _MIN_DIFFERENCE_S for pair in known)
    return any(one.total() == other.total() > 1 / SAME_COUNT for one, other in _numbers(a, b))


def _percentiles_s(result: ClientResult, kind: str) -> list[float | None]:
    combined = merged_latency(_latencies(result, kind))
    values_s = combined.percentiles_s(_PERCENTAGES) if combined else [None] * len(_PERCENTAGES)
    number = sum(total.attempted for total in _totals(result).values())
    return [
        value_s if is_supported(percentage, number) else None
        for percentage, value_s in zip(_PERCENTAGES, values_s, strict=True)
    ]
