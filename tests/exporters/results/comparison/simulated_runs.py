"""Simulated runs, for the error rates of comparisons."""

import numpy as np

from exporters.results.comparison.amounts import ALL, ClientBins
from exporters.results.comparison.comparison import ComparedRun, PhaseData
from exporters.results.comparison.inference import RunAmounts

PHASE = "load"
LATENCIES_NS = np.geomspace(1e5, 1e8, 40).astype(np.int64)
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


def simulated_clients(seed: int, runs: int, spread: float, intervals: int, effect: float = 0.0) -> list[ComparedRun]:
    """Return runs with client results: throughput as in `simulated`, errors and latencies."""
    random = np.random.default_rng(seed)
    shares = np.exp(-(np.linspace(-2, 4, len(LATENCIES_NS)) ** 2))
    compared = []
    for ((amounts,),) in zip(simulated(seed, runs, spread, intervals, effect), strict=True):
        counts = random.poisson(amounts[:, :1] * shares / shares.sum())
        rows, columns = np.nonzero(counts)
        completed = counts.sum(axis=1).astype(float)
        bins = ClientBins(
            amounts[:, 1],
            completed,
            random.poisson(completed / 100).astype(float),
            np.stack((rows, LATENCIES_NS[columns], counts[rows, columns])),
        )
        compared.append(ComparedRun("simulated", {PHASE: PhaseData(client={"response": {ALL: bins}})}))
    return compared
