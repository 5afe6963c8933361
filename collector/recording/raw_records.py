"""Reads the records of a journal file without decoding their values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.recording.footer import Footer, footer_of
from collector.recording.frames import Damage, Frames
from collector.recording.header import FileStart, file_start_of, header_of, lost_ticks_of
from collector.recording.reader import CHUNK_BYTES, sequence_number_of
from collector.recording.record_lines import parsed
from collector.recording.validation import MALFORMED, tick_of

RecordPosition = tuple[int, int]
"""A record's position: the file offset of its zstd frame, and the number of readable records before it in the frame."""


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
    Calls `check` at least once per record; it may raise an exception to stop. Raises OSError.
    """
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
        # Whether the current frame has been readable so far, and the number of its next tick.
        self._is_readable = False
        self._next: int | None = None
        self._position: RecordPosition = (-1, 0)

    def records(self, line: bytes | Damage, frames: Frames) -> Iterator[RawRecord | Damage | Footer]:
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
                yield RawRecord(self._position, line, content, number, tick_of(content).time_s)
        except MALFORMED as error:
            self._is_readable = False
            yield Damage(frames.position, f"malformed record: {error}")
