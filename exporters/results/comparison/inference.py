"""The difference of a quantity between two groups of runs, with a confidence interval.

The variance of a group's value has two estimates. Deleting one run at a time (jackknife) gives the variance between
runs, which includes the variance within runs. Resampling blocks of intervals gives the variance within runs, which is a
lower bound. The larger estimate is used. The interval is computed with Student's t distribution and the degrees of
freedom of Welch and Satterthwaite, because the bootstrap of a few runs gives intervals that are too narrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log, sqrt

import numpy as np

from exporters.results.comparison.block_length import block_length
from exporters.results.comparison.quantities import Quantity
from exporters.results.comparison.resampling import Array, resampled_sums
from exporters.results.comparison.student_t import critical_value, p_value

LEVEL = 0.05
RESAMPLES = 400
SEED = 1
MIN_INTERVALS = 100
"""If a run has fewer intervals, the variance is not estimated from blocks: the estimate would be far too low."""
_ROUNDING = 1e-12

RunAmounts = Sequence[Array]
"""The amounts of a run's intervals: for each phase, an array of the shape (intervals, amounts)."""


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
    lengths = [block_length(quantity.influence(part, part.sum(axis=0))) if len(part) else 1 for part in parts]
    narrow, starts = quantity.narrowed(total)
    resampled = sum(
        resampled_sums(generator, np.add.reduceat(part, starts, axis=1), length, RESAMPLES)
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
