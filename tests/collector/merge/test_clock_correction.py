"""Corrected times are those of the reference clock, even if a node's clock is ahead, drifts or has been stepped."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.merge.clock_correction import IDENTITY, MAX_DRIFT, ClockCorrection
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, merge_both, reads_of, record, timed

# Times since the epoch have a resolution of 0.24 µs.
ROUNDING_S = 1e-6
DRIFTS = st.floats(-0.9 * MAX_DRIFT, 0.9 * MAX_DRIFT)
OFFSETS = st.floats(-1e4, 1e4)
FRACTIONS = st.floats(0, 1)
TIMES = st.floats(BEGIN_S - 1e5, BEGIN_S + 1e5)


@given(OFFSETS, DRIFTS, st.floats(1.0, 1e6), st.lists(FRACTIONS, max_size=3), FRACTIONS)
def test_linear_drift_is_inverted(
    offset_s: float, drift: float, length_s: float, measured_at: list[float], fraction: float
) -> None:
    def offset_at(time_s: float) -> float:
        return offset_s + drift * (time_s - BEGIN_S)

    times_s = [BEGIN_S, BEGIN_S + length_s, *(BEGIN_S + part * length_s for part in measured_at)]
    clock = ClockCorrection.measured((time_s, offset_at(time_s)) for time_s in times_s)
    time_s = BEGIN_S + fraction * length_s
    assert clock.reference_s(time_s + offset_at(time_s)) == pytest.approx(time_s, rel=0, abs=ROUNDING_S)
    assert clock.node_s(time_s) == pytest.approx(time_s + offset_at(time_s), rel=0, abs=ROUNDING_S)


@given(st.lists(st.tuples(TIMES, OFFSETS), max_size=4), DRIFTS, TIMES, st.floats(0, 100))
@example([(BEGIN_S, 10.0), (BEGIN_S + 1, -10.0)], 0.0, BEGIN_S, 0.5)
def test_a_later_time_is_never_corrected_to_an_earlier_one(
    measurements: list[tuple[float, float]], drift: float, time_s: float, step_s: float
) -> None:
    drifting = [(at_s, drift * (at_s - BEGIN_S)) for at_s, _ in measurements]
    for clock in (ClockCorrection.measured(measurements), ClockCorrection.measured(drifting)):
        assert clock.reference_s(time_s) <= clock.reference_s(time_s + step_s)


@given(OFFSETS, TIMES)
def test_one_measurement_is_a_constant_offset(offset_s: float, time_s: float) -> None:
    measured = ClockCorrection.measured([(BEGIN_S, offset_s)])
    assert measured.reference_s(time_s) == ClockCorrection.constant(offset_s).reference_s(time_s) == time_s - offset_s
    assert ClockCorrection.measured([]).reference_s(time_s) == IDENTITY.reference_s(time_s) == time_s


def test_the_offset_is_constant_before_the_first_and_after_the_last_measurement() -> None:
    clock = ClockCorrection.measured([(BEGIN_S + 100, 0.05), (BEGIN_S, 0.0), (BEGIN_S + 200, 0.13)])
    assert clock.reference_s(BEGIN_S - 1e6) == BEGIN_S - 1e6
    assert clock.reference_s(BEGIN_S + 1e6) == BEGIN_S + 1e6 - 0.13
    assert clock.reference_s(BEGIN_S + 100.05) == pytest.approx(BEGIN_S + 100, rel=0, abs=ROUNDING_S)
    assert clock.reference_s(BEGIN_S + 150.09) == pytest.approx(BEGIN_S + 150, rel=0, abs=ROUNDING_S)


@pytest.mark.parametrize("at_s", [BEGIN_S, BEGIN_S + 1.0, BEGIN_S + 1900.0])
def test_a_clock_that_was_stepped_is_corrected_by_the_first_offset(at_s: float) -> None:
    clock = ClockCorrection.measured([(BEGIN_S, 1.0), (at_s, 3.0), (BEGIN_S + 4000, 2.0)])
    assert clock == ClockCorrection.constant(1.0)


def test_repeated_measurements_count_once() -> None:
    once = ClockCorrection.measured([(BEGIN_S, 0.0), (BEGIN_S + 100, 0.05)])
    twice = ClockCorrection.measured([(BEGIN_S, 0.0), (BEGIN_S + 100, 0.05)] * 2)
    for time_s in (BEGIN_S - 1, BEGIN_S, BEGIN_S + 50, BEGIN_S + 100.05, BEGIN_S + 200):
        assert once.reference_s(time_s) == twice.reference_s(time_s)


def test_rows_of_a_drifting_clock_equal_those_of_a_correct_clock(tmp_path: Path) -> None:
    def offset_at(time_s: float) -> float:
        return 30 + 0.2 * (time_s - BEGIN_S) / 600

    ticks = busy("a", 61, lambda tick: [500] * (tick % 7), interval_s=10.0)
    # Each tick covers only 0.1 s, so an error of 0.1 s in its time moves it to another interval of the merge.
    other = record(tmp_path / "b", busy("b", 61, interval_s=10.0), interval_s=0.1)
    right = record(tmp_path / "right" / "a", ticks, interval_s=0.1)
    drifting = record(tmp_path / "drifting" / "a", timed(ticks, offset_at), interval_s=0.1)
    clock = ClockCorrection.measured((at_s, offset_at(at_s)) for at_s in (BEGIN_S - 1, BEGIN_S + 602))
    expected, _ = merge_both(right, other, interval_s=1.0)
    merged, _ = merge_both(drifting, other, interval_s=1.0, clocks={"a": clock})
    for node in (0, 1):
        assert reads_of(merged.nodes[node].product) == reads_of(expected.nodes[node].product)
    assert merged.cluster == expected.cluster
    by_mean, _ = merge_both(drifting, other, interval_s=1.0, clocks={"a": ClockCorrection.constant(30.1)})
    assert by_mean.cluster != expected.cluster
