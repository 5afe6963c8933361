"""Renders metrics as heads of OpenTelemetry series with their values; heads are cached."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import Metric as PrometheusMetric
from prometheus_client.samples import Sample as PrometheusSample

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series
from exporters.metrics_page.metric_family import (
    INFO_HELP,
    CurrentValues,
    Group,
    SeriesCache,
    UpperBounds,
    encodable,
    histogram_sum,
    numbers,
    text_labels,
)
from exporters.sinks.otlp import otlp_points
from exporters.sinks.otlp.metric_names import OtlpName, otlp_name
from exporters.sinks.otlp.otlp_points import encoded_metric, head_of, histogram_message
from exporters.sinks.parts.page_samples import Samples

# Unused heads are deleted when the number of cached series exceeds twice the current number by more than SPARE.
SPARE = 1000
CASSANDRA = "cassandra_"
INFINITE = "+Inf"

Labels = Sequence[tuple[str, str]]


class OtlpSeries:
    """Renders the series of one node; implements `exporters.sinks.parts.page_samples.PageRenderer`."""

    def __init__(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, resource: bytes, common: Mapping[str, str]
    ) -> None:
        """Give all series an encoded resource and the attributes in `common`."""
        self._catalogue = catalogue
        self._upper_bounds = upper_bounds
        self._resource = resource
        self._common = common
        self._heads = SeriesCache(self._metric_head)
        self._text_heads: dict[tuple[int, str, tuple[tuple[str, str], ...]], bytes] = {}
        self._messages: dict[Series, tuple[tuple[int, ...], float | None, bytes]] = {}

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._histograms(metric, group, current)
        if metric.kind is Kind.TEXT:
            heads = [
                self._text_head(otlp_points.GAUGE, metric.name, "1", metric.help, text_labels(metric, series, value))
                for series, value in group.items()
            ]
            return Samples(heads, [1.0] * len(heads))
        all_series, values = numbers(metric, group)
        return Samples(self._heads.of(metric, all_series), values)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Samples:
        """Return one series with these names and values as labels; its own value is always 1."""
        return Samples([self._text_head(otlp_points.GAUGE, name, "1", INFO_HELP, texts)], [1.0])

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        """Return the series of families of prometheus_client."""
        heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
        for family in families:
            if family.type == "histogram":
                messages.update(self._family_histograms(family))
                continue
            kind = otlp_points.SUM if family.type == "counter" else otlp_points.GAUGE
            for sample in family.samples:
                labels = sample.labels.items()
                heads.append(self._text_head(kind, sample.name, _unit(family.name), family.documentation, labels))
                values.append(sample.value)
        return Samples(heads, values, messages)

    def keep(self, current: CurrentValues) -> None:
        """Delete what is cached for series that are not in `current`, if there is much of it."""
        limit = 2 * len(current) + SPARE
        if len(self._messages) > limit:
            self._messages = {series: message for series, message in self._messages.items() if series in current}
        if len(self._text_heads) > limit:
            self._text_heads = {}

    def _histograms(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        total, messages = self._catalogue.get(metric.total), dict[bytes, bytes]()
        heads = self._heads.of(metric, group.series)
        for head, (series, counts) in zip(heads, group.items(), strict=True):
            if not isinstance(counts, tuple) or min(counts) < 0:
                continue
            sum_value = histogram_sum(total, series, current)
            known = self._messages.get(series)
            if known is None or known[:2] != (counts, sum_value):
                try:
                    message = self._message(metric, counts, sum_value)
                except LayoutError:
                    continue
                known = self._messages[series] = (counts, sum_value, message)
            messages[head] = known[2]
        return Samples([], [], messages)

    def _message(self, metric: Metric, counts: Sequence[int], sum_value: float | None) -> bytes:
        """Return a histogram with the bounds and labels of /metrics. Raises LayoutError."""
        bounds = self._upper_bounds.bounds(metric.unit, len(counts))
        cumulative = list(accumulate(counts))
        at_bounds = [*(cumulative[bound.bucket] for bound in bounds), cumulative[-1]]
        return histogram_message([float(bound.le) for bound in bounds], _differences(at_bounds), sum_value)

    def _family_histograms(self, family: PrometheusMetric) -> Iterator[tuple[bytes, bytes]]:
        """Yield the head and message of each histogram of a family."""
        by_labels: dict[tuple[tuple[str, str], ...], list[PrometheusSample]] = {}
        for sample in family.samples:
            labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
            by_labels.setdefault(labels, []).append(sample)
        for labels, samples in by_labels.items():
            buckets = [sample for sample in samples if "le" in sample.labels]
            bounds = [float(sample.labels["le"]) for sample in buckets if sample.labels["le"] != INFINITE]
            counts = _differences([int(sample.value) for sample in buckets])
            total = next((sample.value for sample in samples if sample.name.endswith("_sum")), None)
            unit = _unit(family.name)
            head = self._text_head(otlp_points.HISTOGRAM, family.name, unit, family.documentation, labels)
            yield head, histogram_message(bounds, counts, total)

    def _metric_head(self, metric: Metric, series: Series) -> bytes:
        is_cassandra = metric.name.startswith(CASSANDRA)
        kind = {
            Kind.COUNTER: otlp_points.CASSANDRA_SUM if is_cassandra else otlp_points.SUM,
            Kind.HISTOGRAM: otlp_points.CASSANDRA_HISTOGRAM if is_cassandra else otlp_points.HISTOGRAM,
        }.get(metric.kind, otlp_points.GAUGE)
        name = otlp_name(metric.name, metric.unit)
        labels = list(zip(metric.labels, series[1:], strict=True))
        return self._head(kind, name, metric.help, labels)

    def _text_head(self, kind: int, name: str, unit: str, help_text: str, labels: Iterable[tuple[str, str]]) -> bytes:
        """Return the head of a series that is identified by its name and labels."""
        key = kind, name, tuple(labels)
        if key not in self._text_heads:
            self._text_heads[key] = self._head(kind, otlp_name(name, unit), help_text, key[2])
        return self._text_heads[key]

    def _head(self, kind: int, name: OtlpName, help_text: str, labels: Labels) -> bytes:
        renamed = [(name.renamed.get(label, label), value) for label, value in labels]
        attributes = [*self._common.items(), *renamed, *name.fixed.items()]
        encoded = ((key, encodable(value)) for key, value in attributes)
        return head_of(kind, self._resource, encoded_metric(name.name, name.unit, help_text), encoded)


def _differences(cumulative: Sequence[int]) -> list[int]:
    return [count - before for count, before in zip(cumulative, [0, *cumulative], strict=False)]


def _unit(name: str) -> str:
    """Return the unit at the end of a name."""
    return next((unit for unit in ("seconds", "bytes") if name.endswith(f"_{unit}")), "1")
