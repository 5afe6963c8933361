"""Finds the part of a journal's file to keep for a time range."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from collector.recording.footer import Footer
from collector.recording.frames import Damage
from collector.recording.header import FileStart, Header, file_start_of, header_of
from collector.recording.look_back import look_back_s
from collector.recording.raw_records import RawRecord, RecordPosition, raw_records


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
