"""Parses expositions with prometheus_client, and generates values to expose."""

import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from collector.model.histogram import upper_bounds_of
from collector.model.metric import Kind, Metric, Series, Value
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.metric_family import UpperBounds
from exporters.metrics_page.rendering import Options, Rendering, SeriesLines, document

Labels = frozenset[tuple[str, str]]
SeriesValues = dict[tuple[str, Labels], float]


class Parsed(NamedTuple):
    """The value of every series in an exposition, and the type of every metric family."""

    values: SeriesValues
    kinds: dict[str, str]

    def of(self, name: str, **labels: str) -> float | None:
        """Return the value of a series, or None if it does not exist."""
        return self.values.get((name, frozenset(labels.items())))


def parsed(text: str, *, openmetrics: bool = False) -> Parsed:
    """Parse an exposition; fail if a metric family or a series occurs twice."""
    values: SeriesValues = {}
    kinds: dict[str, str] = {}
    for family in (openmetrics_families if openmetrics else text_families)(text):
        # In the text format, the name of a counter includes the suffix _total.
        name = f"{family.name}_total" if family.type == "counter" and not openmetrics else family.name
        assert name not in kinds
        kinds[name] = family.type
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in values
            values[key] = sample.value
    return Parsed(values, kinds)


def rendered(
    shown: Mapping[Series, Value],
    identity: Mapping[str, str] = {},
    *,
    openmetrics: bool = False,
    upper_bounds: UpperBounds | None = None,
    catalogue: Mapping[str, Metric] = CATALOGUE,
) -> str:
    """Return an exposition of all values in `shown`."""
    rendering = Rendering(Options(upper_bounds or UpperBounds(), limit=1_000_000), catalogue, _log_nothing, SeriesLines)
    text = document(rendering.parts(shown, identity, 0), openmetrics=openmetrics)
    return f"{text}# EOF\n" if openmetrics else text


def _log_nothing(text: str) -> None:
    raise AssertionError(text)


def series_of(metric: Metric, labels: Iterable[str]) -> Series:
    return metric.name, *labels


LENGTHS = {"seconds": (128, 165), "1": (165, 166)}
NUMBERS = st.integers(0, 1 << 63) | st.floats(0, 1e300, allow_subnormal=False)
LABELS = st.text(max_size=6).map(lambda text: text.replace("\0", ""))


@st.composite
def counts(draw: st.DrawFn, unit: str) -> tuple[int, ...]:
    length = draw(st.sampled_from(LENGTHS[unit]))
    filled = draw(st.dictionaries(st.integers(0, length - 1), st.integers(1, 1 << 40), max_size=8))
    return tuple(filled.get(index, 0) for index in range(length))


@st.composite
def values_of(draw: st.DrawFn, metric: Metric) -> Value:
    if metric.kind is Kind.HISTOGRAM:
        return draw(counts(metric.unit))
    return draw(LABELS if metric.kind is Kind.TEXT else NUMBERS)


@st.composite
def any_values(draw: st.DrawFn) -> dict[Series, Value]:
    """Generate series of random metrics from the catalogue; some histograms come with the counter of their sum."""
    series_values: dict[Series, Value] = {}
    for metric in draw(st.lists(st.sampled_from(list(CATALOGUE.values())), max_size=6, unique_by=lambda m: m.name)):
        for _ in range(draw(st.integers(1, 3)) if metric.labels else 1):
            labels = ["0.5" if label == "quantile" else draw(LABELS) for label in metric.labels]
            series_values[series_of(metric, labels)] = draw(values_of(metric))
            if metric.total and draw(st.booleans()):
                series_values[series_of(CATALOGUE[metric.total], labels)] = draw(st.integers(0, 1 << 60))
    return series_values


def one_of_each() -> dict[Series, Value]:
    """Return one series of every metric, each with a value that does not depend on the rest of the catalogue."""
    series_values: dict[Series, Value] = {}
    for metric in CATALOGUE.values():
        number = zlib.crc32(metric.name.encode()) % 100_000
        labels = ["0.99" if label == "quantile" else f"{label} {number}" for label in metric.labels]
        if metric.total:
            labels = [f"{label} {metric.name}" for label in metric.labels]
            series_values[series_of(CATALOGUE[metric.total], labels)] = 1000 * number
        value: Value = number
        if metric.kind is Kind.HISTOGRAM:
            value = tuple(index * (1 + number % 6) % 7 for index in range(LENGTHS[metric.unit][number % 2]))
        elif metric.kind is Kind.TEXT:
            value = f"text {number}"
        series_values[series_of(metric, labels)] = value
    return series_values


def counted(metric: Metric, values: Sequence[float], length: int) -> tuple[int, ...]:
    """Return the bucket counts of a histogram with `length` buckets in which these values were recorded."""
    buckets = Counter(bisect_left(upper_bounds_of(metric.unit, length), value) for value in values)
    return tuple(buckets[index] for index in range(length))
