"""Upper bounds of histograms on `/metrics`, with the same `le` labels for all versions of Cassandra.

Counts are exact because the bounds are a subset of Cassandra's bucket bounds. Cassandra 4.1 changed the timer bounds.
If each layout had its own labels, then in a cluster with both layouts, each `sum by (le)` would cover only some of the
nodes, and the sums would no longer be in ascending order. Every bound therefore carries the label of 4.1, and a node
with the older layout counts up to its own closest bound, which is at most 2.7% away for the default bounds.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

from collector.model.histogram import upper_bounds_of

# From 50 microseconds to a minute: dense where most requests fall, with bounds at Cassandra's default timeouts.
DEFAULT_S = (
    *(50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 750e-6),
    *(1e-3, 2e-3, 3.5e-3, 5e-3, 10e-3, 20e-3, 50e-3),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0),
)
# Upper bounds of counts: a read touches a few SSTables but may scan a hundred thousand tombstones.
# The bounds are dense near the thresholds of 500 and 1000 tombstones.
COUNTS = (
    *(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 450, 500, 700, 1000, 1500),
    *(2000, 5000, 10_000, 100_000),
)


class UpperBoundsError(ValueError):
    """An upper bound is invalid, or none is given; the message is one line."""


# Number of buckets of a timer in Cassandra 4.1 and later. The `le` labels are the bounds of that layout, whatever the
# node's version.
LABELLED_LENGTH = 128


class Bound(NamedTuple):
    """The label of an upper bound, and the index of the last bucket counted under it."""

    le: str
    bucket: int


@dataclass(frozen=True)
class UpperBounds:
    """The selected upper bounds for timers, in seconds; each is replaced by the nearest bound of Cassandra 4.1.

    Raises UpperBoundsError if one is not a positive number of seconds, or if there are none.
    """

    seconds: tuple[float, ...] = DEFAULT_S

    def __post_init__(self) -> None:
        invalid = [bound_s for bound_s in self.seconds if not (isfinite(bound_s) and bound_s > 0)]
        if invalid or not self.seconds:
            cause = f"invalid upper bound {invalid[0]:g} s" if invalid else "no upper bounds"
            raise UpperBoundsError(
                f"histograms: {cause} (hint: use positive values in seconds, such as 0.001,0.01,0.1,1)"
            )

    def bounds(self, unit: str, length: int) -> tuple[Bound, ...]:
        """Return the finite upper bounds of a histogram with `length` counts, in ascending order.

        All timer layouts get the same labels. Raises LayoutError for an unknown layout.
        """
        return _bounds(unit, length, self.seconds if unit == "seconds" else COUNTS)


@lru_cache(maxsize=32)
def _bounds(unit: str, length: int, selected: Sequence[float]) -> tuple[Bound, ...]:
    exact = upper_bounds_of(unit, length)[:-1]
    labelled = upper_bounds_of(unit, LABELLED_LENGTH)[:-1] if unit == "seconds" else exact
    # First choose the nearest bound in Cassandra 4.1's layout, then the histogram's own bound nearest to that one. The
    # histogram's bound nearest to the selected value could be a different one.
    chosen = sorted({_nearest(labelled, bound) for bound in selected})
    return tuple(Bound(repr(labelled[index]), _nearest(exact, labelled[index])) for index in chosen)


def _nearest(upper_bounds: Sequence[float], value: float) -> int:
    """Return the index of the nearest bound, or of the lower one if two are equally near."""
    above = min(bisect_left(upper_bounds, value), len(upper_bounds) - 1)
    return min((max(above - 1, 0), above), key=lambda index: abs(upper_bounds[index] - value))
