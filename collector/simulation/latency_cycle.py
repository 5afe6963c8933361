"""Histograms of a given number of values: the values repeat in a fixed cycle.

The number of values in a bucket is the number of complete cycles times the bucket's part of a cycle, plus its part of
the last, incomplete cycle. Counts therefore never decrease as values are added, and add up to the number of values.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log
from operator import add
from random import Random

from collector.model.histogram import upper_bounds_of

CYCLE = 1024
TIMER_BUCKETS, COUNT_BUCKETS = 128, 165
US_PER_S = 1_000_000


@dataclass(frozen=True)
class Cycle:
    """The cycle of values of one histogram.

    first      the index of the first bucket that is ever filled.
    length     the number of buckets of the whole histogram.
    counts     for each number of values, from 0 to CYCLE, the counts of the buckets from `first` on.
    totals_us  for each number of values, their sum; microseconds for times, else the unit of the values.
    """

    first: int
    length: int
    counts: tuple[tuple[int, ...], ...]
    totals_us: tuple[int, ...]

    def total_us(self, number: int) -> int:
        """Return the sum of the first `number` values."""
        cycles, rest = divmod(number, CYCLE)
        return cycles * self.totals_us[-1] + self.totals_us[rest]

    def buckets(self, number: int) -> tuple[int, ...]:
        """Return the bucket counts of the first `number` values."""
        cycles, rest = divmod(number, CYCLE)
        filled = [cycles * whole + part for whole, part in zip(self.counts[-1], self.counts[rest], strict=True)]
        return (*(0,) * self.first, *filled, *(0,) * (self.length - self.first - len(filled)))


def times(seed: str, median_s: float, sigma: float) -> Cycle:
    """Return a cycle of log-normally distributed times, in the bucket layout of Cassandra 4.1 and later."""
    return _cycle(seed, "seconds", TIMER_BUCKETS, median_s, sigma, US_PER_S)


def numbers(seed: str, median: float, sigma: float, length: int = COUNT_BUCKETS) -> Cycle:
    """Return a cycle of log-normally distributed numbers, such as SSTables per read."""
    return _cycle(seed, "1", length, median, sigma, 1)


def plus(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the bucket counts of the values of two histograms with the same layout."""
    return tuple(map(add, first, second))


@lru_cache(maxsize=64)
def _cycle(seed: str, unit: str, length: int, median: float, sigma: float, scale: int) -> Cycle:
    generator = Random(seed)  # noqa: S311 - not for secrets
    upper_bounds = upper_bounds_of(unit, length)
    values = [generator.lognormvariate(log(median), sigma) for _ in range(CYCLE)]
    indices = [min(bisect_left(upper_bounds, value), length - 2) for value in values]
    first = min(indices)
    counts = [[0] * (max(indices) - first + 1)]
    for index in indices:
        counts.append(counts[-1].copy())
        counts[-1][index - first] += 1
    totals = accumulate((round(value * scale) for value in values), initial=0)
    return Cycle(first, length, tuple(map(tuple, counts)), tuple(totals))
