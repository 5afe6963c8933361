"""Renders series as lines. Text that does not change between ticks is cached."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from collector.model.metric import Kind, Metric, Series
from exporters.metrics_page.histogram_lines import HistogramCache
from exporters.metrics_page.metric_family import labels_text, named
from exporters.metrics_page.series_cache import SeriesCache
from exporters.metrics_page.series_values import CurrentValues, Group, histogram_sum, numbers, text_labels
from exporters.metrics_page.upper_bounds import UpperBounds

# Unused text is deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000


class Body(NamedTuple):
    """The lines of a metric.

    names              the series.
    text, openmetrics  the lines of each, in the text format and in OpenMetrics.
    series             the number of series in the text format.
    """

    names: Sequence[Series]
    text: Sequence[str]
    openmetrics: Sequence[str]
    series: int


class SeriesLines:
    """Renders the series of one node; the labels in `identity` come first in every series."""

    def __init__(self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, identity: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._common = labels_text(identity.items())
        self._prefixes = SeriesCache(self._prefix)
        self._histogram_cache = HistogramCache(upper_bounds, self._common)

    @property
    def cached(self) -> int:
        """The number of series with cached text."""
        return len(self._prefixes) + len(self._histogram_cache)

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Body:
        """Return the lines of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histograms(metric, group, current)
        return self._texts(metric, group) if metric.kind is Kind.TEXT else self._numbers(metric, group)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Body:
        """Return one series with these names and values as labels; its own value is always 1."""
        return _body([(name,)], [f"{named(name, self._common, labels_text(texts))}1\n"])

    def keep(self, current: CurrentValues) -> None:
        """Delete the cached histograms that are not in `current`, if there are many."""
        if len(self._histogram_cache) > 2 * len(current) + SPARE:
            self._histogram_cache.keep(current)

    def _numbers(self, metric: Metric, group: Group) -> Body:
        series, values = numbers(metric, group)
        prefixes = self._prefixes.of(metric, series)
        return _body(series, [f"{prefix}{value}\n" for prefix, value in zip(prefixes, values, strict=True)])

    def _texts(self, metric: Metric, group: Group) -> Body:
        lines = [
            f"{named(metric.name, self._common, labels_text(text_labels(metric, series, value)))}1\n"
            for series, value in group.items()
        ]
        return _body(group.series, lines)

    def _prefix(self, metric: Metric, series: Series) -> str:
        return named(metric.name, self._common, labels_text(zip(metric.labels, series[1:], strict=True)))

    def _histograms(self, metric: Metric, group: Group, current: CurrentValues) -> Body:
        names, text, openmetrics, series_count = [], [], [], 0
        total = self._catalogue.get(metric.total)
        for series, value in group.items():
            if not isinstance(value, tuple):
                continue
            cached = self._histogram_cache.lines(metric, series, value)
            if not cached.buckets:
                continue
            lines = cached.buckets + cached.total
            sum_value = histogram_sum(total, series, current)
            if sum_value is not None:
                lines = f"{lines}{cached.sum_prefix}{sum_value}\n"
                openmetrics.append(lines)
            else:
                # OpenMetrics does not allow a count without a sum.
                openmetrics.append(cached.buckets)
            names.append(series)
            text.append(lines)
            series_count += lines.count("\n")
        return Body(names, text, openmetrics, series_count)


def _body(names: Sequence[Series], lines: Sequence[str]) -> Body:
    """Return the lines of series with one line each, which is the same in both formats."""
    return Body(names, lines, lines, len(lines))
