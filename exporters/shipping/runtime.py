"""What shipping needs of the outside: time and chance. Tests pass their own."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event


@dataclass(frozen=True)
class Runtime:
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


def real(stop: Event) -> Runtime:
    """Return the machine's own, which wait until `stop` is set."""
    return Runtime(stop.wait)
