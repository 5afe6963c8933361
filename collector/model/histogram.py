"""Histograms: what Cassandra's bucket counts mean, their differences, percentiles and sums.

Cassandra's offsets are 1 and then max(previous + 1, round(previous * 1.2)); bucket i counts the values v with
offset[i-1] < v <= offset[i], and one more bucket counts what lies above the last offset (EstimatedHistogram and
DecayingEstimatedHistogramReservoir in Cassandra's sources). Timers of 3.11 and 4.0 have 165 counts in nanoseconds,
of 4.1 and later 128 counts in microseconds. Histograms of counts have 165, or 166 when zero has its own bucket.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import ceil, inf, isinf
from operator import mul, sub

GROWTH = 1.2
ROUNDING = 1e-12
TIMER_UNITS_S = {165: 1e-9, 128: 1e-6}
COUNTS_WITH_ZERO = 166


class LayoutError(ValueError):
    """Bucket counts of a length whose meaning is not known."""


@dataclass(frozen=True)
class Buckets:
    """Counts of values by range: counts[i] of them in (edges[i-1], edges[i]], the first from `low` on.

    `upper_bounds` ascend, are in the metric's unit, and end with infinity; as many edges as counts.
    """

    upper_bounds: tuple[float, ...]
    counts: tuple[float, ...]
    low: float = 0.0

    @cached_property
    def cumulative(self) -> tuple[float, ...]:
        """How many values there are in each bucket and all below it."""
        return tuple(accumulate(self.counts))

    @property
    def total(self) -> float:
        """How many values there are."""
        return self.cumulative[-1] if self.counts else 0

    @cached_property
    def is_integer(self) -> bool:
        """Whether the values are counts, and so whole numbers: the first edge of a timer is a microsecond at most."""
        return bool(self.upper_bounds) and self.upper_bounds[0] in (0.0, 1.0)


@lru_cache(maxsize=16)
def upper_bounds_of(unit: str, length: int) -> tuple[float, ...]:
    """Return the upper edges, in `unit`, of Cassandra's histogram with `length` counts.

    Raises LayoutError when a timer (unit "seconds") has a length that no known Cassandra writes: its unit
    would be a guess.
    """
    if unit == "seconds":
        if length not in TIMER_UNITS_S:
            raise LayoutError(
                f"{length} buckets: neither the nanoseconds of 4.0 (165) nor the microseconds of 4.1 (128)"
            )
        # Dividing by a whole number gives the nearest double; multiplying by 1e-6 does not.
        per_second = round(1 / TIMER_UNITS_S[length])
        return (*(offset / per_second for offset in offsets(length - 1)), inf)
    if length < 2:
        raise LayoutError(f"{length} buckets")
    if length == COUNTS_WITH_ZERO:
        return (0.0, *map(float, offsets(length - 2)), inf)
    return (*map(float, offsets(length - 1)), inf)


@lru_cache(maxsize=16)
def offsets(number: int) -> tuple[int, ...]:
    """Return the first `number` of Cassandra's bucket offsets."""
    grown = accumulate(range(number - 1), lambda last, _: max(last + 1, _round(last * GROWTH)), initial=1)
    return tuple(grown)


def _round(value: float) -> int:
    # Java's Math.round: half up.
    return int(value + 0.5)


def difference(unit: str, before: Sequence[int], after: Sequence[int]) -> Buckets | None:
    """Return what came between two readings of the same cumulative counts; None when they went back.

    Raises LayoutError as `upper_bounds_of`.
    """
    if len(before) != len(after):
        return None
    if before == after:
        return _nothing(unit, len(after))
    upper_bounds = upper_bounds_of(unit, len(after))
    counts = tuple(map(sub, after, before))
    return None if min(counts) < 0 else Buckets(upper_bounds, counts)


@lru_cache(maxsize=16)
def _nothing(unit: str, length: int) -> Buckets:
    """Return a histogram without values: most are, and one will do for all."""
    return Buckets(upper_bounds_of(unit, length), (0,) * length)


def quantile(buckets: Buckets, q: float) -> float | None:
    """Return the value below which the share `q` (0 to 1) lies; None when there are no values.

    Values are taken as evenly spread inside their bucket: the answer never leaves the edges of the bucket that
    holds the true one. Of counts it is the next whole number. In the last bucket, which has no upper edge, it is the
    lower one ("at least").
    """
    return quantiles(buckets, (q,))[0] if buckets.total else None


