"""The order of ticks: by sequence number within a session, whatever clocks and file names say.

Since format 2 every tick has a number, which grows by one within a session, and a file that was closed ends with a
footer. So ticks that are repeated, out of order or missing are known, and so is whether a recording is complete.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collector.journal.footer import Footer
from collector.journal.frames import Damage
from collector.journal.head import Start
from collector.journal.reading import Entry


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
    """Follows the sessions of a folder from tick to tick."""

    def __init__(self, *, resumed: bool = False) -> None:
        """Take whether reading begins within a file: then nothing is missing before the first tick."""
        self._resumed = resumed
        self._next: dict[str, int] = {}
        self._footers: dict[str, Footer | None] = {}
        self._lost = 0
        self._repeated = 0

    def take(self, session: str, start: Start | None, first: int, count: int = 1) -> int:
        """Take ticks with numbers from `first` on; return how many of them, from the first on, are repeats."""
        if start is None:
            return 0
        begin = first if self._resumed else start.first
        self._resumed = False
        expected = self._next.get(session, begin)
        repeated = min(max(expected - first, 0), count)
        self._repeated += repeated
        if repeated < count:
            self._lost += max(first - expected, 0)
            self._next[session] = first + count
            self._footers[session] = None
        return repeated

    def end(self, footer: Footer) -> int:
        """Take the footer of a file; return how many ticks are missing before it."""
        expected = self._next.get(footer.session, footer.next if self._resumed else footer.first)
        self._resumed = False
        lost = max(footer.next - expected, 0)
        self._lost += lost
        if footer.next >= expected:
            self._next[footer.session] = footer.next
            self._footers[footer.session] = footer
        return lost

    def integrity(self, damaged: int = 0) -> Integrity:
        """Return what is wrong with what was read, besides the places that are damaged."""
        ends = self._footers.values()
        unfinished = sum(footer is None for footer in ends)
        continued = sum(footer is not None and footer.more for footer in ends)
        return Integrity(damaged, self._lost, self._repeated, unfinished, continued)

    def filtered(self, records: Iterable[Entry | Damage | Footer]) -> Iterator[Entry | Finding]:
        """Yield the entries of a file that come next, and all that is wrong."""
        repeated: Repeated | None = None
        for record in records:
            lost = self._lost
            if isinstance(record, Entry):
                if self.take(record.head.session, record.start, record.number):
                    repeated = Repeated(*((repeated.offset, repeated.ticks + 1) if repeated else (record.frame, 1)))
                    continue
            elif isinstance(record, Footer):
                self.end(record)
            if repeated is not None:
                yield repeated
                repeated = None
            if self._lost > lost and not isinstance(record, Damage):
                yield Lost(record.frame if isinstance(record, Entry) else record.offset, self._lost - lost)
            if not isinstance(record, Footer):
                yield record
        if repeated is not None:
            yield repeated
