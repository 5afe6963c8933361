"""The order of ticks: by sequence number within a session, independent of clocks and file names.

Since format 2, every tick has a sequence number, and a closed file ends with a footer. They reveal ticks that are
repeated, out of order or missing, and whether a recording is complete.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collector.printable import count_text
from collector.recording.footer import Footer
from collector.recording.frames import Damage
from collector.recording.header import FileStart
from collector.recording.reader import Entry


@dataclass(frozen=True)
class LostTicks:
    """Ticks that are missing before a file offset."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        """The finding as text."""
        return f"{count_text(self.ticks, 'tick')} lost before this position"


@dataclass(frozen=True)
class RepeatedTicks:
    """Ticks that are skipped, starting at a file offset, because they or later ticks have already been read."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        """The finding as text."""
        return f"{count_text(self.ticks, 'tick')} repeated or out of order, ignored"


Finding = Damage | LostTicks | RepeatedTicks


@dataclass(frozen=True)
class Integrity:
    """The number of defects of each kind in recordings: damaged sections, lost and repeated ticks, incomplete sessions.

    unfinished  sessions without a footer: they are still being written, the recorder was killed, or the file was
                truncated.
    continued   sessions with a later file missing.
    """

    damaged: int = 0
    lost: int = 0
    repeated: int = 0
    unfinished: int = 0
    continued: int = 0

    def __add__(self, other: "Integrity") -> "Integrity":
        """Return the sums of the counts."""
        return Integrity(
            self.damaged + other.damaged,
            self.lost + other.lost,
            self.repeated + other.repeated,
            self.unfinished + other.unfinished,
            self.continued + other.continued,
        )


class TickOrder:
    """Follows a directory's sessions tick by tick.

    Footers are evaluated at the end of the input, because if frames were moved or copied, a footer may precede its
    ticks.
    """

    def __init__(self, *, resumed: bool = False) -> None:
        """If `resumed`, reading begins within a file, so the ticks before the first one read do not count as lost."""
        self._resumed = resumed
        # Keyed by session: the next expected sequence number, the first one according to the footers, and the last
        # footer.
        self._next: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._footers: dict[str, Footer] = {}
        self._lost = 0
        self._repeated = 0

    def take(self, session: str, start: FileStart | None, first: int, count: int = 1) -> int:
        """Add `count` ticks with consecutive numbers from `first` on; return how many of them are repeats.

        The repeats precede the other ticks.
        """
        if start is None:
            return 0
        begin = first if self._resumed else min(start.first, self._first.get(session, start.first))
        self._resumed = False
        expected = self._next.get(session, begin)
        repeated = min(max(expected - first, 0), count)
        self._repeated += repeated
        if repeated < count:
            self._lost += max(first - expected, 0)
            self._next[session] = first + count
        return repeated

    def end(self, footer: Footer) -> None:
        """Add a file's footer."""
        session = footer.session
        self._first[session] = min(self._first.get(session, footer.first), footer.first)
        if session not in self._footers or self._footers[session].next <= footer.next:
            self._footers[session] = footer

    def missing_ends(self) -> list[tuple[Footer, LostTicks]]:
        """Return the ticks missing before each session's last footer; call this at the end of the input."""
        lost_ticks = []
        for session, footer in self._footers.items():
            ticks = footer.next - self._next.get(session, self._first[session])
            if ticks > 0:
                lost_ticks.append((footer, LostTicks(footer.offset, ticks)))
        return lost_ticks

    def integrity(self, damaged: int = 0) -> Integrity:
        """Return the defects of everything read; `damaged` is the number of damaged sections."""
        ended = {session for session, footer in self._footers.items() if footer.next >= self._next.get(session, 0)}
        unfinished = len(self._next.keys() - ended)
        continued = sum(self._footers[session].more for session in ended)
        lost = self._lost + sum(lost_ticks.ticks for _, lost_ticks in self.missing_ends())
        return Integrity(damaged, lost, self._repeated, unfinished, continued)

    def filtered(self, records: Iterable[Entry | Damage | Footer]) -> Iterator[Entry | Finding]:
        """Yield a file's findings and its entries, except repeated and out-of-order ones; process its footer."""
        repeated: RepeatedTicks | None = None
        for record in records:
            if isinstance(record, Footer):
                self.end(record)
                continue
            lost = self._lost
            if isinstance(record, Entry) and self.take(record.head.session, record.start, record.number):
                repeated = RepeatedTicks(*((repeated.offset, repeated.ticks + 1) if repeated else (record.frame, 1)))
                continue
            if repeated is not None:
                yield repeated
                repeated = None
            if isinstance(record, Entry) and self._lost > lost:
                yield LostTicks(record.frame, self._lost - lost)
            yield record
        if repeated is not None:
            yield repeated
