"""Results of a load generator whose clock was set have the times of the run, or are refused."""

import os
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_format import CommandTimes, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.load_results.command_output import last_line_s
from collector.load_results.load_span import UnplacedResultError, on_run_clock
from collector.load_results.operation_times import OperationTimes
from collector.merge.clock_correction import ClockPart
from collector.runs.run import ClockStep
from collector.runs.run_clock import clock_parts
from tests.every import every

T_S, PER_S, LENGTH_S = 1_795_000_000.0, 50, 60.0
TIMES = CommandTimes(T_S, T_S + LENGTH_S)


def ended(steps: Sequence[ClockStep], begin_s: float = 0.0, end_s: float = LENGTH_S) -> ClientResult:
    """Return the operations between two times of the run as a generator counts them that reads the clock for each."""
    times = OperationTimes()
    for number in range(round(begin_s * PER_S) + 1, round(end_s * PER_S) + 1):
        time_s = T_S + number / PER_S
        ahead_s = sum(step.step_s for step in steps if step.time_s <= time_s)
        times.add("read", time_s + ahead_s, 1_000_000)
    return ClientResult("csv", "", "a.csv", times.operations())


def placed(
    result: ClientResult, steps: Sequence[ClockStep], clock: ResultClock = ResultClock.SHOWN, late_s: float = 0.0
) -> ClientResult:
    found = [ClockStep(step.time_s + late_s, step.step_s) for step in steps]
    return on_run_clock(result, clock_parts(found), TIMES, clock)


def bounds(result: ClientResult) -> tuple[float, float]:
    assert result.span_s is not None
    return result.span_s[0] - T_S, result.span_s[1] - T_S


def require_true(result: ClientResult, begin_s: float, end_s: float, error_s: float = 0.1) -> None:
    """Require that every interval has the operations that ended in it."""
    (operation,) = result.operations
    assert bounds(result) == pytest.approx((begin_s, end_s), abs=error_s)
    assert sum(interval.completed for interval in operation.intervals) == round((end_s - begin_s) * PER_S)
    for interval in operation.intervals:
        assert interval.completed == pytest.approx((interval.end_s - interval.begin_s) * PER_S, abs=error_s * PER_S)


STEPS = st.sampled_from([-3600.0, -300.0, -25.0, -4.0, -1.5, 1.5, 4.0, 25.0, 3600.0])


@given(st.floats(1, 59), STEPS, st.floats(0, 0.9), st.floats(0, 10), st.floats(50, 60))
def test_a_result_is_placed_where_it_was_or_refused(
    at_s: float, step_s: float, late_s: float, begin_s: float, end_s: float
) -> None:
    begin_s, end_s = round(begin_s * PER_S) / PER_S, round(end_s * PER_S) / PER_S
    steps = [ClockStep(T_S + at_s, step_s)]
    try:
        result = placed(ended(steps, begin_s, end_s), steps, late_s=late_s)
    except UnplacedResultError:
        # Only near the begin or the end of the load, a time that was shown twice cannot be known.
        assert step_s < 0
        assert not begin_s - step_s + 2 < at_s < end_s + step_s - 2
        return
    # Of a load that begins or ends at a step, the length is known only to a second.
    is_at_edge = min(abs(at_s - begin_s), abs(at_s - end_s)) < 4
    require_true(result, begin_s, end_s, 1.0 if is_at_edge else 0.15)


@pytest.mark.parametrize("step_s", [3600.0, -4.0, -3600.0])
def test_the_rate_is_that_of_the_run(step_s: float) -> None:
    steps = [ClockStep(T_S + 30.2, step_s)]
    result = placed(ended(steps), steps)
    require_true(result, 0, LENGTH_S)
    assert any("the clock was set during the load" in text for text in result.notes)
    # Operations elsewhere keep their intervals.
    assert len(result.operations[0].intervals) >= (LENGTH_S - 2 if step_s != -4.0 else 49)


def test_a_clock_that_is_set_several_times() -> None:
    steps = [ClockStep(T_S + 10.3, 3600.0), ClockStep(T_S + 25.6, -3604.0), ClockStep(T_S + 40.1, 4.0)]
    require_true(placed(ended(steps), steps, late_s=0.4), 0, LENGTH_S, 0.5)


def test_a_step_before_the_load_is_the_offset_of_its_clock() -> None:
    steps = [ClockStep(T_S - 5, -60.0)]
    for clock in ResultClock:
        result = placed(ended(steps), steps, clock)
        require_true(result, 0, LENGTH_S)
        assert result.notes == ()


