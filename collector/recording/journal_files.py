"""The files of a recording: their order, a summary of their content, and whether a recorder is writing to them."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from errno import EINVAL
from itertools import groupby
from pathlib import Path

from collector.model.metric import Series
from collector.node.metrics.tables import KEYSPACE_OPERATIONS, REMAINDERS
from collector.recording.codec import MALFORMED, texts_of
from collector.recording.frames import Damage, LineError, last_footer, parsed
from collector.recording.header import MAX_SERIES, FileStart, SeriesLimit, file_start_of
from collector.recording.reader import Entry, Finding, Integrity, TickOrder, read, read_lines
from collector.recording.writer import LOCK, SUFFIX, files_of, sort_key

TABLE_OPERATIONS = REMAINDERS[KEYSPACE_OPERATIONS]


def journal_files(path: Path) -> Iterator[Path]:
    """Yield the files of a journal, oldest first: a single file, or the files of a directory and its subdirectories.

    Raises OSError, including for a pipe or a device, because reading from one might never end.
    """
    if path.is_dir():
        folders = sorted(child for child in path.iterdir() if child.is_dir())
        files = files_of(path)
        # In order of creation, even if they have been renamed; of copies, complete and larger ones come first.
        yield from sorted(files, key=_written) if len(files) > 1 else files
        for folder in folders:
            yield from journal_files(folder)
    elif path.exists() and not path.is_file():
        raise OSError(EINVAL, "neither a file nor a directory", str(path))
    else:
        yield path


def _written(path: Path) -> tuple[tuple[str, int, str], int, bool, int, str]:
    start = _start(path)
    name = start.file if start else path.name
    is_cut = start is not None and last_footer(path) is None
    return sort_key(Path(name)), start.first if start else 0, is_cut, -path.stat().st_size, path.name


def _start(path: Path) -> FileStart | None:
    """Return the file's identity from its first readable full record; None in format 1 or if no such record exists."""
    for line in read_lines(path):
        if not isinstance(line, Damage) and line.startswith(b'{"head"'):
            try:
                return file_start_of(parsed(line)["head"])
            except (LineError, ValueError, TypeError, AttributeError):
                continue
    return None


class LockState(Enum):
    """Whether a recorder holds a directory's lock; UNKNOWN if there is no permission to open the lock file."""

    FREE = "free"
    HELD = "held"
    UNKNOWN = "unknown"


def lock_state(folder: Path) -> LockState:
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return LockState.UNKNOWN
    except OSError:
        return LockState.FREE
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return LockState.HELD
    finally:
        os.close(lock)
    return LockState.FREE


def is_being_written(folder: Path) -> bool:
    """Return whether a recorder holds the directory's lock; False if there is no permission to open the lock file."""
    return lock_state(folder) is LockState.HELD


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


def recorded_tables(files: Iterable[Path], limit: SeriesLimit) -> Iterator[tuple[str, str]]:
    """Yield (keyspace, "") for each keyspace and (keyspace, table) for each table with recorded operations.

    The same pair may be yielded several times. Only records with new series are parsed, and damage is skipped. Raises
    OSError, TooManySeriesError.
    """
    for file in files:
        for line in read_lines(file):
            if not isinstance(line, Damage) and b'"s":' in line:
                yield from _tables_of(line, limit)


def _tables_of(line: bytes, limit: SeriesLimit) -> list[tuple[str, str]]:
    try:
        series = [texts_of(names) for names in parsed(line).get("s", ())]
    except MALFORMED:
        return []
    limit.take(series)
    tables: list[tuple[str, str]] = []
    for _, name, *labels in (names for names in series if len(names) > 2):
        if name == KEYSPACE_OPERATIONS:
            tables.append((labels[0], ""))
        elif name == TABLE_OPERATIONS and len(labels) > 1:
            tables += [(labels[0], ""), (labels[0], labels[1])]
    return tables
