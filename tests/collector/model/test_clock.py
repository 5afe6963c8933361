"""Ticks fall on the grid, report their delay and never come in bursts, even if the wall clock is changed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.clock import SLEW_MS, clock_difference, first_tick_in_s, ticks
from collector.model.snapshot import Tick
from tests.collector.fakes import Disturbance, FakeClock
from tests.every import every

START_S = 1_700_000_000.0
HOUR_S = 3600.0


@dataclass(frozen=True)
class Seen:
    """A tick, the monotonic time at which it came, and the length of the wait before it."""

    tick: Tick
    at_s: float
    waited_s: float


def watched(clock: FakeClock, interval_s: float, busy: Iterable[float], *, aligned: bool = False) -> Iterator[Seen]:
    """Yield one tick for each entry of `busy`, the number of seconds for which the consumer is busy after that tick."""
    grid = ticks(clock, interval_s, aligned=aligned)
    for busy_s in busy:
        since_s = clock.monotonic_s()
        tick = next(grid)
        yield Seen(tick, clock.monotonic_s(), clock.monotonic_s() - since_s)
        clock.busy(busy_s)


def idle(clock: FakeClock, interval_s: float, number: int, *, aligned: bool = False) -> list[Tick]:
    return list(islice(ticks(clock, interval_s, aligned=aligned), number))


def names(collected: Iterable[Tick]) -> list[float]:
    """Return the tick times in milliseconds after the start."""
    return [round(1000 * (tick.time_s - START_S)) for tick in collected]


@every(
    ("interval_s", "after_start_s", "expected"),
    [
        (1.0, 0.0, [1000, 2000, 3000]),
        (1.0, 0.25, [1000, 2000, 3000]),
        (1.0, 0.999, [1000, 2000, 3000]),
        (2.0, 0.25, [1000, 3000, 5000]),
        (60.0, 0.25, [1000, 61_000, 121_000]),
        (1.5, 0.25, [1000, 2500, 4000]),
        (0.1, 0.25, [300, 400, 500]),
        (0.5, 0.25, [500, 1000, 1500]),
        (0.1, 0.0, [100, 200, 300]),
    ],
)
def test_ticks_fall_on_whole_seconds_and_tenths(interval_s: float, after_start_s: float, expected: list[int]) -> None:
    collected = idle(FakeClock(START_S + after_start_s), interval_s, 3)
    assert names(collected) == expected
    assert [tick.late_s for tick in collected] == pytest.approx([0.0] * 3, abs=1e-6)
    assert [tick.missed for tick in collected] == [0, 0, 0]


@every("interval_s", [0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 7.0, 10.0, 60.0])
def test_aligned_ticks_fall_on_multiples_of_the_interval(interval_s: float) -> None:
    for tick in idle(FakeClock(START_S + 0.123), interval_s, 3, aligned=True):
        assert round(1000 * tick.time_s) % round(1000 * interval_s) == 0


@every("aligned", [False, True])
@every("interval_s", [0.1, 0.3, 0.7, 1.0, 1.5, 7.0])
@every("after_start_s", [0.0, 0.25, 0.95])
def test_the_wait_for_the_first_tick_is_known_in_advance(
    interval_s: float, after_start_s: float, aligned: bool
) -> None:
    clock = FakeClock(START_S + after_start_s)
    expected_s = first_tick_in_s(clock, interval_s, aligned=aligned)
    (first,) = watched(clock, interval_s, [0.0], aligned=aligned)
    assert first.waited_s == pytest.approx(expected_s, abs=1e-6)


def test_a_tick_comes_on_time() -> None:
    clock = FakeClock(START_S + 0.25)
    for tick in islice(ticks(clock, 1.0), 5):
        assert clock.wall_s() == pytest.approx(tick.time_s, abs=1e-6)


def test_a_slow_consumer_does_not_move_ticks() -> None:
    collected = [seen.tick for seen in watched(FakeClock(START_S), 1.0, [0.0, 0.3, 0.99, 0.5])]
    assert names(collected) == [1000, 2000, 3000, 4000]
    assert [tick.missed for tick in collected] == [0, 0, 0, 0]


def test_missed_ticks_are_counted_and_not_repeated() -> None:
    collected = list(watched(FakeClock(START_S), 1.0, [0.0, 3.5, 0.0, 0.0]))
    assert names(seen.tick for seen in collected) == [1000, 2000, 6000, 7000]
    assert [seen.tick.missed for seen in collected] == [0, 0, 3, 0]
    assert [seen.tick.late_s for seen in collected] == pytest.approx([0.0] * 4, abs=1e-6)
    assert collected[2].waited_s == pytest.approx(0.5)
    assert collected[3].waited_s == pytest.approx(1.0)


def test_a_late_tick_has_its_delay() -> None:
    clock = FakeClock(START_S, [Disturbance(), Disturbance(longer_s=0.3), Disturbance()])
    collected = list(watched(clock, 1.0, [0.0, 0.0, 0.0]))
    assert names(seen.tick for seen in collected) == [1000, 2000, 3000]
    assert [seen.tick.late_s for seen in collected] == pytest.approx([0.0, 0.3, 0.0], abs=1e-6)
    assert [seen.tick.missed for seen in collected] == [0, 0, 0]
    assert collected[2].waited_s == pytest.approx(0.7)


def test_a_stopped_process_counts_missed_ticks() -> None:
    clock = FakeClock(START_S, [Disturbance(), Disturbance(longer_s=5.25), Disturbance()])
    collected = idle(clock, 1.0, 3)
    assert names(collected) == [1000, 7000, 8000]
    assert collected[1].late_s == pytest.approx(0.25, abs=1e-6)
    assert [tick.missed for tick in collected] == [0, 5, 0]


@every("step_s", [-HOUR_S, HOUR_S, -86_400.0, 7 * HOUR_S])
@every("interval_s", [0.1, 1.0, 1.5, 10.0, 60.0])
def test_setting_the_clock_during_sleep_changes_only_tick_times(step_s: float, interval_s: float) -> None:
    clock = FakeClock(START_S, [Disturbance(), Disturbance(wall_step_s=step_s)])
    collected = list(watched(clock, interval_s, [0.0] * 6))
    assert all(seen.waited_s <= interval_s + 1e-6 for seen in collected)
    assert [seen.tick.missed for seen in collected] == [0] * 6
    assert len({seen.tick.time_s for seen in collected}) == 6
    assert collected[-1].tick.time_s - collected[0].tick.time_s == pytest.approx(
        step_s + 5 * interval_s, abs=interval_s
    )


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S])
def test_setting_the_clock_between_ticks_changes_only_tick_times(step_s: float) -> None:
    clock = FakeClock(START_S)
    grid = ticks(clock, 1.0)
    collected = [next(grid), next(grid)]
    clock.busy(0.25)
    clock.step(step_s)
    since_s = clock.monotonic_s()
    collected += [next(grid), next(grid)]
    assert clock.monotonic_s() - since_s == pytest.approx(1.75)
    assert names(collected) == [1000, 2000, 3000 + 1000 * step_s, 4000 + 1000 * step_s]
    assert [tick.missed for tick in collected] == [0] * 4


@every("back_s", [0.999, 0.75, 0.5, 0.2, 0.06])
def test_a_small_step_back_does_not_lengthen_the_wait(back_s: float) -> None:
    clock = FakeClock(START_S)
    grid = ticks(clock, 1.0)
    next(grid)
    clock.step(-back_s)
    since_s = clock.monotonic_s()
    next(grid)
    assert clock.monotonic_s() - since_s <= 1.0 + SLEW_MS / 1000


@every("slew_s", [-0.001, 0.001])
@every("interval_s", [0.1, 1.0, 10.0])
def test_slewing_the_clock_has_no_effect(slew_s: float, interval_s: float) -> None:
    clock = FakeClock(START_S, [Disturbance(wall_step_s=slew_s)] * 20)
    collected = list(watched(clock, interval_s, [0.0] * 20))
    expected = [round(1000 * interval_s * position) for position in range(1, 21)]
    assert names(seen.tick for seen in collected) == expected
    assert all(seen.tick.missed == 0 for seen in collected)
    assert all(seen.tick.late_s <= 0.0011 for seen in collected)
    assert all(seen.waited_s <= interval_s + 0.0011 for seen in collected)


intervals = st.sampled_from((0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 10.0, 60.0))
starts = st.integers(0, 119_999).map(lambda ms: START_S + ms / 1000)


def lengths(longest_ms: int) -> st.SearchStrategy[float]:
    """Generate durations of whole milliseconds, in seconds; many of them are zero."""
    return st.one_of(st.just(0.0), st.integers(0, longest_ms).map(lambda ms: ms / 1000))


def test_a_tick_reports_how_long_the_machine_was_suspended() -> None:
    clock = FakeClock(START_S, [Disturbance(), Disturbance(suspended_s=5.25), Disturbance()])
    collected = [tick for tick, _ in zip(ticks(clock, 1.0), range(3), strict=False)]
    assert [tick.missed for tick in collected] == [0, 5, 0]
    assert [tick.suspended_s for tick in collected] == [0, 5.25, 0]


@given(intervals, starts, st.booleans(), st.lists(st.tuples(lengths(200_000), lengths(5_000)), min_size=2, max_size=20))
def test_every_grid_point_is_a_tick_or_is_counted_as_missed(
    interval_s: float, start_s: float, aligned: bool, troubles: list[tuple[float, float]]
) -> None:
    clock = FakeClock(start_s, [Disturbance(longer_s=longer_s) for _, longer_s in troubles])
    collected = list(watched(clock, interval_s, [busy_s for busy_s, _ in troubles], aligned=aligned))
    for before, after in pairwise(collected):
        points = (after.tick.time_s - before.tick.time_s) / interval_s
        assert points == pytest.approx(round(points), abs=1e-3)
        assert round(points) == 1 + after.tick.missed
    for seen in collected:
        # A tick that is early by no more than the slew tolerance counts as on time.
        assert 0.0 <= seen.tick.late_s < interval_s
        assert seen.tick.time_s + seen.tick.late_s == pytest.approx(wall_at(seen, start_s), abs=SLEW_MS / 1000 + 1e-6)


def wall_at(seen: Seen, start_s: float) -> float:
    """Return a tick's wall clock time as it would be without any clock steps."""
    return start_s + seen.at_s - FakeClock().monotonic_s()


