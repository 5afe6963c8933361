"""Cuts a journal's file to a time range. The result is a complete journal file in its own right, with a footer.

The file is read twice, to bound the use of memory: `extent_of` finds the frames to keep, and `trimmed`
copies them.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import zstandard

from collector.recording.codec import MALFORMED, tick_of
from collector.recording.frames import (
    BLOCK_HEADER_BYTES,
    FRAME,
    MAX_BLOCK_BYTES,
    MAX_WINDOW_BYTES,
    MIN_HEADER_BYTES,
    RESERVED,
    RLE,
    Damage,
    Footer,
    Frames,
    block_header,
    footer_of,
    parsed,
    resealed,
    sealed,
)
from collector.recording.header import (
    FULL_EVERY,
    FileStart,
    Header,
    file_start_of,
    header_of,
    look_back_s,
    lost_ticks_of,
)
from collector.recording.reader import CHUNK_BYTES, sequence_number_of
from collector.recording.writer import COMPRESSION

RecordPosition = tuple[int, int]
"""A record's position: the file offset of its zstd frame, and the number of readable records before it in the frame."""
SEARCH_BYTES = 1 << 20
# A frame's header has at most 18 bytes (RFC 8878, 3.1.1).
FIRST_BLOCK_BYTES = 18 + BLOCK_HEADER_BYTES + MAX_BLOCK_BYTES
# The beginning of a full record, as `writer` and `encoding` write it. Names cannot contain these keys, because their
# quotation marks are escaped.
FULL_RECORD = re.compile(
    rb'\{"head":\{.*?"interval_s":(?P<interval_s>[\d.]+),.*?"q":\d+,"t":(?P<time_s>[\d.]+)[,}]', re.DOTALL
)


@dataclass(frozen=True)
class RawRecord:
    """A readable record: its position, JSON text and parsed content, and its tick's number and time."""

    position: RecordPosition
    text: bytes
    content: dict[str, Any]
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
    frames = Frames(offset)
    start: FileStart | None = None
    # Whether the current frame has been readable so far, the number of its next tick, and its last record's position.
    is_readable = False
    expected: int | None = None
    position: RecordPosition = (-1, 0)
    for line in _lines(path, frames, offset, check, growing=growing):
        if isinstance(line, Damage):
            is_readable = False
            yield line
            continue
        try:
            content = parsed(line)
            if "end" in content:
                is_readable = False
                yield footer_of(content["end"], frames.begin)
                continue
            if "head" in content:
                header_of(content["head"])
                lost_ticks_of(content["head"])
                start, expected, is_readable = file_start_of(content["head"]), None, True
            if is_readable:
                number = sequence_number_of(content, start, expected)
                expected = number + 1
                position = frames.begin, position[1] + 1 if position[0] == frames.begin else 0
                yield RawRecord(position, line, content, number, tick_of(content).time_s)
        except MALFORMED as error:
            is_readable = False
            yield Damage(frames.position, f"malformed record: {error}")


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


@dataclass(frozen=True)
class FrameStart:
    """A frame's offset in the file, the time of its first tick, and how long a frame takes unless ticks are missed."""

    offset: int
    time_s: float
    length_s: float


def frame_range(file: int, size_bytes: int, from_s: float, to_s: float) -> tuple[int, int]:
    """Return the range (first byte, byte after the last) of the frames that may have ticks from `from_s` to `to_s`.

    It includes the frame before and the one after, whose sequence numbers show whether ticks are missing. It is the
    whole file if no frame's time is known, for example in an older format. `file` is a descriptor, and only the first
    `size_bytes` of the file are considered. Raises OSError.
    """
    frames = list(frame_starts(file, 0, size_bytes))
    if not frames:
        return 0, size_bytes
    kept = [index for index in range(len(frames)) if _may_overlap(frames[index : index + 2], from_s, to_s)]
    # All ticks may be later than the range.
    first, last = (kept[0], kept[-1]) if kept else (0, 0)
    end = frames[last + 2].offset if last + 2 < len(frames) else size_bytes
    return frames[first - 1].offset if first else 0, end


def _may_overlap(frames: Sequence[FrameStart], from_s: float, to_s: float) -> bool:
    """Return whether the first of these frames may have a tick in the time range; the second one follows, if any.

    If the clock was changed within the frame, ticks before the change follow the frame's beginning by at most its
    length, and ticks after the change precede its end by at most that.
    """
    frame = frames[0]
    end_s = frames[1].time_s if len(frames) > 1 else inf
    return min(frame.time_s, end_s - frame.length_s) <= to_s and from_s <= max(frame.time_s + frame.length_s, end_s)


def frame_starts(file: int, begin: int, end: int) -> Iterator[FrameStart]:
    """Yield the frames of a file that begin between two offsets and whose first record can be read. Raises OSError."""
    for offset in _frame_offsets(file, begin, end):
        match = FULL_RECORD.match(_first_block(os.pread(file, min(FIRST_BLOCK_BYTES, end - offset), offset)))
        if match:
            try:
                yield FrameStart(offset, float(match["time_s"]), FULL_EVERY * float(match["interval_s"]))
            except ValueError:
                continue


def _frame_offsets(file: int, begin: int, end: int) -> Iterator[int]:
    """Yield the offsets at which a frame may begin, including those of data that looks like a frame's header."""
    for chunk in range(begin, end, SEARCH_BYTES):
        data = os.pread(file, min(SEARCH_BYTES + MIN_HEADER_BYTES, end - chunk), chunk)
        for match in FRAME.finditer(data):
            if match.start() < SEARCH_BYTES:
                yield chunk + match.start()


def _first_block(data: bytes) -> bytes:
    """Return the decompressed first block of a frame; b"" if it cannot be decompressed."""
    try:
        begin = zstandard.frame_header_size(data)
        end = begin + BLOCK_HEADER_BYTES
        _, kind, size = block_header(data[begin:end])
        if kind in (RLE, RESERVED) or size > MAX_BLOCK_BYTES:
            return b""
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        return decompressor.decompress(data[: end + size])
    except zstandard.ZstdError:
        return b""


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
                head = record.content["head"]
                frame = FrameSummary(
                    record.position, header_of(head), file_start_of(head), record.number, record.number
                )
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


def _same_start(frame: FrameSummary, other: FrameSummary) -> bool:
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
    if head is None or first.start is None or first.start.first == begin:
        return resealed(record.text)
    if (header_of(head).session, file_start_of(head)) != (first.head.session, first.start):
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
