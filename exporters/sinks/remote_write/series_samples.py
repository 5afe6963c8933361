"""Renders metrics as heads of encoded series, with their values; heads are cached."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series
from exporters.metrics_page.metric_family import (
    CurrentValues,
    Group,
    SeriesCache,
    UpperBounds,
    encodable,
    histogram_sum,
    numbers,
    text_labels,
)
from exporters.sinks.parts.page_samples import Samples
from exporters.sinks.remote_write.encoded_series import NAME, encoded_labels, head_of
from exporters.sinks.remote_write.native_histograms import native_head_of, native_histogram
from exporters.sinks.remote_write.series_metadata import SeriesMetadata, sample_metadata

# Unused heads are deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000


class _Histogram(NamedTuple):
    """The heads of a histogram's buckets and count, and the head of its sum.

    native_head   the head of the native histogram.
    last_buckets  for each bucket, the index of the last of Cassandra's buckets included in its count.
    """

    heads: list[bytes]
    sum_head: bytes
    native_head: bytes
    last_buckets: tuple[int, ...]


class _Counts(NamedTuple):
    """Bucket counts and their sum, the values of the series that they give, and the native histogram."""

    counts: tuple[int, ...]
    sum_value: float | None
    values: list[float]
    native: bytes


class SeriesSamples:
    """Renders the series of one node; implements `exporters.sinks.parts.page_samples.PageRenderer`."""

    def __init__(
        self,
        catalogue: Mapping[str, Metric],
        upper_bounds: UpperBounds,
        common: Mapping[str, str],
        metadata: dict[str, SeriesMetadata],
        *,
        is_native: bool = False,
    ) -> None:
        """Give all series the labels in `common`; with `is_native`, add native histograms.

        The metadata of the families that are rendered is added to `metadata`.
        """
        self._metadata = metadata
        self._is_native = is_native
        self._catalogue = catalogue
        self._upper_bounds = upper_bounds
        self._common = common
        self._heads = SeriesCache(self._number_head)
        self._text_heads: dict[tuple[str, tuple[tuple[str, str], ...]], bytes] = {}
        self._histograms: dict[tuple[Series, int], _Histogram | None] = {}
        self._counts: dict[Series, _Counts] = {}

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histogram_samples(metric, group, current)
        if metric.kind is Kind.TEXT:
            texts = (text_labels(metric, series, value) for series, value in group.items())
            heads = [self._text_head(metric.name, labels) for labels in texts]
            return Samples(heads, [1.0] * len(heads))
        all_series, values = numbers(metric, group)
        return Samples(self._heads.of(metric, all_series), values)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Samples:
        """Return one series with these names and values as labels; its own value is always 1."""
        return Samples([self._text_head(name, texts)], [1.0])

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        """Return the series of families of prometheus_client."""
        heads, values = list[bytes](), list[float]()
        for family in families:
            for sample in family.samples:
                heads.append(self._text_head(sample.name, sample.labels.items()))
                values.append(sample.value)
                if sample.name not in self._metadata:
                    self._metadata[sample.name] = sample_metadata(family)
        return Samples(heads, values)

    def _text_head(self, name: str, labels: Iterable[tuple[str, str]]) -> bytes:
        """Return the head of a series that is identified by its name and labels."""
        key = name, tuple(labels)
        if key not in self._text_heads:
            self._text_heads[key] = self._head(name, key[1])
        return self._text_heads[key]

    def keep(self, current: CurrentValues) -> None:
        """Delete the cached heads of series that are not in `current`, if there are many."""
        limit = 2 * len(current) + SPARE
        if len(self._histograms) > limit:
            self._histograms = {key: cached for key, cached in self._histograms.items() if key[0] in current}
            self._counts = {series: counts for series, counts in self._counts.items() if series in current}
        if len(self._text_heads) > limit:
            self._text_heads = {}

    def _number_head(self, metric: Metric, series: Series) -> bytes:
        return self._head(metric.name, zip(metric.labels, series[1:], strict=True))

    def _histogram_samples(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        total = self._catalogue.get(metric.total)
        heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
        for series, counts in group.items():
            if not isinstance(counts, tuple):
                continue
            key = series, len(counts)
            if key not in self._histograms:
                self._histograms[key] = self._histogram(metric, series, len(counts))
            histogram = self._histograms[key]
            if histogram is None or min(counts) < 0:
                continue
            sum_value = histogram_sum(total, series, current)
            rendered = self._rendered(metric, series, counts, sum_value, histogram.last_buckets)
            heads += histogram.heads
            values += rendered.values
            if self._is_native:
                messages[histogram.native_head] = rendered.native
            if sum_value is not None:
                heads.append(histogram.sum_head)
                values.append(sum_value)
        return Samples(heads, values, messages)

    def _rendered(
        self,
        metric: Metric,
        series: Series,
        counts: tuple[int, ...],
        sum_value: float | None,
        last_buckets: Sequence[int],
    ) -> _Counts:
        """Return the values of the buckets and the count; most histograms do not change within a second."""
        known = self._counts.get(series)
        if known is None or known.counts != counts or known.sum_value != sum_value:
            cumulative = list(accumulate(counts))
            values: list[float] = [cumulative[bucket] for bucket in last_buckets]
            values += [cumulative[-1], cumulative[-1]]
            native = native_histogram(metric.unit, counts, sum_value) if self._is_native else b""
            known = self._counts[series] = _Counts(counts, sum_value, values, native)
        return known

    def _histogram(self, metric: Metric, series: Series, length: int) -> _Histogram | None:
        """Return the heads of a histogram, or None for an unknown bucket layout."""
        try:
            bounds = self._upper_bounds.bounds(metric.unit, length)
        except LayoutError:
            return None
        labels = list(zip(metric.labels, series[1:], strict=True))
        ends = [*(bound.le for bound in bounds), "+Inf"]
        buckets = [self._head(f"{metric.name}_bucket", [*labels, ("le", end)]) for end in ends]
        count, total = (self._head(f"{metric.name}_{suffix}", labels) for suffix in ("count", "sum"))
        native = native_head_of(encoded_labels(self._labels(metric.name, labels)))
        return _Histogram([*buckets, count], total, native, tuple(bound.bucket for bound in bounds))

    def _head(self, name: str, labels: Iterable[tuple[str, str]]) -> bytes:
        return head_of(self._labels(name, labels))

    def _labels(self, name: str, labels: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        all_labels = [*self._common.items(), (NAME, name), *labels]
        return [(label, encodable(value)) for label, value in all_labels]
