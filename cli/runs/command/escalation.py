"""The signals for successive presses of Ctrl-C."""

import signal
import time

ESCALATION = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Escalation:
    """Counts presses of Ctrl-C."""

    def __init__(self) -> None:
        self._presses = 0
        self._pressed_s = float("-inf")

    def next_signal(self, within_s: float) -> int:
        """Return the signal for a press: the next one if the previous press was at most `within_s` ago, else SIGINT."""
        now_s = time.monotonic()
        self._presses = self._presses + 1 if now_s - self._pressed_s < within_s else 1
        self._pressed_s = now_s
        return ESCALATION[min(self._presses, len(ESCALATION)) - 1]
