"""Measure how often `casstat compare` reports a difference between simulated runs, with and without one.

Runs have 600 intervals of autocorrelated throughput with a slow drift; some have 120 intervals or no drift. Without a
difference, at most 37 of 500 comparisons may be significant, and at most 37 of 500 may have any significant column.
With one run per side, the spread between runs is unknown, so these comparisons have no limit if runs spread. A
difference of 5% must be found in at least 80% of comparisons of three runs per side that spread by 1%. Takes about two
minutes.
"""

import sys
from math import log

from exporters.results.comparison.comparison import comparisons
from exporters.results.comparison.inference import LEVEL, Ratio, difference
from tests.exporters.results.comparison.simulated_runs import DRIFT, simulated, simulated_clients

PAIRS, MAX_ALARMS, MIN_POWER = 500, 37, 0.8
INTERVALS, DIFFERENCE = 600, 0.05


def significant(runs: int, spread: float, effect: float = 0.0, intervals: int = INTERVALS, drift: float = DRIFT) -> int:
    """Return how many of PAIRS comparisons are significant."""
    a = simulated(1, runs * PAIRS, spread, intervals, drift=drift)
    b = simulated(2, runs * PAIRS, spread, intervals, log(1 + effect), drift)
    pairs = [slice(number * runs, (number + 1) * runs) for number in range(PAIRS)]
    return sum((difference(Ratio(), a[pair], b[pair]).p or 0.0) < LEVEL for pair in pairs)


def with_significant_column() -> int:
    """Return how many of PAIRS comparisons of client results, three per side, have any significant column."""
    a, b = (simulated_clients(seed, 3 * PAIRS, 0.02, 120) for seed in (1, 2))
    pairs = [slice(3 * number, 3 * number + 3) for number in range(PAIRS)]
    return sum(any(column.is_significant for column in comparisons(a[pair], b[pair])) for pair in pairs)


def main() -> int:
    """Print the rates; return the exit status."""
    status = 0
    for spread in (0.0, 0.02):
        for runs in (1, 2, 3, 5):
            count = significant(runs, spread)
            is_limited = runs > 1 or not spread
            status |= is_limited and count > MAX_ALARMS
            print(f"{runs} runs per side, spread {spread:.0%}: {count} of {PAIRS} are significant", flush=True)
    count = with_significant_column()
    status |= count > MAX_ALARMS
    print(f"3 runs per side, spread 2%: {count} of {PAIRS} have a significant column", flush=True)
    for intervals in (120, INTERVALS):
        count = significant(1, 0.0, intervals=intervals, drift=0.0)
        status |= count > MAX_ALARMS
        print(
            f"1 run per side, no spread, no drift, {intervals} intervals: {count} of {PAIRS} are significant",
            flush=True,
        )
    for spread in (0.01, 0.02):
        power = significant(3, spread, DIFFERENCE) / PAIRS
        status |= spread == 0.01 and power < MIN_POWER
        print(
            f"3 runs per side, spread {spread:.0%}: {DIFFERENCE:.0%} is found in {power:.0%}",
            flush=True,
        )
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
