"""`casstat import` of 1 GB, and `casstat compare` and `casstat report` for ten-minute runs of three nodes.

The import is compared with Python's `csv.reader` over the same file.
"""

import csv
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

from benchmarks import jmeter_results, node_recordings, simulated_recordings
from benchmarks.figures import Figure
from benchmarks.merge import Cost, measured
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import write_run

SIDE, NODES, LENGTH_S, WARM_UP_S = 3, 3, 600, 60
RATE_PER_S, LARGE_RATE_PER_S = 900, 23_200
MAX_IMPORT_RATIO, MAX_IMPORT_MB, MAX_S, MAX_REPORT_MB = 1, 500, 20, 1
BEGIN_S = simulated_recordings.BEGIN_TIME_S


def run() -> Iterator[Figure]:
    """Measure the commands on runs with JMeter's results."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        *compared, other = _runs(folder, 2 * SIDE + 1)
        yield from _import_figures(other, folder / "results.jtl")
        for seed, target in enumerate(compared):
            results = jmeter_results.written(folder / "results.jtl", seed, BEGIN_S, LENGTH_S, RATE_PER_S)
            _casstat("import", target, results)
        compare = _casstat("compare", *compared[:SIDE], "--with", *compared[SIDE:])
        yield Figure(f"compare, {SIDE} runs per side", compare.wall_s, "s", MAX_S)
        yield Figure(f"compare, {SIDE} runs per side: resident memory", compare.resident / 1e6, "MB")
        report = _casstat("report", compared[0])
        yield Figure("report", report.wall_s, "s", MAX_S)
        yield Figure("report: resident memory", report.resident / 1e6, "MB")
        yield Figure("report.html", (compared[0] / "report.html").stat().st_size / 1e6, "MB", MAX_REPORT_MB)


def _runs(folder: Path, count: int) -> list[Path]:
    """Write runs without client results to subfolders, which are returned."""
    recordings = node_recordings.folder() / "runs"
    nodes = simulated_recordings.cluster(recordings, NODES * count, LENGTH_S)
    phases = (
        RunPhase("warm-up", BEGIN_S, BEGIN_S + WARM_UP_S, measured=False),
        RunPhase("load", BEGIN_S + WARM_UP_S, BEGIN_S + LENGTH_S),
    )
    targets = [folder / f"run{number}" for number in range(count)]
    for number, target in enumerate(targets):
        members = [(path, f"nodes/{path.name}") for path in nodes[number * NODES : (number + 1) * NODES]]
        for path, name in members:
            copytree(path, target / name)
        run_nodes = tuple(RunNode(path.name, "", name, LENGTH_S, interval_s=1.0) for path, name in members)
        write_run(target, Run(target.name, BEGIN_S, BEGIN_S + LENGTH_S, "", {}, run_nodes, phases=phases))
    return targets


def _import_figures(run_folder: Path, path: Path) -> Iterator[Figure]:
    results = jmeter_results.written(path, 0, BEGIN_S, LENGTH_S, LARGE_RATE_PER_S)
    began_s = time.monotonic()
    with results.open(encoding="utf-8", newline="") as file:
        rows = sum(1 for _ in csv.reader(file))
    reader_s = time.monotonic() - began_s
    cost = _casstat("import", run_folder, results)
    yield Figure("JTL", results.stat().st_size / 1e9, "GB")
    yield Figure("JTL: rows", rows / 1e6, "million")
    yield Figure("import", cost.wall_s, "s")
    yield Figure("import / csv.reader, time", cost.wall_s / reader_s, "times", MAX_IMPORT_RATIO)
    yield Figure("import: resident memory", cost.resident / 1e6, "MB", MAX_IMPORT_MB)


def _casstat(*arguments: str | Path) -> Cost:
    return measured([sys.executable, "-m", "cli", *map(str, arguments)], quiet=True)
