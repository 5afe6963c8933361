"""How long to leave a store alone that takes nothing."""

from collections.abc import Callable

FIRST_S, LONGEST_S = 1.0, 60.0
# What a store asks for is heeded up to this.
LONGEST_ASKED_S = 300.0


class Backoff:
    """Waits twice as long after each failure, at most a minute, and by chance any part of that."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._most_s = FIRST_S

    def next_s(self, asked_s: float | None) -> float:
        """Return how long to wait after one more failure; never less than the store asks for."""
        most_s, self._most_s = self._most_s, min(2 * self._most_s, LONGEST_S)
        own_s = most_s * self._chance()
        return own_s if asked_s is None else min(asked_s, LONGEST_ASKED_S) + own_s

    def reset(self) -> None:
        """Begin anew: the store has taken something."""
        self._most_s = FIRST_S
