"""The grid of intervals shared by all nodes in a run, and the samples of a node and of the cluster in an interval."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import ceil, floor, inf

from collector.model.snapshot import Sample

ANY_TIME = (-inf, inf)


@dataclass(frozen=True)
class Grid:
    """Intervals that end at multiples of `interval_s`; only ticks between `begin_s` and `end_s` count."""

    interval_s: float
    begin_s: float = -inf
    end_s: float = inf

    def index_of(self, time_s: float, tick_s: float, _covered_s: float = 0.0) -> int | None:
        """Return the index of the interval to which a tick belongs; None if the tick is outside the time range.

        A tick belongs to the interval that contains the time `tick_s` / 2 before it (`tick_s` is the recording's
        interval), because the tick itself may already lie in the next interval if clocks differ slightly. If `tick_s`
        is longer than `interval_s`, `interval_s` / 2 is used instead. Only SpanGrid uses `_covered_s`.
        """
        if not self.begin_s <= time_s <= self.end_s:
            return None
        return floor((time_s - min(tick_s, self.interval_s) / 2) / self.interval_s)

    def begin_of(self, index: int) -> float:
        """Return an interval's beginning, in seconds since the epoch."""
        return index * self.interval_s

    def end_of(self, index: int) -> float:
        """Return an interval's end, in seconds since the epoch."""
        return (index + 1) * self.interval_s

    def indices_between(self, begin_s: float, end_s: float) -> range:
        """Return the indices of all intervals to which ticks in a time range can belong."""
        begin_s, end_s = max(begin_s, self.begin_s), min(end_s, self.end_s)
        return range(floor(begin_s / self.interval_s) - 1, floor(end_s / self.interval_s) + 1)


@dataclass(frozen=True)
class SpanGrid(Grid):
    """Intervals within spans, instead of at multiples of `interval_s`; the spans are in order and do not overlap.

    A tick counts only if a span contains all of the time that it covers. A span's intervals follow one another from its
    beginning; the last one may be shorter. If `interval_s` is infinite, each span is one interval.
    """

    spans: tuple[tuple[float, float], ...] = ()

    def index_of(self, time_s: float, tick_s: float, covered_s: float = 0.0) -> int | None:
        """Return the index of the interval to which a tick belongs; None if no span contains its covered time."""
        span = bisect_right(self.spans, (time_s - max(tick_s, covered_s), inf)) - 1
        if span < 0 or time_s > self.spans[span][1]:
            return None
        middle_s = time_s - min(tick_s, self.interval_s) / 2
        index = self._first_indices[span] + floor((middle_s - self.spans[span][0]) / self.interval_s)
        return min(index, self._first_indices[span + 1] - 1)

    def begin_of(self, index: int) -> float:
        begin_s, _ = self.spans[self.span_of(index)]
        number = self.number_in_span(index)
        return begin_s + number * self.interval_s if number else begin_s

    def end_of(self, index: int) -> float:
        span = self.span_of(index)
        begin_s, end_s = self.spans[span]
        return min(begin_s + (index + 1 - self._first_indices[span]) * self.interval_s, end_s)

    def span_of(self, index: int) -> int:
        return bisect_right(self._first_indices, index) - 1

    def number_in_span(self, index: int) -> int:
        """Return an interval's number in its span, counted from 0."""
        return index - self._first_indices[self.span_of(index)]

    def indices_between(self, begin_s: float, end_s: float) -> range:
        touched = [
            number for number, (begins_s, ends_s) in enumerate(self.spans) if begins_s <= end_s and ends_s >= begin_s
        ]
        if not touched:
            return range(0)
        return range(self._first_indices[touched[0]], self._first_indices[touched[-1] + 1])

    @cached_property
    def _first_indices(self) -> tuple[int, ...]:
        """The index of each span's first interval, followed by the total number of intervals."""
        counts = (max(1, ceil((end_s - begin_s) / self.interval_s)) for begin_s, end_s in self.spans)
        return tuple(accumulate(counts, initial=0))


@dataclass
class NodeInterval:
    """One node's sample for one interval on the grid, and the number of ticks that it covers.

    unknown_s  how long the node's counters are unknown in the interval (see `coverage.unknown_times`).
    """

    sample: Sample
    ticks: int
    unknown_s: float = 0.0


@dataclass(frozen=True)
class ClusterSample:
    """The cluster's sample for one interval.

    answered  the number of nodes on which Cassandra answered.
    down      the number of nodes on which it did not, and whose operations no later reading includes.
    down_s    the longest time for which one of the latter was down.
    """

    sample: Sample
    answered: int
    down: int = 0
    down_s: float = 0.0
