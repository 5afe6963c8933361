"""The lines of histograms: cumulative counts at some of Cassandra's own upper bounds."""

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from collector.model.histogram import LayoutError
from collector.model.metric import Metric, Series
from exporters.prometheus.metric_family import labels_text, named
from exporters.prometheus.upper_bounds import UpperBounds


class _Shape(NamedTuple):
    """What the lines of one histogram have in common while it lives: names and labels, with holes for the counts.

    last  the last bucket in each of the counts.
    """

    buckets: str
    counted: str
    cumulative: str
    last: tuple[int, ...]


class Drawn(NamedTuple):
    """A histogram's lines, and the counts that they are of; no lines for counts that cannot be.

    summed  what stands before the sum.
    """

    counts: tuple[int, ...]
    buckets: str
    counted: str
    cumulative: str


class Histograms:
    """Writes histograms whose series begin with the labels `common`, and keeps those that do not change."""

    def __init__(self, upper_bounds: UpperBounds, common: str) -> None:
        self._edges = upper_bounds
        self._common = common
        self._shapes: dict[tuple[Series, int], _Shape | None] = {}
        self._drawn: dict[Series, Drawn] = {}

    def __len__(self) -> int:
        return len(self._drawn)

    def size(self, unit: str, length: int) -> int:
        """Return how many series a histogram with `length` counts has: its edges, infinity, count and sum."""
        try:
            return len(self._edges.bounds(unit, length)) + 3
        except LayoutError:
            return 0

    def drawn(self, metric: Metric, series: Series, counts: tuple[int, ...]) -> Drawn:
        """Return a histogram's lines."""
        drawn = self._drawn.get(series)
        if drawn is None or drawn.counts != counts:
            drawn = self._drawn[series] = self._draw(metric, series, counts)
        return drawn

    def forget(self, shown: Mapping[Series, object]) -> None:
        """Forget all but these."""
        self._drawn = {series: drawn for series, drawn in self._drawn.items() if series in shown}
        self._shapes = {key: shape for key, shape in self._shapes.items() if key[0] in shown}

    def _draw(self, metric: Metric, series: Series, counts: tuple[int, ...]) -> Drawn:
        key = series, len(counts)
        if key not in self._shapes:
            self._shapes[key] = self._shape(metric, series, len(counts))
        shape = self._shapes[key]
        if shape is None or min(counts) < 0:
            return Drawn(counts, "", "", "")
        cumulative = list(accumulate(counts))
        buckets = shape.buckets % (*(cumulative[bucket] for bucket in shape.last), cumulative[-1])
        return Drawn(counts, buckets, f"{shape.counted}{cumulative[-1]}\n", shape.cumulative)

    def _shape(self, metric: Metric, series: Series, length: int) -> _Shape | None:
        """Return what the lines look like; None where the counts' layout is not known."""
        try:
            bounds = self._edges.bounds(metric.unit, length)
        except LayoutError:
            return None
        own = labels_text(zip(metric.labels, series[1:], strict=True))
        # What is the same in all of them is made once: a table that is new has a hundred such lines.
        before, _, after = named(f"{metric.name}_bucket", self._common, own, "le=?").replace("%", "%%").rpartition("?")
        ends = [*(bound.le for bound in bounds), "+Inf"]
        count, total = (named(f"{metric.name}_{what}", self._common, own) for what in ("count", "sum"))
        buckets = "".join(f'{before}"{end}"{after}%d\n' for end in ends)
        return _Shape(buckets, count, total, tuple(bound.bucket for bound in bounds))
