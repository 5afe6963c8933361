"""Drawing a run of three nodes and ten minutes: reading, merging, and all plots."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import recorded, synthesised
from benchmarks.figures import Figure
from benchmarks.merge import measured

NODES = 3
TICKS = 600
MOST_S = 15


def run() -> Iterator[Figure]:
    """Measure the program."""
    paths = synthesised.cluster(recorded.under_load(), recorded.folder() / "three", NODES, TICKS)
    with tempfile.TemporaryDirectory() as out:
        cost = measured([sys.executable, "-m", "cli", "plot", *map(str, paths), "-o", out])
        plots = sum(path.suffix in (".png", ".svg") for path in Path(out).iterdir())
    yield Figure("casstat plot", cost.wall_s, "s", MOST_S)
    yield Figure("casstat plot, CPU", cost.cpu_s, "s")
    yield Figure("casstat plot, memory", cost.resident / 2**20, "MiB")
    yield Figure("plots, as PNG and as SVG", plots, "of them")
