"""Latencies as a client measured them: counts by value, or the percentiles that a load generator states."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil

NS_PER_S = 1_000_000_000
SIGNIFICANT_BITS = 11
"""Values keep this many leading bits, as in an HdrHistogram with three significant digits: an error below 0.1%."""
# The quotient of a percentage and 100 is not always exact, so a rank may be slightly above a whole number.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Latency:
    """The latencies of some operations.

    counts    the number of operations by latency in nanoseconds; a key is the highest value that the load generator
              does not distinguish from the true one.
    stated_s  percentiles that the load generator states, in seconds by percentage; empty if there are counts.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    stated_s: Mapping[float, float] = field(default_factory=dict)

    def percentile_s(self, percentage: float) -> float | None:
        """Return a percentile in seconds; None if it is unknown, because percentiles are never interpolated."""
        return self.percentiles_s((percentage,))[0]

    def percentiles_s(self, percentages: Iterable[float]) -> list[float | None]:
        """Return several percentiles, as `percentile_s` does."""
        if not self.counts:
            return [self.stated_s.get(percentage) for percentage in percentages]
        values = sorted(self.counts)
        cumulative = list(accumulate(self.counts[value] for value in values))
        # As in HdrHistogram, the rank of a percentile is at least 1.
        ranks = [max(ceil(percentage / 100 * cumulative[-1] - _ROUNDING), 1) for percentage in percentages]
        return [values[bisect_left(cumulative, rank)] / NS_PER_S for rank in ranks]

    @property
    def longest_s(self) -> float:
        """The longest latency that is known, in seconds; 0 if none is."""
        return max(self.counts) / NS_PER_S if self.counts else max(self.stated_s.values(), default=0.0)

    @property
    def mean_s(self) -> float | None:
        """The mean in seconds; None if there are no counts."""
        total = sum(self.counts.values())
        return sum(value * count for value, count in self.counts.items()) / total / NS_PER_S if total else None


def rounded_up(value_ns: int) -> int:
    """Return the highest value with the same SIGNIFICANT_BITS leading bits."""
    shift = max(value_ns.bit_length() - SIGNIFICANT_BITS, 0)
    return value_ns | ((1 << shift) - 1)
