"""Which of Cassandra's own bucket edges are exposed: a subset of them keeps cumulative counts exact."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite

from collector.histogram import edges_of

# From 50 microseconds to a minute; close where most requests are, and at the time-outs that nodes have.
DEFAULT_S = (
    *(50e-6, 100e-6, 200e-6, 350e-6, 500e-6, 750e-6),
    *(1e-3, 2e-3, 3.5e-3, 5e-3, 10e-3, 20e-3, 50e-3),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0),
)
# SSTables that a read touched are a few; tombstones that it met may be a hundred thousand.
COUNTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000)


class EdgesError(ValueError):
    """Edges that cannot be had; the message says which and what would do, in one line."""


@dataclass(frozen=True)
class Edges:
    """The edges that are wanted, in seconds for timers; each is taken to the nearest one that Cassandra has.

    Raises EdgesError when one of them is no positive number of seconds, or there is none.
    """

    seconds: tuple[float, ...] = DEFAULT_S

    def __post_init__(self) -> None:
        wrong = [each for each in self.seconds if not (isfinite(each) and each > 0)]
        if wrong or not self.seconds:
            what = f"{wrong[0]:g} s is no edge of a histogram" if wrong else "no edges for histograms"
            raise EdgesError(f"{what}: give positive numbers of seconds, such as 0.001,0.01,0.1,1")

    def places(self, unit: str, length: int) -> tuple[int, ...]:
        """Return the places of the chosen edges among those of a histogram with `length` counts, ascending.

        The last one, which is infinite, is not among them. Raises LayoutError as `edges_of`.
        """
        return _places(unit, length, self.seconds if unit == "seconds" else COUNTS)


@lru_cache(maxsize=32)
def _places(unit: str, length: int, wanted: Sequence[float]) -> tuple[int, ...]:
    finite = edges_of(unit, length)[:-1]
    return tuple(sorted({_nearest(finite, each) for each in wanted}))


def _nearest(edges: Sequence[float], wanted: float) -> int:
    """Return the place of the edge that is nearest, the lower of two."""
    above = min(bisect_left(edges, wanted), len(edges) - 1)
    return min((max(above - 1, 0), above), key=lambda place: abs(edges[place] - wanted))
