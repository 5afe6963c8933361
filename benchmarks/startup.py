"""Wall-clock time of `casstat --help`, including the time that Python takes to start."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.figures import Figure

RUNS = 20
MAX_MS = 150


def run() -> Iterator[Figure]:
    """Measure `casstat --help`, and an empty Python program for comparison."""
    help_ms = _median_ms([sys.executable, "-m", "cli", "--help"])
    empty_ms = _median_ms([sys.executable, "-c", "pass"])
    yield Figure("casstat --help", help_ms, "ms", MAX_MS)
    yield Figure("casstat --help / python -c pass", help_ms / empty_ms, "times")


def _median_ms(command: list[str]) -> float:
    times_ms = []
    for _ in range(RUNS + 1):
        began_s = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times_ms.append(1000 * (time.perf_counter() - began_s))
    return statistics.median(times_ms[1:])
