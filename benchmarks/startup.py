"""How long `casstat --help` takes, as a whole process."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.figures import Figure

RUNS = 20
MOST_MS = 150


def run() -> Iterator[Figure]:
    """Measure help, and an empty Python for comparison."""
    help_ms = _median_ms([sys.executable, "-m", "cli", "--help"])
    empty_ms = _median_ms([sys.executable, "-c", "pass"])
    yield Figure("casstat --help", help_ms, "ms", MOST_MS)
    yield Figure("casstat --help / an empty Python", help_ms / empty_ms, "times")


def _median_ms(command: list[str]) -> float:
    taken = []
    for _ in range(RUNS + 1):
        began_s = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(1000 * (time.perf_counter() - began_s))
    return statistics.median(taken[1:])
