"""Cassandra's log as an event source: follows a file even if it is rotated, truncated, removed or rewritten."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from collector.file_access import GrowingFile, LineSplitter, NotRegularError
from collector.model.clock import Clock
from collector.model.snapshot import Event, Scrape, SourceError
from collector.node.log.log_events import event_of
from collector.node.log.logback import LogPattern, PatternCheck
from collector.printable import count_text, one_line

# The limit is large because a compaction message names every file written, and there may be hundreds of files.
CHUNK_BYTES = 256 << 10
# A larger backlog is skipped, because its events would be shown long after they happened.
MAX_BACKLOG_BYTES = 64 << 20
# A removed file is kept open for REMOVED_GRACE_S, because it may still be written to or may reappear.
REMOVED_GRACE_S = 10.0
NAME = "log"
# Limits per tick; the rest of the log is read in the following ticks. Events beyond MAX_EVENTS are only counted.
MAX_BYTES = 4 << 20
SHARE_OF_TIMEOUT = 0.25
MAX_EVENTS = 100


class FileFollower:
    """Follows the file at a path, from its current end; a file that appears later is read from its beginning."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: GrowingFile | None = None
        self._lines = LineSplitter()
        # Whether to read the next file from its start, because it was missing before or has replaced another one.
        self._from_start = False
        self._removed_since_s: float | None = None
        self._skipped_bytes = 0
        self.file_number = 0
        """The number of files opened so far, those that were rewritten included."""

    def lines(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        """Yield the lines appended since the last call, without newlines.

        Stops after `most_bytes`, or soon after the monotonic time `until_s`; the next call continues from there. If
        the file cannot be read, yields the lines read so far and raises SourceError.
        """
        try:
            yield from self._added(most_bytes, until_s)
        except FileNotFoundError:
            self._from_start = True
            raise self._error("no such file yet") from None
        except PermissionError:
            self.close()
            raise self._error("permission denied (hint: run casstat as a user who can read it)") from None
        except OSError as error:
            self.close()
            raise self._error(error.strerror or "cannot be read") from None

    def take_skipped(self) -> int:
        """Return the number of bytes skipped since the last call because the backlog was too large."""
        skipped, self._skipped_bytes = self._skipped_bytes, 0
        return skipped

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lines.reset()
        self._removed_since_s = None

    def _added(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        remaining = most_bytes
        while True:
            file = self._file = self._file or self._open()
            # Check for a replacement before reading, so that lines appended before it are not lost.
            is_replaced = self._is_replaced(file)
            self._check_rewritten(file)
            while remaining > 0 and (chunk := file.read(min(remaining, CHUNK_BYTES))):
                remaining -= len(chunk)
                yield from self._lines.complete(chunk)
                if self._clock.monotonic_s() >= until_s:
                    return
            if remaining <= 0 or not is_replaced:
                return
            self.close()
            self._from_start = True

    def _open(self) -> GrowingFile:
        try:
            file = GrowingFile(self._path)
        except NotRegularError as error:
            raise self._error(f"{error} (hint: specify the log file)") from None
        self.file_number += 1
        if not self._from_start:
            try:
                self._seek(file, file.size())
            except BaseException:
                file.close()
                raise
        return file

    def _seek(self, file: GrowingFile, position: int) -> None:
        """Continue at `position`; if a line began before it, skip the rest of that line."""
        file.seek(position)
        self._lines.reset(skip_line=bool(file.seal) and not file.seal.endswith(b"\n"))

    def _is_replaced(self, file: GrowingFile) -> bool:
        """Return whether the path now refers to another file, or there has been no file for the whole grace period."""
        try:
            is_replaced = file.is_replaced()
        except OSError:
            now_s = self._clock.monotonic_s()
            self._removed_since_s = now_s if self._removed_since_s is None else self._removed_since_s
            return now_s - self._removed_since_s >= REMOVED_GRACE_S
        self._removed_since_s = None
        return is_replaced

    def _check_rewritten(self, file: GrowingFile) -> None:
        """Start over if the file was truncated or rewritten, and skip a backlog that is too large."""
        if file.is_rewritten():
            self.file_number += 1
            self._seek(file, 0)
        size = file.size()
        if size - file.position > MAX_BACKLOG_BYTES:
            self._skipped_bytes += size - file.position
            self._seek(file, size)

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"{one_line(self._path)}: {reason}")


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
