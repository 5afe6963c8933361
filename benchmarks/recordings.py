"""What a recording takes: bits on the disk for each value, and CPU of a tick."""

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

from benchmarks import recorded
from benchmarks.figures import Figure
from collector.journal.format_version import FULL_EVERY
from collector.journal.header import Header
from collector.journal.reader import entries, read
from collector.journal.segments import journal_files
from collector.journal.writer import Journal, Limits, files_of
from collector.model.snapshot import Snapshot, with_rounded_times

MOST_BITS = 5
MOST_MS = 2
LEAST_SERIES = 200


@dataclass(frozen=True)
class Written:
    """What writing ticks anew took: bytes of full lines and of the others, and CPU time."""

    full_bytes: int
    other_bytes: int
    cpu_s: float


def run() -> Iterator[Figure]:
    """Measure a node under load, then one that is quiet."""
    yield from _sizes("under load", recorded.under_load(), MOST_BITS)
    yield from _sizes("quiet", recorded.quiet(), None)


def _sizes(name: str, recording: Path, bound: float | None) -> Iterator[Figure]:
    command = [sys.executable, "-m", "cli", "journal", "info", "--format", "json", str(recording)]
    info = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = list(entries(each for file in journal_files(recording) for each in read(file)))
    head, snapshots = found[-1].head, [with_rounded_times(entry.snapshot) for entry in found]
    whole = _written(head, snapshots)
    scalars = _written(head, [_without_histograms(snapshot) for snapshot in snapshots])

    def bits(size: float) -> float:
        return 8 * size / float(info["points"])

    yield Figure(f"{name}: ticks", info["ticks"], "ticks")
    least = LEAST_SERIES if bound else None
    yield Figure(f"{name}: scalar values", info["points"] / info["ticks"], "a tick", least, True)
    yield Figure(f"{name}: histograms", info["histograms"] / info["ticks"], "a tick")
    yield Figure(f"{name}: on the disk", info["bytes"] / info["ticks"], "bytes a tick")
    yield Figure(f"{name}: on the disk, all of it", info["bits_per_point"], "bits a scalar value", bound)
    histograms = whole.full_bytes + whole.other_bytes - scalars.full_bytes - scalars.other_bytes
    yield Figure(f"{name}: of that histograms", bits(histograms), "bits a scalar value")
    yield Figure(f"{name}: of that scalars in full lines, with the head", bits(scalars.full_bytes), "bits a value")
    yield Figure(f"{name}: of that scalars in other lines", bits(scalars.other_bytes), "bits a scalar value")
    yield Figure(f"{name}: appending a tick", 1000 * whole.cpu_s / len(snapshots), "ms CPU a tick", MOST_MS)


def _without_histograms(snapshot: Snapshot) -> Snapshot:
    scrapes = [
        replace(
            scrape, values={series: value for series, value in scrape.values.items() if not isinstance(value, tuple)}
        )
        for scrape in snapshot.scrapes
    ]
    return replace(snapshot, scrapes=tuple(scrapes))


def _written(head: Header, snapshots: Sequence[Snapshot]) -> Written:
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
    return Written(full, sizes[-1] - full, used_s)
