"""Ticks that a journal does not have any more: counted, and said."""

from dataclasses import dataclass

from collector.journal.follower import Removed
from collector.journal.frames import Damage
from collector.journal.reader import Entry
from collector.journal.tick_order import Finding, Lost
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.shipping.checkpoint import Checkpoint


@dataclass(frozen=True)
class Seen:
    """A tick that is there.

    at_s  when it was read, by a clock that nobody sets; None where not known.
    lost  how many ticks its writer could not write so far; None where not known.
    """

    time_s: float
    session: str
    at_s: float | None = None
    lost: int | None = None


class Gaps:
    """Watches one tick after the other."""

    def __init__(self, say: RateLimitedLogger) -> None:
        """Take what tells people: the matter, and the text."""
        self._say = say
        self._before: Seen | None = None
        self._marked = ""
        self.lost = 0

    def begin(self, done: Checkpoint | None) -> None:
        """Begin to read after a tick that was sent."""
        self._before = None if done is None else Seen(done.time_s, done.session)
        self._marked = ""

    def mark(self, found: Finding | Removed) -> None:
        """Take note that something may be missing before the next tick."""
        if isinstance(found, Removed):
            self._marked = self._marked or "files of the journal were removed before they could be sent"
            return
        if isinstance(found, Lost):
            # They are counted when the next tick comes.
            return
        if isinstance(found, Damage):
            self._marked = f"the journal is damaged: byte {found.offset}: {found.reason}"
            self._say(self._marked, kind="damage")
        else:
            self._say(f"byte {found.offset} of the journal: {found.reason}", kind="repeated")

    def pass_by(self, entry: Entry) -> None:
        """Take note of a tick that was sent in an earlier life."""
        self._before, self._marked = _seen(entry), ""

    def check(self, entry: Entry) -> None:
        """Count what is missing between the last tick and this one."""
        before, now, marked = self._before, _seen(entry), self._marked
        self._before, self._marked = now, ""
        if before is None:
            return
        lost = missing(before, now, entry.head.interval_s, entry.snapshot.tick.missed, marked=bool(marked))
        if lost:
            self.lost += lost
            most = "at most " if before.session != now.session else ""
            why = marked or "the journal does not have them"
            self._say(f"{most}{lost} ticks before {now.time_s:.0f} are lost: {why}", kind="hole")


def missing(before: Seen, now: Seen, interval_s: float, missed: int, *, marked: bool) -> int:
    """Return how many ticks must have been between two that follow each other; at most, when sessions differ.

    What the recorder itself missed or could not write is none of them; nor is what a clock that is set leaves out.
    """
    same = before.session == now.session
    if not same and not marked:
        return 0
    gap_s = now.time_s - before.time_s
    if same and before.at_s is not None and now.at_s is not None:
        gap_s = min(gap_s, now.at_s - before.at_s)
    unwritten = now.lost - before.lost if same and now.lost is not None and before.lost is not None else 0
    return max(round(gap_s / interval_s) - 1 - missed - unwritten, 0)


def _seen(entry: Entry) -> Seen:
    snapshot = entry.snapshot
    at_s = max((scrape.at_s for scrape in snapshot.scrapes), default=None)
    return Seen(snapshot.tick.time_s, entry.head.session, at_s, entry.lost)
