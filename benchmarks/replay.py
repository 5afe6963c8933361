"""CPU time for replaying an hour of one node's recording; it must be nearly independent of the row interval."""

import sys
from collections.abc import Iterator

from benchmarks import node_recordings, simulated_recordings
from benchmarks.figures import Figure
from benchmarks.merge import measured

TICKS = 3600
INTERVALS_S = (1, 60, 1800)
# Maximum ratio of the CPU time with the longest interval to the CPU time with the shortest.
MAX_GROWTH = 1.5


def run() -> Iterator[Figure]:
    """Measure `casstat replay` with several intervals."""
    (path,) = simulated_recordings.cluster(node_recordings.folder() / "hour", 1, TICKS)
    costs = []
    for interval_s in INTERVALS_S:
        cost = measured([sys.executable, "-m", "cli", "replay", str(path), "-i", str(interval_s)])
        costs.append(cost.cpu_s)
        yield Figure(f"replay -i {interval_s}, {TICKS} ticks: CPU", cost.cpu_s, "s")
    yield Figure(f"-i {INTERVALS_S[-1]} / -i {INTERVALS_S[0]}", costs[-1] / costs[0], "times", MAX_GROWTH)
