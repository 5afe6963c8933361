"""Cuts a journal's file to a time range. The result is a complete file of its own, with a footer."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import zstandard

from collector.journal.footer import Footer
from collector.journal.frames import Damage
from collector.journal.header import FileStart, file_start_of
from collector.journal.record_lines import parsed, resealed, sealed
from collector.journal.validation import MALFORMED, tick_of
from collector.journal.writer import COMPRESSION

# Frames with ticks up to this long before the range are kept, because a rate needs two readings, which may be up to a
# minute apart.
LOOK_BACK_S = 150.0


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


@dataclass
class _Frame:
    """A frame's header, the JSON texts of its records, and the sequence number and time of each."""

    head: dict[str, Any]
    texts: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)

    def add(self, text: bytes, content: dict[str, Any]) -> None:
        """Add a record. Raises one of the errors in MALFORMED."""
        time_s, number = tick_of(content).time_s, int(content.get("q", 0))
        self.texts.append(text)
        self.numbers.append(number)
        self.times_s.append(time_s)

    def cut(self, length: int) -> "_Frame":
        """Return the frame with only its first `length` records."""
        return _Frame(self.head, self.texts[:length], self.numbers[:length], self.times_s[:length])

    def packed(self, first: int) -> bytes:
        """Return the compressed frame, as part of a file whose first tick has the sequence number `first`."""
        head = {**self.head, "first": first} if "first" in self.head else self.head
        lines = [sealed({**parsed(self.texts[0]), "head": head}), *map(resealed, self.texts[1:])]
        return zstandard.ZstdCompressor(compression_params=COMPRESSION).compress(b"".join(lines))


def trimmed(lines: Iterable[bytes | Damage], from_s: float, to_s: float, span: TickSpan) -> Iterator[bytes]:
    """Yield a file's bytes, cut to the ticks from `from_s` to `to_s`; nothing if there are none.

    Adds the ticks in the time range to `span`. Whole frames are kept before the range, so that rates are known from its
    first tick on. Ticks lost through damage remain recognisable as lost, because sequence numbers are kept. If the
    clock was changed, everything between the first and the last tick in the range is kept.
    """
    before: deque[_Frame] = deque()
    after: list[_Frame] = []
    last: _Frame | None = None
    kept = _Kept()
    for frame in _frames(lines):
        in_range = [time_s for time_s in frame.times_s if from_s <= time_s <= to_s]
        for time_s in in_range:
            span.add(time_s)
        if in_range:
            before_last = [*before] if last is None else [last, *after]
            before.clear()
            after.clear()
            yield from map(kept.taken, before_last)
            last = frame
        elif last is not None:
            after.append(frame)
        elif max(frame.times_s) >= from_s - LOOK_BACK_S:
            before.append(frame)
    if last is not None:
        length = max(index for index, time_s in enumerate(last.times_s, 1) if from_s <= time_s <= to_s)
        yield kept.taken(last.cut(length))
        yield kept.footer()


@dataclass
class _Kept:
    """The frames that are kept: the sequence numbers, times and size that the footer states."""

    first: int | None = None
    next: int = 0
    size: int = 0
    span: TickSpan = field(default_factory=TickSpan)
    session: str = ""
    start: FileStart | None = None

    def taken(self, frame: _Frame) -> bytes:
        """Take a frame and return it compressed."""
        if self.first is None:
            self.first = frame.numbers[0]
        self.next = frame.numbers[-1] + 1
        self.session, self.start = str(frame.head.get("session", "")), file_start_of(frame.head)
        for time_s in frame.times_s:
            self.span.add(time_s)
        data = frame.packed(self.first)
        self.size += len(data)
        return data

    def footer(self) -> bytes:
        """Return the compressed footer; nothing in format 1, which has none."""
        if self.start is None or self.first is None:
            return b""
        times_s = self.span.begin_s, self.span.end_s
        footer = Footer(self.session, self.start.file, self.first, self.next, False, *times_s, self.size)
        return zstandard.compress(sealed(footer.content()))


def _frames(lines: Iterable[bytes | Damage]) -> Iterator[_Frame]:
    """Yield the frames, up to damage or a malformed record in each."""
    frame: _Frame | None = None
    for line in lines:
        try:
            content: dict[str, Any] = {"end": None} if isinstance(line, Damage) else parsed(line)
            if "head" in content or "end" in content:
                if frame is not None and frame.texts:
                    yield frame
                frame = _Frame(content["head"]) if "head" in content else None
            if frame is not None and isinstance(line, bytes):
                frame.add(line, content)
        except MALFORMED:
            if frame is not None and frame.texts:
                yield frame
            frame = None
    if frame is not None and frame.texts:
        yield frame
