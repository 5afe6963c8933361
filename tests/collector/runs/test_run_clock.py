"""The times of a run go on as before if the wall clock is set."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.runs.run import ClockStep, RunMark
from collector.runs.run_clock import RunClock, marks_on_run_clock, totals_of

BEGIN_S = 1_795_000_000.0
STEPS = st.sampled_from([-3600.0, -60.0, -5.0, 5.0, 60.0, 86_400.0 * 365])


class Clocks:
    """A wall clock and a monotonic one; `delays` are the times that reading the wall clock takes."""

    def __init__(self, delays: Sequence[float] = ()) -> None:
        self.wall, self.monotonic = BEGIN_S, 50.0
        self.delays = list(delays)

    def sleep(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def wall_s(self) -> float:
        if self.delays:
            self.sleep(self.delays.pop())
        return self.wall

    def monotonic_s(self) -> float:
        return self.monotonic


@given(st.lists(st.tuples(st.floats(1.0, 100.0), STEPS), max_size=4))
def test_the_time_of_a_run_is_the_time_that_has_elapsed(changes: list[tuple[float, float]]) -> None:
    clocks = Clocks()
    clock = RunClock(clocks.wall_s, clocks.monotonic_s)
    steps, elapsed_s = [], 0.0
    for wait_s, step_s in changes:
        clocks.sleep(wait_s)
        elapsed_s += wait_s
        clocks.wall += step_s
        assert clock.now_s() == pytest.approx(BEGIN_S + elapsed_s, abs=1e-5)
        found = clock.new_step()
        assert found is not None
        steps.append(found)
        assert clock.new_step() is None
    assert [step.step_s for step in steps] == pytest.approx([step_s for _, step_s in changes], abs=1e-5)
    assert totals_of(steps)[-1] == pytest.approx(sum(step_s for _, step_s in changes), abs=1e-5)


def test_a_process_that_is_stopped_between_two_readings_finds_no_step() -> None:
    clocks = Clocks([5.0])
    clock = RunClock(clocks.wall_s, clocks.monotonic_s)
    clocks.delays = [5.0] * 5
    assert clock.new_step() is None
    clocks.delays = [5.0] * 2
    assert clock.new_step() is None
    assert clock.now_s() == pytest.approx(clocks.wall)


@given(st.lists(st.tuples(st.floats(2.0, 100.0), STEPS), max_size=3), st.lists(st.floats(0, 400), max_size=10))
def test_marks_keep_their_distance_from_the_beginning(
    changes: list[tuple[float, float]], marked_s: list[float]
) -> None:
    steps: list[ClockStep] = []
    at_s = BEGIN_S
    for wait_s, step_s in changes:
        at_s += wait_s
        steps.append(ClockStep(at_s, step_s))
    totals_s, expected, marks = totals_of(steps), [], []
    for after_s in sorted(marked_s):
        time_s = BEGIN_S + after_s
        # A mark within a second of a step may be either.
        if all(abs(time_s - step.time_s) > 1.01 for step in steps):
            total_s = totals_s[sum(step.time_s <= time_s for step in steps)]
            expected.append(time_s)
            marks.append(RunMark(time_s + total_s, "m"))
    found = [mark.time_s for mark in marks_on_run_clock(marks, steps)]
    # If the clock shows a time twice, the earlier one is assumed unless a mark precedes it.
    assert all(time_s <= wanted + 1e-5 for time_s, wanted in zip(found, expected, strict=True))
    if all(step.step_s > 0 for step in steps):
        assert found == pytest.approx(expected, abs=1e-5)


def test_marks_after_the_clock_was_set_back_follow_those_before() -> None:
    marks = [RunMark(BEGIN_S + 5, "a"), RunMark(BEGIN_S + 11, "b"), RunMark(BEGIN_S - 45, "c")]
    found = list(marks_on_run_clock(marks, [ClockStep(BEGIN_S + 12.3, -60.0)]))
    assert [mark.time_s - BEGIN_S for mark in found] == [5, 11, 15]
