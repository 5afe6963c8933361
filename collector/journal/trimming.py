"""Cuts a journal's file to a time range. The result is a complete file of its own, with a footer.

The file is read twice, to bound the use of memory: `extent_of` finds the frames to keep, and `trimmed`
copies them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import zstandard

from collector.journal.footer import Footer, footer_of
from collector.journal.frames import Damage, Frames
from collector.journal.header import FileStart, Header, file_start_of, header_of, lost_ticks_of
from collector.journal.reader import CHUNK_BYTES, sequence_number_of
from collector.journal.record_lines import parsed, resealed, sealed
from collector.journal.validation import MALFORMED, tick_of
from collector.journal.writer import COMPRESSION

# A rate needs two readings; those of a slow source, such as nodetool, are this far apart.
LOOK_BACK_S = 150.0
LOOK_BACK_INTERVALS = 2


def look_back_s(interval_s: float) -> float:
    """Return how long before a time range the kept ticks begin, so that rates are known from its first tick on."""
    return max(LOOK_BACK_S, LOOK_BACK_INTERVALS * interval_s)


@dataclass
class TickSpan:
    """Ticks in a time range: their number, and the earliest and latest time; infinite if there are none."""

    ticks: int = 0
    begin_s: float = inf
    end_s: float = -inf

    def add(self, time_s: float) -> None:
        """Add a tick."""
        self.ticks += 1
        self.begin_s, self.end_s = min(self.begin_s, time_s), max(self.end_s, time_s)

    def __add__(self, other: "TickSpan") -> "TickSpan":
        """Return the ticks of both."""
        return TickSpan(self.ticks + other.ticks, min(self.begin_s, other.begin_s), max(self.end_s, other.end_s))


Position = tuple[int, int]
"""A record's position: the file offset of its zstd frame, and the number of readable records before it in the frame."""


@dataclass
class _Frame:
    """A full record and the readable records that depend on it.

    begin        the full record's position.
    first, last  the sequence numbers of the first and the last tick; 0 in format 1.
    kept         the number of the last tick to keep, and its position; None if there is none.
    """

    begin: Position
    head: Header
    start: FileStart | None
    first: int
    last: int
    kept: tuple[int, Position] | None = None


@dataclass
class Extent:
    """What to keep of a file.

    span               the ticks in the time range, not including earlier ticks that are also kept.
    damaged            the number of sections that cannot be read and may have contained ticks to keep.
    first, last        the first and the last frame to keep; None if no frame is kept.
    before, following  the readable frames before and after them, if any.
    footer             the file's footer, if any.
    to_s               the end of the time range.
    is_last            whether no later file of the journal has ticks in the time range.
    """

    to_s: float
    is_last: bool = False
    span: TickSpan = field(default_factory=TickSpan)
    damaged: int = 0
    first: _Frame | None = None
    last: _Frame | None = None
    before: _Frame | None = None
    following: _Frame | None = None
    footer: Footer | None = None


@dataclass(frozen=True)
class _Record:
    """A readable record: its position, its JSON text and content, and its tick's number and time."""

    position: Position
    text: bytes
    content: dict[str, Any]
    number: int
    time_s: float


def _ignore() -> None:
    pass


def extent_of(
    path: Path,
    from_s: float,
    to_s: float,
    *,
    growing: bool = False,
    is_last: bool = False,
    check: Callable[[], None] = _ignore,
) -> Extent:
    """Return what to keep of a file for the ticks from `from_s` to `to_s`.

    Everything between the first and the last frame with a tick in the range is kept, so nothing is lost if the clock
    was changed. If the file is `growing`, an incomplete record at its end is not damage. `is_last` is as in `Extent`.
    Calls `check` for each record; it may raise an exception to stop. Raises OSError.
    """
    extent = Extent(to_s, is_last)
    frame: _Frame | None = None
    previous: _Frame | None = None
    # The damaged sections since the last readable record, and where that record is (see `_side_of`).
    damaged, side = 0, -1
    for record in _records(path, 0, check, growing=growing):
        if isinstance(record, Damage):
            damaged += 1
        elif isinstance(record, Footer):
            extent.footer = record
        else:
            if "head" in record.content:
                previous = frame
                head = record.content["head"]
                frame = _Frame(record.position, header_of(head), file_start_of(head), record.number, record.number)
                if extent.last is not None and extent.following is None:
                    extent.following = frame
            if frame is not None:
                _add(extent, frame, previous, record, from_s)
                # Damage between two earlier records, or between two later ones, contains nothing to keep.
                before, side = side, _side_of(extent, frame, record, from_s)
                if before != side or side == 0:
                    extent.damaged += damaged
            damaged = 0
    if side == 0 or frame is None:
        extent.damaged += damaged
    return extent


