"""Reads journals: their ticks and footers, a `Damage` for each damaged part, and the order of ticks.

Ticks are ordered by sequence number within a session, independent of clocks and file names. Since format 2, every tick
has a sequence number, and a closed file ends with a footer. They reveal ticks that are repeated, out of order or
missing, and whether a recording is complete.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from operator import add
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from collector.model.metric import Series, Value
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.printable import count_text
from collector.recording.codec import MALFORMED, CodingError, DeltaState, decoded
from collector.recording.frames import Damage, Footer, Frames, footer_of, parsed
from collector.recording.header import (
    FileStart,
    Header,
    SeriesLimit,
    file_start_of,
    header_of,
    is_number,
    lost_ticks_of,
)
from collector.recording.writer import Position, files_of, sort_key

CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Entry:
    """A recorded tick.

    lost    the number of ticks that the writer had failed to write before the tick's frame began.
    frame   the file offset of the tick's frame, at which reading can start.
    start   the file's identity; None in format 1.
    number  the tick's sequence number in its session; 0 in format 1.
    """

    head: Header
    snapshot: Snapshot
    lost: int = 0
    frame: int = 0
    start: FileStart | None = None
    number: int = 0


def sequence_number_of(content: Mapping[str, Any], start: FileStart | None, expected: int | None) -> int:
    """Return a record's sequence number (0 in format 1). Raises CodingError if it is invalid or not `expected`."""
    if start is None:
        return 0
    number = content.get("q")
    if not is_number(number) or (expected is not None and number != expected):
        wanted = "a valid one" if expected is None else expected
        raise CodingError(f"sequence number {str(number)[:20]} instead of {wanted}")
    return number


Record = TypeVar("Record")


class LineReader(ABC, Generic[Record]):
    """Follows the records of a file, which may still be growing; `_record` makes what is yielded for one.

    frames               the frames that contain the lines.
    lost, start, number  those of the last record; see `Entry`.
    """

    def __init__(self, offset: int = 0) -> None:
        """Begin at `offset`, the file offset of a frame."""
        self.frames = Frames(offset)
        self.lost = 0
        self.start: FileStart | None = None
        self.number = 0
        self._head: Header | None = None

    @abstractmethod
    def _record(self, head: Header, text: bytes, content: dict[str, Any]) -> Record:
        """Return what is yielded for a record. Raises one of the errors in MALFORMED."""

    def records(self, lines: Iterable[bytes | Damage]) -> Iterator[Record | Damage | Footer]:
        """Take the next lines; yield their records, and a `Damage` for each damaged part and each malformed record."""
        for line in lines:
            if isinstance(line, Damage):
                # The next records contain only changes since a record that was lost, so skip them.
                self._head = None
                yield line
            else:
                yield from self._read(line)

    def _read(self, text: bytes) -> Iterator[Record | Damage | Footer]:
        try:
            content = parsed(text)
            if "end" in content:
                self._head = None
                yield footer_of(content["end"], self.frames.begin)
                return
            expected: int | None = self.number + 1
            if "head" in content:
                self._head, expected = header_of(content["head"]), None
                self.lost, self.start = lost_ticks_of(content["head"]), file_start_of(content["head"])
            elif self._head is None:
                # The record follows damage that has already been reported.
                return
            self.number = sequence_number_of(content, self.start, expected)
            record = self._record(self._head, text, content)
        except MALFORMED as error:
            self._head = None
            yield Damage(self.frames.position, f"malformed record: {error}")
            return
        yield record


class Reader(LineReader[Entry]):
    """Yields entries, footers, and a `Damage` for each damaged part."""

    def __init__(self, offset: int = 0, limit: SeriesLimit | None = None) -> None:
        """Begin at `offset`, the file offset of a frame; `limit` bounds the number of series."""
        super().__init__(offset)
        self._limit = limit
        self._state = DeltaState()

    def feed(self, data: bytes) -> Iterator[Entry | Damage | Footer]:
        """Take the next bytes; yield the records that they complete, and a `Damage` for each damaged part."""
        yield from self.records(self.frames.feed(data))

    def end(self) -> Iterator[Entry | Damage | Footer]:
        """Report data missing at the end of the input, and yield pending records that follow damage."""
        yield from self.records(self.frames.end())

    def _record(self, head: Header, text: bytes, content: dict[str, Any]) -> Entry:
        if "head" in content:
            self._state = DeltaState()
        if self._limit is not None:
            self._limit.take(content.get("s", ()))
        snapshot = decoded(self._state, content)
        return Entry(head, snapshot, self.lost, self.frames.begin, self.start, self.number)


def read_lines(path: Path, frames: Frames | None = None) -> Iterator[bytes | Damage]:
    """Yield a file's lines, and a `Damage` for each damaged part; `frames` follows its frames. Raises OSError."""
    frames = frames or Frames()
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from frames.feed(data)
    yield from frames.end()


