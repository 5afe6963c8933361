"""Whether two results have the same operations, because a load generator wrote them to several files.

Two files of one format have the same operations only if everything that they state is equal: load generators that run
side by side may have equal numbers of operations and even equal latencies, but not equal times. Files of different
formats have rounded times, other names and other percentiles, so these may differ slightly.
"""

from collections import Counter
from statistics import median

from collector.clients.client_latency import Latency
from collector.clients.client_result import ClientInterval, ClientResult, merged_latency
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


def have_same_operations(a: ClientResult, b: ClientResult) -> bool:
    """Return whether two results have the same operations."""
    if a.span_s is None or b.span_s is None:
        return False
    if a.format == b.format:
        return _are_close(a.span_s, b.span_s, SAME_S) and _counts(a) == _counts(b)
    return (
        _are_close(a.span_s, b.span_s, max(_tolerance_s(a), _tolerance_s(b)))
        and _have_similar_numbers(a, b)
        and _have_similar_latencies(a, b)
    )


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


def _totals(result: ClientResult) -> list[ClientInterval]:
    return [total for operation in result.operations if (total := operation.summary) is not None]


def _have_similar_numbers(a: ClientResult, b: ClientResult) -> bool:
    """Return whether the numbers of operations, with failed ones, are about equal, and those of common names, too."""
    numbers = [_numbers(result) for result in (a, b)]
    pairs = [(numbers[0].total(), numbers[1].total())]
    if numbers[0].keys() == numbers[1].keys():
        pairs += [(number, numbers[1][name]) for name, number in numbers[0].items()]
    return all(max(pair) and abs(pair[0] - pair[1]) <= SAME_COUNT * max(pair) + 1 for pair in pairs)


def _numbers(result: ClientResult) -> Counter[str]:
    numbers: Counter[str] = Counter()
    for operation in result.operations:
        if operation.summary is not None:
            numbers[operation.name.lower()] += operation.summary.completed + operation.summary.failed
    return numbers


def _have_similar_latencies(a: ClientResult, b: ClientResult) -> bool:
    """Return whether the percentiles that both results have are about equal.

    If they have none in common, the numbers of operations must be equal, and there must be more than a few.
    """
    known = [
        (first_s, second_s)
        for kind in ("response", "service")
        for first_s, second_s in zip(_percentiles_s(a, kind), _percentiles_s(b, kind), strict=True)
        if first_s is not None and second_s is not None
    ]
    if known:
        return all(abs(pair[0] - pair[1]) <= SAME_LATENCY * max(pair) + _MIN_DIFFERENCE_S for pair in known)
    return _numbers(a).total() == _numbers(b).total() > 1 / SAME_COUNT


def _percentiles_s(result: ClientResult, kind: str) -> list[float | None]:
    latencies: list[Latency | None] = [getattr(total, kind) for total in _totals(result) if total.completed]
    combined = latencies[0] if len(latencies) == 1 else merged_latency(latencies)
    values_s = combined.percentiles_s(_PERCENTAGES) if combined else [None] * len(_PERCENTAGES)
    number = _numbers(result).total()
    return [
        value_s if is_supported(percentage, number) else None
        for percentage, value_s in zip(_PERCENTAGES, values_s, strict=True)
    ]
