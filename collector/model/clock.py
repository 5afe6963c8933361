"""Clocks, ticks, and pauses after failures.

Tick times come from the wall clock; the monotonic clock measures the time between ticks.
"""

import time
from collections.abc import Callable, Iterator
from math import ceil, inf
from typing import Protocol

from collector.model.snapshot import Tick

# While NTP is slowing the wall clock down, ticks may be early. A tick counts as on time if it is early by at most
# SLEW_MS or a tenth of the interval, whichever is less.
SLEW_MS = 50
# Ticks are never exactly on time, so a source that is due within EARLY_S is read now rather than a tick later.
EARLY_S = 0.5
# The suspended time is the difference between two clocks, which cannot be read at exactly the same time. Apparent
# suspensions of up to MIN_SLEEP_S are therefore treated as measurement errors.
MIN_SLEEP_S = 0.01
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
_READINGS = 5


class Clock(Protocol):
    """A source of time; tests pass a simulated one."""

    def wall_s(self) -> float:
        """Return seconds since the epoch."""

    def monotonic_s(self) -> float:
        """Return seconds since an arbitrary moment; the value never decreases."""

    def suspended_s(self) -> float:
        """Return the seconds that the machine has spent suspended; `monotonic_s` includes them."""

    def sleep(self, seconds: float) -> None:
        """Sleep for at least `seconds`."""


class SystemClock:
    def wall_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        """Return seconds since boot, including suspensions, during which a remote node's counters keep increasing."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def suspended_s(self) -> float:
        """Return the seconds that the machine has spent suspended since boot."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def clock_difference(
    wall_s: Callable[[], float], monotonic_s: Callable[[], float], sufficient_s: float
) -> tuple[float, float]:
    """Return the wall clock's time minus the monotonic clock's, and how long reading both took, in seconds.

    This process may be interrupted between the readings. They are then repeated, unless they took at most
    `sufficient_s`, and the fastest count.
    """
    difference_s, took_s = 0.0, inf
    for _ in range(_READINGS):
        before_s, now_s, after_s = monotonic_s(), wall_s(), monotonic_s()
        if after_s - before_s < took_s:
            difference_s, took_s = now_s - (before_s + after_s) / 2, after_s - before_s
        if took_s <= sufficient_s:
            break
    return difference_s, took_s


def ticks(clock: Clock, interval_s: float, *, aligned: bool = False) -> Iterator[Tick]:
    """Wait for each point of the time grid and yield it. The interval is rounded to whole milliseconds.

    The grid starts at the next whole second, or earlier if the interval is shorter than one second.
    With `aligned`, points are multiples of the interval since the epoch, so that several nodes line up.
    Points that pass while the caller is busy or the process is stopped are skipped; the next tick counts them as
    missed. Changing the wall clock changes the times of later points, but not the length of the current wait.
    """
    step, phase = _grid(clock, interval_s, aligned=aligned)
    slew = min(SLEW_MS, step // 10)
    last: Tick | None = None
    last_due_s = 0.0
    total_suspended_s = clock.suspended_s()
    while True:
        wall_ms, now_s = clock.wall_s() * 1000, clock.monotonic_s()
        due_ms = _last_point(wall_ms, step, phase) + step
        if last is not None and due_ms == round(last.time_s * 1000) and due_ms - wall_ms <= slew:
            due_ms += step
        due_s = now_s + (due_ms - wall_ms) / 1000
        while (remaining_s := due_s - clock.monotonic_s()) > 0:
            clock.sleep(remaining_s)
        began_ms, began_s = clock.wall_s() * 1000, clock.monotonic_s()
        point_ms = _last_point(began_ms + slew, step, phase)
        late_s = max(0.0, began_ms - point_ms) / 1000
        passed = round((began_s - late_s - last_due_s) * 1000 / step) if last else 1
        before_s, total_suspended_s = total_suspended_s, clock.suspended_s()
        suspended_s = total_suspended_s - before_s if total_suspended_s - before_s > MIN_SLEEP_S else 0.0
        last, last_due_s = Tick(point_ms / 1000, late_s, max(0, passed - 1), suspended_s), began_s - late_s
        yield last


def first_tick_in_s(clock: Clock, interval_s: float, *, aligned: bool = False) -> float:
    """Return how long `ticks` waits for its first point, in seconds."""
    step, phase = _grid(clock, interval_s, aligned=aligned)
    wall_ms = clock.wall_s() * 1000
    return (_last_point(wall_ms, step, phase) + step - wall_ms) / 1000


def _grid(clock: Clock, interval_s: float, *, aligned: bool) -> tuple[int, int]:
    """Return the grid's step and its phase, in milliseconds: every point is a multiple of the step plus the phase."""
    step = max(1, round(interval_s * 1000))
    return step, 0 if aligned else ceil(clock.wall_s()) * 1000 % step


def _last_point(wall_ms: float, step: int, phase: int) -> int:
    """Return the last point of the grid at or before `wall_ms`."""
    return int((wall_ms - phase) // step) * step + phase


def longer_pause_s(pause_s: float) -> float:
    """Return the pause after one of `pause_s`: 1, 2, 4, … up to 60 s."""
    return min(max(2 * pause_s, FIRST_PAUSE_S), MAX_PAUSE_S)


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
        self._pause_s = longer_pause_s(self._pause_s)
        self._next_s = now_s + self._pause_s

    def reset(self) -> None:
        """Allow the next attempt immediately."""
        self._next_s = self._pause_s = 0.0
