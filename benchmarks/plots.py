"""`casstat plot` for a ten-minute run of three nodes: reading, merging and drawing all plots."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import node_recordings, simulated_recordings
from benchmarks.figures import Figure
from benchmarks.merge import measured
from exporters.charts.all_plots import PLOTS
from exporters.charts.gnuplot_page import KINDS

NODES = 3
TICKS = 600
MAX_S = 15


def run() -> Iterator[Figure]:
    """Measure the command on three recordings."""
    paths = simulated_recordings.cluster(node_recordings.folder() / "three", NODES, TICKS)
    with tempfile.TemporaryDirectory() as out:
        cost = measured([sys.executable, "-m", "cli", "plot", *map(str, paths), "-o", out])
        plots = sum(path.suffix in (".png", ".svg") for path in Path(out).iterdir())
    yield Figure("casstat plot", cost.wall_s, "s", MAX_S)
    yield Figure("casstat plot, CPU", cost.cpu_s, "s")
    yield Figure("casstat plot, resident memory", cost.resident / 2**20, "MiB")
    yield Figure("plots, PNG and SVG", plots, "files", len(PLOTS) * len(KINDS), True)
