"""The difference of a quantity between two groups of runs, with a confidence interval.

A quantity is a function of sums of amounts over intervals: a ratio of sums, or a percentile of merged counts. Intervals
and runs are combined by adding their amounts; values of intervals are never averaged.

The variance of a group's value has two estimates. Deleting one run at a time (jackknife) gives the variance between
runs, which includes the variance within runs. Resampling blocks of intervals gives the variance within runs, which is a
lower bound. The larger estimate is used. The interval is computed with Student's t distribution and the degrees of
freedom of Welch and Satterthwaite, because the bootstrap of a few runs gives intervals that are too narrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, expm1, lgamma, log, log1p, log10, sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt

# For all arguments that occur, the continued fraction converges in far fewer steps.
MAX_STEPS = 500
_TINY = 1e-300
_PRECISION = 1e-15
_HALVINGS = 80


def p_value(t: float, degrees: float) -> float:
    """Return the probability that the absolute value of a t variable is at least |t|."""
    if t == 0:
        return 1.0
    share = degrees / (degrees + t * t)
    return _incomplete_beta(degrees / 2, 0.5, share, t * t / (degrees + t * t))


def critical_value(level: float, degrees: float) -> float:
    """Return the t whose p-value is `level`, such as 0.05."""
    low, high = 0.0, 1.0
    while p_value(high, degrees) > level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle, degrees) > level else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 - x."""
    if x <= 0 or rest <= 0:
        return float(x > 0)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * (log(rest) if x > 0.5 else log1p(-x)))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), with Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MAX_STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


# As in `Latency.percentiles_s`: a rank may be slightly above a whole number.
_RANK_ROUNDING = 1e-9
WINDOW = 10.0
"""The share of requests above a resampled percentile's value is assumed to change by at most this factor."""
LEVEL = 0.05
RESAMPLES = 400
SEED = 1
MIN_INTERVALS = 100
"""If a run has fewer intervals, the variance is not estimated from blocks: the estimate would be far too low."""
_ROUNDING = 1e-12
Array = npt.NDArray[np.float64]
RunAmounts = Sequence[Array]
"""The amounts of a run's intervals: for each phase, an array of the shape (intervals, amounts)."""
SAFETY = 2.0
"""Blocks are this many times as long as the optimal length, because that usually underestimates the variance."""
MIN_BLOCKS = 5
"""A series has at least this many blocks; a block is at least as long as the cube root of the series' length."""
# Constants of Politis and White.
_SIGNIFICANCE = 2.0
_MIN_WINDOW = 5


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
        ranks = np.maximum(np.ceil(self.percentage / 100 * cumulative[..., -1] - _RANK_ROUNDING), 1)
        return np.asarray((cumulative < ranks[..., np.newaxis]).sum(axis=-1).clip(max=len(self.values) - 1))


@dataclass(frozen=True)
class Difference:
    """The difference of a quantity between two groups of runs, A and B.

    value_a, value_b  the quantity over all intervals of each group; None if undefined.
    relative          (B - A) / A; None if A is 0.
    low, high         the 95% confidence interval of `relative`; None if there is none.
    p                 the p-value of the hypothesis that the groups do not differ; None if there is no test.
    effect            the difference in standard deviations between runs (Hedges' g); None if undefined.
    reason            why there is no interval; otherwise "".
    """

    value_a: float | None
    value_b: float | None
    relative: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    effect: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Group:
    """The resampled values of a group of runs.

    deleted  the value without each run in turn; empty if there is one run.
    blocks   the values of block resamples; empty if there are too few intervals.
    factor   the correction of the variance of `blocks` for the finite number of blocks.
    degrees  the degrees of freedom of that variance: the number of blocks.
    """

    value: float
    runs: int
    deleted: Array
    blocks: Array
    factor: float
    degrees: float

    @property
    def is_positive(self) -> bool:
        return self.value > 0 and bool((self.deleted > 0).all() and (self.blocks > 0).all())

    def on_log_scale(self) -> "_Group":
        return _Group(log(self.value), self.runs, np.log(self.deleted), np.log(self.blocks), self.factor, self.degrees)

    @property
    def within(self) -> float:
        """The variance of the value due to variation within runs; 0 if it is unknown."""
        return float(self.blocks.var(ddof=1)) * self.factor if self.blocks.size else 0.0

    @property
    def between(self) -> float:
        """The variance of the value due to all variation between runs; 0 if there is one run."""
        return float(self.deleted.var()) * (self.runs - 1) if self.runs > 1 else 0.0


