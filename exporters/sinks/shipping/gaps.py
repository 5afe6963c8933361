"""Detects gaps: ticks that disappear from the journal before they are shipped."""

from dataclasses import dataclass

from collector.printable import count_text, local_time
from collector.recording.frames import Damage
from collector.recording.reader import Entry, Finding, LostTicks, Removed
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.sinks.shipping.checkpoint import Checkpoint


@dataclass(frozen=True)
class PreviousTick:
    """A tick, for comparison with the one after it.

    at_s  when it was read, on the monotonic clock; None if unknown.
    lost  number of ticks that its writer had failed to write by then; None if unknown.
    """

    time_s: float
    session: str
    at_s: float | None = None
    lost: int | None = None


class Gaps:
    """Compares each tick with the one before it, and counts and logs the ticks missing in between."""

    def __init__(self, log: RateLimitedLogger) -> None:
        """Report gaps and damage to `log`."""
        self._log = log
        self._previous: PreviousTick | None = None
        self._cause = ""
        self.lost = 0

    def restart(self, checkpoint: Checkpoint | None) -> None:
        """Start over: the next tick is compared with the checkpoint's tick, if there is one."""
        self._previous = None if checkpoint is None else PreviousTick(checkpoint.time_s, checkpoint.session)
        self._cause = ""

    def note(self, finding: Finding | Removed) -> None:
        """Record a finding that may explain a gap before the next tick."""
        if isinstance(finding, Removed):
            self._cause = self._cause or "journal files were removed before they were sent"
            return
        if isinstance(finding, LostTicks):
            # Nothing to record: `count` handles lost ticks when the next tick arrives.
            return
        if isinstance(finding, Damage):
            self._cause = f"the journal is damaged: byte {finding.offset}: {finding.reason}"
            self._log(self._cause, kind="damage")
        else:
            self._log(f"byte {finding.offset} of the journal: {finding.reason}", kind="repeated")

    def skip(self, entry: Entry) -> None:
        """Record a tick that has already been sent."""
        self._previous, self._cause = _previous_tick(entry), ""

    def count(self, entry: Entry) -> None:
        """Count and log the ticks missing between the previous tick and this one."""
        previous, now, suspected = self._previous, _previous_tick(entry), self._cause
        self._previous, self._cause = now, ""
        if previous is None:
            return
        lost = missing(previous, now, entry.head.interval_s, entry.snapshot.tick.missed, suspected=bool(suspected))
        if lost:
            self.lost += lost
            most = "at most " if previous.session != now.session else ""
            cause = suspected or "missing from the journal"
            self._log(f"lost {most}{count_text(lost, 'tick')} before {local_time(now.time_s)}: {cause}", kind="gap")


def missing(previous: PreviousTick, now: PreviousTick, interval_s: float, missed: int, *, suspected: bool) -> int:
    """Return the number of ticks missing between two ticks; an upper bound if their sessions differ.

    Ticks that the recorder missed or could not write do not count, and neither do changes to the wall clock. Between
    sessions, the recorder may simply have been stopped, so ticks count only if a gap is `suspected`.
    """
    same = previous.session == now.session
    if not same and not suspected:
        return 0
    gap_s = now.time_s - previous.time_s
    if same and previous.at_s is not None and now.at_s is not None:
        gap_s = min(gap_s, now.at_s - previous.at_s)
    unwritten = now.lost - previous.lost if same and now.lost is not None and previous.lost is not None else 0
    return max(round(gap_s / interval_s) - 1 - missed - unwritten, 0)


def _previous_tick(entry: Entry) -> PreviousTick:
    snapshot = entry.snapshot
    at_s = max((scrape.at_s for scrape in snapshot.scrapes), default=None)
    return PreviousTick(snapshot.tick.time_s, entry.head.session, at_s, entry.lost)
