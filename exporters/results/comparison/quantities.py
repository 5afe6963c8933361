"""The quantities that are compared: ratios of sums over intervals, and percentiles of merged counts.

A quantity is a function of sums of amounts over intervals. Intervals and runs are combined by adding their amounts;
values of intervals are never averaged.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exporters.results.comparison.resampling import Array

# As in `Latency.percentiles_s`: a rank may be slightly above a whole number.
_ROUNDING = 1e-9
WINDOW = 10.0
"""The share of requests above a resampled percentile's value is assumed to change by at most this factor."""


class Quantity(Protocol):
    """A function of sums of amounts."""

    def value(self, sums: Array) -> Array:
        """Return the values for sums of the shape (..., amounts); NaN if a value is undefined."""

    def influence(self, amounts: Array, sums: Array) -> Array:
        """Return, up to a factor, how much each row of `amounts` (intervals, amounts) shifts the value for `sums`."""

    def resolution(self, sums: Array) -> float:
        """Return the smallest observable difference from the value, as a fraction of the value."""

    def narrowed(self, sums: Array) -> "tuple[Quantity, npt.NDArray[np.intp]]":
        """Return an equivalent quantity with fewer amounts, for sums near `sums`; this makes resampling faster.

        Each of its amounts is the sum of adjacent columns. Also returns the index of the first column of each amount.
        """


@dataclass(frozen=True)
class Ratio:
    """The quotient of two sums, such as operations and seconds; `amounts` has the columns numerator and denominator."""

    def value(self, sums: Array) -> Array:
        denominator = sums[..., 1]
        ratios: Array = np.divide(
            sums[..., 0], denominator, out=np.full(denominator.shape, np.nan), where=denominator > 0
        )
        return ratios

    def influence(self, amounts: Array, sums: Array) -> Array:
        return amounts[:, 0] - float(self.value(sums)) * amounts[:, 1]

    def resolution(self, sums: Array) -> float:
        return 0.0

    def narrowed(self, sums: Array) -> tuple[Quantity, npt.NDArray[np.intp]]:
        return self, np.arange(len(sums))


@dataclass(frozen=True)
class Percentile:
    """A percentile of merged counts; `amounts` has a column for each of the values, which are in ascending order."""

    percentage: float
    values: tuple[float, ...]

    def value(self, sums: Array) -> Array:
        indices = self._indices(sums)
        values = np.append(self.values, np.nan)
        return np.asarray(values[np.where(sums.sum(axis=-1) > 0, indices, len(self.values))])

    def influence(self, amounts: Array, sums: Array) -> Array:
        index = int(self._indices(sums))
        excess: Array = amounts[:, : index + 1].sum(axis=1) - self.percentage / 100 * amounts.sum(axis=1)
        return excess

    def resolution(self, sums: Array) -> float:
        """Return the larger of the relative distances to the next lower and the next higher value that occurred."""
        index = int(self._indices(sums))
        occurred = np.flatnonzero(sums)
        position = int(np.searchsorted(occurred, index))
        nearby = [self.values[occurred[i]] for i in (position - 1, position + 1) if 0 <= i < len(occurred)]
        value = self.values[index]
        return max((abs(other - value) / value for other in nearby), default=0.0) if value else 0.0

    def narrowed(self, sums: Array) -> tuple[Quantity, npt.NDArray[np.intp]]:
        """Keep the values whose share of slower requests is within a factor of WINDOW, and merge the others."""
        occurred = np.flatnonzero(sums)
        if not len(occurred):
            return self, np.arange(len(sums))
        slower = 1 - sums[occurred].cumsum() / sums.sum()
        tail = 1 - self.percentage / 100
        kept = occurred[(slower >= tail / WINDOW) & (slower <= tail * WINDOW)]
        last = int(occurred[-1])
        # A merged column has the highest of its values.
        ends = np.unique(np.append(kept, last))
        starts = np.append(0, ends[:-1] + 1)
        return Percentile(self.percentage, tuple(self.values[end] for end in ends)), starts

    def _indices(self, sums: Array) -> Array:
        """Return the indices of the values at the percentile's rank, which is at least 1."""
        cumulative = sums.cumsum(axis=-1)
        ranks = np.maximum(np.ceil(self.percentage / 100 * cumulative[..., -1] - _ROUNDING), 1)
        return np.asarray((cumulative < ranks[..., np.newaxis]).sum(axis=-1).clip(max=len(self.values) - 1))
