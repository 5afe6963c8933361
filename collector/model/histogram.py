"""Histograms: the layouts of Cassandra's bucket counts, and their differences, percentiles and sums.

Cassandra's bucket offsets are 1, then max(previous + 1, round(previous * 1.2)). Bucket i counts the values v with
offset[i-1] < v <= offset[i]; one more bucket counts the values above the last offset (EstimatedHistogram and
DecayingEstimatedHistogramReservoir in Cassandra's source). Timers have 165 counts, with offsets in nanoseconds, in 3.11
and 4.0. Since 4.1, they have 128 counts, with offsets in microseconds. Histograms of integers have 165 counts, or 166
with a bucket for zero.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import ceil, inf, isinf
from operator import mul, sub

from collector.printable import count_text

GROWTH = 1.2
ROUNDING = 1e-12
TIMER_UNITS_S = {165: 1e-9, 128: 1e-6}
COUNTS_WITH_ZERO = 166


class LayoutError(ValueError):
    """The number of buckets is not one that Cassandra uses."""


@dataclass(frozen=True)
class Buckets:
    """Counts of values by range: counts[i] values lie in (upper_bounds[i-1], upper_bounds[i]].

    Upper bounds are in the metric's unit, in ascending order, and end with infinity; there is one for each count.
    `low` is the lower bound of the first bucket.
    """

    upper_bounds: tuple[float, ...]
    counts: tuple[float, ...]
    low: float = 0.0

    @cached_property
    def cumulative(self) -> tuple[float, ...]:
        """For each bucket, the number of values in it and in all buckets below it."""
        return tuple(accumulate(self.counts))

    @property
    def total(self) -> float:
        return self.cumulative[-1] if self.counts else 0

    @cached_property
    def is_integer(self) -> bool:
        """Whether the values are whole numbers.

        The first upper bound is 0 or 1 for whole numbers, and at most a microsecond for times.
        """
        return bool(self.upper_bounds) and self.upper_bounds[0] in (0.0, 1.0)


@lru_cache(maxsize=16)
def upper_bounds_of(unit: str, length: int) -> tuple[float, ...]:
    """Return the upper bounds, in `unit`, of a Cassandra histogram with `length` counts.

    Raises LayoutError if there are fewer than two counts and, for timers (unit "seconds"), if no supported version of
    Cassandra uses the length, because the unit of the offsets would be a guess.
    """
    if unit == "seconds":
        if length not in TIMER_UNITS_S:
            raise LayoutError(
                f"{count_text(length, 'bucket')}: Cassandra's timers have 165 (up to 4.0) or 128 (since 4.1)"
            )
        # Dividing by an integer yields the nearest double; multiplying by 1e-6 does not.
        per_second = round(1 / TIMER_UNITS_S[length])
        return (*(offset / per_second for offset in offsets(length - 1)), inf)
    if length < 2:
        raise LayoutError(count_text(length, "bucket"))
    if length == COUNTS_WITH_ZERO:
        return (0.0, *map(float, offsets(length - 2)), inf)
    return (*map(float, offsets(length - 1)), inf)


@lru_cache(maxsize=16)
def offsets(number: int) -> tuple[int, ...]:
    """Return the first `number` of Cassandra's bucket offsets."""
    # Java's Math.round rounds half up.
    return tuple(accumulate(range(number - 1), lambda last, _: max(last + 1, int(last * GROWTH + 0.5)), initial=1))


def difference(unit: str, before: Sequence[int], after: Sequence[int]) -> Buckets | None:
    """Return the increases between two readings of the counts, or None if a count decreased or the layout changed.

    Raises LayoutError as `upper_bounds_of` does.
    """
    if len(before) != len(after):
        return None
    if before == after:
        return _empty(unit, len(after))
    upper_bounds = upper_bounds_of(unit, len(after))
    counts = tuple(map(sub, after, before))
    return None if min(counts) < 0 else Buckets(upper_bounds, counts)


@lru_cache(maxsize=16)
def _empty(unit: str, length: int) -> Buckets:
    """Return a histogram without values. It is cached, because most histograms have no values in most intervals."""
    return Buckets(upper_bounds_of(unit, length), (0,) * length)


MIN_VALUES_ABOVE = 10
"""A percentile with fewer values above it depends on chance, and on how ranks are counted."""


def is_supported(percentage: float, number: float) -> bool:
    """Return whether at least MIN_VALUES_ABOVE of `number` values are above a percentile."""
    # A sum of rounded counts may be slightly too low.
    return number * (100 - percentage) / 100 >= MIN_VALUES_ABOVE - 1e-6


def quantile(buckets: Buckets, q: float) -> float | None:
    """Return the `q`-quantile of the values (0 <= `q` <= 1), or None if there are no values.

    Values are assumed to be evenly spread within their bucket, so the result lies in the bucket that contains the true
    quantile. For histograms of integers, the result is rounded up to a whole number. In the last bucket, which has no
    upper bound, the result is its lower bound ("at least").
    """
    return quantiles(buckets, (q,))[0] if buckets.total else None


