"""The values that a metric exports, whatever the format: which are valid, their scale, and the number of series."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series, Value
from exporters.metrics_page.metric_family import text_label
from exporters.metrics_page.upper_bounds import UpperBounds

CurrentValues = Mapping[Series, Value]


class Group(NamedTuple):
    """The series of a metric, and their values."""

    series: tuple[Series, ...]
    values: Sequence[Value]

    def items(self) -> Iterator[tuple[Series, Value]]:
        return zip(self.series, self.values, strict=True)


def numbers(metric: Metric, group: Group) -> tuple[tuple[Series, ...], Sequence[float]]:
    """Return series and their values in the metric's exported unit.

    Infinite values, negative counters, and values that are not numbers are omitted, with their series.
    """
    # Almost always, all values are valid, which is faster to check for all of them at once.
    values: Any = group.values
    scale = metric.scale
    try:
        scaled = values if scale == 1 else [value * scale for value in values]
        # A sum is finite only if all of its values are.
        are_valid = isfinite(sum(scaled)) and (metric.kind is not Kind.COUNTER or min(scaled) >= 0)
    except (TypeError, OverflowError):
        are_valid = False
    if are_valid:
        return group.series, scaled
    valid = [(series, value) for series, number in group.items() if (value := _number(metric, number)) is not None]
    return tuple(series for series, _ in valid), [value for _, value in valid]


def _number(metric: Metric, value: Value) -> float | None:
    """Return a number in the metric's exported unit; None if it is not valid."""
    if isinstance(value, str | tuple) or (metric.kind is Kind.COUNTER and value < 0):
        return None
    scaled = value if metric.scale == 1 else value * metric.scale
    return scaled if isfinite(scaled) else None


def text_labels(metric: Metric, series: Series, value: Value) -> Iterator[tuple[str, str]]:
    """Yield the labels of a text metric's series; the last one is the text. The series' value is always 1."""
    return zip((*metric.labels, text_label(metric)), (*series[1:], str(value)), strict=True)


def histogram_sum(total: Metric | None, series: Series, current: CurrentValues) -> float | None:
    """Return the sum of a histogram's observations from `total`, the counter that holds it; None if it is unknown."""
    value = current.get((total.name, *series[1:])) if total else None
    if total is None or not isinstance(value, int | float) or value < 0 or not isfinite(value):
        return None
    return value * total.scale


def max_series(metric: Metric, group: Group, upper_bounds: UpperBounds) -> int:
    """Return the maximum number of series that a metric can export.

    A histogram has one series for each upper bound, including infinity, and one each for the count and the sum; it has
    none if its bucket layout is unknown.
    """
    if metric.kind is not Kind.HISTOGRAM:
        return len(group.series)
    lengths = [len(value) for value in group.values if isinstance(value, tuple)]
    return sum(_histogram_series(metric.unit, length, upper_bounds) * lengths.count(length) for length in set(lengths))


def _histogram_series(unit: str, length: int, upper_bounds: UpperBounds) -> int:
    try:
        return len(upper_bounds.bounds(unit, length)) + 3
    except LayoutError:
        return 0
