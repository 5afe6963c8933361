"""The wall clock is changed while casstat is running: no hang, no spike, and every read is counted once."""

from itertools import pairwise

import pytest

from tests.faults.fake_jolokia import Exchange, FakeJolokia, chunked
from tests.faults.program import event_kinds, increase
from tests.faults.simulated import ManualClock, Simulation, tick_list

HOUR = 3600.0
STEPS_S = [-HOUR, HOUR, -HOUR + 0.4, HOUR + 0.7, -0.3, 0.3, -1.0, 1.0, -2.0, -1e9, 0.04, -0.04, 86400 * 365.0]
PER_S = 1000


def read_constantly(fake: FakeJolokia, line: Simulation) -> None:
    """Make the node do `PER_S` reads in each second of the simulated clock."""

    def on_sleep(seconds: float) -> None:
        reads = round(PER_S * seconds)
        fake.node.do_reads(reads)
        line.reads_done += reads

    line.clock.on_sleep = on_sleep


@pytest.mark.parametrize("interval_s", [1.0, 0.2, 60.0])
@pytest.mark.parametrize("step_s", STEPS_S)
def test_setting_the_clock_between_ticks_loses_no_row_and_adds_no_spike(
    step_s: float, interval_s: float, fake: FakeJolokia
) -> None:
    with Simulation(fake, interval_s) as line:
        read_constantly(fake, line)
        for _ in range(3):
            line.next()
        line.clock.wall += step_s
        rows = [line.next() for _ in range(6)]
    # Ticks are aligned to the wall clock, so the step makes one interval shorter or longer, but at most twice as long.
    assert all(0 < row["interval_s"] <= 2 * interval_s + 0.001 for row in rows)
    assert all(row["interval_s"] == pytest.approx(interval_s, abs=1.1e-5) for row in rows[2:])
    assert all(row["reads_per_s"] == pytest.approx(PER_S, rel=0.05) for row in line.rows[1:])
    assert sum(increase(line.rows)) == pytest.approx(line.reads_done, rel=1e-4)
    assert not any({"restart", "no_answer", "disagreement"} & event_kinds(row) for row in rows)


@pytest.mark.parametrize("step_s", STEPS_S)
def test_setting_the_clock_during_a_wait_does_not_prolong_it(step_s: float, fake: FakeJolokia) -> None:
    with Simulation(fake) as line:
        line.next()
        line.next()
        before_s = line.clock.monotonic
        steps = [step_s]

        def on_sleep(seconds: float) -> None:
            fake.node.do_reads(round(PER_S * seconds))
            line.reads_done += round(PER_S * seconds)
            line.clock.wall += steps.pop() if steps else 0.0

        line.clock.on_sleep = on_sleep
        rows = [line.next() for _ in range(5)]
        assert line.clock.monotonic - before_s < 6.001
    assert all(row["reads_per_s"] == pytest.approx(PER_S, rel=0.05) for row in rows)
    assert all(row["late_ms"] < 1000 for row in rows)
    assert sum(increase(rows)) == pytest.approx(line.reads_done, rel=1e-4)


def test_rates_stay_correct_when_the_clock_is_set_back_repeatedly(fake: FakeJolokia) -> None:
    with Simulation(fake) as line:
        read_constantly(fake, line)
        for _ in range(20):
            line.clock.wall -= HOUR
            line.next()
    assert all(row["reads_per_s"] == pytest.approx(PER_S, rel=0.05) for row in line.rows[1:])
    assert line.rows[-1]["time"] < line.rows[0]["time"] - 19 * HOUR


@pytest.mark.parametrize("paused_s", [1.1, 5.0, 60.0])
def test_a_pause_between_a_response_and_its_time_gives_no_wrong_rate(paused_s: float, fake: FakeJolokia) -> None:
    """The node counts the reads during the pause after it has answered, so the response is older than its time."""
    with Simulation(fake) as line:
        read_constantly(fake, line)
        for _ in range(3):
            line.next()

        def answer_and_pause(exchange: Exchange) -> bool:
            fake.fault = None
            line.clock.wall += paused_s
            line.clock.monotonic += paused_s
            exchange.send(chunked(exchange.body))
            fake.node.do_reads(round(PER_S * paused_s))
            line.reads_done += round(PER_S * paused_s)
            return True

        fake.fault = answer_and_pause
        paused = line.next()
        rows = [line.next() for _ in range(3)]
    assert paused["reads_per_s"] is None
    assert "no_answer" in event_kinds(paused)
    assert all(row["reads_per_s"] == pytest.approx(PER_S, rel=0.05) for row in rows)
    assert sum(increase(line.rows)) == pytest.approx(line.reads_done, rel=1e-4)


def test_a_drifting_clock_gives_distinct_tick_times() -> None:
    clock = ManualClock()

    def drift(seconds: float) -> None:
        clock.wall -= 0.0005 * seconds

    clock.on_sleep = drift
    times = [tick.time_s for tick, _ in tick_list(clock, 1.0, 500)]
    assert times == sorted(set(times))
    assert times[-1] - times[0] == 499


@pytest.mark.parametrize("step_s", STEPS_S)
def test_ticks_have_no_burst_and_no_gap_after_the_clock_is_set(step_s: float) -> None:
    clock = ManualClock()

    def step_at_the_fifth_wait(_: float) -> None:
        if len(clock.slept) == 5:
            clock.wall += step_s

    clock.on_sleep = step_at_the_fifth_wait
    timed_ticks = tick_list(clock, 1.0, 20)
    gaps = [after_s - before_s for (_, before_s), (_, after_s) in pairwise(timed_ticks)]
    assert all(gap == pytest.approx(1.0) for gap in gaps[8:])
    assert all(0 < gap <= 2.001 for gap in gaps)
    assert all(0 <= tick.late_s < 1.0 for tick, _ in timed_ticks)
    assert sum(tick.missed for tick, _ in timed_ticks) <= 1
