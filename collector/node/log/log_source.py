"""Cassandra's log as an event source."""

from collections import Counter
from pathlib import Path

from collector.model.clock import Clock
from collector.model.snapshot import Event, Scrape, SourceError
from collector.node.log.file_follower import FileFollower
from collector.node.log.log_events import event_of
from collector.node.log.logback import LogPattern
from collector.node.log.pattern_check import PatternCheck
from collector.printable import count_text, one_line

NAME = "log"
# Limits per tick; the rest of the log is read in the following ticks. Events beyond MAX_EVENTS are only counted.
MAX_BYTES = 4 << 20
SHARE_OF_TIMEOUT = 0.25
MAX_EVENTS = 100


class LogSource:
    """Follows a log from its end. Its scrapes contain events but no values."""

    name = NAME

    def __init__(self, path: Path, pattern: LogPattern, clock: Clock, hint: str = "") -> None:
        """Follow the log at `path`; `hint` states what to do if its lines do not match the pattern."""
        self._path = path
        self._pattern = pattern
        self._clock = clock
        self._follower = FileFollower(path, clock)
        self._hint = hint
        self._check = PatternCheck(pattern)
        self._has_read = False
        self._file_number = 1

    def read(self, timeout_s: float) -> Scrape:
        """Return the events since the last call: at most 100, plus a count of the others.

        Raises SourceError if the log cannot be read and there are no events.
        """
        events: list[Event] = []
        omitted: Counter[str] = Counter()
        problem = ""
        # The events of the first tick are not shown, because there is no interval before it.
        mismatch = self._mismatch() if self._has_read else []
        if not self._has_read:
            self._has_read = True
            self._check.begin(self._path)
        try:
            for line in self._follower.lines(MAX_BYTES, self._clock.monotonic_s() + SHARE_OF_TIMEOUT * timeout_s):
                event = self._event(line.decode("utf-8", "replace"))
                if event is None:
                    continue
                if len(events) < MAX_EVENTS:
                    events.append(event)
                else:
                    omitted[event.kind] += 1
        except SourceError as error:
            if not events and not mismatch:
                raise
            problem = str(error)
        return Scrape(
            NAME, self._clock.monotonic_s(), problem=problem, events=(*mismatch, *events, *self._summary(omitted))
        )

    def close(self) -> None:
        self._follower.close()

    def _event(self, text: str) -> Event | None:
        line = self._pattern.line(text)
        if self._follower.file_number != self._file_number:
            self._check.next_file()
            self._file_number = self._follower.file_number
        self._check.add(text, matches=line is not None)
        kind_and_text = event_of(line.message) if line else None
        if line is None or kind_and_text is None:
            return None
        return Event(*kind_and_text, self._pattern.time_s(line, self._clock.wall_s()))

    def _mismatch(self) -> list[Event]:
        """Return the event about a log whose lines do not match the pattern, if it is new."""
        hint = f" (hint: {self._hint})" if self._hint else ""
        problem = self._check.take_problem()
        return [Event("log_pattern", f"{one_line(self._path.name)}: {problem}{hint}")] if problem else []

    def _summary(self, omitted: Counter[str]) -> list[Event]:
        """Return an event that counts the omitted events by kind, and one for skipped bytes, if there were any."""
        summary = []
        if omitted:
            kinds = ", ".join(f"{number} {kind}" for kind, number in omitted.most_common())
            summary.append(Event(NAME, f"and {count_text(omitted.total(), 'more event')}: {kinds}"))
        if skipped := self._follower.take_skipped():
            text = f"skipped {skipped / 2**20:.1f} MiB of {one_line(self._path.name)}: backlog too large"
            summary.append(Event(NAME, text))
        return summary