def quantiles(buckets: Buckets, shares: Sequence[float]) -> list[float]:
    """Return several quantiles of values that there are, as `quantile` does each."""
    upper_bounds, counts, cumulative = buckets.upper_bounds, buckets.counts, buckets.cumulative
    found = []
    for share in shares:
        # Counts that a merge has spread are fractions: what they lose in adding up must not push a rank further.
        rank = share * cumulative[-1] * (1 - ROUNDING)
        # For a rank of 0 too it is a bucket that holds a value.
        index = bisect_left(cumulative, rank) if rank else bisect_right(cumulative, 0)
        low, high = (upper_bounds[index - 1] if index else buckets.low), upper_bounds[index]
        if high == inf:
            found.append(low)
            continue
        part = (rank - (cumulative[index - 1] if index else 0)) / counts[index]
        value = low + (high - low) * min(max(part, 0.0), 1.0)
        # The lower edge is outside the bucket.
        found.append(min(max(ceil(value), low + 1) if buckets.is_integer else value, high))
    return found


def highest(buckets: Buckets) -> float | None:
    """Return the upper edge of the highest bucket that holds a value (the last one: its lower edge)."""
    total = buckets.total
    if not total:
        return None
    low, high = _bounds(buckets, bisect_left(buckets.cumulative, total))
    return low if isinf(high) else high


def _bounds(buckets: Buckets, index: int) -> tuple[float, float]:
    return (buckets.upper_bounds[index - 1] if index else buckets.low), buckets.upper_bounds[index]


def merge(parts: Sequence[Buckets]) -> Buckets:
    """Return the histogram of all values of `parts`, such as the nodes of a cluster or the intervals of a run.

    Equal edges: the counts are added, exactly. Different ones (nanoseconds and microseconds): every bucket is
    spread evenly over the edges of all, so that no count leaves its own bucket. A percentile of the result then
    lies within one bucket, the wider of the two (a factor of 1.2), of the percentile of the values themselves.
    Raises ValueError when there is nothing to merge.
    """
    if not parts:
        raise ValueError("no histograms to merge")
    if len({(part.upper_bounds, part.low) for part in parts}) == 1:
        counts = tuple(map(sum, zip(*(part.counts for part in parts), strict=True)))
        return Buckets(parts[0].upper_bounds, counts, parts[0].low)
    low = min(part.low for part in parts)
    bounds = {bound for part in parts for bound in part.upper_bounds}
    upper_bounds = tuple(sorted(bounds | {part.low for part in parts if part.low > low}))
    spread = [_spread(part, upper_bounds, low) for part in parts]
    return Buckets(upper_bounds, tuple(map(sum, zip(*spread, strict=True))), low)


def _spread(part: Buckets, upper_bounds: tuple[float, ...], low: float) -> list[float]:
    """Return the counts of `part` on finer edges that include its own."""
    counts = [0.0] * len(upper_bounds)
    at = {edge: index for index, edge in enumerate(upper_bounds)}
    for index, count in enumerate(part.counts):
        if not count:
            continue
        start, end = _bounds(part, index)
        first = 0 if start <= low else at[start] + 1
        if isinf(end):
            # What lies beyond the last offset is only known to: as near to it as the edges allow.
            counts[first] += count
            continue
        for fine in range(first, at[end] + 1):
            lower = upper_bounds[fine - 1] if fine else low
            share = (upper_bounds[fine] - lower) / (end - start) if end > start else 1.0
            counts[fine] += count * share
    return counts


def mean_bounds(buckets: Buckets) -> tuple[float, float] | None:
    """Return the least and the greatest mean that values with these counts can have; None without values."""
    total = buckets.total
    if not total:
        return None
    counts, upper_bounds = buckets.counts, buckets.upper_bounds
    least = counts[0] * buckets.low + sum(map(mul, counts[1:], upper_bounds))
    if counts[-1]:
        return least / total, inf
    # The last edge is infinity, and 0 times that is no number.
    return least / total, sum(map(mul, counts[:-1], upper_bounds)) / total
