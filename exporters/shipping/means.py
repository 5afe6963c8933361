"""What shipping needs of the outside: time and chance. Tests pass their own."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event


@dataclass(frozen=True)
class Means:
    """Clocks, waiting and chance.

    wait       waits so many seconds, or until it is told to stop; returns whether it is.
    monotonic_s, wall_s, cpu_s  the time, the wall clock's (since the epoch), and the CPU time of this thread.
    chance     a number from 0 to 1.
    """

    wait: Callable[[float], bool]
    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time
    cpu_s: Callable[[], float] = time.thread_time
    chance: Callable[[], float] = random.random


def real(stop: Event) -> Means:
    """Return the machine's own, which wait until `stop` is set."""
    return Means(stop.wait)


class Seldom:
    """Says of each matter at most one line a minute."""

    def __init__(self, say: Callable[[str], None], monotonic_s: Callable[[], float], between_s: float = 60.0) -> None:
        self._say = say
        self._monotonic_s = monotonic_s
        self._between_s = between_s
        self._said_s: dict[str, float] = {}
        self._kept: dict[str, int] = {}

    def say(self, matter: str, text: str) -> None:
        """Say a line, with how many of its kind were kept back before it."""
        now_s, before_s = self._monotonic_s(), self._said_s.get(matter)
        if before_s is not None and now_s - before_s < self._between_s:
            self._kept[matter] = self._kept.get(matter, 0) + 1
            return
        kept = self._kept.pop(matter, 0)
        self._said_s[matter] = now_s
        self._say(f"{text} ({kept} times more since it was last said)" if kept else text)

    def forget(self, matter: str) -> None:
        """Let the next line of a matter be said at once."""
        self._said_s.pop(matter, None)
        self._kept.pop(matter, None)