steps = st.one_of(
    st.just(0.0), st.sampled_from((-HOUR_S, HOUR_S)), st.integers(-3_000, 3_000).map(lambda ms: ms / 1000)
)


@dataclass(frozen=True)
class Trouble:
    """Disturbances of one tick: a busy consumer, then a clock step, then a disturbed sleep."""

    busy_s: float
    then_step_s: float
    sleep: Disturbance


troubles = st.lists(
    st.builds(Trouble, lengths(3_000), steps, st.builds(Disturbance, lengths(2_000), steps)), min_size=2, max_size=20
)


def through(clock: FakeClock, interval_s: float, troubles: list[Trouble], see: Callable[[Tick, float], None]) -> None:
    """Run one tick per trouble; call `see` with the tick and the total sleep requested while waiting for it."""
    grid = ticks(clock, interval_s)
    for trouble in troubles:
        sleeps = len(clock.slept)
        see(next(grid), sum(clock.slept[sleeps:]))
        clock.busy(trouble.busy_s)
        clock.step(trouble.then_step_s)


@given(intervals, starts, troubles)
def test_no_wait_is_longer_than_an_interval_when_the_clock_is_set(
    interval_s: float, start_s: float, troubles: list[Trouble]
) -> None:
    slept: list[float] = []
    clock = FakeClock(start_s, [trouble.sleep for trouble in troubles])
    through(clock, interval_s, troubles, lambda _, slept_s: slept.append(slept_s))
    # A tick may be early by up to the slew tolerance, which lengthens the next wait by the same amount.
    assert max(slept) <= interval_s + min(SLEW_MS / 1000, interval_s / 10) + 1e-6


