"""Size of a recording in bits per value, and CPU time for appending a tick."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from benchmarks import node_recordings
from benchmarks.figures import Figure
from collector.model.snapshot import Snapshot, with_rounded_times
from collector.recording.header import FULL_EVERY, Header
from collector.recording.journal_files import journal_files
from collector.recording.reader import entries, read
from collector.recording.writer import Journal, Limits, files_of

MAX_BITS = 5
MAX_MS = 2
MIN_SCALARS = 200


@dataclass(frozen=True)
class WriteCost:
    """Size of the full and delta records, and CPU time used, when recorded ticks are written again."""

    full_bytes: int
    delta_bytes: int
    cpu_s: float


def run() -> Iterator[Figure]:
    """Measure recordings of a node under load and of a node without load."""
    yield from _sizes("under load", node_recordings.under_load(), MAX_BITS)
    yield from _sizes("no load", node_recordings.quiet(), None)


def _sizes(name: str, recording: Path, bound: float | None) -> Iterator[Figure]:
    command = [sys.executable, "-m", "cli", "journal", "info", "--format", "json", str(recording)]
    info = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ticks = list(entries(record for file in journal_files(recording) for record in read(file)))
    head, snapshots = ticks[-1].head, [with_rounded_times(entry.snapshot) for entry in ticks]
    complete = _write_cost(head, snapshots)
    scalars = _write_cost(head, [_without_histograms(snapshot) for snapshot in snapshots])

    def bits(size: float) -> float:
        return 8 * size / float(info["points"])

    yield Figure(f"{name}: ticks", info["ticks"], "ticks")
    minimum = MIN_SCALARS if bound else None
    yield Figure(f"{name}: scalar values", info["points"] / info["ticks"], "per tick", minimum, True)
    yield Figure(f"{name}: histograms", info["histograms"] / info["ticks"], "per tick")
    yield Figure(f"{name}: size", info["bytes"] / info["ticks"], "bytes/tick")
    yield Figure(f"{name}: size per scalar value", info["bits_per_point"], "bits/value", bound)
    histograms = complete.full_bytes + complete.delta_bytes - scalars.full_bytes - scalars.delta_bytes
    yield Figure(f"{name}: size per scalar value, histograms", bits(histograms), "bits/value")
    yield Figure(f"{name}: size per scalar value, full records", bits(scalars.full_bytes), "bits/value")
    yield Figure(f"{name}: size per scalar value, delta records", bits(scalars.delta_bytes), "bits/value")
    yield Figure(f"{name}: appending a tick", 1000 * complete.cpu_s / len(snapshots), "ms CPU/tick", MAX_MS)


def _without_histograms(snapshot: Snapshot) -> Snapshot:
    scrapes = [
        replace(
            scrape, values={series: value for series, value in scrape.values.items() if not isinstance(value, tuple)}
        )
        for scrape in snapshot.scrapes
    ]
    return replace(snapshot, scrapes=tuple(scrapes))


def _write_cost(head: Header, snapshots: Sequence[Snapshot]) -> WriteCost:
    used_s, sizes = 0.0, [0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(Journal(folder, lambda: head, Limits(), print)) as journal:
            for snapshot in snapshots:
                before_s = time.process_time()
                journal.append(snapshot)
                used_s += time.process_time() - before_s
                sizes.append(sum(file.stat().st_size for file in files_of(folder)))
    grown = [after - before for before, after in pairwise(sizes)]
    full = sum(grown[::FULL_EVERY])
    return WriteCost(full, sizes[-1] - full, used_s)
