"""The compressed bytes of a journal, as they come: its lines, and where there is damage.

A journal is a row of zstd frames (RFC 8878), each of which can be read alone; within one, every line ends a block, so
that all that was written can be read. After damage reading goes on with the next frame: what follows a line that is
lost tells of differences to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from collector.journal.lines import LineError, checked

MAGIC = zstandard.FRAME_HEADER
# So small that what it is unpacked to, 128 KiB for four bytes at most, does not take all memory.
PIECE_BYTES = 1024
# More than one tick of a node with tens of thousands of series.
LONGEST_LINE_BYTES = 32 << 20
# What a writer of casstat's uses is far less: a file of somebody else must not take all memory.
LARGEST_WINDOW_BYTES = 32 << 20
LARGEST_FRAME_BYTES = 1 << 30


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
        self._fed = 0
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._text = bytearray()
        self._unpacked = 0
        self._lost = False

    def feed(self, data: bytes) -> Iterator[bytes | Damage]:
        """Take the bytes that come next."""
        self._held += data
        while self._frame is not None or self._begins():
            if self._frame is None:
                yield from self._skipped("is no zstd frame")
            elif self._fed == len(self._held):
                return
            else:
                yield from self._piece(self._frame)

    def end(self) -> Iterator[bytes | Damage]:
        """Say what is missing when nothing comes any more: the end of a line that was being written, if so.

        A frame that waits for its rest, and in which another begins, is one that says it is larger than it is.
        """
        while self._frame is not None and self._held.find(MAGIC, 1) > 0:
            yield from self._skipped("is damaged")
            yield from self.feed(b"")
        if self._held and self._frame is None and not self._lost:
            yield Damage(self._offset, "is no zstd frame")
        elif self._text:
            yield Damage(self.place, "ends within a line")

    @property
    def begin(self) -> int:
        """The byte of the file at which the frame begins that is being read."""
        return self._offset

    @property
    def place(self) -> int:
        """The byte of the file up to which all is read."""
        return self._offset + self._fed

    def _begins(self) -> bool:
        """Begin with the next frame; return whether there is enough of it to tell whether it is one."""
        if len(self._held) < len(MAGIC):
            return False
        if self._held.startswith(MAGIC):
            self._frame, self._fed, self._unpacked = _decompressor(), 0, 0
        return True

    def _piece(self, frame: "zstandard.ZstdDecompressionObj") -> Iterator[bytes | Damage]:
        piece = bytes(self._held[self._fed : self._fed + PIECE_BYTES])
        try:
            out = frame.decompress(piece)
        except zstandard.ZstdError:
            yield from self._lines(self._salvaged(piece))
            if self._frame is not None:
                yield from self._skipped("is damaged")
            return
        self._fed += len(piece) - len(frame.unused_data)
        self._unpacked += len(out)
        yield from self._lines(out)
        if self._frame is None:
            return
        if len(self._text) > LONGEST_LINE_BYTES:
            yield from self._skipped("holds a line without an end")
        elif self._unpacked > LARGEST_FRAME_BYTES:
            yield from self._skipped("holds more than any recorder writes")
        elif frame.eof:
            if self._text:
                yield Damage(self._offset, "holds a line without an end")
            self._drop(self._fed)

    def _lines(self, text: bytes) -> Iterator[bytes | Damage]:
        self._text += text
        while (end := self._text.find(b"\n")) >= 0:
            try:
                body = checked(bytes(self._text[: end + 1]))
            except LineError as error:
                yield from self._skipped(f"holds a line that {error}")
                return
            self._lost = False
            yield body
            del self._text[: end + 1]

    def _salvaged(self, piece: bytes) -> bytes:
        """Return what can be had of a piece in which there is damage: what stands before it."""
        frame = _decompressor()
        for place in range(0, self._fed, PIECE_BYTES):
            frame.decompress(bytes(self._held[place : min(place + PIECE_BYTES, self._fed)]))
        out = bytearray()
        try:
            for place in range(len(piece)):
                out += frame.decompress(piece[place : place + 1])
        except zstandard.ZstdError:
            pass
        return bytes(out)

    def _skipped(self, reason: str) -> Iterator[Damage]:
        """Go on with the next frame behind the place that is reached."""
        if not self._lost:
            yield Damage(self.place, reason)
        # Said once, until there is a line again.
        self._lost = True
        # What was damaged may have looked as if it reached into the next frame.
        at = self._held.find(MAGIC, 1)
        # The beginning of the next one may be all that there is yet.
        self._drop(at if at >= 0 else max(len(self._held) - len(MAGIC) + 1, 1))

    def _drop(self, size: int) -> None:
        self._offset += size
        del self._held[:size]
        self._frame, self._fed = None, 0
        self._text.clear()


def _decompressor() -> "zstandard.ZstdDecompressionObj":
    return zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW_BYTES).decompressobj()
