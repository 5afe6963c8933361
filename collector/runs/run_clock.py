"""The clock of a run: the wall clock at its beginning, continued by the monotonic clock.

If the wall clock is set during a run, for example by the first synchronisation with NTP, the times of the run go on as
if it had not been set, so that phases keep their lengths.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf

from collector.merge.clock_correction import ClockPart, times_when_shown
from collector.model.clock import clock_difference
from collector.runs.run import ClockStep, NodeClock, Run, RunMark

MIN_STEP_S = 0.1
"""The smallest change of the wall clock that counts as a step. NTP slews both clocks."""
# How late a step may be detected.
_LATE_S = 1.0
# The two clocks are compared only if they can be read within this time.
_MAX_READING_S = 0.02


def monotonic() -> float:
    """Return seconds since boot, including the time for which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class RunClock:
    """Tells the time of a run, and finds the steps of the wall clock."""

    def __init__(self, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = monotonic) -> None:
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._ahead_s, _ = clock_difference(wall_s, monotonic_s, _MAX_READING_S)
        self._stepped_s = 0.0

    def now_s(self) -> float:
        """Return the time of the run, in seconds since the epoch."""
        return self.at(self._monotonic_s())

    def at(self, monotonic_s: float) -> float:
        """Return the time of the run at a time of the monotonic clock."""
        return monotonic_s + self._ahead_s

    def new_step(self) -> ClockStep | None:
        """Return the step of the wall clock since the last call; None if there is none."""
        difference_s, took_s = clock_difference(self._wall_s, self._monotonic_s, _MAX_READING_S)
        if took_s > _MAX_READING_S:
            return None
        step_s = difference_s - self._ahead_s - self._stepped_s
        if abs(step_s) < MIN_STEP_S:
            return None
        self._stepped_s += step_s
        return ClockStep(self.now_s(), step_s)


def totals_of(steps: Sequence[ClockStep]) -> list[float]:
    """Return how far the wall clock was ahead of the run's before the first step and after each of them."""
    return list(accumulate((step.step_s for step in steps), initial=0.0))


def clock_parts(steps: Sequence[ClockStep]) -> tuple[ClockPart, ...]:
    """Return the periods between the steps of the recorder's clock."""
    bounds_s = [-inf, *(step.time_s for step in steps), inf]
    return tuple(
        ClockPart(from_s - _LATE_S, to_s, total_s)
        for total_s, (from_s, to_s) in zip(totals_of(steps), pairwise(bounds_s), strict=True)
    )


def clock_of(run: Run) -> Callable[[], float]:
    """Return a clock that continues the clock of a run which another process recorded on this machine."""
    stepped_s = totals_of(run.clock_steps)[-1]
    return lambda: time.time() - stepped_s


def recorder_clocks(run: Run) -> tuple[NodeClock, ...]:
    """Return by how much the recorder's own clock was ahead of the run's when it began and ended; () without steps."""
    if not run.clock_steps:
        return ()
    earlier = [step for step in run.clock_steps if step.time_s <= run.begin_s]
    end_s = run.begin_s if run.end_s is None else run.end_s
    return (
        NodeClock(run.begin_s, totals_of(earlier)[-1], 0.0),
        NodeClock(end_s, totals_of(run.clock_steps)[-1], 0.0),
    )


def marks_on_run_clock(marks: Iterable[RunMark], steps: Sequence[ClockStep]) -> Iterator[RunMark]:
    """Yield marks, whose times are on the wall clock and which are in the order in which they were made.

    If a time of the wall clock occurred twice, because it was set back, the earlier one is used that is not before the
    previous mark.
    """
    if not steps:
        yield from marks
        return
    parts = clock_parts(steps)
    previous_s = -inf
    for mark in marks:
        times_s = times_when_shown(mark.time_s, parts)
        time_s = next((time_s for time_s in times_s if time_s >= previous_s), times_s[-1] if times_s else mark.time_s)
        previous_s = max(previous_s, time_s)
        yield RunMark(time_s, mark.text)
