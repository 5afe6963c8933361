"""Merging the recordings of a large cluster, each of 4,200 ticks of 250 series and 9 histograms, into tables."""

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

from benchmarks import recorded, synthesised
from benchmarks.figures import Figure
from collector.cluster.grid import Grid
from collector.cluster.merge import merge
from collector.cluster.merge_job import DEFAULT_S, Job, Merged, NodeRun
from collector.cluster.recordings import recordings, sessions
from collector.cluster.reference_merge import reference_merge
from collector.model.sample import Rate
from exporters.files.merged_rows import Choice, table_of

NODES = (75, 150, 300)
TICKS = 4200
MOST_S = 120
MOST_GIB = 4
# Of the CPU for each tick of a node, between the smallest and the largest cluster.
MOST_GROWTH = 1.3
PLAIN_NODES = 2
POLL_S = 0.05
COUNTED = ("cassandra_client_requests_total", "Read")


@dataclass(frozen=True)
class Cost:
    """What a program took, its processes included."""

    wall_s: float
    cpu_s: float
    resident: int


def run() -> Iterator[Figure]:
    """Measure clusters of several sizes, and the plain loop on a small part of the smallest."""
    paths = synthesised.cluster(recorded.under_load(), recorded.folder() / "cluster", NODES[-1], TICKS)
    size = sum(file.stat().st_size for path in paths for file in path.iterdir())
    yield Figure(f"{NODES[-1]} nodes: recordings", size / 2**20, "MiB")
    each_us = []
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as out:
            cost = measured([sys.executable, "-m", "cli", "merge", *map(str, paths[:nodes]), "-o", out])
        each_us.append(1e6 * cost.cpu_s / nodes / TICKS)
        is_last = nodes == NODES[-1]
        yield Figure(f"{nodes} nodes: casstat merge", cost.wall_s, "s", MOST_S if is_last else None)
        yield Figure(f"{nodes} nodes: casstat merge, CPU", cost.cpu_s, "s")
        yield Figure(f"{nodes} nodes: casstat merge, memory", cost.resident / 2**30, "GiB", MOST_GIB)
        yield Figure(f"{nodes} nodes: casstat merge, for each tick of a node", each_us[-1], "µs CPU")
    growth = each_us[-1] / each_us[0]
    yield Figure(f"the same, {NODES[-1]} nodes / {NODES[0]} nodes", growth, "times", MOST_GROWTH)
    yield from _against_the_plain_loop(paths[:PLAIN_NODES])


def measured(command: Sequence[str]) -> Cost:
    """Run a program and return what it took."""
    before_s, began_s, most = _children_s(), time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        process = psutil.Process(running.pid)
        while running.poll() is None:
            most = max(most, _resident(process))
            time.sleep(POLL_S)
    if running.returncode:
        raise SystemExit(f"{command[:4]} ended with {running.returncode}")
    return Cost(time.monotonic() - began_s, _children_s() - before_s, most)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(process: psutil.Process) -> int:
    """Return what a process and its children have resident; what they share counts once for each."""
    found = 0
    with suppress(psutil.NoSuchProcess):
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found += each.memory_info().rss
    return found


def _against_the_plain_loop(paths: Sequence[Path]) -> Iterator[Figure]:
    found, _ = recordings(sessions(paths)[0])
    job = Job(Grid(DEFAULT_S), {}, table_of(Choice()).needs, _intervals)
    taken_s, totals = [], []
    for merged in (reference_merge, merge):
        began_s = time.process_time()
        result = merged(found, job)
        taken_s.append(time.process_time() - began_s)
        totals.append(_total(result))
    plain = f"{len(paths)} nodes, no tables: the plain Python loop"
    yield Figure(plain, taken_s[0], "s CPU")
    yield Figure(f"{plain} / the merge in one process", taken_s[0] / taken_s[1], "times")
    yield Figure(f"{plain} - the merge, reads counted", abs(totals[0] - totals[1]), "reads", 0)


def _intervals(node: NodeRun) -> int:
    return len(node.intervals)


def _total(merged: Merged[int]) -> float:
    rates = [each.sample.values.get(COUNTED) for each in merged.cluster.values()]
    return sum(rate.increase for rate in rates if isinstance(rate, Rate))
