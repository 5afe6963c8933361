"""What is inside a journal, in figures, and what of it is damaged."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EINVAL
from pathlib import Path

from collector.journal.frames import Damage
from collector.journal.reading import Entry, read
from collector.journal.writing import files_of
from collector.model import Series


@dataclass
class Info:
    """Of all files together.

    points   scalar values that were read; a histogram's buckets are not counted.
    missed   ticks that passed without a reading, or could not be written.
    damaged  places that cannot be read, each with its file.
    """

    ticks: int = 0
    points: int = 0
    histograms: int = 0
    bytes: int = 0
    missed: int = 0
    begin_s: float | None = None
    end_s: float | None = None
    nodes: set[str] = field(default_factory=set)
    series: set[Series] = field(default_factory=set)
    damaged: list[tuple[Path, Damage]] = field(default_factory=list)
    _lost: int = 0

    @property
    def bits_per_point(self) -> float | None:
        """All bytes, histograms' too, for each scalar value; None without any."""
        return 8 * self.bytes / self.points if self.points else None

    def take(self, entry: Entry) -> None:
        """Count one tick."""
        snapshot = entry.snapshot
        self.ticks += 1
        # It begins anew with each writer.
        self.missed += snapshot.tick.missed + (entry.lost - self._lost if entry.lost > self._lost else 0)
        self._lost = entry.lost
        self.nodes.add(snapshot.node)
        self.begin_s = snapshot.tick.time_s if self.begin_s is None else self.begin_s
        self.end_s = snapshot.tick.time_s
        for batch in snapshot.batches:
            histograms = sum(isinstance(value, tuple) for value in batch.values.values())
            self.histograms += histograms
            self.points += len(batch.values) - histograms
            self.series.update(batch.values)


def journal_files(path: Path) -> Iterator[Path]:
    """Yield the files of a journal: the one, or those of a folder and the folders in it, the oldest of each first.

    Raises OSError, also for what is no file: a pipe might never end.
    """
    if path.is_dir():
        folders = sorted(each for each in path.iterdir() if each.is_dir())
        yield from files_of(path)
        for folder in folders:
            yield from journal_files(folder)
    elif path.exists() and not path.is_file():
        raise OSError(EINVAL, "is neither a file nor a folder", str(path))
    else:
        yield path


def info(files: Iterable[Path]) -> Info:
    """Read all files. Raises OSError for one that cannot be read at all."""
    found = Info()
    for path in files:
        found.bytes += path.stat().st_size
        for each in read(path):
            if isinstance(each, Entry):
                found.take(each)
            else:
                found.damaged.append((path, each))
    return found


def size_of(folder: Path) -> int | None:
    """Return the bytes of a journal that is being written; None where its folder cannot be read."""
    try:
        files = files_of(folder)
    except OSError:
        return None
    found = 0
    for file in files:
        # It may have been removed for room a moment ago.
        with suppress(FileNotFoundError):
            found += file.stat().st_size
    return found
