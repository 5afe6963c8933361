"""Cuts a journal's file to a time range. The result is a complete journal file in its own right, with a footer.

The file is read twice, to bound the use of memory: `extent_of` finds the frames to keep, and `trimmed`
copies them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import zstandard

from collector.recording.codec import tick_of
from collector.recording.frames import Damage, Footer, Frames, resealed, sealed
from collector.recording.header import FileStart, Header, look_back_s
from collector.recording.reader import CHUNK_BYTES, LineReader
from collector.recording.writer import COMPRESSION

RecordPosition = tuple[int, int]
"""A record's position: the file offset of its zstd frame, and the number of readable records before it in the frame."""


@dataclass(frozen=True)
class RawRecord:
    """A readable record: its position, JSON text and parsed content, and its tick's number and time.

    head, start  those of its full record, as in `FrameSummary`.
    """

    position: RecordPosition
    text: bytes
    content: dict[str, Any]
    head: Header
    start: FileStart | None
    number: int
    time_s: float


def raw_records(
    path: Path, offset: int, check: Callable[[], None], *, growing: bool
) -> Iterator[RawRecord | Damage | Footer]:
    """Yield a file's records and footers, and a `Damage` for each section that cannot be read.

    Reading starts at the frame at `offset`. If the file is `growing`, an incomplete record at its end is not damage.
    The records are checked as `Reader` does, but their values are not decoded.
    Calls `check` at least once per record; it may raise an exception to stop. Raises OSError.
    """
    reader = _RawReader(offset)
    yield from reader.records(_lines(path, reader.frames, offset, check, growing=growing))


class _RawReader(LineReader[RawRecord]):
    _position: RecordPosition = (-1, 0)

    def _record(self, head: Header, text: bytes, content: dict[str, Any]) -> RawRecord:
        begin, (frame, number) = self.frames.begin, self._position
        self._position = begin, number + 1 if frame == begin else 0
        return RawRecord(self._position, text, content, head, self.start, self.number, tick_of(content).time_s)


def _lines(
    path: Path, frames: Frames, offset: int, check: Callable[[], None], *, growing: bool
) -> Iterator[bytes | Damage]:
    with path.open("rb") as file:
        file.seek(offset)
        while data := file.read(CHUNK_BYTES):
            check()
            for line in frames.feed(data):
                check()
                yield line
    yield from (line for line in frames.end() if not (growing and isinstance(line, Damage)))


@dataclass
class TickSpan:
    """Ticks in a time range: their number, and the earliest and latest time (infinite if there are no ticks)."""

    ticks: int = 0
    begin_s: float = inf
    end_s: float = -inf

    def add(self, time_s: float) -> None:
        self.ticks += 1
        self.begin_s, self.end_s = min(self.begin_s, time_s), max(self.end_s, time_s)

    def __add__(self, other: "TickSpan") -> "TickSpan":
        """Return the span of both sets of ticks."""
        return TickSpan(self.ticks + other.ticks, min(self.begin_s, other.begin_s), max(self.end_s, other.end_s))


@dataclass
class FrameSummary:
    """A full record and the readable records that depend on it.

    begin        the full record's position.
    head, start  the full record's header, and the identity of the file; `start` is None in format 1.
    first, last  the sequence numbers of the first and the last tick; 0 in format 1.
    kept         the number and the position of the last tick to keep; None if there is none.
    """

    begin: RecordPosition
    head: Header
    start: FileStart | None
    first: int
    last: int
    kept: tuple[int, RecordPosition] | None = None


@dataclass
class Extent:
    """The part of a file to keep.

    span               the ticks in the time range, not including earlier ticks that are also kept.
    damaged            the number of sections that cannot be read and may have contained ticks to keep.
    first, last        the first and the last frame to keep; None if no frame is kept.
    before, following  the readable frames before `first` and after `last`, if any.
    footer             the file's footer, if any.
    to_s               the end of the time range.
    is_last            whether this is the journal's last file with ticks in the time range.
    """

    to_s: float
    is_last: bool = False
    span: TickSpan = field(default_factory=TickSpan)
    damaged: int = 0
    first: FrameSummary | None = None
    last: FrameSummary | None = None
    before: FrameSummary | None = None
    following: FrameSummary | None = None
    footer: Footer | None = None


