"""The upper bounds of the histograms that Prometheus scrapes, under the same `le` labels for all versions of Cassandra.

Counts are exposed at a subset of Cassandra's own bucket bounds, so they are exact. The bounds of timers differ between
the layout of 3.11 and 4.0 and that of 4.1 and later. If each layout had labels of its own, `sum by (le)` over nodes of
both would add counts of different requests and no longer ascend. So every bound carries the label of 4.1, and a node
with the older layout counts up to its own bound closest to that one: 2.7 % away at most for the default bounds.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from collector.model.histogram import upper_bounds_of

# From 50 microseconds to a minute; close where most requests are, and at the time-outs that nodes have.
DEFAULT_S = (
    *(50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 750e-6),
    *(1e-3, 2e-3, 3.5e-3, 5e-3, 10e-3, 20e-3, 50e-3),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0),
)
# SSTables that a read touched are a few; tombstones that it met may be a hundred thousand.
# Close where the thresholds are, at 500 and 1000 tombstones: 300 must not look like 500.
COUNTS = (
    *(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 450, 500, 700, 1000, 1500),
    *(2000, 5000, 10_000, 100_000),
)


class UpperBoundsError(ValueError):
    """UpperBounds that cannot be had; the message says which and what would do, in one line."""


# How many counts a timer of 4.1 and later has; its bounds are the labels.
LABELLED_LENGTH = 128


class Bound(NamedTuple):
    """The label of an upper bound, and the index of the last bucket counted under it."""

    le: str
    bucket: int


@dataclass(frozen=True)
class UpperBounds:
    """The wanted upper bounds, in seconds, for timers; each becomes the nearest one of Cassandra 4.1.

    Raises UpperBoundsError when one of them is no positive number of seconds, or there is none.
    """

    seconds: tuple[float, ...] = DEFAULT_S

    def __post_init__(self) -> None:
        wrong = [each for each in self.seconds if not (isfinite(each) and each > 0)]
        if wrong or not self.seconds:
            what = f"{wrong[0]:g} s is no edge of a histogram" if wrong else "no edges for histograms"
            raise UpperBoundsError(f"{what}: give positive numbers of seconds, such as 0.001,0.01,0.1,1")

    def bounds(self, unit: str, length: int) -> tuple[Bound, ...]:
        """Return the upper bounds of a histogram with `length` counts, ascending, without the infinite one.

        All lengths of a timer have the same labels. Raises LayoutError as `upper_bounds_of`.
        """
        return _bounds(unit, length, self.seconds if unit == "seconds" else COUNTS)


@lru_cache(maxsize=32)
def _bounds(unit: str, length: int, wanted: Sequence[float]) -> tuple[Bound, ...]:
    own = upper_bounds_of(unit, length)[:-1]
    labelled = upper_bounds_of(unit, LABELLED_LENGTH)[:-1] if unit == "seconds" else own
    # The nearest bound of 4.1 first, then the own one nearest to that: the own one nearest to what is wanted may be
    # another bucket's.
    chosen = sorted({_nearest(labelled, bound) for bound in wanted})
    return tuple(Bound(repr(labelled[index]), _nearest(own, labelled[index])) for index in chosen)


def _nearest(upper_bounds: Sequence[float], wanted: float) -> int:
    """Return the index of the nearest edge, the lower of two."""
    above = min(bisect_left(upper_bounds, wanted), len(upper_bounds) - 1)
    return min((max(above - 1, 0), above), key=lambda index: abs(upper_bounds[index] - wanted))
