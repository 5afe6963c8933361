"""Histogram lines: cumulative counts at a subset of Cassandra's upper bounds."""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from collector.model.histogram import LayoutError
from collector.model.metric import Metric, Series
from exporters.metrics_page.metric_family import labels_text, named
from exporters.metrics_page.upper_bounds import UpperBounds


class _Template(NamedTuple):
    """Template for the lines of one histogram: names and labels, with placeholders for the counts.

    last_buckets  for each line, the index of the last bucket included in its count.
    """

    buckets: str
    count_prefix: str
    sum_prefix: str
    last_buckets: tuple[int, ...]


class HistogramLines(NamedTuple):
    """The lines of a histogram with these `counts`; empty if the histogram is invalid.

    total       the line with the total count.
    sum_prefix  the name and labels of the sum.
    """

    counts: tuple[int, ...]
    buckets: str
    total: str
    sum_prefix: str


class HistogramCache:
    """Renders histograms with the `common` labels, and caches the lines of each until its counts change."""

    def __init__(self, upper_bounds: UpperBounds, common: str) -> None:
        self._upper_bounds = upper_bounds
        self._common = common
        self._templates: dict[tuple[Series, int], _Template | None] = {}
        self._lines: dict[Series, HistogramLines] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def lines(self, metric: Metric, series: Series, counts: tuple[int, ...]) -> HistogramLines:
        lines = self._lines.get(series)
        if lines is None or lines.counts != counts:
            lines = self._lines[series] = self._render(metric, series, counts)
        return lines

    def keep(self, current: Mapping[Series, object]) -> None:
        """Delete the cached lines of all series that are not in `current`."""
        self._lines = {series: lines for series, lines in self._lines.items() if series in current}
        self._templates = {key: template for key, template in self._templates.items() if key[0] in current}

    def _render(self, metric: Metric, series: Series, counts: tuple[int, ...]) -> HistogramLines:
        key = series, len(counts)
        if key not in self._templates:
            self._templates[key] = self._template(metric, series, len(counts))
        template = self._templates[key]
        if template is None or min(counts) < 0:
            return HistogramLines(counts, "", "", "")
        cumulative = list(accumulate(counts))
        buckets = template.buckets % (*(cumulative[bucket] for bucket in template.last_buckets), cumulative[-1])
        return HistogramLines(counts, buckets, f"{template.count_prefix}{cumulative[-1]}\n", template.sum_prefix)

    def _template(self, metric: Metric, series: Series, length: int) -> _Template | None:
        """Return the template, or None for an unknown bucket layout."""
        try:
            bounds = self._upper_bounds.bounds(metric.unit, length)
        except LayoutError:
            return None
        labels = labels_text(zip(metric.labels, series[1:], strict=True))
        # The text that all lines share is built only once, because a new table adds about a hundred lines.
        before, _, after = (
            named(f"{metric.name}_bucket", self._common, labels, "le=?").replace("%", "%%").rpartition("?")
        )
        ends = [*(bound.le for bound in bounds), "+Inf"]
        count, total = (named(f"{metric.name}_{suffix}", self._common, labels) for suffix in ("count", "sum"))
        buckets = "".join(f'{before}"{end}"{after}%d\n' for end in ends)
        return _Template(buckets, count, total, tuple(bound.bucket for bound in bounds))