@given(intervals, starts, troubles)
def test_tick_times_ascend_unless_the_clock_is_set_back(
    interval_s: float, start_s: float, troubles: list[Trouble]
) -> None:
    forward = [
        Trouble(t.busy_s, abs(t.then_step_s), Disturbance(t.sleep.longer_s, abs(t.sleep.wall_step_s))) for t in troubles
    ]
    collected: list[Tick] = []
    clock = FakeClock(start_s, [trouble.sleep for trouble in forward])
    through(clock, interval_s, forward, lambda tick, _: collected.append(tick))
    assert all(before.time_s < after.time_s for before, after in pairwise(collected))


@given(intervals, starts, troubles)
def test_the_delay_is_less_than_an_interval_and_counts_are_not_negative(
    interval_s: float, start_s: float, troubles: list[Trouble]
) -> None:
    collected: list[Tick] = []
    clock = FakeClock(start_s, [trouble.sleep for trouble in troubles])
    through(clock, interval_s, troubles, lambda tick, _: collected.append(tick))
    assert all(0.0 <= tick.late_s < interval_s for tick in collected)
    assert all(tick.missed >= 0 for tick in collected)


@every("interruptions_s, took_s", [([], 0.0), ([2.0, 0.5], 0.0), ([2.0, 0.5, 0.25, 0.5, 1.0, 0.0], 0.25)])
def test_the_difference_of_two_clocks_is_that_of_the_fastest_reading(
    interruptions_s: list[float], took_s: float
) -> None:
    waits_s, now_s = iter(interruptions_s), 0.0

    def wall_s() -> float:
        nonlocal now_s
        time_s = START_S + now_s
        now_s += next(waits_s, 0.0)
        return time_s

    assert clock_difference(wall_s, lambda: now_s, 0.001) == (START_S - took_s / 2, took_s)
