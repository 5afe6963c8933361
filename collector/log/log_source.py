"""Cassandra's log as an event source."""

from collections import Counter
from pathlib import Path

from collector.log.file_follower import FileFollower
from collector.log.log_events import event_of
from collector.log.logback import LogPattern
from collector.model.clock import Clock
from collector.model.snapshot import Event, Scrape, SourceError
from collector.printable import count_text, one_line

NAME = "log"
# Limits per tick; the rest of the log is read in the following ticks. Events beyond MAX_EVENTS are only counted.
MAX_BYTES = 4 << 20
SHARE_OF_TIMEOUT = 0.25
MAX_EVENTS = 100


class LogSource:
    """Follows a log from its end. Its scrapes contain events but no values."""

    name = NAME

    def __init__(self, path: Path, pattern: LogPattern, clock: Clock) -> None:
        self._path = path
        self._pattern = pattern
        self._clock = clock
        self._follower = FileFollower(path, clock)

    def read(self, timeout_s: float) -> Scrape:
        """Return the events since the last call: at most 100, plus a count of the others.

        Raises SourceError if the log cannot be read and there are no events.
        """
        events: list[Event] = []
        omitted: Counter[str] = Counter()
        problem = ""
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
            if not events:
                raise
            problem = str(error)
        return Scrape(NAME, self._clock.monotonic_s(), problem=problem, events=(*events, *self._summary(omitted)))

    def close(self) -> None:
        self._follower.close()

    def _event(self, text: str) -> Event | None:
        line = self._pattern.line(text)
        kind_and_text = event_of(line.message) if line else None
        if line is None or kind_and_text is None:
            return None
        return Event(*kind_and_text, self._pattern.time_s(line, self._clock.wall_s()))

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
