"""What is inside a journal, in figures, and what of it is damaged."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from collector.journal.frames import Damage
from collector.journal.read_limits import MAX_SERIES, SeriesLimit
from collector.journal.reader import Entry, read
from collector.journal.segments import is_written, journal_files
from collector.journal.tick_order import Finding, Integrity, TickOrder
from collector.journal.writer import SUFFIX, files_of
from collector.model.metric import Series


@dataclass
class Info:
    """Of all files together.

    points     scalar values that were read; a histogram's buckets are not counted.
    missed     ticks that passed without a reading, or could not be written.
    findings   what is wrong, each with its file.
    integrity  the same in figures.
    open       folders to which a recorder is writing now.
    unfinished, continued  folders with sessions that have no footer, or of which a later file is missing.
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
        """All bytes, histograms' too, for each scalar value; None without any."""
        return 8 * self.bytes / self.points if self.points else None

    @property
    def state(self) -> str:
        """In words: "complete", "open" while a recorder is writing, or else what is wrong."""
        wrong = self.integrity
        parts = [
            "damaged" if wrong.damaged or wrong.lost else "",
            "ticks repeated or out of order" if wrong.repeated else "",
            "ended without a footer" if wrong.unfinished else "",
            "a later file is missing" if wrong.continued else "",
        ]
        return ", ".join(filter(None, parts)) or ("open" if self.open else "complete")

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.integrity == Integrity()

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
        for scrape in snapshot.scrapes:
            histograms = sum(isinstance(value, tuple) for value in scrape.values.values())
            self.histograms += histograms
            self.points += len(scrape.values) - histograms
            self.series.update(scrape.values)


def info(paths: Iterable[Path], max_series: int = MAX_SERIES) -> Info:
    """Read all files there. Raises OSError for one that cannot be read at all, and TooManySeriesError."""
    found = Info()
    for path in paths:
        files = journal_files(path)
        for folder, of_folder in groupby(files, key=lambda file: file.parent):
            _take_folder(found, folder, of_folder, SeriesLimit(max_series, str(folder)), is_whole=path.is_dir())
    return found


def _take_folder(found: Info, folder: Path, files: Iterable[Path], limit: SeriesLimit, *, is_whole: bool) -> None:
    """Read what is there of a folder; of a single file it is no wonder that others are missing."""
    sequence, places = TickOrder(), 0
    for path in files:
        size = path.stat().st_size
        found.bytes += size
        if not size and not is_written(folder):
            found.findings.append((path, Damage(0, "is empty")))
            places += 1
        for record in sequence.filtered(read(path, limit)):
            if isinstance(record, Entry):
                found.take(record)
            else:
                found.findings.append((path, record))
                places += isinstance(record, Damage)
    found.findings += [(folder / f"{footer.file}{SUFFIX}", lost) for footer, lost in sequence.missing_ends()]
    integrity, is_open = settled(sequence.integrity(places), folder, is_whole=is_whole)
    found.open += is_open
    found.unfinished += [folder] * bool(integrity.unfinished)
    found.continued += [folder] * bool(integrity.continued)
    found.integrity += integrity


def settled(integrity: Integrity, folder: Path, *, is_whole: bool) -> tuple[Integrity, bool]:
    """Return what remains wrong with what is in a folder, and whether a recorder is writing there now.

    The session that it writes has no footer yet; and when single files were asked for, others may be missing.
    """
    is_open = integrity.unfinished > 0 and is_written(folder)
    unfinished = integrity.unfinished - is_open
    return replace(integrity, unfinished=unfinished, continued=integrity.continued if is_whole else 0), is_open


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
