"""Finds the frames of a journal's file, and those that may contain the ticks of a time range, without reading all."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import zstandard

from collector.recording.format_version import FULL_EVERY
from collector.recording.frames import (
    BLOCK_HEADER_BYTES,
    FRAME,
    MAX_BLOCK_BYTES,
    MAX_WINDOW_BYTES,
    MIN_HEADER_BYTES,
    RESERVED,
    RLE,
    block_header,
)

CHUNK_BYTES = 1 << 20
# A frame's header has at most 18 bytes (RFC 8878, 3.1.1).
FIRST_BLOCK_BYTES = 18 + BLOCK_HEADER_BYTES + MAX_BLOCK_BYTES
# The beginning of a full record, as `writer` and `encoding` write it. Names cannot contain these keys, because their
# quotation marks are escaped.
FULL_RECORD = re.compile(
    rb'\{"head":\{.*?"interval_s":(?P<interval_s>[\d.]+),.*?"q":\d+,"t":(?P<time_s>[\d.]+)[,}]', re.DOTALL
)


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
    return _offset(frames, first - 1, size_bytes), _offset(frames, last + 2, size_bytes)


def _may_overlap(frames: Sequence[FrameStart], from_s: float, to_s: float) -> bool:
    """Return whether the first of these frames may have a tick in the time range; the second one follows, if any.

    If the clock was changed within the frame, ticks before the change follow the frame's beginning by at most its
    length, and ticks after the change precede its end by at most that.
    """
    frame = frames[0]
    end_s = frames[1].time_s if len(frames) > 1 else inf
    return min(frame.time_s, end_s - frame.length_s) <= to_s and from_s <= max(frame.time_s + frame.length_s, end_s)


def _offset(frames: Sequence[FrameStart], index: int, size_bytes: int) -> int:
    """Return the offset of a frame; 0 before the first frame, and the file's size after the last one."""
    if index < 0:
        return 0
    return frames[index].offset if index < len(frames) else size_bytes


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
    for chunk in range(begin, end, CHUNK_BYTES):
        data = os.pread(file, min(CHUNK_BYTES + MIN_HEADER_BYTES, end - chunk), chunk)
        for match in FRAME.finditer(data):
            if match.start() < CHUNK_BYTES:
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
