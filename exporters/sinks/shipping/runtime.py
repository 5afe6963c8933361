"""Time and randomness for shipping; tests substitute their own."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event


@dataclass(frozen=True)
class Runtime:
    """Clocks, waiting and randomness.

    wait    waits for a number of seconds or until shipping is stopped; returns True if stopped.
    wall_s  the wall clock, in seconds since the epoch.
    cpu_s   CPU time of the current thread.
    random  a random number between 0 and 1.
    """

    wait: Callable[[float], bool]
    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time
    cpu_s: Callable[[], float] = time.thread_time
    random: Callable[[], float] = random.random


def system_runtime(stop: Event) -> Runtime:
    """Return the system's clocks and randomness, with a wait that ends when `stop` is set."""
    return Runtime(stop.wait)
