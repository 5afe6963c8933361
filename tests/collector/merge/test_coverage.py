"""The missing intervals of a node: how many, from when to when, and why."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.merge.coverage import NO_ANSWER, NOT_SAMPLED, Gap, NodeCoverage, NodeTick, coverage_of, not_recorded
from collector.merge.grid import SpanGrid
from tests.examples import examples

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


# What happened in each second: the node answered, its process or its agent began again, it failed, or was not sampled.
ANSWERED, RESTARTED, BEGAN, FAILED, ABSENT = range(5)
EVENTS = st.lists(
    st.tuples(st.sampled_from([ANSWERED, ANSWERED, RESTARTED, BEGAN, FAILED, ABSENT]), st.integers(1, 12)), min_size=3
).map(lambda parts: [event for event, length in parts for event in sequence(event, length)][:40])


def sequence(event: int, length: int) -> list[int]:
    """Return an event that lasts for some seconds; after a beginning, the node answers."""
    return [event, *[ANSWERED] * (length - 1)] if event in (RESTARTED, BEGAN) else [event] * length


def ticks_of(events: list[int], begin_s: float) -> list[NodeTick]:
    made: list[NodeTick] = []
    last_s: float | None = None
    for second, event in enumerate(events):
        time_s = begin_s + second
        if event == FAILED:
            made.append(NodeTick(time_s, 1.0, 0.0, has_failed=True))
        elif event != ABSENT:
            covered_s = 0.0 if last_s is None or event in (RESTARTED, BEGAN) else time_s - last_s
            made.append(NodeTick(time_s, 1.0, covered_s, restarted=event == RESTARTED))
            last_s = time_s
    return made


@settings(max_examples=examples(300))
@given(EVENTS, st.lists(st.integers(0, 39), min_size=2, max_size=3, unique=True), st.sampled_from([0.0, 0.25, 0.75]))
def test_each_interval_either_has_a_reading_or_is_missing(events: list[int], cuts: list[int], offset_s: float) -> None:
    # All times are exact numbers, so that a time range can begin at a tick.
    begin_s = 1000.5
    made = ticks_of(events, begin_s)
    ends_s = [min(begin_s + cut + offset_s, begin_s + len(events) - 1) for cut in sorted(cuts)]
    spans = [(from_s, to_s) for from_s, to_s in pairwise(ends_s) if from_s < to_s]
    grid = SpanGrid(inf, spans=tuple(spans))
    in_figures = [grid.index_of(tick.time_s, 1.0, tick.covered_s) for tick in made if tick.covered_s]
    for number, ((from_s, to_s), found) in enumerate(zip(spans, coverage_of("n1", made, spans), strict=True)):
        times_s = [begin_s + second for second in range(1, len(events))]
        intervals = sum(from_s <= time_s - 1.0 and time_s <= to_s for time_s in times_s)
        assert found.intervals == (intervals if made else 0)
        assert found.answered == in_figures.count(number)


def reading_after_a_stall(first: NodeTick) -> list[NodeTick]:
    """Return readings up to second 39, a tick without a rate in second 40, and the next readings from second 60 on."""
    return [*map(reading, range(40)), first, reading(60, 20.0), *map(reading, range(61, 100))]


@pytest.mark.parametrize("restarted", [False, True])
def test_ticks_that_are_not_sampled_after_a_tick_without_a_rate_count(restarted: bool) -> None:
    found = coverage(reading_after_a_stall(reading(40, 0.0)._replace(restarted=restarted)), BEGIN_S + 10, BEGIN_S + 80)
    assert found.gaps == (Gap(BEGIN_S + 39, BEGIN_S + 60, NOT_SAMPLED, 20, restarted),)
    assert (found.answered, found.intervals) == (50, 70)


def test_a_first_tick_at_the_beginning_does_not_hide_a_stall_after_it() -> None:
    found = coverage([reading(10, 0.0), reading(40, 30.0), *map(reading, range(41, 100))], BEGIN_S + 10, BEGIN_S + 80)
    assert found.gaps == (Gap(BEGIN_S + 10, BEGIN_S + 40, NOT_SAMPLED, 29),)
    assert (found.answered, found.intervals) == (41, 70)


def test_a_restart_between_two_ticks_is_no_answer() -> None:
    made = [*map(reading, range(40)), reading(40, 0.0)._replace(restarted=True), *map(reading, range(41, 100))]
    found = coverage(made, BEGIN_S + 10, BEGIN_S + 80)
    assert found.gaps == (Gap(BEGIN_S + 39, BEGIN_S + 40, NO_ANSWER, 1, restarted=True),)


@pytest.mark.parametrize(("offset_s", "intervals"), [(0.0, 20), (0.09, 19), (-0.09, 19)])
def test_an_interval_that_crosses_the_beginning_or_the_end_does_not_count(offset_s: float, intervals: int) -> None:
    for silent in (range(0), range(15, 25), range(5, 35), range(100)):
        made = [tick._replace(time_s=tick.time_s + offset_s) for tick in ticks(range(100), silent)]
        assert coverage(made, BEGIN_S + 10, BEGIN_S + 30).intervals == intervals