def difference(quantity: Quantity, a: Sequence[RunAmounts], b: Sequence[RunAmounts]) -> Difference:
    """Compare a quantity of two groups of runs."""
    sums_a, sums_b = (np.array([sum(part.sum(axis=0) for part in run) for run in side]) for side in (a, b))
    value_a, value_b = (_defined(quantity.value(sums.sum(axis=0))) for sums in (sums_a, sums_b))
    if value_a is None or value_b is None:
        return Difference(value_a, value_b, reason="no data")
    relative = value_b / value_a - 1 if value_a else None
    if value_a == value_b == 0:
        return Difference(value_a, value_b, reason="both zero")
    groups = [_group(quantity, side, sums) for side, sums in ((a, sums_a), (b, sums_b))]
    if not all(group.runs > 1 for group in groups) and not all(group.blocks.size for group in groups):
        return Difference(value_a, value_b, relative, reason="too few intervals")
    resolution = max(quantity.resolution(sums.sum(axis=0)) for sums in (sums_a, sums_b))
    return _tested(groups[0], groups[1], resolution, relative)


def _defined(value: Array) -> float | None:
    return None if np.isnan(value) else float(value)


def _group(quantity: Quantity, runs: Sequence[RunAmounts], sums: Array) -> _Group:
    """Return the values of a group and of its resamples; `sums` are the sums of each run."""
    total = sums.sum(axis=0)
    deleted = quantity.value(total - sums) if len(runs) > 1 else np.empty(0)
    parts = [part for run in runs for part in run]
    counts = [len(part) for part in parts]
    value = float(quantity.value(total))
    if min(sum(map(len, run)) for run in runs) < MIN_INTERVALS:
        return _Group(value, len(runs), deleted, np.empty(0), 1.0, 1.0)
    generator = np.random.default_rng(SEED)
    lengths = [_block_length(quantity.influence(part, part.sum(axis=0))) if len(part) else 1 for part in parts]
    narrow, starts = quantity.narrowed(total)
    resampled = sum(
        _resampled_sums(generator, np.add.reduceat(part, starts, axis=1), length, RESAMPLES)
        for part, length in zip(parts, lengths, strict=True)
        if len(part)
    )
    blocks = sum(count / length for count, length in zip(counts, lengths, strict=True))
    factor = sum(counts) / max(sum(counts) - sum(lengths), 1)
    return _Group(value, len(runs), deleted, narrow.value(np.asarray(resampled)), factor, blocks)


def _tested(a: _Group, b: _Group, resolution: float, relative: float | None) -> Difference:
    """Return the difference with its interval and test, on a logarithmic scale if all values are positive."""
    is_log = a.is_positive and b.is_positive
    value_a, value_b = a.value, b.value
    if is_log:
        a, b = a.on_log_scale(), b.on_log_scale()
    else:
        resolution *= max(abs(value_a), abs(value_b))
    shift = b.value - a.value
    variance, degrees = _variance(a, b)
    error = sqrt(variance + resolution**2 / 6)
    if error <= _ROUNDING * max(abs(a.value), abs(b.value)):
        return Difference(value_a, value_b, relative, reason="no variation")
    # The true values may lie anywhere within the resolution.
    margin = critical_value(LEVEL, degrees) * error + resolution
    p = p_value(max(abs(shift) - resolution, 0.0) / error, degrees)
    limits: tuple[float | None, float | None] = (None, None)
    if is_log:
        limits = expm1(shift - margin), expm1(shift + margin)
    elif value_a:
        limits = (shift - margin) / abs(value_a), (shift + margin) / abs(value_a)
    return Difference(value_a, value_b, relative, *limits, p, _effect(a, b, shift))


def _variance(a: _Group, b: _Group) -> tuple[float, float]:
    """Return the variance of the difference and its degrees of freedom."""
    if a.runs == b.runs == 1:
        return _welch((a.within, a.degrees), (b.within, b.degrees))
    if min(a.runs, b.runs) > 1:
        first, second = ((max(group.between, group.within), group.runs - 1.0) for group in (a, b))
        return _welch(first, second)
    # One side has only one run; the variation between its runs is assumed to equal that of the other side.
    several, single = (a, b) if a.runs > 1 else (b, a)
    variance = max(several.between, several.within) + max(several.between * several.runs, single.within)
    return variance, several.runs - 1.0