def read(path: Path, limit: SeriesLimit | None = None) -> Iterator[Entry | Damage | Footer]:
    """Yield a file's ticks and footers, and a `Damage` for each damaged part. Raises OSError, TooManySeriesError."""
    reader = Reader(limit=limit)
    yield from reader.records(read_lines(path, reader.frames))


def entries(records: Iterable[object]) -> Iterator[Entry]:
    return (record for record in records if isinstance(record, Entry))


@dataclass(frozen=True)
class LostTicks:
    """Ticks that are missing before a file offset."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        return f"{count_text(self.ticks, 'tick')} lost before this position"


@dataclass(frozen=True)
class RepeatedTicks:
    """Ticks that are skipped, starting at a file offset, because they or later ticks have already been read."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        return f"{count_text(self.ticks, 'tick')} repeated or out of order, ignored"


Finding = Damage | LostTicks | RepeatedTicks


@dataclass(frozen=True)
class Integrity:
    """The number of defects of each kind in recordings: damaged sections, lost and repeated ticks, incomplete sessions.

    unfinished  sessions without a footer: they are still being written, the recorder was killed, or the file was
                truncated.
    continued   sessions with a later file missing.
    """

    damaged: int = 0
    lost: int = 0
    repeated: int = 0
    unfinished: int = 0
    continued: int = 0

    def __add__(self, other: "Integrity") -> "Integrity":
        return Integrity(*map(add, astuple(self), astuple(other)))


class TickOrder:
    """Follows a directory's sessions tick by tick.

    Footers are evaluated at the end of the input, because if frames were moved or copied, a footer may precede its
    ticks.
    """

    def __init__(self, *, resumed: bool = False) -> None:
        """If `resumed`, reading begins within a file, so the ticks before the first one read do not count as lost."""
        self._resumed = resumed
        # Keyed by session: the next expected sequence number, the first one according to the footers, and the last
        # footer.
        self._next: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._footers: dict[str, Footer] = {}
        self._lost = 0
        self._repeated = 0

    def take(self, session: str, start: FileStart | None, first: int, count: int = 1) -> int:
        """Add `count` ticks with consecutive numbers from `first` on; return how many of them are repeats.

        The repeats precede the other ticks.
        """
        if start is None:
            return 0
        expected, repeated = self._expected(session, start, first), self.repeats(session, start, first, count)
        self._resumed = False
        self._repeated += repeated
        if repeated < count:
            self._lost += max(first - expected, 0)
            self._next[session] = first + count
        return repeated

    def repeats(self, session: str, start: FileStart | None, first: int, count: int = 1) -> int:
        """Return what `take` would return, without adding the ticks."""
        return 0 if start is None else min(max(self._expected(session, start, first) - first, 0), count)

    def _expected(self, session: str, start: FileStart, first: int) -> int:
        begin = first if self._resumed else min(start.first, self._first.get(session, start.first))
        return self._next.get(session, begin)

    def end(self, footer: Footer) -> None:
        """Add a file's footer."""
        session = footer.session
        self._first[session] = min(self._first.get(session, footer.first), footer.first)
        if session not in self._footers or self._footers[session].next <= footer.next:
            self._footers[session] = footer

    def missing_ends(self) -> list[tuple[Footer, LostTicks]]:
        """Return the ticks missing before each session's last footer; call this at the end of the input."""
        lost_ticks = []
        for session, footer in self._footers.items():
            ticks = footer.next - self._next.get(session, self._first[session])
            if ticks > 0:
                lost_ticks.append((footer, LostTicks(footer.offset, ticks)))
        return lost_ticks

    def integrity(self, damaged: int = 0) -> Integrity:
        """Return the defects of everything read; `damaged` is the number of damaged sections."""
        ended = {session for session, footer in self._footers.items() if footer.next >= self._next.get(session, 0)}
        unfinished = len(self._next.keys() - ended)
        continued = sum(self._footers[session].more for session in ended)
        lost = self._lost + sum(lost_ticks.ticks for _, lost_ticks in self.missing_ends())
        return Integrity(damaged, lost, self._repeated, unfinished, continued)

    def filtered(self, records: Iterable[Entry | Damage | Footer]) -> Iterator[Entry | Finding]:
        """Yield a file's findings and its entries, except repeated and out-of-order ones; process its footer."""
        repeated: RepeatedTicks | None = None
        for record in records:
            if isinstance(record, Footer):
                self.end(record)
                continue
            lost = self._lost
            if isinstance(record, Entry) and self.take(record.head.session, record.start, record.number):
                repeated = RepeatedTicks(*((repeated.offset, repeated.ticks + 1) if repeated else (record.frame, 1)))
                continue
            if repeated is not None:
                yield repeated
                repeated = None
            if isinstance(record, Entry) and self._lost > lost:
                yield LostTicks(record.frame, self._lost - lost)
            yield record
        if repeated is not None:
            yield repeated


