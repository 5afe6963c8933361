"""The series of /metrics at one tick in the format of a sink, and the interface of such formats."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.metric import Metric
from exporters.metrics_page.metric_family import CurrentValues, Group, UpperBounds

SeriesPoint = tuple[bytes, bytes]
"""A point in two parts: the head of its series, which all of its points share, and the content."""


class Samples(NamedTuple):
    """Series: their heads, which are the same for all samples of a series, and their values.

    messages  encoded histograms without their time, by head.
    """

    heads: Sequence[bytes]
    values: Sequence[float]
    messages: Mapping[bytes, bytes] = {}

    @property
    def series(self) -> int:
        return len(self.heads) + len(self.messages)

    @property
    def all_heads(self) -> list[bytes]:
        """The heads of all series, including histograms."""
        return [*self.heads, *self.messages]


def joined(parts: Iterable[Samples]) -> Samples:
    """Return all series of the parts."""
    heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
    for part in parts:
        heads += part.heads
        values += part.values
        messages |= part.messages
    return Samples(heads, values, messages)


class PageRenderer(Protocol):
    """Renders the series of one node; a `SeriesRenderer` of `metrics_page.rendering` that also renders families."""

    def body(self, metric: Metric, group: Group, current: CurrentValues) -> Samples:
        """Return the series of a metric; `current` contains the counters that hold the histogram sums."""

    def info(self, name: str, texts: Iterable[tuple[str, str]]) -> Samples:
        """Return one series with these names and values as labels; its own value is always 1."""

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        """Return the series of families of prometheus_client."""

    def keep(self, current: CurrentValues) -> None:
        """Delete what is cached for series that are not in `current`, if the cache has become much too large."""


class SeriesFormat(Protocol):
    """Encodes series as points."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> PageRenderer:
        """Return a renderer for the series of a node; all of them get the labels in `common`."""

    def points(self, samples: Samples, time_ms: int, start_ms: int | None) -> list[SeriesPoint]:
        """Return the points of a tick; `start_ms` is the start of Cassandra's JVM, if it is known."""

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""
