"""The reads in merged tables, and the reads counted in recordings."""

import csv
from collections.abc import Iterator
from pathlib import Path

from collector.recording.journal_files import journal_files
from collector.recording.reader import entries, read

READS = ("cassandra_client_requests_total", "Read")


def rows_of(merged: Path) -> list[dict[str, str]]:
    """Return the rows of a merge, each keyed by column name."""
    with (merged / "rows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def reads_in(journal: Path) -> Iterator[tuple[float, str, float]]:
    """Yield the time, the origin (the node's process) and the read counter of each recorded tick."""
    for file in journal_files(journal):
        for entry in entries(read(file)):
            for scrape in entry.snapshot.scrapes:
                count = scrape.values.get(READS)
                if isinstance(count, int | float):
                    yield entry.snapshot.tick.time_s, scrape.origin, count


def increases(journal: Path, begin_s: float, end_s: float) -> float:
    """Return the number of reads of a node in a time range, summed over the node's processes.

    Reads are counted from the last tick before `begin_s`, because the first row contains the operations since then.
    """
    stretches: dict[str, list[tuple[float, float]]] = {}
    for time_s, origin, count in reads_in(journal):
        if time_s <= end_s:
            stretches.setdefault(origin, []).append((time_s, count))
    total = 0.0
    for stretch in stretches.values():
        counts = [count for time_s, count in stretch if time_s >= begin_s]
        before = [count for time_s, count in stretch if time_s < begin_s]
        if counts:
            total += counts[-1] - (before or counts)[-1 if before else 0]
    return total
