"""One tick's values as the series of the exposition, in both formats."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.catalogue import HOST
from collector.model.metric import Kind, Metric, Value, Values
from exporters.prometheus.metric_family import INFO, Family, families_of, is_info, text_label
from exporters.prometheus.series_limit import MOST, Budget
from exporters.prometheus.series_lines import Body, Group, SeriesLines, Shown
from exporters.prometheus.upper_bounds import UpperBounds

LIMIT, REFUSED, SERIES = "casstat_series_limit", "casstat_series_refused", "casstat_series"
BUDGET = {
    metric.name: metric
    for metric in (
        Metric(
            SERIES,
            Kind.GAUGE,
            "1",
            "Series in this exposition; in OpenMetrics without the counts of histograms that have no sum.",
        ),
        Metric(LIMIT, Kind.GAUGE, "1", "Series that it may have."),
        Metric(REFUSED, Kind.GAUGE, "1", "Series left out for want of room.", ("metric",)),
    )
}
NODE_EXPORTERS = frozenset(metric.name for part in HOST for metric in part.metrics if metric.name.startswith("node_"))


@dataclass(frozen=True)
class Options:
    """How the exposition looks.

    edges    of the histograms.
    most     series that it may have.
    machine  whether it has what a node_exporter on the machine would tell too.
    """

    upper_bounds: UpperBounds = field(default_factory=UpperBounds)
    most: int = MOST
    machine: bool = True


class Part(NamedTuple):
    """A metric's introduction and its series."""

    family: Family
    body: Body


class Rendering:
    """Renders one tick after the other; what does not change between them is kept. `say` is told what is left out."""

    def __init__(self, options: Options, catalogue: Mapping[str, Metric], say: Callable[[str], None]) -> None:
        hidden = frozenset[str]() if options.machine else NODE_EXPORTERS
        self._catalogue = {name: metric for name, metric in {**catalogue, **BUDGET}.items() if name not in hidden}
        self._families = families_of(self._catalogue)
        self._options = options
        self._budget = Budget(options.most, self._catalogue, say)
        self._identity: Mapping[str, str] = {}
        self._lines = SeriesLines(self._catalogue, options.upper_bounds, {})

    def parts(self, shown: Shown, identity: Mapping[str, str], others: int) -> list[Part]:
        """Return the metrics of the node, and what is left out of them; `others` are the series that are beside them.

        No name comes twice, and there are never more series than the options allow, unless the others alone are more.
        """
        if identity != self._identity:
            self._identity, self._lines = identity, SeriesLines(self._catalogue, self._options.upper_bounds, identity)
        groups = self._grouped(shown)
        sizes = {name: self._size(name, group) for name, group in groups.items()}
        others += len((SERIES, LIMIT))
        left_out = self._budget.left_out(sizes, others)
        parts = [
            Part(self._families[name], self._body(name, group, shown))
            for name, group in groups.items()
            if name not in left_out
        ]
        series = sum(part.body.series for part in parts) + others + len(left_out)
        parts.extend(self._accounts(series, left_out))
        self._lines.forget(shown)
        return [part for part in parts if part.body.series]

    def _grouped(self, shown: Shown) -> dict[str, Group]:
        """Return the series by the family that they are of, in the families' order."""
        groups: dict[str, Group] = {name: [] for name in self._families}
        # What no family has is for nobody.
        groups.update({name: groups[INFO] for name, metric in self._catalogue.items() if is_info(metric)})
        nobodys: Group = []
        for item in shown.items():
            groups.get(item[0][0], nobodys).append(item)
        return {name: group for name in self._families if (group := groups[name])}

    def _size(self, name: str, group: Group) -> int:
        return 1 if name == INFO else self._lines.size(self._catalogue[name], group)

    def _body(self, name: str, group: Group, shown: Shown) -> Body:
        if name != INFO:
            return self._lines.body(self._catalogue[name], group, shown)
        return self._lines.info(INFO, ((text_label(self._catalogue[series[0]]), str(value)) for series, value in group))

    def _accounts(self, series: int, left_out: Mapping[str, int]) -> Iterator[Part]:
        """Yield how many series there are, and which metrics had no room."""
        values: Values = {(SERIES,): series, (LIMIT,): self._options.most}
        values.update({(REFUSED, name): size for name, size in left_out.items()})
        for name, metric in BUDGET.items():
            group: list[tuple[tuple[str, ...], Value]] = [each for each in values.items() if each[0][0] == name]
            yield Part(self._families[name], self._lines.body(metric, group, values))


def document(parts: Iterable[Part], *, openmetrics: bool) -> str:
    """Return the lines of all parts; the end of OpenMetrics is not among them."""
    if openmetrics:
        return "".join(part.family.openmetrics + part.body.openmetrics for part in parts)
    return "".join(part.family.text + part.body.text for part in parts)
