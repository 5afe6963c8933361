"""A summary of a journal: counts, time range and damage."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from collector.model.metric import Series
from collector.recording.frames import Damage
from collector.recording.read_limits import MAX_SERIES, SeriesLimit
from collector.recording.reader import Entry, read
from collector.recording.segments import LockState, is_being_written, journal_files, lock_state
from collector.recording.tick_order import Finding, Integrity, TickOrder
from collector.recording.writer import SUFFIX, files_of


@dataclass
class Summary:
    """A summary of all files of one or more journals.

    points      the number of scalar values; histogram buckets are not counted.
    missed      the number of ticks that were missed or could not be written.
    findings    all defects, each with its file.
    integrity   the number of defects of each kind.
    open        the number of directories that a recorder is writing to.
    unfinished  directories that contain a session without a footer, other than one that is still being written.
    continued   directories that contain a session with a later file missing.
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
    findings: list[tuple[Path, Finding]] = field(default_factory=list)
    integrity: Integrity = field(default_factory=Integrity)
    open: int = 0
    unfinished: list[Path] = field(default_factory=list)
    continued: list[Path] = field(default_factory=list)
    _lost: int = 0

    @property
    def bits_per_point(self) -> float | None:
        """The size of all files, histograms included, in bits per scalar value; None if there are no scalar values."""
        return 8 * self.bytes / self.points if self.points else None

    @property
    def state(self) -> str:
        """The state as text: the defects if there are any, else "open" while a recorder is writing, else "complete".

        "open or no footer" means that a session has no footer. A recorder may still be writing to it, but without
        permission to open the lock file, this cannot be checked.
        """
        defects = self.integrity
        descriptions = [
            "damaged" if defects.damaged or defects.lost else "",
            "ticks repeated or out of order" if defects.repeated else "",
            self._unfinished_text() if defects.unfinished else "",
            "a later file is missing" if defects.continued else "",
        ]
        return ", ".join(filter(None, descriptions)) or ("open" if self.open else "complete")

    def _unfinished_text(self) -> str:
        # If none of the lock files can be opened, recorders may still be writing to these directories.
        is_unknown = all(lock_state(folder) is LockState.UNKNOWN for folder in self.unfinished)
        return "open or no footer" if is_unknown else "no footer"

    @property
    def is_sound(self) -> bool:
        """Whether no defects were found."""
        return self.integrity == Integrity()

    def take(self, entry: Entry) -> None:
        """Add one tick."""
        snapshot = entry.snapshot
        self.ticks += 1
        # A count lower than the last one comes from another writer, because each writer counts from zero.
        self.missed += snapshot.tick.missed + (entry.lost - self._lost if entry.lost > self._lost else 0)
        self._lost = entry.lost
        self.nodes.add(snapshot.node)
        self.begin_s = snapshot.tick.time_s if self.begin_s is None else self.begin_s
        self.end_s = snapshot.tick.time_s
        for scrape in snapshot.scrapes:
            histograms = sum(isinstance(value, tuple) for value in scrape.values.values())
            self.histograms += histograms
            self.points += len(scrape.values) - histograms
            self.series.update(scrape.values)


def info(paths: Iterable[Path], max_series: int = MAX_SERIES) -> Summary:
    """Return a summary of the journals at the paths and in their subdirectories. Raises OSError, TooManySeriesError."""
    summary = Summary()
    for path in paths:
        files = journal_files(path)
        for folder, of_folder in groupby(files, key=lambda file: file.parent):
            _take_folder(summary, folder, of_folder, SeriesLimit(max_series, str(folder)), is_directory=path.is_dir())
    return summary


def _take_folder(
    summary: Summary, folder: Path, files: Iterable[Path], limit: SeriesLimit, *, is_directory: bool
) -> None:
    """Add a directory's files; unless `is_directory` is set, `files` may contain only some of them."""
    order, damaged = TickOrder(), 0
    for path in files:
        size = path.stat().st_size
        summary.bytes += size
        if not size and not is_being_written(folder):
            summary.findings.append((path, Damage(0, "empty file")))
            damaged += 1
        for record in order.filtered(read(path, limit)):
            if isinstance(record, Entry):
                summary.take(record)
            else:
                summary.findings.append((path, record))
                damaged += isinstance(record, Damage)
    summary.findings += [(folder / f"{footer.file}{SUFFIX}", lost) for footer, lost in order.missing_ends()]
    integrity, is_open = without_open_session(order.integrity(damaged), folder, is_directory=is_directory)
    summary.open += is_open
    summary.unfinished += [folder] * bool(integrity.unfinished)
    summary.continued += [folder] * bool(integrity.continued)
    summary.integrity += integrity


def without_open_session(integrity: Integrity, folder: Path, *, is_directory: bool) -> tuple[Integrity, bool]:
    """Return a directory's defects, and whether a recorder is writing to it.

    A session that is still being written has no footer yet, which is not a defect. Unless `is_directory`, only some of
    the directory's files were read, so the lack of a later file is not a defect either.
    """
    is_open = integrity.unfinished > 0 and is_being_written(folder)
    unfinished = integrity.unfinished - is_open
    return replace(integrity, unfinished=unfinished, continued=integrity.continued if is_directory else 0), is_open


def size_of(folder: Path) -> int | None:
    """Return a journal's size in bytes; None if its directory cannot be read."""
    try:
        files = files_of(folder)
    except OSError:
        return None
    total = 0
    for file in files:
        # The recorder may have removed the file in the meantime.
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total
