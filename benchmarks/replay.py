"""Replaying an hour of one node at intervals from a second to half an hour: the interval must not cost anything."""

import sys
from collections.abc import Iterator

from benchmarks import recorded, synthesised
from benchmarks.figures import Figure
from benchmarks.merge import measured

TICKS = 3600
INTERVALS_S = (60, 1800)
# CPU at half an hour against that at a minute.
MOST_GROWTH = 1.5


def run() -> Iterator[Figure]:
    """Measure the program."""
    (path,) = synthesised.cluster(recorded.under_load(), recorded.folder() / "hour", 1, TICKS)
    costs = []
    for interval_s in INTERVALS_S:
        cost = measured([sys.executable, "-m", "cli", "replay", str(path), "-i", str(interval_s)])
        costs.append(cost.cpu_s)
        yield Figure(f"replay -i {interval_s}, {TICKS} ticks: CPU", cost.cpu_s, "s")
    yield Figure("the longer interval / the shorter", costs[-1] / costs[0], "times", MOST_GROWTH)
