"""The frames, records and footers of a journal; yields its lines, and a `Damage` for each damaged part.

A journal is a sequence of independent zstd frames (RFC 8878). A recorder ends a block after each line, so every
complete line can be read, even from an incomplete frame. After damage, reading resumes at the next frame, because a
line depends on those before it. Blocks are decompressed one by one, so that a damaged block does not affect the blocks
before it.

A record is a compact JSON object on one line with a checksum; `zstdcat FILE | jq` reads them. A writer that closes a
file appends a footer, which states the ticks that the file should contain.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import zstandard

from collector.recording.codec import MALFORMED, MAX_TIME_S, CodingError, texts_of
from collector.recording.header import FULL_EVERY, is_number

MAGIC = zstandard.FRAME_HEADER
# Frame header descriptors with neither a dictionary ID nor the reserved bit (RFC 8878, 3.1.1.1).
DESCRIPTORS = bytes(descriptor for descriptor in range(256) if not descriptor & 0b1011)
FRAME = re.compile(re.escape(MAGIC) + b"[" + re.escape(DESCRIPTORS) + b"]", re.DOTALL)
MIN_HEADER_BYTES = len(MAGIC) + 1
CHECKSUM_BYTES = 4
BLOCK_HEADER_BYTES = 3
RLE, RESERVED = 1, 3
MAX_BLOCK_BYTES = 128 << 10
# The maximum size of a line; even a record with tens of thousands of series is smaller.
MAX_LINE_BYTES = 32 << 20
# A line's uncompressed size may be up to MIN_LINE_LIMIT_BYTES plus MAX_RATIO times its compressed size. For comparison,
# series names compress to a fiftieth of their size.
MIN_LINE_LIMIT_BYTES = 1 << 20
MAX_RATIO = 256
# A recorder stays far below these limits, which bound the memory that malformed or malicious files can occupy.
MAX_WINDOW_BYTES = 32 << 20
MAX_FRAME_BYTES = 1 << 30
# The number of bytes that may be read a second time after damage: RETRY_BYTES plus RETRY_BYTES_PER_BYTE times the input
# size. Beyond that, bytes that have been read are no longer searched for frames, so that the running time is linear in
# the input size.
RETRY_BYTES = 2 * MAX_LINE_BYTES
RETRY_BYTES_PER_BYTE = 16
SEAL = b',"crc":"'
# The size of the checksum's key and eight digits, and of the closing quote and brace.
_SEAL_BYTES = len(SEAL) + 8 + 2
# A JSON escape for a surrogate. A pair of them stands for one character; a single one is invalid.
HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# The maximum compressed size of a footer, including its frame.
MAX_FOOTER_BYTES = 4096
# The size of the parts of a file that are searched for frames.
SEARCH_BYTES = 1 << 20
# A frame's header has at most 18 bytes (RFC 8878, 3.1.1).
FIRST_BLOCK_BYTES = 18 + BLOCK_HEADER_BYTES + MAX_BLOCK_BYTES
# The beginning of a full record, as `writer` and `codec` write it. Names cannot contain these keys, because their
# quotation marks are escaped.
FULL_RECORD = re.compile(
    rb'\{"head":\{.*?"interval_s":(?P<interval_s>[\d.]+),.*?"q":\d+,"t":(?P<time_s>[\d.]+)[,}]', re.DOTALL
)


@dataclass(frozen=True)
class Damage:
    """Unreadable data: its file offset and the reason."""

    offset: int
    reason: str


def block_header(data: bytes | bytearray) -> tuple[bool, int, int]:
    """Return whether a block is its frame's last, its kind and its size, from its header (RFC 8878, 3.1.1.2)."""
    number = int.from_bytes(data, "little")
    return bool(number & 1), number >> 1 & 3, number >> 3


def frame_text(data: bytes) -> bytes | None:
    """Return the text of the frame at the beginning of `data`; None if it is damaged or exceeds MAX_LINE_BYTES."""
    try:
        return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompress(data, MAX_LINE_BYTES)
    except zstandard.ZstdError:
        return None


