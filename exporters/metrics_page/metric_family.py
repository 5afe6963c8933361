"""Metric families, whatever the format of the page: names, types, help, values, and the upper bounds of histograms.

Counts are exact because the bounds are a subset of Cassandra's bucket bounds. Cassandra 4.1 changed the timer bounds.
If each layout had its own labels, then in a cluster with both layouts, each `sum by (le)` would cover only some of the
nodes, and the sums would no longer be in ascending order. Every bound therefore carries the label of 4.1, and a node
with the older layout counts up to its own closest bound, which is at most 2.7% away for the default bounds.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite
from typing import Any, Generic, NamedTuple, TypeVar

from collector.model.histogram import LayoutError, upper_bounds_of
from collector.model.metric import Kind, Metric, ScrapeInterval, Series, Value
from collector.model.snapshot import IDENTITY_LABELS

INFO = "cassandra_info"
INFO_HELP = "The node's versions and names as labels; always 1."
PLACEMENT = "casstat_placement"
"""The metric with a node's machine and network as labels; queries use it to count shared metrics only once."""
TOTAL = "_total"
QUANTILE = "quantile"
# The types of metrics that only make sense as rates. The only untyped metrics are counters.
CUMULATIVE = frozenset({"counter", "histogram", "untyped"})
# NUL is replaced, because it would end a scrape early.
_NUL = {0: "\ufffd"}
# From 50 microseconds to a minute: dense where most requests fall, with bounds at Cassandra's default timeouts.
DEFAULT_S = (
    *(50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 750e-6),
    *(1e-3, 2e-3, 3.5e-3, 5e-3, 10e-3, 20e-3, 50e-3),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0),
)
# Upper bounds of counts: a read touches a few SSTables but may scan a hundred thousand tombstones.
# The bounds are dense near the thresholds of 500 and 1000 tombstones.
COUNTS = (
    *(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 450, 500, 700, 1000, 1500),
    *(2000, 5000, 10_000, 100_000),
)
# Number of buckets of a timer in Cassandra 4.1 and later. The `le` labels are the bounds of that layout, whatever the
# node's version.
LABELLED_LENGTH = 128
# The level of gzip for pages: a higher one would cost the node more CPU time than the saved network traffic is worth.
GZIP_LEVEL = 1

CurrentValues = Mapping[Series, Value]
Labels = tuple[tuple[str, str], ...]

T = TypeVar("T")


@dataclass(frozen=True)
class Family:
    """A metric's name, type (counter, gauge, histogram, summary, untyped) and help.

    keep_total  whether a counter's name without `_total` belongs to another metric; OpenMetrics then keeps the suffix.
    """

    name: str
    kind: str
    help: str
    keep_total: bool = False

    @property
    def is_cumulative(self) -> bool:
        """Whether the values are counts since a process started."""
        return self.kind in CUMULATIVE

    @cached_property
    def text(self) -> str:
        """The HELP and TYPE lines in the text format."""
        return f"# HELP {self.name} {escaped_help(self.help)}\n# TYPE {self.name} {self.kind}\n"

    @cached_property
    def openmetrics(self) -> str:
        """The HELP and TYPE lines in OpenMetrics, where a counter's name lacks the `_total` of its series."""
        name, kind = self.name, "unknown" if self.kind == "untyped" or self.keep_total else self.kind
        if kind == "counter":
            name = name.removesuffix(TOTAL)
        return f"# HELP {name} {escaped(self.help)}\n# TYPE {name} {kind}\n"


def families_of(catalogue: Mapping[str, Metric]) -> dict[str, Family]:
    """Return the families by name, in catalogue order. Metrics that become labels have no family of their own."""
    families = (
        metric for metric in catalogue.values() if (metric.name,) not in IDENTITY_LABELS and not is_info(metric)
    )
    return {**{metric.name: _family(metric, catalogue) for metric in families}, INFO: Family(INFO, "gauge", INFO_HELP)}


def _family(metric: Metric, catalogue: Mapping[str, Metric]) -> Family:
    kind = "gauge" if metric.kind is Kind.TEXT else metric.kind.value
    if metric.kind is Kind.COUNTER and not metric.name.endswith(TOTAL):
        # node_exporter exports metrics with these names as "untyped".
        kind = "untyped"
    elif QUANTILE in metric.labels:
        kind = "summary"
    return Family(metric.name, kind, metric.help, kind == "counter" and metric.name.removesuffix(TOTAL) in catalogue)


