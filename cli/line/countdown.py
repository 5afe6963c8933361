"""A line on the terminal that counts down to the first row, and is gone when that comes."""

import math
import sys
import threading
import time
from types import TracebackType

SHORTEST_S = 2.0
ERASE = "\r\x1b[K"


class Countdown:
    """While its block runs, shows how long the first row will take; not for waits that nobody notices."""

    def __init__(self, wait_s: float, *, shown: bool) -> None:
        self._ends_s = time.monotonic() + wait_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="countdown", daemon=True)
        self._shown = shown and wait_s >= SHORTEST_S

    def __enter__(self) -> "Countdown":
        if self._shown:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Erase the line; the terminal is the caller's again."""
        if self._shown:
            self._shown = False
            self._stop.set()
            self._thread.join()
            _write(ERASE)

    def _show(self) -> None:
        while not self._stop.is_set():
            left_s = self._ends_s - time.monotonic()
            _write(f"{ERASE}{countdown_text(left_s)}")
            # Until the next whole second.
            self._stop.wait(left_s % 1.0 or 1.0)


def countdown_text(left_s: float) -> str:
    """Return how long the first row will take; after that time, that it is late."""
    return f"first row in {math.ceil(left_s)} s" if left_s > 0 else "waiting for the first row"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
