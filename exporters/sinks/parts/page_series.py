"""The series of /metrics at one tick in the format of a sink, and how all of these formats are rendered."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

from prometheus_client.metrics_core import Metric as PrometheusMetric

from collector.model.metric import Metric, Series
from exporters.metrics_page.metric_family import UpperBounds
from exporters.metrics_page.rendering import SeriesRenderer

SeriesPoint = tuple[bytes, bytes]
"""A point in two parts: the head of its series, which all of its points share, and the content."""

H = TypeVar("H")
"""The heads of a histogram."""


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
    heads, values, messages = list[bytes](), list[float](), dict[bytes, bytes]()
    for part in parts:
        heads += part.heads
        values += part.values
        messages |= part.messages
    return Samples(heads, values, messages)


def between_bounds(counts: Sequence[int], last_buckets: Iterable[int]) -> list[int]:
    """Return the counts between the upper bounds that end with these buckets, and above the last bound."""
    cumulative = list(accumulate(counts))
    return differences([*(cumulative[bucket] for bucket in last_buckets), cumulative[-1]])


def differences(cumulative: Sequence[int]) -> list[int]:
    return [count - before for count, before in zip(cumulative, [0, *cumulative], strict=False)]


class PageRenderer(SeriesRenderer[Samples, bytes, H]):
    """Renders the series of one node, and those of prometheus_client, with encoded heads."""

    def plain(self, names: Sequence[Series], heads: Sequence[bytes], values: Sequence[float]) -> Samples:
        return Samples(heads, values)

    def joined(self, bodies: Iterable[Samples]) -> Samples:
        return joined(bodies)

    def families(self, families: Iterable[PrometheusMetric]) -> Samples:
        heads, values = list[bytes](), list[float]()
        for family in families:
            for sample in family.samples:
                heads.append(self.text_head(sample.name, sample.labels.items(), family.type, family.documentation))
                values.append(sample.value)
        return Samples(heads, values)


class SeriesFormat(Protocol):
    """Encodes series as points."""

    def renderer(
        self, catalogue: Mapping[str, Metric], upper_bounds: UpperBounds, common: Mapping[str, str]
    ) -> PageRenderer[Any]:
        """Return a renderer for the series of a node; all of them get the labels in `common`."""

    def points(self, samples: Samples, time_ms: int, start_ms: int | None) -> list[SeriesPoint]:
        """Return the points of a tick; `start_ms` is the start of Cassandra's JVM, if it is known."""

    def ends(self, heads: Sequence[bytes], time_ms: int) -> list[SeriesPoint]:
        """Return points that mark the end of series."""
