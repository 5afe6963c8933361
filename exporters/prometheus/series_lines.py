"""The lines of series: what does not change from tick to tick is kept, ready to be joined."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NamedTuple

from collector.model.metric import Kind, Metric, Series, Value
from exporters.prometheus.histogram_lines import Histograms
from exporters.prometheus.metric_family import labels_text, named, text_label
from exporters.prometheus.upper_bounds import UpperBounds

Shown = Mapping[Series, Value]
Group = list[tuple[Series, Value]]


# So many series that are gone are not worth looking for.
SPARE = 1000


class Body(NamedTuple):
    """A metric's series as lines, in the text format and in OpenMetrics, and how many they are in the former."""

    text: str
    openmetrics: str
    series: int


class SeriesLines:
    """Writes the series of one node; `identity` are the labels that all of them begin with."""

    def __init__(self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, identity: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._common = labels_text(identity.items())
        self._prefixes: dict[Series, str] = {}
        self._drawn = Histograms(upper_bounds, self._common)

    @property
    def kept(self) -> int:
        """How many series there is something kept of."""
        return len(self._prefixes) + len(self._drawn)

    def size(self, metric: Metric, group: Group) -> int:
        """Return how many series there may be at most."""
        if metric.kind is not Kind.HISTOGRAM:
            return len(group)
        lengths = [len(value) for _, value in group if isinstance(value, tuple)]
        return sum(self._drawn.size(metric.unit, length) * lengths.count(length) for length in set(lengths))

    def body(self, metric: Metric, group: Group, shown: Shown) -> Body:
        """Return the lines of a metric's series; `shown` has the counters that are histograms' sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histograms(metric, group, shown)
        found = self._texts(metric, group) if metric.kind is Kind.TEXT else self._numbers(metric, group)
        return _body(found)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Body:
        """Return the series that has these texts as labels."""
        return _body([f"{named(name, self._common, labels_text(texts))}1\n"])

    def forget(self, shown: Shown) -> None:
        """Forget series that are not shown any more, once they are as many as those that are."""
        if self.kept > 2 * len(shown) + SPARE:
            self._prefixes = {series: text for series, text in self._prefixes.items() if series in shown}
            self._drawn.forget(shown)

    def _numbers(self, metric: Metric, group: Group) -> list[str]:
        found, prefixes, scale = [], self._prefixes, metric.scale
        counts = metric.kind is Kind.COUNTER
        for series, value in group:
            if isinstance(value, str | tuple) or (counts and value < 0):
                continue
            if scale != 1:
                value = value * scale
            if not isfinite(value):
                continue
            prefix = prefixes.get(series) or self._prefix(metric, series)
            found.append(f"{prefix}{value}\n")
        return found

    def _texts(self, metric: Metric, group: Group) -> list[str]:
        labels = *metric.labels, text_label(metric)
        return [
            f"{named(metric.name, self._common, labels_text(zip(labels, (*series[1:], str(value)), strict=True)))}1\n"
            for series, value in group
        ]

    def _prefix(self, metric: Metric, series: Series) -> str:
        own = labels_text(zip(metric.labels, series[1:], strict=True))
        prefix = self._prefixes[series] = named(metric.name, self._common, own)
        return prefix

    def _histograms(self, metric: Metric, group: Group, shown: Shown) -> Body:
        text, openmetrics, series_count = [], [], 0
        total = self._catalogue.get(metric.total)
        scale = total.scale if total else 1.0
        for series, value in group:
            if not isinstance(value, tuple):
                continue
            drawn = self._drawn.drawn(metric, series, value)
            if not drawn.buckets:
                continue
            lines = drawn.buckets + drawn.counted
            cumulative = shown.get((metric.total, *series[1:])) if total else None
            if isinstance(cumulative, int | float) and cumulative >= 0 and isfinite(cumulative):
                lines = f"{lines}{drawn.cumulative}{cumulative * scale}\n"
                openmetrics.append(lines)
            else:
                # There a count without a sum is none.
                openmetrics.append(drawn.buckets)
            text.append(lines)
            series_count += lines.count("\n")
        return Body("".join(text), "".join(openmetrics), series_count)


def _body(lines: list[str]) -> Body:
    text = "".join(lines)
    return Body(text, text, len(lines))