def _welch(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Return the sum of two variances, given with their degrees of freedom, and its degrees of freedom."""
    variance = a[0] + b[0]
    weight = a[0] ** 2 / a[1] + b[0] ** 2 / b[1]
    return variance, variance**2 / weight if weight else a[1] + b[1]


def _effect(a: _Group, b: _Group, shift: float) -> float | None:
    """Return Hedges' g; None if it is undefined."""
    degrees = a.runs + b.runs - 2
    squares = sum(group.between * group.runs * (group.runs - 1) for group in (a, b))
    if not degrees or not squares:
        return None
    return shift / sqrt(squares / degrees) * (1 - 3 / (4 * degrees - 1))


def _block_length(values: Array) -> int:
    """Return the number of consecutive values in a block: SAFETY times the automatic length of Politis and White.

    Politis, White: Automatic block-length selection for the dependent bootstrap, Econometric Reviews 23 (2004), with
    the correction of Patton, Politis and White (2009), for blocks of a fixed length.
    """
    count = len(values)
    longest = max(count // MIN_BLOCKS, 1)
    shortest = min(round(float(count ** (1 / 3))) + 1, longest)
    centred = values - values.mean()
    variance = float(centred @ centred) / count
    if count < 2 * _MIN_WINDOW or not variance:
        return shortest
    covariances = _covariances(centred, min(2 * _last_lag(count), count - 1))
    lags = 2 * _correlated_lags(covariances / variance, count)
    lag = np.arange(1, min(lags, len(covariances) - 1) + 1)
    weighted = np.clip(2 * (1 - lag / lags), 0, 1) * covariances[lag]
    spectrum = variance + 2 * float(weighted.sum())
    slope = 2 * float((lag * weighted).sum())
    if spectrum <= 0:
        return longest
    optimum = float((1.5 * (slope / spectrum) ** 2 * count) ** (1 / 3))
    return min(max(ceil(SAFETY * optimum), shortest), longest)


def _last_lag(count: int) -> int:
    """Return the largest lag that is examined."""
    return ceil(sqrt(count)) + _window(count)


def _window(count: int) -> int:
    return max(_MIN_WINDOW, ceil(sqrt(log10(count))))


def _covariances(centred: Array, last_lag: int) -> Array:
    """Return the autocovariances from lag 0 to `last_lag`."""
    count = len(centred)
    size = 1 << (count + last_lag).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    return np.fft.irfft(power, size)[: last_lag + 1] / count


def _correlated_lags(correlations: Array, count: int) -> int:
    """Return the lag after which a window of correlations is insignificant, or the largest lag that is examined."""
    window, last_lag = _window(count), min(_last_lag(count), len(correlations) - 1)
    is_small = np.abs(correlations[1 : last_lag + 1]) < _SIGNIFICANCE * sqrt(log10(count) / count)
    for lag in range(len(is_small) - window + 1):
        if is_small[lag : lag + window].all():
            return max(lag, 1)
    return last_lag


def _resampled_sums(generator: np.random.Generator, amounts: Array, block: int, resamples: int) -> Array:
    """Return the sums of resamples of `amounts`, an array of (intervals, amounts), as (resamples, amounts).

    A resample of the moving-block bootstrap (Künsch 1989) consists of random blocks of `block` consecutive intervals,
    and its last block is shortened so that the resample has as many intervals as `amounts`.
    """
    count = len(amounts)
    blocks = ceil(count / block)
    starts = generator.integers(0, count - block + 1, (blocks, resamples))
    cumulative = np.vstack([np.zeros(amounts.shape[1]), amounts.cumsum(axis=0)])
    whole = cumulative[block:] - cumulative[: count - block + 1]
    # How often each resample contains the block that begins at each interval; its last block is added separately.
    cells = starts[:-1] + np.arange(resamples) * len(whole)
    repetitions = np.bincount(cells.ravel(), minlength=resamples * len(whole)).reshape(resamples, len(whole))
    ends = starts[-1] + count - (blocks - 1) * block
    sums: Array = repetitions.astype(float) @ whole + cumulative[ends] - cumulative[starts[-1]]
    return sums
