"""Renders a tick as metric families, in any format that has a `SeriesRenderer`; that of the page is text."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series, Value, Values
from collector.node.catalogue import HOST
from exporters.metrics_page.metric_family import (
    INFO,
    INFO_HELP,
    CurrentValues,
    Family,
    Group,
    Labels,
    SeriesCache,
    UpperBounds,
    families_of,
    histogram_sum,
    is_info,
    labels_text,
    max_series,
    named,
    numbers,
    text_label,
    text_labels,
    unit_of,
)

DEFAULT_LIMIT = 10_000
# To prevent flapping, a metric that was left out returns only if the total, including it, is at most RETURN_SHARE of
# the limit.
RETURN_SHARE = 0.9
# What is cached for other series is deleted when there are more than twice the current ones and SPARE.
SPARE = 1000
LIMIT, REFUSED, SERIES = "casstat_series_limit", "casstat_series_refused", "casstat_series"
LIMIT_METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            SERIES,
            Kind.GAUGE,
            "1",
            "Number of series in the text format of this page; OpenMetrics omits counts of histograms without a sum.",
        ),
        Metric(LIMIT, Kind.GAUGE, "1", "Maximum number of series on this page."),
        Metric(REFUSED, Kind.GAUGE, "1", "Number of series left out because of the series limit.", ("metric",)),
    )
}
NODE_EXPORTERS = frozenset(metric.name for part in HOST for metric in part.metrics if metric.name.startswith("node_"))


@dataclass(frozen=True)
class Options:
    """Settings of the page.

    upper_bounds  the upper bounds of histograms.
    limit         maximum number of series.
    machine       whether to include metrics that node_exporter exports as well.
    """

    upper_bounds: UpperBounds = field(default_factory=UpperBounds)
    limit: int = DEFAULT_LIMIT
    machine: bool = True


class HasSeries(Protocol):
    """The series of a metric in some format."""

    @property
    def series(self) -> int:
        """The number of series."""


B = TypeVar("B", bound=HasSeries)
"""The series of a metric."""
H = TypeVar("H")
"""The head of a series: its name and labels."""
G = TypeVar("G")
"""The heads of the series that a histogram becomes."""


class SeriesRenderer(ABC, Generic[B, H, G]):
    """Renders the series of one node in some format; caches heads, and histograms until their counts change."""

    def __init__(self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]) -> None:
        """Give all series the labels in `common`."""
        self._catalogue = catalogue
        self._upper_bounds = upper_bounds
        self._common = common
        self._heads = SeriesCache(self.metric_head)
        self._text_heads: dict[tuple[str, Labels], H] = {}
        self._histogram_heads: dict[tuple[Series, int], G] = {}
        # The counts and the sum of each histogram, and its series.
        self._histograms: dict[Series, tuple[Value, float | None, B]] = {}

    @abstractmethod
    def head(self, family: Family, unit: str, labels: Labels) -> H:
        """Return the head of a series."""

    @abstractmethod
    def histogram_heads(self, metric: Metric, series: Series, length: int) -> G:
        """Return the heads of a histogram with `length` counts. Raises LayoutError."""

    @abstractmethod
    def histogram(self, metric: Metric, heads: G, counts: Sequence[int], sum_value: float | None) -> B:
        """Return the series of a histogram. Raises LayoutError."""

    @abstractmethod
    def plain(self, names: Sequence[Series], heads: Sequence[H], values: Sequence[float]) -> B:
        """Return series that are not histograms."""

    @abstractmethod
    def joined(self, bodies: Iterable[B]) -> B:
        """Return the series of all bodies."""

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> B:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""
        if metric.kind is Kind.HISTOGRAM:
            return self._of_histograms(metric, group, current)
        if metric.kind is Kind.TEXT:
            texts = (text_labels(metric, series, value) for series, value in group.items())
            heads = [self.text_head(metric.name, labels, "gauge", metric.help) for labels in texts]
            return self.plain(group.series, heads, [1] * len(heads))
        all_series, values = numbers(metric, group)
        return self.plain(all_series, self._heads.of(metric, all_series), values)

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> B:
        """Return one series with these names and values as labels; its own value is always 1."""
        return self.plain([(name,)], [self.text_head(name, texts, "gauge", INFO_HELP)], [1])

    def keep(self, current: CurrentValues) -> None:
        """Delete what is cached for series that are not in `current`, if the cache has become much too large."""
        limit = 2 * len(current) + SPARE
        if len(self._histograms) > limit:
            self._histograms = {series: cached for series, cached in self._histograms.items() if series in current}
            self._histogram_heads = {key: heads for key, heads in self._histogram_heads.items() if key[0] in current}
        if len(self._text_heads) > limit:
            self._text_heads = {}

    def metric_head(self, metric: Metric, series: Series) -> H:
        """Return the head of a series of the catalogue."""
        labels = tuple(zip(metric.labels, series[1:], strict=True))
        return self.head(Family(metric.name, metric.kind.value, metric.help), metric.unit, labels)

    def text_head(self, name: str, labels: Iterable[tuple[str, str]], kind: str, help_text: str) -> H:
        """Return the head of a series that is identified by its name and labels."""
        key = name, tuple(labels)
        if key not in self._text_heads:
            self._text_heads[key] = self.head(Family(name, kind, help_text), unit_of(name), key[1])
        return self._text_heads[key]

    def _of_histograms(self, metric: Metric, group: Group, current: CurrentValues) -> B:
        total, histograms, bodies = self._catalogue.get(metric.total), self._histograms, list[B]()
        unknown: tuple[Value, float | None, B] = (), None, self.joined(())
        for series, counts in group.items():
            sum_value = histogram_sum(total, series, current)
            known_counts, known_sum, body = histograms.get(series, unknown)
            # Most histograms do not change within a second. 1 and 1.0 are equal, but not as text.
            if known_counts != counts or known_sum != sum_value or type(known_sum) is not type(sum_value):
                body = self._of_histogram(metric, series, counts, sum_value)
                histograms[series] = counts, sum_value, body
            bodies.append(body)
        return self.joined(bodies)

    def _of_histogram(self, metric: Metric, series: Series, counts: Value, sum_value: float | None) -> B:
        """Return the series of a histogram; none if its bucket layout is unknown or its counts are invalid."""
        if not isinstance(counts, tuple) or min(counts, default=-1) < 0:
            return self.joined(())
        key = series, len(counts)
        try:
            if key not in self._histogram_heads:
                self._histogram_heads[key] = self.histogram_heads(metric, series, len(counts))
            return self.histogram(metric, self._histogram_heads[key], counts, sum_value)
        except LayoutError:
            return self.joined(())


RendererFactory = Callable[[Mapping[str, Metric], UpperBounds, Mapping[str, str]], SeriesRenderer[B, Any, Any]]
"""Creates the renderer for a catalogue, upper bounds, and the labels of the node, which every series has."""


class SeriesLimit:
    """Selects the metrics to leave out; each is logged once."""

    def __init__(self, limit: int, catalogue: Mapping[str, Metric], log: Callable[[str], None]) -> None:
        self.limit = limit
        self._catalogue = catalogue
        self._log = log
        self._left_out: set[str] = set()
        self._logged: set[str] = set()

    def left_out(self, sizes: Mapping[str, int], others: int) -> dict[str, int]:
        """Return the metrics to leave out, each with its number of series.

        `sizes` holds the number of series of each metric; `others` is the number of series that are always present.
        Table metrics are left out first, then keyspace metrics, then all others; within each group, the largest first.
        A metric that is left out is replaced by one series that reports it.
        """
        everything = others + sum(sizes.values())
        if not self._left_out and everything <= self.limit:
            return {}
        present = sorted((name for name, size in sizes.items() if size), key=lambda name: self._rank(name, sizes[name]))
        total = others + sum(1 if name in self._left_out else sizes[name] for name in present)
        for name in present:
            if total > self.limit and name not in self._left_out:
                self._left_out.add(name)
                total += 1 - sizes[name]
        for name in reversed(present):
            if name in self._left_out and total - 1 + sizes[name] <= RETURN_SHARE * self.limit:
                self._left_out.discard(name)
                total += sizes[name] - 1
        left_out = {name: sizes[name] for name in present if name in self._left_out}
        self._report(left_out, everything)
        return left_out

    def _rank(self, name: str, size: int) -> tuple[int, int, str]:
        metric = self._catalogue.get(name)
        labels = metric.labels if metric else ()
        rank = next((index for index, label in enumerate(("table", "keyspace")) if label in labels), 2)
        return rank, -size, name

    def _report(self, left_out: Mapping[str, int], everything: int) -> None:
        new = [f"{name} ({size})" for name, size in left_out.items() if name not in self._logged]
        if new:
            self._logged.update(left_out)
            self._log(
                f"/metrics: {everything} series exceed the limit of {self.limit}: left out {', '.join(new)} "
                "(hint: raise the limit or read fewer tables)"
            )


@dataclass(frozen=True)
class Part(Generic[B]):
    """A metric family and its series."""

    family: Family
    body: B


class Rendering(Generic[B]):
    """Renders ticks, and caches what does not change. Logs the metrics that the series limit leaves out."""

    def __init__(
        self,
        options: Options,
        catalogue: Mapping[str, Metric],
        log: Callable[[str], None],
        renderer: RendererFactory[B],
    ) -> None:
        hidden = frozenset[str]() if options.machine else NODE_EXPORTERS
        self._catalogue = {
            name: metric for name, metric in {**catalogue, **LIMIT_METRICS}.items() if name not in hidden
        }
        self._families = families_of(self._catalogue)
        self._options = options
        self._limit = SeriesLimit(options.limit, self._catalogue, log)
        self._identity: Mapping[str, str] = {}
        self._create_renderer = renderer
        self._renderer = renderer(self._catalogue, options.upper_bounds, {})
        # The series of the last tick, and for each family, its series and their indices.
        self._series: list[Series] = []
        self._indices: dict[str, tuple[tuple[Series, ...], Sequence[int]]] = {}

    def parts(self, current: CurrentValues, identity: Mapping[str, str], others: int) -> list[Part[B]]:
        """Return the node's metric families; `others` is the number of other series on the page.

        Family names are unique. The number of series never exceeds the limit unless the others alone exceed it.
        """
        if identity != self._identity:
            self._identity = identity
            self._renderer = self._create_renderer(self._catalogue, self._options.upper_bounds, identity)
        groups = self._grouped(current)
        sizes = {name: self._size(name, group) for name, group in groups.items()}
        others += len((SERIES, LIMIT))
        left_out = self._limit.left_out(sizes, others)
        parts = [
            Part(self._families[name], body)
            for name, group in groups.items()
            if name not in left_out and (body := self._body(name, group, current)).series
        ]
        series = sum(part.body.series for part in parts) + others + len(left_out)
        parts.extend(self._limit_parts(series, left_out))
        self._renderer.keep(current)
        return parts

    def _grouped(self, current: CurrentValues) -> dict[str, Group]:
        """Return the series, keyed by family name, in the order of the families."""
        all_series = list(current)
        if all_series != self._series:
            self._series, self._indices = all_series, self._indices_of(all_series)
        values = list(current.values())
        return {
            name: Group(series, [values[index] for index in indices])
            for name, (series, indices) in self._indices.items()
        }

    def _indices_of(self, all_series: Sequence[Series]) -> dict[str, tuple[tuple[Series, ...], Sequence[int]]]:
        groups: dict[str, list[int]] = {name: [] for name in self._families}
        groups.update({name: groups[INFO] for name, metric in self._catalogue.items() if is_info(metric)})
        without_family: list[int] = []
        for index, series in enumerate(all_series):
            groups.get(series[0], without_family).append(index)
        return {
            name: (tuple(all_series[index] for index in indices), indices)
            for name in self._families
            if (indices := groups[name])
        }

    def _size(self, name: str, group: Group) -> int:
        return 1 if name == INFO else max_series(self._catalogue[name], group, self._options.upper_bounds)

    def _body(self, name: str, group: Group, current: CurrentValues) -> B:
        if name != INFO:
            return self._renderer.body(self._catalogue[name], group, current)
        return self._renderer.info(
            INFO, ((text_label(self._catalogue[series[0]]), str(value)) for series, value in group.items())
        )

    def _limit_parts(self, series: int, left_out: Mapping[str, int]) -> Iterator[Part[B]]:
        """Yield metrics for the number of series, the limit, and the metrics that were left out."""
        values: Values = {(SERIES,): series, (LIMIT,): self._options.limit}
        values.update({(REFUSED, name): size for name, size in left_out.items()})
        for name, metric in LIMIT_METRICS.items():
            group = {series: value for series, value in values.items() if series[0] == name}
            body = self._renderer.body(metric, Group(tuple(group), list(group.values())), values)
            if body.series:
                yield Part(self._families[name], body)


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


class _Template(NamedTuple):
    """Template for the lines of one histogram: names and labels, with placeholders for the counts.

    last_buckets  for each line, the index of the last bucket included in its count.
    """

    series: Series
    buckets: str
    count_prefix: str
    sum_prefix: str
    last_buckets: tuple[int, ...]


class SeriesLines(SeriesRenderer[Body, str, _Template]):
    """Renders the series of one node as lines; the labels in `common` come first in every series."""

    def __init__(self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]) -> None:
        super().__init__(catalogue, upper_bounds, common)
        self._common_text = labels_text(common.items())

    def head(self, family: Family, unit: str, labels: Labels) -> str:
        return named(family.name, self._common_text, labels_text(labels))

    def histogram_heads(self, metric: Metric, series: Series, length: int) -> _Template:
        bounds = self._upper_bounds.bounds(metric.unit, length)
        labels = labels_text(zip(metric.labels, series[1:], strict=True))
        bucket, count, total = (
            named(f"{metric.name}_{suffix}", self._common_text, labels, *more)
            for suffix, *more in (("bucket", "le=?"), ("count",), ("sum",))
        )
        # The text that all lines share is built only once, because a new table adds about a hundred lines.
        before, _, after = bucket.replace("%", "%%").rpartition("?")
        ends = [*(bound.le for bound in bounds), "+Inf"]
        buckets = "".join(f'{before}"{end}"{after}%d\n' for end in ends)
        return _Template(series, buckets, count, total, tuple(bound.bucket for bound in bounds))

    def histogram(self, metric: Metric, heads: _Template, counts: Sequence[int], sum_value: float | None) -> Body:
        cumulative = list(accumulate(counts))
        buckets = heads.buckets % (*(cumulative[bucket] for bucket in heads.last_buckets), cumulative[-1])
        text = f"{buckets}{heads.count_prefix}{cumulative[-1]}\n"
        if sum_value is not None:
            text = f"{text}{heads.sum_prefix}{sum_value}\n"
        # OpenMetrics does not allow a count without a sum.
        return Body((heads.series,), (text,), (buckets if sum_value is None else text,), text.count("\n"))

    def plain(self, names: Sequence[Series], heads: Sequence[str], values: Sequence[float]) -> Body:
        lines = [f"{head}{value}\n" for head, value in zip(heads, values, strict=True)]
        return Body(names, lines, lines, len(lines))

    def joined(self, bodies: Iterable[Body]) -> Body:
        names, text, openmetrics, series = list[Series](), list[str](), list[str](), 0
        for body in bodies:
            names += body.names
            text += body.text
            openmetrics += body.openmetrics
            series += body.series
        return Body(names, text, openmetrics, series)


def document(parts: Iterable[Part[Body]], times: Mapping[Series, float | None] = {}, *, openmetrics: bool) -> str:
    """Return the lines of all parts, without the OpenMetrics end marker; `times` are those of cumulative series."""

    def stamped(lines: str, time_s: float | None) -> str:
        if time_s is None:
            return lines
        # The lines are cached without a time.
        return lines.replace("\n", f" {time_s:.3f}\n" if openmetrics else f" {round(1000 * time_s)}\n")

    def timed(family: Family, names: Sequence[Series], lines: Sequence[str]) -> str:
        of_lines = [times.get(series) for series in names] if times and family.is_cumulative else [None]
        if len(set(of_lines)) == 1:
            return stamped("".join(lines), of_lines[0])
        return "".join(map(stamped, lines, of_lines))

    if openmetrics:
        return "".join(
            part.family.openmetrics + timed(part.family, part.body.names, part.body.openmetrics) for part in parts
        )
    return "".join(part.family.text + timed(part.family, part.body.names, part.body.text) for part in parts)