def quantiles(buckets: Buckets, shares: Sequence[float]) -> list[float]:
    """Return several quantiles of a non-empty histogram, computed as in `quantile`."""
    upper_bounds, counts, cumulative = buckets.upper_bounds, buckets.counts, buckets.cumulative
    values = []
    for share in shares:
        # After a merge, counts may be fractions; rounding errors in sums must not push a rank into the next bucket.
        rank = share * cumulative[-1] * (1 - ROUNDING)
        # Even a rank of 0 must fall into a bucket that contains a value.
        index = bisect_left(cumulative, rank) if rank else bisect_right(cumulative, 0)
        low, high = (upper_bounds[index - 1] if index else buckets.low), upper_bounds[index]
        if high == inf:
            values.append(low)
            continue
        fraction = (rank - (cumulative[index - 1] if index else 0)) / counts[index]
        value = low + (high - low) * min(max(fraction, 0.0), 1.0)
        # A bucket does not contain its lower bound, so a whole number in it is at least one higher.
        values.append(min(max(ceil(value), low + 1) if buckets.is_integer else value, high))
    return values


def highest(buckets: Buckets) -> float | None:
    """Return the upper bound of the highest bucket that contains a value, or None if there are no values.

    If that is the last bucket, which has no upper bound, the result is its lower bound.
    """
    total = buckets.total
    if not total:
        return None
    low, high = _bounds(buckets, bisect_left(buckets.cumulative, total))
    return low if isinf(high) else high


def _bounds(buckets: Buckets, index: int) -> tuple[float, float]:
    return (buckets.upper_bounds[index - 1] if index else buckets.low), buckets.upper_bounds[index]


def merge(parts: Sequence[Buckets]) -> Buckets:
    """Return the histogram of all values in `parts`, which may come from a cluster's nodes or a run's intervals.

    If all layouts are equal, the counts are added exactly. Otherwise (one layout in nanoseconds and one in
    microseconds), the result has the bounds of all layouts, and each bucket's count is spread evenly over the finer
    buckets within it, so no value leaves its bucket. A percentile of the result then differs from the true one by at
    most one bucket of the coarser layout (a factor of 1.2). Raises ValueError if `parts` is empty.
    """
    if not parts:
        raise ValueError("no histograms to merge")
    first = parts[0]
    if all(_have_equal_layouts(part, first) for part in parts):
        counts = tuple(map(sum, zip(*(part.counts for part in parts), strict=True)))
        return Buckets(first.upper_bounds, counts, first.low)
    low = min(part.low for part in parts)
    bounds = {bound for part in parts for bound in part.upper_bounds}
    upper_bounds = tuple(sorted(bounds | {part.low for part in parts if part.low > low}))
    spread = [_spread(part, upper_bounds, low) for part in parts]
    return Buckets(upper_bounds, tuple(map(sum, zip(*spread, strict=True))), low)


def _have_equal_layouts(one: Buckets, other: Buckets) -> bool:
    # Nodes with the same layout usually share the tuple of bounds (see `upper_bounds_of`).
    bounds_are_equal = one.upper_bounds is other.upper_bounds or one.upper_bounds == other.upper_bounds
    return bounds_are_equal and one.low == other.low


def _spread(part: Buckets, upper_bounds: tuple[float, ...], low: float) -> list[float]:
    """Return the counts of `part`, spread over finer buckets whose bounds include those of `part`."""
    counts = [0.0] * len(upper_bounds)
    index_of = {bound: index for index, bound in enumerate(upper_bounds)}
    for index, count in enumerate(part.counts):
        if not count:
            continue
        start, end = _bounds(part, index)
        first = 0 if start <= low else index_of[start] + 1
        if isinf(end):
            # These values have no upper bound: count them in the lowest of the finer buckets that may contain them.
            counts[first] += count
            continue
        for fine in range(first, index_of[end] + 1):
            lower = upper_bounds[fine - 1] if fine else low
            share = (upper_bounds[fine] - lower) / (end - start) if end > start else 1.0
            counts[fine] += count * share
    return counts


def mean_bounds(buckets: Buckets) -> tuple[float, float] | None:
    """Return the lowest and the highest mean that the values can have, or None if there are no values."""
    total = buckets.total
    if not total:
        return None
    counts, upper_bounds = buckets.counts, buckets.upper_bounds
    lowest = counts[0] * buckets.low + sum(map(mul, counts[1:], upper_bounds))
    if counts[-1]:
        return lowest / total, inf
    # Leave out the last bucket: it is empty, but its upper bound is infinity, and 0 * inf is NaN.
    return lowest / total, sum(map(mul, counts[:-1], upper_bounds)) / total
