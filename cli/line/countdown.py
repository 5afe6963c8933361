"""A countdown to the first row, shown on the terminal."""

import math
import sys
import threading
import time
from types import TracebackType

MIN_S = 2.0
ERASE = "\r\x1b[K"


class Countdown:
    """Context manager that shows the time left until the first row, unless the wait is shorter than MIN_S."""

    def __init__(self, wait_s: float, *, shown: bool) -> None:
        self._ends_s = time.monotonic() + wait_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="countdown", daemon=True)
        self._shown = shown and wait_s >= MIN_S

    def __enter__(self) -> "Countdown":
        if self._shown:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop and erase the countdown."""
        if self._shown:
            self._shown = False
            self._stop.set()
            self._thread.join()
            _write(ERASE)

    def _show(self) -> None:
        while not self._stop.is_set():
            remaining_s = self._ends_s - time.monotonic()
            _write(f"{ERASE}{countdown_text(remaining_s)}")
            # Wake up when the remaining time is a whole number of seconds.
            self._stop.wait(remaining_s % 1.0 or 1.0)


def countdown_text(remaining_s: float) -> str:
    """Return the countdown text. If the first row is late, `remaining_s` is zero or negative."""
    return f"first row in {math.ceil(remaining_s)} s" if remaining_s > 0 else "waiting for the first row"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
