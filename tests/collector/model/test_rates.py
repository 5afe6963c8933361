"""Rates: their values in an interval, and the cases in which they are absent."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Values
from collector.model.rates import Readings, update_readings
from collector.model.snapshot import Event, Rate, Snapshot
from tests.collector.snapshots import (
    BYTES,
    CATALOGUE,
    REQUESTS,
    SECONDS,
    STATE,
    counted,
    kinds,
    last,
    of_source,
    rate,
    samples,
    scrape,
    snapshot,
)


def test_a_rate_is_the_increase_over_the_time_between_the_readings() -> None:
    result = rate(last(counted(10.0, 100), counted(12.5, 350)))
    assert result == Rate(250.0, 2.5)
    assert result.per_s == 100.0


def test_an_unchanged_counter_has_a_rate_of_zero() -> None:
    assert rate(last(counted(10.0, 100), counted(11.0, 100))) == Rate(0.0, 1.0)


def test_a_rate_is_in_the_unit_of_its_metric() -> None:
    result = rate(last(of_source(10.0, {SECONDS: 1_000_000}), of_source(11.0, {SECONDS: 3_500_000})), SECONDS)
    assert result is not None
    assert result.increase == pytest.approx(2.5)


def test_a_rate_is_absent_on_the_first_reading() -> None:
    sample = last(counted(10.0, 100))
    assert sample.values == {}
    assert sample.elapsed_s == {}
    assert sample.events == ()


def test_a_rate_is_absent_on_the_first_reading_of_its_series() -> None:
    sample = last(counted(10.0, 100), of_source(11.0, {REQUESTS: 110, SECONDS: 5}))
    assert rate(sample) is not None
    assert rate(sample, SECONDS) is None


@pytest.mark.parametrize("origins", [("", "1"), ("1", "")])
def test_an_unknown_origin_is_not_a_restart(origins: tuple[str, str]) -> None:
    sample = last(counted(10.0, 100, origins[0]), counted(11.0, 350, origins[1]))
    assert rate(sample) == Rate(250.0, 1.0)
    assert sample.events == ()
    assert rate(last(counted(10.0, 100, origins[0]), counted(11.0, 99, origins[1]))) is None


@pytest.mark.parametrize("after", [0, 5, 100, 1_000_000])
def test_a_rate_is_absent_across_a_restart(after: int) -> None:
    sample = last(counted(10.0, 100, "1"), counted(11.0, after, "2"))
    assert rate(sample) is None
    assert kinds(sample) == ["restart"]
    assert "node" in sample.events[0].text


def test_the_first_rate_after_a_restart_covers_only_time_since_the_restart() -> None:
    result = samples([counted(10.0, 100, "1"), counted(11.0, 500, "2"), counted(12.0, 507, "2")])
    assert rate(result[2]) == Rate(7.0, 1.0)
    assert kinds(result[2]) == []


def test_a_restart_during_a_gap_is_reported_after_it() -> None:
    nothing = snapshot(scrape(11.0, {}, origin="", problem="no answer"))
    sample = last(counted(10.0, 100, "1"), nothing, counted(12.0, 150, "2"))
    assert rate(sample) is None
    assert kinds(sample) == ["restart"]


def test_a_rate_is_absent_when_the_counter_decreased() -> None:
    result = samples([counted(10.0, 100), counted(11.0, 99), counted(12.0, 104)])
    assert rate(result[1]) is None
    assert rate(result[2]) == Rate(5.0, 1.0)


@pytest.mark.parametrize("at_s", [9.0, 10.0])
def test_a_rate_is_absent_when_the_clock_went_back_or_stood_still(at_s: float) -> None:
    result = samples([counted(10.0, 100), counted(at_s, 200), counted(at_s + 1, 230)])
    assert rate(result[1]) is None
    assert result[1].elapsed_s == {}
    assert rate(result[2]) == Rate(30.0, 1.0)


def test_a_gauge_is_in_the_unit_of_its_metric() -> None:
    assert last(of_source(10.0, {BYTES: 3})).values[BYTES] == 3072.0


def test_gauges_and_texts_are_present_on_the_first_reading_and_across_a_restart() -> None:
    values: Values = {BYTES: 1, STATE: "NORMAL", REQUESTS: 4}
    for sample in samples([of_source(10.0, values, "1"), of_source(11.0, values, "2")]):
        assert sample.values == {BYTES: 1024.0, STATE: "NORMAL"}


def test_metrics_missing_from_the_catalogue_are_omitted() -> None:
    unknown: Values = {("unknown_total",): 5, ("unknown_seconds",): (1, 2, 3)}
    assert last(of_source(10.0, unknown), of_source(11.0, unknown)).values == {}


def test_a_counter_that_is_not_a_number_has_no_rate() -> None:
    values: list[Values] = [{REQUESTS: "many"}, {REQUESTS: 5}, {REQUESTS: "more"}]
    assert last(*(of_source(10.0 + second, tick_values) for second, tick_values in enumerate(values))).values == {}


def test_missed_ticks_are_reported() -> None:
    assert last(snapshot(scrape(1.0, {}), missed=3)).events == (Event("missed", "3 ticks missed"),)


def test_a_source_that_does_not_respond_is_reported_with_its_problem() -> None:
    sample = last(snapshot(scrape(1.0, {}, source="disk", problem="/proc/diskstats: gone")))
    assert kinds(sample) == ["no_answer"]
    assert "disk" in sample.events[0].text
    assert "/proc/diskstats: gone" in sample.events[0].text


def test_each_source_has_its_own_time() -> None:
    def both(node_s: float, disk_s: float, count: int) -> Snapshot:
        return snapshot(
            scrape(node_s, {REQUESTS: count}, source="node"), scrape(disk_s, {SECONDS: count}, source="disk")
        )

    sample = last(both(10.0, 10.5, 0), both(11.0, 11.75, 10))
    assert rate(sample, REQUESTS) == Rate(10.0, 1.0)
    assert sample.elapsed_s == {"node": 1.0, "disk": 1.25}


def test_a_restart_of_one_source_does_not_affect_others() -> None:
    def both(at_s: float, origin: str) -> Snapshot:
        return snapshot(
            scrape(at_s, {REQUESTS: int(at_s)}, origin, "node"),
            scrape(at_s, {SECONDS: 10**6 * int(at_s)}, "boot", "disk"),
        )

    sample = last(both(10.0, "1"), both(11.0, "2"))
    assert rate(sample, REQUESTS) is None
    assert rate(sample, SECONDS) == Rate(1.0, 1.0)
    assert "disk" not in sample.events[0].text


def test_a_slow_series_does_not_lengthen_the_rows_interval() -> None:
    values: list[Values] = [{REQUESTS: 0, SECONDS: 0}, {REQUESTS: 5}, {REQUESTS: 9, SECONDS: 10**6}]
    sample = last(*(of_source(10.0 + second, tick_values) for second, tick_values in enumerate(values)))
    assert rate(sample, REQUESTS) == Rate(4.0, 1.0)
    assert rate(sample, SECONDS) == Rate(1.0, 2.0)
    assert sample.elapsed_s == {"node": 1.0}


def test_after_a_restart_all_earlier_readings_are_deleted() -> None:
    before: Readings = {}
    update_readings(before, of_source(10.0, {REQUESTS: 100, SECONDS: 100}, "1"))
    update_readings(before, of_source(11.0, {REQUESTS: 1}, "2"))
    assert set(before) == {REQUESTS}


def test_a_series_read_long_after_a_restart_is_not_a_second_restart() -> None:
    readings: list[tuple[str, Values]] = [
        ("1", {REQUESTS: 100, SECONDS: 100}),
        ("2", {REQUESTS: 1}),
        ("2", {REQUESTS: 2, SECONDS: 500}),
    ]
    sample = last(*(of_source(10.0 + at, values, origin) for at, (origin, values) in enumerate(readings)))
    assert kinds(sample) == []
    assert rate(sample, SECONDS) is None


def test_a_scrape_without_values_keeps_earlier_readings() -> None:
    before: Readings = {}
    update_readings(before, counted(10.0, 100))
    update_readings(before, snapshot(scrape(11.0, {}, origin="", problem="no answer")))
    assert before[REQUESTS].value == 100


@dataclass(frozen=True)
class GeneratedTick:
    """One tick: the time since the previous one, the counter's increase, and whether the node responded."""

    after_s: float
    increase: int
    answered: bool