@dataclass(frozen=True)
class Removed:
    """Yielded where files may be missing because the recorder has removed them to stay within its size limit."""


class JournalFollower:
    """Follows a node's directory from its oldest file to its newest, which may still be growing."""

    def __init__(self, folder: Path, start: Position | None = None) -> None:
        """Begin at `start`, a position returned by an earlier follower; if it is None, begin at the oldest file."""
        self._folder = folder
        self._start = start
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._reader = Reader()
        self._order = TickOrder(resumed=start is not None)
        self.read_bytes = 0

    def position(self, entry: Entry) -> Position:
        """Return the position of the frame that contains `entry`, which must be the last entry yielded."""
        return Position(self._path.name if self._path else "", entry.frame)

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield the ticks since the last call, any findings, and `Removed` if files may be missing. Raises OSError."""
        if self._start is not None:
            start, self._start = self._start, None
            if not self._open_at(start):
                yield Removed()
        while True:
            yield from self._read_more()
            # Nothing more is appended to a file once the next one exists, so read the rest, then move on.
            later = [path for path in files_of(self._folder) if not self._path or sort_key(path) > sort_key(self._path)]
            if not later:
                return
            yield from self._read_more()
            # The oldest file is always removed first, so as long as this file exists, no later one is missing.
            was_removed = self._file is not None and not os.fstat(self._file.fileno()).st_nlink
            if self._file is not None:
                yield from self._order.filtered(self._reader.end())
                self.close()
            if was_removed:
                yield Removed()
            self._file, self._path, self._reader = later[0].open("rb"), later[0], Reader()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_at(self, start: Position) -> bool:
        """Open the file at the position; return False if the file is missing or too short."""
        self._path = self._folder / start.file
        with suppress(FileNotFoundError):
            file = self._path.open("rb")
            if os.fstat(file.fileno()).st_size >= start.offset:
                file.seek(start.offset)
                self._file, self._reader = file, Reader(start.offset)
                return True
            file.close()
        return False

    def _read_more(self) -> Iterator[Entry | Finding]:
        while self._file is not None and (data := self._file.read(CHUNK_BYTES)):
            self.read_bytes += len(data)
            yield from self._order.filtered(self._reader.feed(data))


def at_interval(entries: Iterable[Entry], interval_s: float) -> Iterator[Entry]:
    """Yield the entries at multiples of the interval, or all entries if it is 0.

    Each entry also contains the series and events that occur only in the entries dropped before it. Rates and
    percentiles remain exact, because they are computed from the raw counts at both ends of the interval.
    """
    pending: _Pending | None = None
    for entry in entries:
        if pending is None:
            pending = _Pending(entry)
        else:
            pending.add(entry)
        if not interval_s or is_multiple(entry.snapshot.tick.time_s, interval_s):
            yield pending.joined()
            pending = None


def is_multiple(time_s: float, interval_s: float) -> bool:
    """Return whether a time is within 1 ms of a multiple of the interval."""
    steps = time_s / interval_s
    return abs(steps - round(steps)) * interval_s < 1e-3


class _Pending:
    """Holds the last entry, all earlier events, and the latest values of series that the last entry lacks."""

    def __init__(self, entry: Entry) -> None:
        self._last = entry
        self._missed = entry.snapshot.tick.missed
        self._number = 0
        self._earlier: dict[int, tuple[Scrape, dict[Series, Value]]] = {}
        self._holder: dict[tuple[str, Series], int] = {}

    def add(self, entry: Entry) -> None:
        for scrape in self._last.snapshot.scrapes:
            if not scrape.values and not scrape.events:
                continue
            self._number += 1
            self._earlier[self._number] = scrape, dict(scrape.values)
            self._holder.update(dict.fromkeys(((scrape.source, series) for series in scrape.values), self._number))
        for scrape in entry.snapshot.scrapes:
            for series in scrape.values:
                self._drop(scrape.source, series)
        self._last = entry
        self._missed += entry.snapshot.tick.missed

    def _drop(self, source: str, series: Series) -> None:
        number = self._holder.pop((source, series), None)
        if number is None:
            return
        scrape, values = self._earlier[number]
        del values[series]
        if not values and not scrape.events:
            del self._earlier[number]

    def joined(self) -> Entry:
        """Return the last entry, with the values and events that only earlier entries contain."""
        snapshot = self._last.snapshot
        earlier = [
            replace(scrape, values=values, problem="")
            for scrape, values in self._earlier.values()
            if values or scrape.events
        ]
        tick = Tick(snapshot.tick.time_s, snapshot.tick.late_s, self._missed)
        return replace(self._last, snapshot=Snapshot(snapshot.node, tick, (*earlier, *snapshot.scrapes)))
