"""Merging a large cluster's recordings into tables: 4,200 ticks of a simulated node with one table."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import node_recordings, simulated_recordings
from benchmarks.figures import Figure
from collector.merge.grid import Grid
from collector.merge.merge_job import DEFAULT_S, Job, Merged, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.snapshot import Rate
from exporters.rows.merged_rows import table_of
from exporters.rows.operation_columns import Operations
from tests.collector.merge.reference_merge import merge, reference_merge

NODES = (75, 150, 300)
TICKS = 4200
MAX_S = 120
MAX_GIB = 4
# Maximum ratio of the largest cluster's CPU time per tick and node to the smallest cluster's.
MAX_GROWTH = 1.3
REFERENCE_NODES = 2
POLL_S = 0.05
COUNTED = ("cassandra_client_requests_total", "Read")


@dataclass(frozen=True)
class Cost:
    """Wall-clock time, CPU time and peak resident memory (in bytes) of a program and its child processes."""

    wall_s: float
    cpu_s: float
    resident: int


def run() -> Iterator[Figure]:
    """Measure clusters of several sizes, and the reference merge on a few nodes."""
    paths = simulated_recordings.cluster(node_recordings.folder() / "cluster", NODES[-1], TICKS)
    size = sum(file.stat().st_size for path in paths for file in path.iterdir())
    yield Figure(f"{NODES[-1]} nodes: recordings", size / 2**20, "MiB")
    tick_us = []
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as out:
            cost = measured([sys.executable, "-m", "cli", "merge", *map(str, paths[:nodes]), "-o", out])
        tick_us.append(1e6 * cost.cpu_s / nodes / TICKS)
        is_last = nodes == NODES[-1]
        yield Figure(f"{nodes} nodes: casstat merge", cost.wall_s, "s", MAX_S if is_last else None)
        yield Figure(f"{nodes} nodes: casstat merge, CPU", cost.cpu_s, "s")
        yield Figure(f"{nodes} nodes: casstat merge, resident memory", cost.resident / 2**30, "GiB", MAX_GIB)
        yield Figure(f"{nodes} nodes: casstat merge, CPU per tick and node", tick_us[-1], "µs")
    growth = tick_us[-1] / tick_us[0]
    yield Figure(f"CPU per tick and node, {NODES[-1]} nodes / {NODES[0]} nodes", growth, "times", MAX_GROWTH)
    yield from _compared_with_reference(paths[:REFERENCE_NODES])


def measured(command: Sequence[str], *, quiet: bool = False, folder: Path | None = None) -> Cost:
    """Run a program in `folder`, if `quiet` without its messages; return its cost. Raises SystemExit if it fails."""
    before_s, began_s, resident = _children_s(), time.monotonic(), 0
    messages = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages, cwd=folder) as running:
        process = psutil.Process(running.pid)
        while running.poll() is None:
            resident = max(resident, _resident(process))
            time.sleep(POLL_S)
    if running.returncode:
        raise SystemExit(f"{' '.join(command[:4])}: exit status {running.returncode}")
    return Cost(time.monotonic() - began_s, _children_s() - before_s, resident)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(process: psutil.Process) -> int:
    """Return the resident memory, in bytes, of a process and its descendants; shared pages count once per process."""
    resident = 0
    with suppress(psutil.NoSuchProcess):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                resident += member.memory_info().rss
    return resident


def _compared_with_reference(paths: Sequence[Path]) -> Iterator[Figure]:
    nodes, _ = recordings(sessions(paths)[0])
    job = Job(Grid(DEFAULT_S), {}, table_of(Operations()).needs, _intervals)
    used_s, totals = [], []
    for implementation in (reference_merge, merge):
        began_s = time.process_time()
        result = implementation(nodes, job)
        used_s.append(time.process_time() - began_s)
        totals.append(_total(result))
    name = f"{len(paths)} nodes, no tables"
    yield Figure(f"{name}: reference merge", used_s[0], "s CPU")
    yield Figure(f"{name}: reference merge / columnar merge", used_s[0] / used_s[1], "times")
    yield Figure(f"{name}: difference in counted reads", abs(totals[0] - totals[1]), "reads", 0)


def _intervals(node: NodeRun) -> int:
    return len(node.intervals)


def _total(merged: Merged[int]) -> float:
    rates = [interval.sample.values.get(COUNTED) for interval in merged.cluster.values()]
    return sum(rate.increase for rate in rates if isinstance(rate, Rate))
