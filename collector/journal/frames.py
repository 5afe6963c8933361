"""The compressed bytes of a journal as they come: the lines they hold, and where they are damaged.

A journal is a row of zstd frames (RFC 8878), each of which can be read alone; within one, every line ends a block, so
that all that was written can be read. After damage reading goes on with the next frame, because the lines that follow a
lost one are differences to it. Blocks are decompressed one by one: a damaged one takes none of those before it along.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from collector.journal.record_lines import LineError, checked

MAGIC = zstandard.FRAME_HEADER
# A frame's header without a dictionary and without the reserved bit (RFC 8878, 3.1.1.1).
DESCRIPTORS = bytes(descriptor for descriptor in range(256) if not descriptor & 0b1011)
FRAME = re.compile(re.escape(MAGIC) + b"[" + re.escape(DESCRIPTORS) + b"]", re.DOTALL)
SHORTEST_HEADER = len(MAGIC) + 1
CHECKSUM_BYTES = 4
BLOCK_HEADER_BYTES = 3
RLE, RESERVED = 1, 3
LARGEST_BLOCK_BYTES = 128 << 10
# More than one tick of a node with tens of thousands of series.
LONGEST_LINE_BYTES = 32 << 20
# A line unpacks to at most so much, and so many times what it takes compressed; series' names take a fiftieth.
LEAST_LINE_BYTES = 1 << 20
LARGEST_RATIO = 256
# A recorder needs far less: a foreign file must not take all memory.
LARGEST_WINDOW_BYTES = 32 << 20
LARGEST_FRAME_BYTES = 1 << 30
# What reading again after damage may cost, in bytes read and unpacked in vain: so much, and so much for each byte.
# Beyond it, frames inside of what was read already are not looked for, so that time stays linear in the input.
VAIN_BYTES = 2 * LONGEST_LINE_BYTES
VAIN_SHARE = 16


@dataclass(frozen=True)
class Damage:
    """What cannot be read: from which byte of the file on, and why."""

    offset: int
    reason: str


class Frames:
    """Takes bytes and yields the texts of lines that fit their checksums, and damage."""

    def __init__(self, offset: int = 0) -> None:
        """Take the byte of the file at which the first bytes stand; a frame begins there."""
        self._held = bytearray()
        self._offset = offset
        # Positions in what is held: behind the last line that was checked, behind the last block that was read, and
        # behind the last one that reading was tried of.
        self._checked = 0
        self._read = 0
        self._tried = 0
        self._begin = offset
        self._in_frame = False
        self._decompressor: zstandard.ZstdDecompressionObj | None = None
        self._has_checksum = False
        self._header_bytes = 0
        self._text = bytearray()
        self._unpacked = 0
        self._unpacked_vainly = 0
        self._allowed = VAIN_BYTES
        self._lost = False

    def feed(self, data: bytes) -> Iterator[bytes | Damage]:
        """Take the bytes that come next."""
        self._held += data
        self._allowed += VAIN_SHARE * len(data)
        yield from self._records()
        self._drop()

    def end(self) -> Iterator[bytes | Damage]:
        """Report what is missing when nothing comes any more: the end of a line that was being written, if so.

        A frame that waits for its rest, and in which another begins, is one whose block claims to be too large.
        """
        while self._in_frame and FRAME.search(self._held, self._search_from()):
            yield from self._skip("is damaged")
            yield from self._records()
        if not self._in_frame:
            if len(self._held) > self._read and not self._lost:
                yield Damage(self.place, "is no zstd frame")
        elif (self._text or len(self._held) > self._read) and not self._lost:
            yield Damage(self.place, "ends within a line")

    @property
    def begin(self) -> int:
        """The byte of the file at which the frame begins that is being read."""
        return self._begin

    @property
    def place(self) -> int:
        """The byte of the file up to which all is read."""
        return self._offset + self._read

    def _records(self) -> Iterator[bytes | Damage]:
        while True:
            if self._in_frame:
                size = self._block_bytes()
                if size is None:
                    return
                yield from self._block(size)
            elif len(self._held) < self._read + SHORTEST_HEADER:
                return
            elif not FRAME.match(self._held, self._read):
                yield from self._skip("is no zstd frame")
            else:
                self._begin_frame()

    def _begin_frame(self) -> None:
        descriptor = self._held[self._read + len(MAGIC)]
        single = descriptor >> 5 & 1
        content_size_bytes = (single, 2, 4, 8)[descriptor >> 6]
        self._header_bytes = SHORTEST_HEADER + (not single) + content_size_bytes
        self._has_checksum = bool(descriptor >> 2 & 1)
        self._in_frame, self._decompressor = True, None
        self._begin = self.place
        self._checked = self._tried = self._read
        self._unpacked = self._unpacked_vainly = 0

    def _block_bytes(self) -> int | None:
        """Return the size of the next block, with what stands before it; 0 for none, None where it is not all there."""
        begin = self._read + self._header_bytes
        header = self._held[begin : begin + BLOCK_HEADER_BYTES]
        if len(header) < BLOCK_HEADER_BYTES:
            return None
        number = int.from_bytes(header, "little")
        is_last, kind, size = number & 1, number >> 1 & 3, number >> 3
        if kind == RESERVED or size > LARGEST_BLOCK_BYTES:
            return 0
        size = 1 if kind == RLE else size
        whole = (
            self._header_bytes + BLOCK_HEADER_BYTES + size + (CHECKSUM_BYTES if is_last and self._has_checksum else 0)
        )
        return whole if len(self._held) >= self._read + whole else None

    def _block(self, size: int) -> Iterator[bytes | Damage]:
        begin = self._read
        out = self._decompressed(size)
        if out is None:
            yield from self._skip("is damaged")
            return
        self._unpacked += len(out)
        self._unpacked_vainly += len(out)
        yield from self._lines(out, begin)
        if not self._in_frame:
            return
        self._read, self._header_bytes = begin + size, 0
        if not self._text:
            self._checked = self._read
        if len(self._text) > self._longest_line() or self._unpacked > LARGEST_FRAME_BYTES:
            yield from self._skip("holds more than any recorder writes")
        elif self._decompressor is not None and self._decompressor.eof:
            if self._text and not self._lost:
                yield Damage(self._begin, "holds a line without an end")
            self._end_frame()

    def _decompressed(self, size: int) -> bytes | None:
        """Return what the next block unpacks to; None for one that is damaged, of which there is no size."""
        self._tried = self._read + size
        if not size:
            return None
        if self._decompressor is None:
            self._decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW_BYTES).decompressobj()
        try:
            return self._decompressor.decompress(bytes(self._held[self._read : self._tried]))
        except zstandard.ZstdError:
            return None

    def _longest_line(self) -> int:
        return min(LONGEST_LINE_BYTES, LEAST_LINE_BYTES + LARGEST_RATIO * (self._read - self._checked))

    def _lines(self, text: bytes, begin: int) -> Iterator[bytes | Damage]:
        searched = len(self._text)
        self._text += text
        while (end := self._text.find(b"\n", searched)) >= 0:
            try:
                body = checked(bytes(self._text[: end + 1]))
            except LineError as error:
                yield from self._skip(f"holds a line that {error}")
                return
            self._lost = False
            yield body
            del self._text[: end + 1]
            searched, self._checked, self._unpacked_vainly = 0, begin, 0

    def _skip(self, reason: str) -> Iterator[Damage]:
        """Go on with the next frame."""
        if not self._lost:
            yield Damage(self.place, reason)
        # Reported once, until there is a line again.
        self._lost = True
        self._allowed -= self._tried - self._checked + self._unpacked_vainly
        found = FRAME.search(self._held, self._search_from())
        # The beginning of the next one may be all that there is yet.
        self._read = found.start() if found else max(len(self._held) - SHORTEST_HEADER + 1, self._search_from())
        self._end_frame()

    def _search_from(self) -> int:
        """Return from where to look for the next frame: a damaged block may have seemed to reach into it."""
        if not self._in_frame:
            return self._read + 1
        if self._allowed < 0:
            return max(self._read + 1, self._tried)
        return max(self._checked, self._begin - self._offset + 1)

    def _end_frame(self) -> None:
        self._in_frame, self._header_bytes = False, 0
        self._checked = self._tried = self._read
        self._unpacked_vainly = 0
        self._text.clear()

    def _drop(self) -> None:
        """Let go of what is never read again."""
        del self._held[: self._checked]
        self._offset += self._checked
        self._read -= self._checked
        self._tried -= self._checked
        self._checked = 0
