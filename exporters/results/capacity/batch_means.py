"""Confidence intervals of ratios from batch means.

The intervals of a step are autocorrelated, so they are divided into a few long batches whose means are almost
independent (Law, Kelton: Simulation Modeling and Analysis).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from exporters.results.comparison.inference import LEVEL
from exporters.results.comparison.resampling import Array
from exporters.results.comparison.student_t import critical_value

BATCHES, MIN_BATCHES = 10, 5
INTERVALS_OF_BATCH = 2
"""Batches of fewer intervals are not independent."""
MIN_INTERVALS = INTERVALS_OF_BATCH * MIN_BATCHES
RULE_OF_THREE = 3.0
"""If no event was observed, the expected number of events is at most this with a confidence of 95%."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A confidence interval of a ratio."""

    low: float
    high: float


def ratio_interval(parts: Sequence[Array], *, is_count: bool, level: float = LEVEL) -> ConfidenceInterval | None:
    """Return the interval of the ratio of two sums; None if there are too few intervals or the denominator is 0.

    Each of `parts` has the numerators and the denominators of consecutive intervals, as the shape (intervals, 2).
    `is_count` states that numerators are numbers of events: then an absence of events has an upper limit, too. The
    interval does not contain the true ratio with the probability `level`.
    """
    intervals = sum(map(len, parts))
    totals = sum((part.sum(axis=0) for part in parts), np.zeros(2))
    if intervals < MIN_INTERVALS or totals[1] <= 0:
        return None
    wanted = min(BATCHES, intervals // INTERVALS_OF_BATCH)
    batches = np.array([batch.sum(axis=0) for part in parts for batch in _batches(part, wanted / intervals)])
    ratio = totals[0] / totals[1]
    residuals = batches[:, 0] - ratio * batches[:, 1]
    count = len(batches)
    error = sqrt(float(residuals @ residuals) * count / (count - 1)) / totals[1]
    margin = critical_value(level, count - 1) * error
    if is_count and not totals[0]:
        return ConfidenceInterval(0.0, RULE_OF_THREE / totals[1])
    return ConfidenceInterval(ratio - margin, ratio + margin)


def _batches(part: Array, per_interval: float) -> Sequence[Array]:
    """Divide a part into batches, which are about as long in all parts."""
    return np.array_split(part, max(round(per_interval * len(part)), 1)) if len(part) else []