def is_info(metric: Metric) -> bool:
    """Return whether a metric is a label of `INFO`: a text metric that rarely changes.

    Other text metrics (the operation mode, the schema version) are labels of separate series that are always 1: when
    the text changes, one series ends and another begins, and this must not affect the node's other labels.
    """
    return (
        metric.kind is Kind.TEXT
        and not metric.labels
        and metric.scrape_interval is not ScrapeInterval.TICK
        and (metric.name,) not in IDENTITY_LABELS
    )


def text_label(metric: Metric) -> str:
    """Return the label that holds the value of a text metric."""
    return metric.name.removeprefix("cassandra_")


def unit_of(name: str) -> str:
    """Return the unit at the end of a metric's name: seconds, bytes or 1."""
    stem = name.removesuffix(TOTAL)
    return next((unit for unit in ("seconds", "bytes") if stem.endswith(f"_{unit}")), "1")


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    """Return labels as they appear between the braces of a series."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels)


def named(name: str, *labels: str) -> str:
    """Return the name and labels of a series, up to its value."""
    inside = ",".join(text for text in labels if text)
    return f"{name}{{{inside}}} " if inside else f"{name} "


def encodable(text: str) -> str:
    """Return the text in a form that UTF-8 can encode: lone surrogates are escaped, and NUL is replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode().translate(_NUL)


def escaped(text: str) -> str:
    """Return text with backslashes, line feeds and quotes escaped, as label values and OpenMetrics help require."""
    return encodable(text).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def escaped_help(text: str) -> str:
    """Return help text with backslashes and line feeds escaped, as the text format requires."""
    return text.replace("\\", r"\\").replace("\n", r"\n")


class UpperBoundsError(ValueError):
    """An upper bound is invalid, or none is given; the message is one line."""


class Bound(NamedTuple):
    """The label of an upper bound, and the index of the last bucket counted under it."""

    le: str
    bucket: int


@dataclass(frozen=True)
class UpperBounds:
    """The selected upper bounds for timers, in seconds; each is replaced by the nearest bound of Cassandra 4.1.

    Raises UpperBoundsError if one is not a positive number of seconds, or if there are none.
    """

    seconds: tuple[float, ...] = DEFAULT_S

    def __post_init__(self) -> None:
        invalid = [bound_s for bound_s in self.seconds if not (isfinite(bound_s) and bound_s > 0)]
        if invalid or not self.seconds:
            cause = f"invalid upper bound {invalid[0]:g} s" if invalid else "no upper bounds"
            raise UpperBoundsError(
                f"histograms: {cause} (hint: use positive values in seconds, such as 0.001,0.01,0.1,1)"
            )

    def bounds(self, unit: str, length: int) -> tuple[Bound, ...]:
        """Return the finite upper bounds of a histogram with `length` counts, in ascending order.

        All timer layouts get the same labels. Raises LayoutError for an unknown layout.
        """
        return _bounds(unit, length, self.seconds if unit == "seconds" else COUNTS)


@lru_cache(maxsize=32)
def _bounds(unit: str, length: int, selected: Sequence[float]) -> tuple[Bound, ...]:
    exact = upper_bounds_of(unit, length)[:-1]
    labelled = upper_bounds_of(unit, LABELLED_LENGTH)[:-1] if unit == "seconds" else exact
    # First choose the nearest bound in Cassandra 4.1's layout, then the histogram's own bound nearest to that one. The
    # histogram's bound nearest to the selected value could be a different one.
    chosen = sorted({_nearest(labelled, bound) for bound in selected})
    return tuple(Bound(repr(labelled[index]), _nearest(exact, labelled[index])) for index in chosen)


def _nearest(upper_bounds: Sequence[float], value: float) -> int:
    """Return the index of the nearest bound, or of the lower one if two are equally near."""
    above = min(bisect_left(upper_bounds, value), len(upper_bounds) - 1)
    return min((max(above - 1, 0), above), key=lambda index: abs(upper_bounds[index] - value))


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


class SeriesCache(Generic[T]):
    """The items of the series that each metric had last."""

    def __init__(self, create: Callable[[Metric, Series], T]) -> None:
        """`create` returns the item of a series."""
        self._create = create
        self._by_metric: dict[str, tuple[Sequence[Series], list[T]]] = {}

    def of(self, metric: Metric, series: Sequence[Series]) -> Sequence[T]:
        """Return the items of a metric's series, in the same order."""
        known_series, items = self._by_metric.get(metric.name, ((), []))
        if series != known_series:
            known = dict(zip(known_series, items, strict=True))
            items = [known[one] if one in known else self._create(metric, one) for one in series]
            self._by_metric[metric.name] = series, items
        return items