class Frames:
    """Decompresses the bytes that it is fed: yields each verified line, and a `Damage` for each damaged part."""

    def __init__(self, offset: int = 0) -> None:
        """Begin at `offset`, the file offset of a frame."""
        self._buffer = bytearray()
        self._offset = offset
        # Buffer positions: the end of the blocks whose lines have all been verified, the end of the last block read,
        # and the end of the last block that the reader attempted to decompress.
        self._checked = 0
        self._read = 0
        self._attempted = 0
        self._begin = offset
        self._in_frame = False
        self._decompressor: zstandard.ZstdDecompressionObj | None = None
        self._has_checksum = False
        self._header_bytes = 0
        self._text = bytearray()
        self._unpacked = 0
        self._wasted_bytes = 0
        self._retry_budget = RETRY_BYTES
        self._lost = False

    def feed(self, data: bytes) -> Iterator[bytes | Damage]:
        """Take the next bytes; yield the lines that they complete, and a `Damage` for each damaged part."""
        self._buffer += data
        self._retry_budget += RETRY_BYTES_PER_BYTE * len(data)
        yield from self._records()
        self._drop()

    def end(self) -> Iterator[bytes | Damage]:
        """Report data missing at the end of the input, such as the rest of a line.

        If another frame begins inside an incomplete block, the block's size is wrong; reading resumes at that frame.
        """
        while self._in_frame and FRAME.search(self._buffer, self._search_from()):
            yield from self._skip("damaged block")
            yield from self._records()
        if not self._in_frame:
            if len(self._buffer) > self._read and not self._lost:
                yield Damage(self.position, "not a zstd frame")
        elif (self._text or len(self._buffer) > self._read) and not self._lost:
            yield Damage(self.position, "truncated within a record")

    @property
    def begin(self) -> int:
        """The file offset of the current frame."""
        return self._begin

    @property
    def position(self) -> int:
        """The file offset after the last block read."""
        return self._offset + self._read

    def _records(self) -> Iterator[bytes | Damage]:
        while True:
            if self._in_frame:
                size = self._block_bytes()
                if size is None:
                    return
                yield from self._block(size)
            elif len(self._buffer) < self._read + MIN_HEADER_BYTES:
                return
            elif not FRAME.match(self._buffer, self._read):
                yield from self._skip("not a zstd frame")
            else:
                self._begin_frame()

    def _begin_frame(self) -> None:
        descriptor = self._buffer[self._read + len(MAGIC)]
        single = descriptor >> 5 & 1
        content_size_bytes = (single, 2, 4, 8)[descriptor >> 6]
        self._header_bytes = MIN_HEADER_BYTES + (not single) + content_size_bytes
        self._has_checksum = bool(descriptor >> 2 & 1)
        self._in_frame, self._decompressor = True, None
        self._begin = self.position
        self._checked = self._attempted = self._read
        self._unpacked = self._wasted_bytes = 0

    def _block_bytes(self) -> int | None:
        """Return the size of the next block including its headers; 0 if it is malformed, None if it is incomplete."""
        begin = self._read + self._header_bytes
        header = self._buffer[begin : begin + BLOCK_HEADER_BYTES]
        if len(header) < BLOCK_HEADER_BYTES:
            return None
        is_last, kind, size = block_header(header)
        if kind == RESERVED or size > MAX_BLOCK_BYTES:
            return 0
        size = 1 if kind == RLE else size
        size_with_headers = (
            self._header_bytes + BLOCK_HEADER_BYTES + size + (CHECKSUM_BYTES if is_last and self._has_checksum else 0)
        )
        return size_with_headers if len(self._buffer) >= self._read + size_with_headers else None

    def _block(self, size: int) -> Iterator[bytes | Damage]:
        begin = self._read
        out = self._decompressed(size)
        if out is None:
            yield from self._skip("damaged block")
            return
        self._unpacked += len(out)
        self._wasted_bytes += len(out)
        yield from self._lines(out, begin)
        if not self._in_frame:
            return
        self._read, self._header_bytes = begin + size, 0
        if not self._text:
            self._checked = self._read
        if len(self._text) > self._longest_line() or self._unpacked > MAX_FRAME_BYTES:
            yield from self._skip("record or frame larger than any that a recorder writes")
        elif self._decompressor is not None and self._decompressor.eof:
            if self._text and not self._lost:
                yield Damage(self._begin, "unterminated record")
            self._end_frame()

    def _decompressed(self, size: int) -> bytes | None:
        """Return the decompressed block; None if it is damaged or `size` is 0."""
        self._attempted = self._read + size
        if not size:
            return None
        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
        try:
            return self._decompressor.decompress(self._buffer[self._read : self._attempted])
        except zstandard.ZstdError:
            return None

    def _longest_line(self) -> int:
        return min(MAX_LINE_BYTES, MIN_LINE_LIMIT_BYTES + MAX_RATIO * (self._read - self._checked))

    def _lines(self, text: bytes, begin: int) -> Iterator[bytes | Damage]:
        *lines, rest = text.split(b"\n")
        if lines and self._text:
            lines[0] = bytes(self._text) + lines[0]
            self._text.clear()
        for line in lines:
            try:
                body = checked(line)
            except LineError as error:
                yield from self._skip(f"malformed record: {error}")
                return
            self._lost = False
            yield body
            self._checked, self._wasted_bytes = begin, 0
        self._text += rest

    def _skip(self, reason: str) -> Iterator[Damage]:
        """Report damage, unless it follows damage already reported, and continue with the next frame."""
        if not self._lost:
            yield Damage(self.position, reason)
        # Until the next intact line, further damage is not reported.
        self._lost = True
        self._retry_budget -= self._attempted - self._checked + self._wasted_bytes
        frame = FRAME.search(self._buffer, self._search_from())
        # The buffer may end within the header of the next frame.
        self._read = frame.start() if frame else max(len(self._buffer) - MIN_HEADER_BYTES + 1, self._search_from())
        self._end_frame()

    def _search_from(self) -> int:
        """Return the buffer position at which to start searching for the next frame.

        A damaged block is searched as well, because its size may be wrong.
        """
        if not self._in_frame:
            return self._read + 1
        if self._retry_budget < 0:
            return max(self._read + 1, self._attempted)
        return max(self._checked, self._begin - self._offset + 1)

    def _end_frame(self) -> None:
        self._in_frame, self._header_bytes = False, 0
        self._checked = self._attempted = self._read
        self._wasted_bytes = 0
        self._text.clear()

    def _drop(self) -> None:
        """Discard the part of the buffer that is no longer needed."""
        del self._buffer[: self._checked]
        self._offset += self._checked
        self._read -= self._checked
        self._attempted -= self._checked
        self._checked = 0


