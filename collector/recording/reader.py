"""Reads a journal: yields its ticks and footers, and a `Damage` for each damaged part."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.model.snapshot import Snapshot
from collector.recording.decoding import decoded
from collector.recording.encoding import DeltaState
from collector.recording.footer import Footer, footer_of
from collector.recording.frames import Damage, Frames
from collector.recording.header import FileStart, Header, file_start_of, header_of, is_number, lost_ticks_of
from collector.recording.read_limits import SeriesLimit
from collector.recording.record_lines import parsed
from collector.recording.validation import MALFORMED, CodingError

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


class Reader:
    """Reads a file that may still be growing: yields entries, footers, and a `Damage` for each damaged part."""

    def __init__(self, offset: int = 0, limit: SeriesLimit | None = None) -> None:
        """Begin at `offset`, the file offset of a frame; `limit` bounds the number of series."""
        self._frames = Frames(offset)
        self._limit = limit
        self._head: Header | None = None
        self._state = DeltaState()
        self._lost = 0
        self._start: FileStart | None = None
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Entry | Damage | Footer]:
        """Take the next bytes; yield the records that they complete, and a `Damage` for each damaged part."""
        yield from self._records(self._frames.feed(data))

    def end(self) -> Iterator[Entry | Damage | Footer]:
        """Report data missing at the end of the input, and yield pending records that follow damage."""
        yield from self._records(self._frames.end())

    def _records(self, lines: Iterable[bytes | Damage]) -> Iterator[Entry | Damage | Footer]:
        for line in lines:
            if isinstance(line, Damage):
                # The next records contain only changes since a record that was lost, so skip them.
                self._head = None
                yield line
            else:
                yield from self._entry(line)

    def _entry(self, text: bytes) -> Iterator[Entry | Damage | Footer]:
        try:
            content = parsed(text)
            if "end" in content:
                self._head = None
                yield footer_of(content["end"], self._frames.begin)
                return
            expected: int | None = self._number + 1
            if "head" in content:
                self._head, self._state = header_of(content["head"]), DeltaState()
                self._lost, self._start = lost_ticks_of(content["head"]), file_start_of(content["head"])
                expected = None
            elif self._head is None:
                # The record follows damage that has already been reported.
                return
            self._number = sequence_number_of(content, self._start, expected)
            if self._limit is not None:
                self._limit.take(content.get("s", ()))
            snapshot = decoded(self._state, content)
        except MALFORMED as error:
            self._head = None
            yield Damage(self._frames.position, f"malformed record: {error}")
            return
        yield Entry(self._head, snapshot, self._lost, self._frames.begin, self._start, self._number)


def read_lines(path: Path) -> Iterator[bytes | Damage]:
    """Yield a file's lines, and a `Damage` for each damaged part. Raises OSError."""
    frames = Frames()
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from frames.feed(data)
    yield from frames.end()


def read(path: Path, limit: SeriesLimit | None = None) -> Iterator[Entry | Damage | Footer]:
    """Yield a file's ticks and footers, and a `Damage` for each damaged part. Raises OSError, TooManySeriesError."""
    reader = Reader(limit=limit)
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield from reader.feed(data)
    yield from reader.end()


def entries(records: Iterable[object]) -> Iterator[Entry]:
    return (record for record in records if isinstance(record, Entry))
