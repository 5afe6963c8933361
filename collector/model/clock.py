"""Time: the wall clock names ticks, the monotonic clock measures what lies between them."""

import time
from collections.abc import Iterator
from math import ceil
from typing import Protocol

from collector.model.snapshot import Tick

# While it is being disciplined the wall clock may run a little slow: this much early is on time, not a step back.
SLEW_MS = 50
# Ticks are never quite on time: what comes due a moment after one is read in it, not a whole interval later.
EARLY_S = 0.5
# Two clocks are read one after the other: a shorter sleep than this is none.
SHORTEST_SLEEP_S = 0.01


class Clock(Protocol):
    """What tells time; tests pass their own."""

    def wall_s(self) -> float:
        """Seconds since the epoch."""

    def monotonic_s(self) -> float:
        """Seconds since some moment, never going back."""

    def suspended_s(self) -> float:
        """Of these seconds, how many the machine was suspended."""

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""


class SystemClock:
    """The machine's own clocks."""

    def wall_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic_s(self) -> float:
        """Seconds since boot, time suspended counted: the counters of a remote node go on meanwhile."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def suspended_s(self) -> float:
        """Of these seconds, how many the machine was suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""
        time.sleep(seconds)


def ticks(clock: Clock, interval_s: float, *, aligned: bool = False) -> Iterator[Tick]:
    """Yield at every point of the grid, waiting for each. The interval is taken in whole milliseconds.

    The grid's first point is the next whole second (for intervals below one the next tenth, or whatever they are);
    `aligned` puts it on multiples of the interval since the epoch instead, so that nodes line up.
    Points that pass while the consumer is busy or the process stopped are counted in the next tick, not made up
    for. A wall clock that is set changes what the points are called, never how long is waited.
    """
    step = max(1, round(interval_s * 1000))
    phase = 0 if aligned else ceil(clock.wall_s()) * 1000 % step
    slew = min(SLEW_MS, step // 10)
    last: Tick | None = None
    last_due_s = 0.0
    slept_s = clock.suspended_s()
    while True:
        wall_ms, now_s = clock.wall_s() * 1000, clock.monotonic_s()
        due = _point(wall_ms, step, phase) + step
        if last is not None and due == round(last.time_s * 1000) and due - wall_ms <= slew:
            due += step
        _sleep_until(clock, now_s + (due - wall_ms) / 1000)
        began_ms, began_s = clock.wall_s() * 1000, clock.monotonic_s()
        name = _point(began_ms + slew, step, phase)
        late_s = max(0.0, began_ms - name) / 1000
        passed = round((began_s - late_s - last_due_s) * 1000 / step) if last else 1
        before_s, slept_s = slept_s, clock.suspended_s()
        suspended_s = slept_s - before_s if slept_s - before_s > SHORTEST_SLEEP_S else 0.0
        last, last_due_s = Tick(name / 1000, late_s, max(0, passed - 1), suspended_s), began_s - late_s
        yield last


def first_tick_in_s(clock: Clock, interval_s: float, *, aligned: bool = False) -> float:
    """Return how long `ticks` waits for its first point."""
    grid_s = interval_s if aligned else min(interval_s, 1.0)
    return grid_s - clock.wall_s() % grid_s


def _point(wall_ms: float, step: int, phase: int) -> int:
    """Return the last point of the grid that is not after `wall_ms`."""
    return int((wall_ms - phase) // step) * step + phase


def _sleep_until(clock: Clock, due_s: float) -> None:
    while (rest_s := due_s - clock.monotonic_s()) > 0:
        clock.sleep(rest_s)
