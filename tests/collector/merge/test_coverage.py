"""The missing intervals of a node: how many, from when to when, and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.merge.coverage import NO_ANSWER, NOT_SAMPLED, Gap, NodeCoverage, NodeTick, coverage_of, not_recorded

# The ticks of a node with an interval of a second are 0.3 s after whole seconds.
BEGIN_S = 1000.3


def ticks(
    seconds: range,
    silent: range = range(0),
    *,
    absent: range = range(0),
    interval_s: float = 1.0,
    restarts: bool = False,
) -> list[NodeTick]:
    """Return the ticks of a node that does not answer in some seconds and is not sampled in others.

    The first tick after a silence covers it, unless the node restarts.
    """
    made: list[NodeTick] = []
    last_s: float | None = None
    is_after = False
    for second in seconds:
        time_s = BEGIN_S + second * interval_s
        if second in absent:
            continue
        if second in silent:
            made.append(NodeTick(time_s, interval_s, 0.0, has_failed=True))
            is_after = True
            continue
        begins_again = is_after and restarts
        is_after = False
        covered_s = 0.0 if last_s is None or begins_again else time_s - last_s
        made.append(NodeTick(time_s, interval_s, covered_s, restarted=begins_again))
        last_s = time_s
    return made


def coverage(made: list[NodeTick], begin_s: float, end_s: float) -> NodeCoverage:
    (result,) = coverage_of("n1", made, [(begin_s, end_s)])
    return result


@given(st.floats(0, 20), st.integers(0, 60), st.sampled_from([0.5, 1.0, 5.0]))
def test_a_node_that_always_answers_has_no_gap(offset_s: float, length: int, interval_s: float) -> None:
    begin_s = BEGIN_S + 10 * interval_s + offset_s
    found = coverage(ticks(range(200), interval_s=interval_s), begin_s, begin_s + length * interval_s)
    assert (found.missing, found.gaps) == (0, ())
    assert length - 1 <= found.intervals <= length


@given(st.integers(20, 40), st.integers(1, 20))
def test_a_frozen_node_did_not_answer_from_its_last_reading_to_the_next(first: int, length: int) -> None:
    made = ticks(range(100), range(first, first + length))
    found = coverage(made, BEGIN_S + 10, BEGIN_S + 80)
    gap = Gap(BEGIN_S + first - 1, BEGIN_S + first + length, NO_ANSWER, length)
    assert (found.intervals, found.answered, found.gaps) == (70, 70 - length, (gap,))


def test_a_node_that_is_killed_does_not_answer_until_the_end() -> None:
    found = coverage(ticks(range(100), range(51, 100)), BEGIN_S + 10, BEGIN_S + 80)
    assert (found.answered, found.intervals) == (40, 70)
    assert found.gaps == (Gap(BEGIN_S + 50, BEGIN_S + 80, NO_ANSWER, 30, is_open=True),)


def test_a_node_whose_recording_ends_was_not_sampled_until_the_end() -> None:
    found = coverage(ticks(range(51)), BEGIN_S + 10, BEGIN_S + 80)
    assert (found.answered, found.intervals) == (40, 70)
    assert found.gaps == (Gap(BEGIN_S + 50, BEGIN_S + 80, NOT_SAMPLED, 30, is_open=True),)


def test_a_node_that_joins_late_was_not_sampled_before() -> None:
    found = coverage(ticks(range(30, 100)), BEGIN_S + 10, BEGIN_S + 80)
    # The first tick has no rate.
    assert found.gaps == (Gap(BEGIN_S + 10, BEGIN_S + 30, NOT_SAMPLED, 20),)
    assert (found.answered, found.intervals) == (50, 70)


def test_a_node_that_begins_to_answer_during_the_run() -> None:
    found = coverage(ticks(range(100), range(31), restarts=True), BEGIN_S + 10, BEGIN_S + 80)
    (gap,) = found.gaps
    assert (gap.cause, gap.begin_s, gap.end_s) == (NO_ANSWER, BEGIN_S + 10, BEGIN_S + 31)
    assert (found.answered, found.intervals) == (49, 70)


def test_an_agent_that_is_away_for_a_while_leaves_a_gap() -> None:
    found = coverage(ticks(range(100), absent=range(30, 40)), BEGIN_S + 10, BEGIN_S + 80)
    assert found.gaps == (Gap(BEGIN_S + 29, BEGIN_S + 40, NOT_SAMPLED, 10),)


def test_a_restart_loses_the_interval_of_its_first_reading() -> None:
    found = coverage(ticks(range(100), range(30, 40), restarts=True), BEGIN_S + 10, BEGIN_S + 80)
    assert found.gaps == (Gap(BEGIN_S + 29, BEGIN_S + 40, NO_ANSWER, 11, restarted=True),)
    assert (found.answered, found.intervals) == (59, 70)


def reading(second: int, covered_s: float = 1.0) -> NodeTick:
    return NodeTick(BEGIN_S + second, 1.0, covered_s)


def failure(second: int) -> NodeTick:
    return NodeTick(BEGIN_S + second, 1.0, 0.0, has_failed=True)


@pytest.mark.parametrize(("begin", "intervals", "missing"), [(0, 10, 2), (-5, 15, 7), (1, 9, 2)])
def test_failures_after_the_first_answer_count(begin: int, intervals: int, missing: int) -> None:
    made = [reading(0, 0.0), failure(1), failure(2), reading(3, 3.0), *map(reading, range(4, 11))]
    found = coverage(made, BEGIN_S + begin, BEGIN_S + 10)
    assert (found.intervals, found.missing) == (intervals, missing)
    assert found.gaps[0].end_s == BEGIN_S + 3


@pytest.mark.parametrize(("begin", "intervals", "missing"), [(0, 20, 4), (12, 8, 2)])
def test_failures_after_a_restart_count(begin: int, intervals: int, missing: int) -> None:
    again = reading(12, 0.0)._replace(restarted=True)
    made = [*map(reading, range(11)), failure(11), again, failure(13), failure(14), reading(15, 3.0)]
    found = coverage([*made, *map(reading, range(16, 21))], BEGIN_S + begin, BEGIN_S + 20)
    assert (found.intervals, found.missing) == (intervals, missing)
    assert [gap.end_s for gap in found.gaps] == [BEGIN_S + 15]


def test_a_silence_across_two_phases_counts_in_both() -> None:
    made = ticks(range(100), range(40, 50))
    first, second = coverage_of("n1", made, [(BEGIN_S + 10, BEGIN_S + 45), (BEGIN_S + 45, BEGIN_S + 80)])
    assert first.gaps == (Gap(BEGIN_S + 39, BEGIN_S + 45, NO_ANSWER, 6, is_open=True),)
    # The reading at 50 covers a part of the first phase, so it is in neither.
    assert second.gaps == (Gap(BEGIN_S + 45, BEGIN_S + 50, NO_ANSWER, 5),)
    assert (first.intervals, second.intervals) == (35, 35)


def test_a_phase_without_a_complete_interval() -> None:
    found = coverage(ticks(range(40), interval_s=5.0), BEGIN_S + 51, BEGIN_S + 58)
    assert (found.intervals, found.missing, found.gaps) == (0, 0, ())


def test_a_node_that_never_answers_has_no_interval() -> None:
    found = coverage(ticks(range(100), range(100)), BEGIN_S + 10, BEGIN_S + 80)
    assert (found.intervals, found.answered) == (70, 0)
    assert found.gaps == (Gap(BEGIN_S + 10, BEGIN_S + 80, NO_ANSWER, 70, is_open=True),)


def test_a_node_without_a_recording() -> None:
    found = not_recorded("n1", 1.0, (BEGIN_S, BEGIN_S + 70), "n1: connection refused")
    assert (found.intervals, found.answered, found.problem) == (70, 0, "n1: connection refused")


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_node_that_is_read_at_its_own_pace_is_silent_only_if_a_reading_fails(has_failed: bool) -> None:
    made = [
        NodeTick(BEGIN_S + second, 1.0, 10.0 if second % 10 == 0 else 0.0, has_failed and second == 35)
        for second in range(100)
    ]
    (found,) = coverage_of("n1", made, [(BEGIN_S + 15, BEGIN_S + 65)], paced=True)
    assert [(gap.begin_s, gap.end_s) for gap in found.gaps] == [(BEGIN_S + 30, BEGIN_S + 40)] * has_failed
    assert (found.intervals, found.missing) == (50, 9 * has_failed)


def test_a_tick_that_is_missed_by_a_busy_machine_is_a_gap_up_to_the_next_reading() -> None:
    # The tick before was late, so the next rates cover less than two intervals.
    made = [tick._replace(covered_s=1.2) if tick.time_s == BEGIN_S + 32 else tick for tick in ticks(range(60))]
    del made[31]
    found = coverage(made, BEGIN_S + 10, BEGIN_S + 50)
    assert found.gaps == (Gap(BEGIN_S + 30, BEGIN_S + 32, NOT_SAMPLED, 1),)
