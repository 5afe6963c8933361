"""The delay before a request to an unavailable store is retried."""

from collections.abc import Callable

FIRST_S, MAX_S = 1.0, 60.0
# Retry-After is capped at MAX_RETRY_AFTER_S.
MAX_RETRY_AFTER_S = 300.0


class Backoff:
    """Exponential backoff from 1 s to 60 s, with full jitter."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._most_s = FIRST_S

    def next_s(self, retry_after_s: float | None) -> float:
        """Return the delay after another failure: a random time, added to the store's Retry-After if it sent one."""
        most_s, self._most_s = self._most_s, min(2 * self._most_s, MAX_S)
        random_s = most_s * self._random()
        return random_s if retry_after_s is None else min(retry_after_s, MAX_RETRY_AFTER_S) + random_s

    def reset(self) -> None:
        """Start again with the shortest delay; call this when the store has accepted a request."""
        self._most_s = FIRST_S