tries = st.lists(
    st.builds(GeneratedTick, st.floats(0.01, 500), st.integers(0, 10**9), st.booleans()), min_size=2, max_size=30
).filter(lambda ticks: sum(tick.answered for tick in ticks) >= 2)


def answers(ticks: list[GeneratedTick]) -> list[tuple[float, int, bool]]:
    """Return each tick's time, the counter's value and whether the node responded."""
    at_s, count, result = 1000.0, 7, []
    for tick in ticks:
        at_s, count = at_s + tick.after_s, count + tick.increase
        result.append((at_s, count, tick.answered))
    return result


def snapshots_of(ticks: list[GeneratedTick]) -> list[Snapshot]:
    return [
        of_source(at_s, {REQUESTS: count, SECONDS: count})
        if answered
        else snapshot(scrape(at_s, {}, origin="", problem="no answer in time"))
        for at_s, count, answered in answers(ticks)
    ]


@given(tries)
def test_rates_multiplied_by_their_intervals_add_up_to_the_increase(ticks: list[GeneratedTick]) -> None:
    counts = [(at_s, count) for at_s, count, answered in answers(ticks) if answered]
    rates = [result for sample in samples(snapshots_of(ticks)) if (result := rate(sample))]
    increase, elapsed_s = counts[-1][1] - counts[0][1], counts[-1][0] - counts[0][0]
    assert sum(result.per_s * result.elapsed_s for result in rates) == pytest.approx(increase, rel=1e-9)
    assert sum(result.elapsed_s for result in rates) == pytest.approx(elapsed_s, rel=1e-9)


@given(tries)
def test_a_row_covers_the_same_time_as_its_rates(ticks: list[GeneratedTick]) -> None:
    for sample in samples(snapshots_of(ticks)):
        result = rate(sample)
        assert sample.elapsed_s == ({"node": result.elapsed_s} if result else {})


@given(tries)
def test_an_interval_without_a_response_has_no_values(ticks: list[GeneratedTick]) -> None:
    for sample, tick in zip(samples(snapshots_of(ticks)), ticks, strict=True):
        if not tick.answered:
            assert sample.values == {}
            assert kinds(sample) == ["no_answer"]


def test_the_catalogue_used_in_these_tests_contains_all_kinds() -> None:
    assert {metric.kind.value for metric in CATALOGUE.values()} == {"counter", "gauge", "histogram", "text"}
