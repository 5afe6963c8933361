"""Exponential backoff between attempts."""

FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0


class Backoff:
    """Pauses of 1, 2, 4, … up to 60 s between failed attempts. Times are in seconds on the monotonic clock."""

    def __init__(self) -> None:
        self._next_s = 0.0
        self._pause_s = 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether the next attempt may begin now."""
        return now_s >= self._next_s

    def failed(self, now_s: float) -> None:
        """Record a failed attempt, and lengthen the pause before the next one."""
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), MAX_PAUSE_S)
        self._next_s = now_s + self._pause_s

    def reset(self) -> None:
        """Allow the next attempt immediately."""
        self._next_s = self._pause_s = 0.0
