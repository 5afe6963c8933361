"""The order of ticks: by sequence number within a session, whatever clocks and file names say.

Since format 2 every tick has a number, which grows by one within a session, and a file that was closed ends with a
footer. So ticks that are repeated, out of order or missing are known, and so is whether a recording is complete.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collector.journal.footer import Footer
from collector.journal.frames import Damage
from collector.journal.header import Start
from collector.journal.reader import Entry


@dataclass(frozen=True)
class Lost:
    """So many ticks are missing before a byte of the file."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        """What happened, in words."""
        return f"{self.ticks} ticks before it are lost"


@dataclass(frozen=True)
class Repeated:
    """So many ticks from a byte of the file on are left out: they, or later ones, were read before."""

    offset: int
    ticks: int

    @property
    def reason(self) -> str:
        """What happened, in words."""
        return f"{self.ticks} ticks are repeated or out of order, and left out"


Finding = Damage | Lost | Repeated


@dataclass(frozen=True)
class Integrity:
    """What is wrong with recordings: damaged places, ticks lost and repeated, and sessions that have no end.

    unfinished  sessions that ended without a footer: they are still being written, the recorder was killed, or the file
                was cut off.
    continued   sessions of which a later file is missing.
    """

    damaged: int = 0
    lost: int = 0
    repeated: int = 0
    unfinished: int = 0
    continued: int = 0

    def __add__(self, other: "Integrity") -> "Integrity":
        """Return what is wrong with both."""
        return Integrity(
            self.damaged + other.damaged,
            self.lost + other.lost,
            self.repeated + other.repeated,
            self.unfinished + other.unfinished,
            self.continued + other.continued,
        )


class TickOrder:
    """Follows the sessions of a folder from tick to tick.

    Footers count only at the end: a frame that was copied or moved may have put one before the ticks it is about.
    """

    def __init__(self, *, resumed: bool = False) -> None:
        """Take whether reading begins within a file: then nothing is missing before the first tick."""
        self._resumed = resumed
        # By session: the number that comes next, the first one that a footer states, and the last footer.
        self._next: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._footers: dict[str, Footer] = {}
        self._lost = 0
        self._repeated = 0

    def take(self, session: str, start: Start | None, first: int, count: int = 1) -> int:
        """Take ticks with numbers from `first` on; return how many of them, from the first on, are repeats."""
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
        """Take the footer of a file."""
        session = footer.session
        self._first[session] = min(self._first.get(session, footer.first), footer.first)
        if session not in self._footers or self._footers[session].next <= footer.next:
            self._footers[session] = footer

    def missing_ends(self) -> list[tuple[Footer, Lost]]:
        """Return what is missing before the last footers, when nothing comes any more."""
        found = []
        for session, footer in self._footers.items():
            ticks = footer.next - self._next.get(session, self._first[session])
            if ticks > 0:
                found.append((footer, Lost(footer.offset, ticks)))
        return found

    def integrity(self, damaged: int = 0) -> Integrity:
        """Return what is wrong with all that was read; `damaged` are the places that are."""
        ended = {session for session, footer in self._footers.items() if footer.next >= self._next.get(session, 0)}
        unfinished = len(self._next.keys() - ended)
        continued = sum(self._footers[session].more for session in ended)
        lost = self._lost + sum(each.ticks for _, each in self.missing_ends())
        return Integrity(damaged, lost, self._repeated, unfinished, continued)

    def filtered(self, records: Iterable[Entry | Damage | Footer]) -> Iterator[Entry | Finding]:
        """Yield the entries of a file that come next, and all that is wrong."""
        repeated: Repeated | None = None
        for record in records:
            if isinstance(record, Footer):
                self.end(record)
                continue
            lost = self._lost
            if isinstance(record, Entry) and self.take(record.head.session, record.start, record.number):
                repeated = Repeated(*((repeated.offset, repeated.ticks + 1) if repeated else (record.frame, 1)))
                continue
            if repeated is not None:
                yield repeated
                repeated = None
            if isinstance(record, Entry) and self._lost > lost:
                yield Lost(record.frame, self._lost - lost)
            yield record
        if repeated is not None:
            yield repeated