def _side_of(extent: Extent, frame: _Frame, record: _Record, from_s: float) -> int:
    """Return -1 for a record before the ticks to keep, 0 for one of them, and 1 for a later one."""
    if record.time_s > extent.to_s:
        return 1
    return 0 if from_s - look_back_s(frame.head.interval_s) <= record.time_s else -1


def _add(extent: Extent, frame: _Frame, previous: _Frame | None, record: _Record, from_s: float) -> None:
    """Add a record to its frame and, if its tick is to be kept, extend the extent to it."""
    frame.last = record.number
    if from_s <= record.time_s <= extent.to_s:
        extent.span.add(record.time_s)
    if _side_of(extent, frame, record, from_s) == 0:
        frame.kept = record.number, record.position
        if extent.first is None:
            extent.first, extent.before = frame, previous
        extent.last, extent.following = frame, None


def trimmed(path: Path, extent: Extent, check: Callable[[], None] = _ignore) -> Iterator[bytes]:
    """Yield the bytes of the trimmed file; nothing if no tick is to be kept.

    Ticks lost through damage remain recognisable as lost, because sequence numbers are kept. `check` is as for
    `extent_of`. Raises OSError, and one of the errors in MALFORMED or RecursionError if a header cannot be written.
    """
    first, last = extent.first, extent.last
    if first is None or last is None or last.kept is None:
        return
    _, end = last.kept
    begin = _first_number(extent, first)
    frame: zstandard.ZstdCompressionObj | None = None
    span, size = TickSpan(), 0
    for record in _records(path, first.begin[0], check, growing=True):
        if not isinstance(record, _Record) or record.position < first.begin:
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


def _same_start(frame: _Frame, other: _Frame) -> bool:
    return (frame.head.session, frame.start) == (other.head.session, other.start)


def _first_number(extent: Extent, first: _Frame) -> int:
    """Return the number of the first tick that the trimmed file should contain."""
    if first.start is None:
        return 0
    before = extent.before
    if before is None or not _same_start(before, first):
        return first.start.first
    # A copied frame may be out of order.
    return min(before.last + 1, first.first)


def _line(record: _Record, first: _Frame, begin: int) -> bytes:
    """Return a record's line; the headers of the first frame's session and file get `begin` as the first number."""
    head = record.content.get("head")
    if head is None or first.start is None or first.start.first == begin:
        return resealed(record.text)
    if (header_of(head).session, file_start_of(head)) != (first.head.session, first.start):
        return resealed(record.text)
    return sealed({**record.content, "head": {**head, "first": begin}})


def _footer(extent: Extent, last: _Frame, begin: int, span: TickSpan, size: int) -> Footer:
    """Return the footer of a file of `size` bytes with the ticks `span`; the first should have the number `begin`."""
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


def _records(
    path: Path, offset: int, check: Callable[[], None], *, growing: bool
) -> Iterator[_Record | Damage | Footer]:
    """Yield a file's records and footers from a frame on, and a `Damage` for each section that cannot be read."""
    frames = Frames(offset)
    reading = _Reading()
    with path.open("rb") as file:
        file.seek(offset)
        while data := file.read(CHUNK_BYTES):
            check()
            for line in frames.feed(data):
                check()
                yield from reading.records(line, frames)
    for line in frames.end():
        if not (growing and isinstance(line, Damage)):
            yield from reading.records(line, frames)


class _Reading:
    """Checks records as `Reader` does, but does not decode their values."""

    def __init__(self) -> None:
        self._start: FileStart | None = None
        # Whether the current frame is readable so far, and the number of its next tick.
        self._is_readable = False
        self._next: int | None = None
        self._position: Position = (-1, 0)

    def records(self, line: bytes | Damage, frames: Frames) -> Iterator[_Record | Damage | Footer]:
        """Yield the record or footer in a line, or the damage; nothing for a record that follows damage."""
        if isinstance(line, Damage):
            self._is_readable = False
            yield line
            return
        try:
            content = parsed(line)
            if "end" in content:
                self._is_readable = False
                yield footer_of(content["end"], frames.begin)
                return
            if "head" in content:
                header_of(content["head"])
                lost_ticks_of(content["head"])
                self._start, self._next, self._is_readable = file_start_of(content["head"]), None, True
            if self._is_readable:
                number = sequence_number_of(content, self._start, self._next)
                self._next = number + 1
                offset, index = self._position
                self._position = frames.begin, index + 1 if offset == frames.begin else 0
                yield _Record(self._position, line, content, number, tick_of(content).time_s)
        except MALFORMED as error:
            self._is_readable = False
            yield Damage(frames.position, f"malformed record: {error}")