def extent_of(
    path: Path,
    from_s: float,
    to_s: float,
    *,
    growing: bool = False,
    is_last: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Extent:
    """Return the part of a file to keep for the ticks from `from_s` to `to_s`.

    Everything between the first and the last frame with a tick in the range is kept, so that nothing is lost if the
    clock was changed. `is_last` is as in `Extent`, and `growing` and `check` are as in `raw_records`. Raises OSError.
    """
    extent = Extent(to_s, is_last)
    frame: FrameSummary | None = None
    previous: FrameSummary | None = None
    # The number of damaged sections since the last readable record, and that record's side (see `_side_of`).
    damaged, side = 0, -1
    for record in raw_records(path, 0, check, growing=growing):
        if isinstance(record, Damage):
            damaged += 1
        elif isinstance(record, Footer):
            extent.footer = record
        else:
            if "head" in record.content:
                previous = frame
                frame = FrameSummary(record.position, record.head, record.start, record.number, record.number)
                if extent.last is not None and extent.following is None:
                    extent.following = frame
            if frame is not None:
                _add(extent, frame, previous, record, from_s)
                # Damage contains nothing to keep if the records around it are both too early or both too late.
                previous_side, side = side, _side_of(extent, frame, record, from_s)
                if previous_side != side or side == 0:
                    extent.damaged += damaged
            damaged = 0
    if side == 0 or frame is None:
        extent.damaged += damaged
    return extent


def _side_of(extent: Extent, frame: FrameSummary, record: RawRecord, from_s: float) -> int:
    """Return -1 if a record is earlier than the ticks to keep, 0 if it is to be kept, and 1 if it is later."""
    if record.time_s > extent.to_s:
        return 1
    return 0 if from_s - look_back_s(frame.head.interval_s) <= record.time_s else -1


def _add(extent: Extent, frame: FrameSummary, previous: FrameSummary | None, record: RawRecord, from_s: float) -> None:
    """Add a record to its frame and, if its tick is to be kept, extend the extent to it."""
    frame.last = record.number
    if from_s <= record.time_s <= extent.to_s:
        extent.span.add(record.time_s)
    if _side_of(extent, frame, record, from_s) == 0:
        frame.kept = record.number, record.position
        if extent.first is None:
            extent.first, extent.before = frame, previous
        extent.last, extent.following = frame, None


def trimmed(path: Path, extent: Extent, check: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield the bytes of the trimmed file; nothing if no tick is to be kept.

    Ticks lost through damage remain recognisable as lost, because sequence numbers are kept. `check` is as in
    `raw_records`. Raises OSError, and one of the errors in MALFORMED or RecursionError if a header cannot be written.
    """
    first, last = extent.first, extent.last
    if first is None or last is None or last.kept is None:
        return
    _, end = last.kept
    begin = _first_number(extent, first)
    frame: zstandard.ZstdCompressionObj | None = None
    span, size = TickSpan(), 0
    for record in raw_records(path, first.begin[0], check, growing=True):
        if not isinstance(record, RawRecord) or record.position < first.begin:
            continue
        if record.position > end:
            break
        data = b""
        if "head" in record.content:
            data = frame.flush() if frame is not None else b""
            frame = zstandard.ZstdCompressor(compression_params=COMPRESSION).compressobj()
        if frame is not None:
            data += frame.compress(_line(record, first, begin)) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            span.add(record.time_s)
            size += len(data)
            yield data
    if frame is not None:
        data = frame.flush()
        yield data
        if last.start is not None:
            first_number = begin if _same_start(first, last) else last.start.first
            yield zstandard.compress(sealed(_footer(extent, last, first_number, span, size + len(data)).content()))


def _same_start(frame: FrameSummary | RawRecord, other: FrameSummary) -> bool:
    return (frame.head.session, frame.start) == (other.head.session, other.start)


def _first_number(extent: Extent, first: FrameSummary) -> int:
    """Return the number of the first tick that the trimmed file should contain."""
    if first.start is None:
        return 0
    before = extent.before
    if before is None or not _same_start(before, first):
        return first.start.first
    # A frame that was copied into the file may be out of order.
    return min(before.last + 1, first.first)


def _line(record: RawRecord, first: FrameSummary, begin: int) -> bytes:
    """Return a record's line; a header of the first frame's session and file gets `begin` as the first number."""
    head = record.content.get("head")
    if head is None or first.start is None or first.start.first == begin or not _same_start(record, first):
        return resealed(record.text)
    return sealed({**record.content, "head": {**head, "first": begin}})


def _footer(extent: Extent, last: FrameSummary, begin: int, span: TickSpan, size: int) -> Footer:
    """Return the footer of a file of `size` bytes with the ticks `span`; the first tick should have number `begin`."""
    end, more = last.last + 1, False
    following, footer = extent.following, extent.footer
    if last.kept is not None and last.kept[0] < last.last:
        end = last.kept[0] + 1
    elif following is not None:
        if _same_start(following, last):
            end = max(end, following.first)
    elif footer is not None and footer.session == last.head.session:
        end = max(end, footer.next)
        more = footer.more and not extent.is_last and footer.end_s + last.head.interval_s <= extent.to_s
    file = last.start.file if last.start is not None else ""
    return Footer(last.head.session, file, begin, end, more, span.begin_s, span.end_s, size)
