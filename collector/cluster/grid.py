"""The grid of intervals shared by all nodes in a run."""

from dataclasses import dataclass
from math import floor

from collector.model.sample import Sample


@dataclass(frozen=True)
class Grid:
    """Intervals that end at multiples of `interval_s`; only ticks between `begin_s` and `end_s` count."""

    interval_s: float
    begin_s: float = float("-inf")
    end_s: float = float("inf")

    def index_of(self, time_s: float, covered_s: float) -> int | None:
        """Return the index of the interval to which a tick belongs; None if the tick is outside the time range.

        The interval is the one that contains the middle of the `covered_s` before the tick, because the tick itself
        may already lie in the next interval if clocks differ slightly.
        """
        if not self.begin_s <= time_s <= self.end_s:
            return None
        return floor((time_s - min(covered_s, self.interval_s) / 2) / self.interval_s)

    def end_of(self, index: int) -> float:
        """Return an interval's end, in seconds since the epoch."""
        return (index + 1) * self.interval_s


@dataclass
class NodeInterval:
    """One node's sample for one interval on the grid, and the number of ticks that it covers."""

    sample: Sample
    ticks: int