class LineError(ValueError):
    """A line is not a JSON object, or its checksum is missing or wrong; the message states which."""


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record's line, with checksum and line end; the content must not be empty."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # In a name that was not valid UTF-8, lone surrogates stand for invalid bytes; they are written as question marks.
    return resealed(text.encode(errors="replace"))


def resealed(text: bytes) -> bytes:
    """Return the line, with checksum and line end, for a record's JSON text as returned by `checked`."""
    body = text[:-1]
    return b'%s%s%08x"}\n' % (body, SEAL, zlib.crc32(body))


def checked(line: bytes) -> bytes:
    """Return the JSON text of a line without its line end, without the checksum. Raises LineError."""
    body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
    if not seal.startswith(SEAL) or not seal.endswith(b'"}'):
        raise LineError("no checksum")
    if seal[len(SEAL) : -2] != b"%08x" % zlib.crc32(body):
        raise LineError("checksum mismatch")
    return body + b"}"


def parsed(text: bytes) -> dict[str, Any]:
    """Parse a record's JSON text. Raises LineError."""
    try:
        content = json.loads(text, parse_constant=_refused)
        if HALF.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise LineError(f"invalid JSON: {error}") from None
    if not isinstance(content, dict):
        raise LineError("not a JSON object")
    return content


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not allowed")


@dataclass(frozen=True)
class Footer:
    """A file's footer.

    file, first     as in `FileStart`.
    next            the sequence number that follows the last tick's.
    more            whether the session continues in another file.
    begin_s, end_s  the earliest and the latest tick time in the file.
    offset          the footer's actual position in the file.
    written_at      the position at which the footer was written; it differs from `offset` if the footer was copied
                    from elsewhere.
    """

    session: str
    file: str
    first: int
    next: int
    more: bool
    begin_s: float
    end_s: float
    written_at: int
    offset: int = 0

    def content(self) -> dict[str, Any]:
        return {"end": {key: value for key, value in asdict(self).items() if key != "offset"}}


def footer_of(content: Mapping[str, Any], offset: int) -> Footer:
    """Return the footer in a record. Raises one of the errors in MALFORMED."""
    fields = {key: content[key] for key in Footer.__dataclass_fields__ if key != "offset"}
    footer = Footer(**fields, offset=offset)
    texts_of([footer.session, footer.file])
    numbers = footer.first, footer.next, footer.written_at
    if not all(map(is_number, numbers)) or footer.first > footer.next or type(footer.more) is not bool:
        raise CodingError("malformed footer")
    if not 0 <= footer.begin_s <= footer.end_s <= MAX_TIME_S:
        raise CodingError("footer with an impossible time")
    return footer


def last_footer(path: Path) -> Footer | None:
    """Return the footer at the end of a file; None if it is missing, malformed or a misplaced copy. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(size - MAX_FOOTER_BYTES, 0))
        data = file.read()
    at = data.rfind(MAGIC)
    if at < 0:
        return None
    try:
        (line,) = Frames().feed(data[at:])
        footer = footer_of(json.loads(line)["end"], begin + at) if isinstance(line, bytes) else None
    except MALFORMED:
        return None
    return footer if footer is not None and footer.written_at == footer.offset else None


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
