"""Renders a tick as metric families, in any format that has a `SeriesRenderer`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from collector.model.metric import Kind, Metric, Series, Values
from collector.node.catalogue import HOST
from exporters.metrics_page.metric_family import INFO, Family, families_of, is_info, text_label
from exporters.metrics_page.series_limit import DEFAULT_LIMIT, SeriesLimit
from exporters.metrics_page.series_lines import Body
from exporters.metrics_page.series_values import CurrentValues, Group, max_series
from exporters.metrics_page.upper_bounds import UpperBounds

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
