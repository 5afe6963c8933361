"""Renders a tick as metric families, in any format that has a `SeriesRenderer`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from collector.model.histogram import LayoutError
from collector.model.metric import Kind, Metric, Series, Values
from collector.node.catalogue import HOST
from exporters.metrics_page.metric_family import (
    INFO,
    CurrentValues,
    Family,
    Group,
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
)

DEFAULT_LIMIT = 10_000
# To prevent flapping, a metric that was left out returns only if the total, including it, is at most RETURN_SHARE of
# the limit.
RETURN_SHARE = 0.9


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
B_co = TypeVar("B_co", bound=HasSeries, covariant=True)


class SeriesRenderer(Protocol[B_co]):
    """Renders the series of one node in some format."""

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> B_co:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> B_co:
        """Return one series with these names and values as labels; its own value is always 1."""

    def keep(self, current: CurrentValues) -> None:
        """Delete what is cached for series that are not in `current`, if the cache has become much too large."""


RendererFactory = Callable[[Mapping[str, Metric], UpperBounds, Mapping[str, str]], SeriesRenderer[B]]
"""Creates the renderer for a catalogue, upper bounds, and the labels of the node, which every series has."""


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
