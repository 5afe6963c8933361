"""Whether two results have the same operations, because a load generator wrote them to several files.

Two files of one format have the same operations only if everything that they state is equal: load generators that run
side by side may have equal numbers of operations and even equal latencies, but not equal times. Files of different
formats have rounded times, other names and other percentiles, so these may differ slightly.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from statistics import median

from collector.load_results.client_latency import Latency
from collector.load_results.client_result import ClientInterval, ClientResult, merged_latency
from collector.model.histogram import is_supported

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
        for part in (*operation.intervals, *filter(None, [operation.total]))
    ]


def _totals(result: ClientResult) -> dict[str, ClientInterval]:
    """Return the totals of the operations by name."""
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
    number = sum(total.completed + total.failed for total in _totals(result).values())
    return [
        value_s if is_supported(percentage, number) else None
        for percentage, value_s in zip(_PERCENTAGES, values_s, strict=True)
    ]
