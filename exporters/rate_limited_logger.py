"""A logger that keeps a repeated message from flooding the log."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from collector.printable import count_text

PERIOD_S = 60.0
MAX_LINES_PER_PERIOD = 60


@dataclass
class _Kind:
    """When the last line of a kind was written, and the number and last text of the lines suppressed since then."""

    written_s: float
    text: str = ""
    suppressed: int = 0


class RateLimitedLogger:
    """Limits log lines to one per kind per minute, and to 60 per minute in total.

    The suppressed lines of a kind become one line: the last text and a count. Safe to use from several threads.
    """

    def __init__(self, write: Callable[[str], None], monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._kinds: dict[str, _Kind] = {}
        self._period_begin_s = monotonic_s()
        self._lines_in_period = self._dropped = 0

    def __call__(self, text: str, kind: str | None = None) -> None:
        """Write a line, or count it if a line of its kind was written within the last minute.

        Without `kind`, each distinct line is a kind of its own.
        """
        with self._lock:
            name, now_s = text if kind is None else kind, self._monotonic_s()
            state = self._kinds.get(name)
            if state is None:
                if self._write_line(text, now_s):
                    self._kinds[name] = _Kind(now_s)
                return
            state.text, state.suppressed = text, state.suppressed + 1
            self._flush_kind(name, state, now_s)

    def forget(self, kind: str) -> None:
        """Let the next line of a kind be written at once; call this when the reported condition has ended."""
        with self._lock:
            self._kinds.pop(kind, None)

    def flush(self) -> None:
        """Write the suppressed lines that are due; call this about once a second."""
        with self._lock:
            now_s = self._monotonic_s()
            for name, state in list(self._kinds.items()):
                self._flush_kind(name, state, now_s)

    def _flush_kind(self, name: str, state: _Kind, now_s: float) -> None:
        elapsed_s = now_s - state.written_s
        if elapsed_s < PERIOD_S:
            return
        if not state.suppressed:
            self._kinds.pop(name, None)
            return
        count = f" ({state.suppressed} times in the last {elapsed_s:.0f} s)" if state.suppressed > 1 else ""
        self._write_line(state.text + count, now_s)
        state.written_s, state.suppressed = now_s, 0

    def _write_line(self, text: str, now_s: float) -> bool:
        """Write a line and return True; return False if the maximum for this minute has been reached."""
        if now_s - self._period_begin_s >= PERIOD_S:
            if self._dropped:
                self._write(f"suppressed {count_text(self._dropped, 'further line')} within a minute")
            self._period_begin_s, self._lines_in_period, self._dropped = now_s, 0, 0
            self._kinds = {
                name: state
                for name, state in self._kinds.items()
                if state.suppressed or now_s - state.written_s < PERIOD_S
            }
        self._lines_in_period += 1
        if self._lines_in_period > MAX_LINES_PER_PERIOD:
            self._dropped += 1
            return False
        self._write(text)
        return True
