"""Recordings of a large simulated cluster."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

from collector.model.snapshot import Snapshot, Tick
from collector.recording.writer import Journal, Limits
from collector.simulation.simulated_cluster import CALM, SimulatedNode, header_of

BEGIN_TIME_S = 1_700_000_000.0
# With one table, a tick has about as many values as one of a real node that records only the columns of the line.
TABLES = 1


def cluster(folder: Path, nodes: int, ticks: int) -> list[Path]:
    """Write each node's recording into its own folder, unless that folder exists, and return all folders."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"node{number:03d}" for number in range(nodes)]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(_record, folder, nodes, ticks), missing))
    return paths


def snapshots(node: SimulatedNode, ticks: int) -> Iterator[Snapshot]:
    """Yield a node's snapshots, one second apart."""
    for number in range(ticks):
        yield node.snapshot(Tick(BEGIN_TIME_S + number), 1.0, first=not number)


def record(node: SimulatedNode, folder: Path, ticks: int) -> None:
    """Write a node's recording into `folder`."""
    head = header_of(node, 1.0, node.node, "simulated")
    with closing(Journal(folder, lambda: head, Limits(sync="never"), print)) as journal:
        for snapshot in snapshots(node, ticks):
            journal.append(snapshot)


def _record(folder: Path, nodes: int, ticks: int, number: int) -> None:
    path = folder / f"node{number:03d}"
    # The folder gets its final name once the recording is complete.
    unfinished = path.with_name(f".{path.name}")
    record(SimulatedNode(number, nodes, TABLES, disturbances=CALM), unfinished, ticks)
    unfinished.rename(path)
