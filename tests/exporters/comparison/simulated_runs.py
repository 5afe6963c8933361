"""Simulated runs, for the error rates of comparisons."""

import numpy as np

from exporters.comparison.inference import RunAmounts

PHI, NOISE, DRIFT = 0.7, 0.05, 0.02


def simulated(
    seed: int, runs: int, spread: float, intervals: int, effect: float = 0.0, drift: float = DRIFT
) -> list[RunAmounts]:
    """Return runs whose throughput is autocorrelated, with a slow drift and a spread between runs."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(intervals + 50, runs)) * NOISE * np.sqrt(1 - PHI**2)
    values = np.zeros_like(noise)
    for row in range(1, len(noise)):
        values[row] = PHI * values[row - 1] + noise[row]
    times = np.arange(intervals)[:, np.newaxis] / intervals
    drifts = drift * np.sin(2 * np.pi * (times + random.random(runs))) - drift * (times - 0.5)
    rates = 1000 * np.exp(spread * random.normal(size=runs) + effect) * (1 + values[50:] + drifts)
    return [[np.column_stack([rate, np.ones(intervals)])] for rate in rates.T]
