"""The values that a metric exports, whatever the format: which are valid, their scale, and the number of series."""

from collections.abc import Iterator, Mapping
from math import isfinite

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series, Value
from exporters.prometheus.metric_family import text_label
from exporters.prometheus.upper_bounds import UpperBounds

CurrentValues = Mapping[Series, Value]
Group = list[tuple[Series, Value]]


def numbers(metric: Metric, group: Group) -> Iterator[tuple[Series, float]]:
    """Yield the finite numbers in the metric's exported unit; omit negative counters and values of other types."""
    scale, is_counter = metric.scale, metric.kind is Kind.COUNTER
    for series, value in group:
        if isinstance(value, str | tuple) or (is_counter and value < 0):
            continue
        if scale != 1:
            value = value * scale
        if isfinite(value):
            yield series, value


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
        return len(group)
    lengths = [len(value) for _, value in group if isinstance(value, tuple)]
    return sum(_histogram_series(metric.unit, length, upper_bounds) * lengths.count(length) for length in set(lengths))


def _histogram_series(unit: str, length: int, upper_bounds: UpperBounds) -> int:
    try:
        return len(upper_bounds.bounds(unit, length)) + 3
    except LayoutError:
        return 0