def test_a_small_step_is_neglected() -> None:
    steps = [ClockStep(T_S + 30, -0.3)]
    for clock in ResultClock:
        assert len(placed(ended(steps), steps, clock).operations[0].intervals) == 60


@every("step_s", [3600.0, -4.0, -3600.0])
@every("clock", [ResultClock.SHOWN, ResultClock.STEADY, ResultClock.EITHER])
def test_times_that_went_on_as_before_are_not_changed(step_s: float, clock: ResultClock) -> None:
    steps, steady = [ClockStep(T_S + 30, step_s)], ended([])
    assert placed(steady, steps, clock) == steady


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_times_of_another_machine_whose_clock_agrees_with_the_new_time(step_s: float) -> None:
    steps = [ClockStep(T_S + 30, step_s)]
    other = ended([ClockStep(0.0, step_s)])
    require_true(placed(other, steps, ResultClock.EITHER), 0, LENGTH_S)


@pytest.mark.parametrize(
    ("clock", "step_s", "begin_s", "end_s", "reason"),
    [
        (ResultClock.DELAYED, 3600.0, 0, 60, "with an unknown delay"),
        # The clock shows the end of the load twice.
        (ResultClock.SHOWN, -4.0, 0, 32, "at which the load began or ended twice"),
        (ResultClock.SHOWN, -4.0, 29, 60, "at which the load began or ended twice"),
        # The load ended before the command: it may have followed the clock or not.
        (ResultClock.EITHER, -4.0, 0, 55, "whether or not they follow that clock"),
    ],
)
def test_a_result_that_cannot_be_placed_is_refused(
    clock: ResultClock, step_s: float, begin_s: float, end_s: float, reason: str
) -> None:
    steps = [ClockStep(T_S + 30, step_s)]
    with pytest.raises(UnplacedResultError, match=reason):
        placed(ended(steps, begin_s, end_s), steps, clock)


def test_times_that_the_clock_never_showed_are_refused() -> None:
    steps = [ClockStep(T_S + 30, 3600.0)]
    with pytest.raises(UnplacedResultError, match="not those that the clock showed"):
        placed(ended([ClockStep(T_S + 30, 1000.0)]), steps)


@every("clock", ResultClock)
def test_a_length_that_was_measured_with_the_clock_is_refused(clock: ResultClock) -> None:
    total = ClientInterval(T_S, T_S + 50, 100)
    result = ClientResult("wrk", "wrk", "a", (Operation("", total=total),), estimated_clock=True)
    steps = [ClockStep(T_S + 30, -10.0)]
    if clock == ResultClock.STEADY:
        assert placed(result, steps, clock) == result
        return
    with pytest.raises(UnplacedResultError, match="its length was measured with that clock"):
        placed(result, steps, clock)


def test_a_total_is_as_long_as_the_load() -> None:
    steps = [ClockStep(T_S + 30, -10.0)]
    total = ClientInterval(T_S, T_S + 50, 100)
    result = placed(ClientResult("csv", "", "a", (Operation("", total=total),)), steps)
    assert bounds(result) == pytest.approx((0, 60))


def test_intervals_around_a_change_keep_their_operations() -> None:
    rows = [(0, 10), (10, 20), (20, 3640), (3640, 3650)]
    intervals = tuple(ClientInterval(T_S + begin_s, T_S + end_s, 100) for begin_s, end_s in rows)
    result = placed(ClientResult("csv", "", "a", (Operation("", intervals),)), [ClockStep(T_S + 30, 3600.0)])
    assert [(each.begin_s - T_S, each.end_s - T_S) for each in result.operations[0].intervals] == [
        (0, 10),
        (10, 20),
        (20, 40),
        (40, 50),
    ]


def test_a_clock_that_was_never_set_is_only_ahead() -> None:
    parts = (ClockPart(-inf, inf, 5.0),)
    assert bounds(on_run_clock(ended([]), parts, TIMES, ResultClock.SHOWN)) == pytest.approx((-5, 55))


@pytest.mark.parametrize(
    ("step_s", "shown_s", "expected_s"), [(-10.0, 45.0, 55.0), (3600.0, 3655.0, 55.0), (0.0, 55.0, 55.0)]
)
def test_an_output_ended_when_its_file_was_changed_on_the_runs_clock(
    tmp_path: Path, step_s: float, shown_s: float, expected_s: float
) -> None:
    path = tmp_path / "command.log"
    path.touch()
    os.utime(path, (T_S + shown_s, T_S + shown_s))
    times = replace(TIMES, clock=clock_parts([ClockStep(T_S + 30, step_s)]) if step_s else ())
    assert last_line_s(SourceFile("wrk", path, times), 20.0) == T_S + expected_s
