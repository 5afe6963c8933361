"""Latest values: how long after its last reading a value becomes stale, and their deletion after a restart."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.metric import ScrapeInterval, Series, Value, Values
from collector.model.snapshot import Scrape
from collector.node import catalogue
from exporters.metrics_page.page import FIRST_S, FORGET_S, MAX_PERIOD_S, PERIODS, STALL_S, LatestValues
from tests.collector.snapshots import BYTES, CATALOGUE, REQUESTS, SECONDS, STATE, of_source, scrape, snapshot
from tests.examples import examples

NONE: Values = {}


def added(*scrapes: Scrape) -> LatestValues:
    """Return the latest values after these scrapes, one per tick."""
    latest = LatestValues(CATALOGUE)
    for one_scrape in scrapes:
        latest.add(snapshot(one_scrape))
    return latest


def after(*scrapes: Scrape) -> dict[Series, Value]:
    return added(*scrapes).current()


def test_at_first_there_are_no_values() -> None:
    assert LatestValues(CATALOGUE).current() == {}


def test_the_last_value_is_current() -> None:
    assert after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), scrape(2.0, {REQUESTS: 2})) == {REQUESTS: 2, BYTES: 5}


@pytest.mark.parametrize(("reading", "exported"), [(99_998, 100_000), (5, 5), (100_005, 100_005)])
def test_a_slight_decrease_of_cpu_time_is_not_exported(reading: int, exported: int) -> None:
    # A store would take it for a reset and add the whole value.
    iowait: Series = ("casstat_cpu_seconds_total", "iowait")
    latest = LatestValues(catalogue.CATALOGUE)
    for at_s, value in ((1.0, 100_000), (2.0, reading)):
        latest.add(snapshot(scrape(at_s, {iowait: value})))
    assert latest.current() == {iowait: exported}


@pytest.mark.parametrize(("after_s", "is_current"), [(2.4, True), (2.6, False), (100.0, False)])
def test_a_value_read_every_second_is_stale_after_two_and_a_half_seconds(after_s: float, is_current: bool) -> None:
    latest = after(scrape(1.0, {BYTES: 5}), scrape(2.0, {BYTES: 6}), scrape(2.0 + after_s, {REQUESTS: 1}))
    assert (BYTES in latest) is is_current
    assert latest[REQUESTS] == 1


@pytest.mark.parametrize(("after_s", "is_current"), [(59.0, True), (149.0, True), (151.0, False)])
def test_a_value_read_once_a_minute_is_current_between_two_readings(after_s: float, is_current: bool) -> None:
    latest = after(scrape(0.0, {BYTES: 5}), scrape(60.0, {BYTES: 6}), scrape(60.0 + after_s, {REQUESTS: 1}))
    assert (BYTES in latest) is is_current


@pytest.mark.parametrize(("after_s", "is_current"), [(24.0, True), (26.0, False)])
def test_the_assumed_period_is_ten_seconds(after_s: float, is_current: bool) -> None:
    assert (BYTES in after(scrape(1.0, {BYTES: 5}), scrape(1.0 + after_s, {REQUESTS: 1}))) is is_current


def test_a_slow_metric_stays_current_according_to_its_scrape_interval() -> None:
    slow = {
        BYTES[0]: CATALOGUE[BYTES[0]].__class__(**{**vars(CATALOGUE[BYTES[0]]), "scrape_interval": ScrapeInterval.SLOW})
    }
    latest = LatestValues({**CATALOGUE, **slow})
    for at_s in (0.0, 5.0):
        latest.add(of_source(at_s, {BYTES: 5}))
    latest.add(of_source(150.0, {REQUESTS: 1}))
    assert latest.current() == {BYTES: 5, REQUESTS: 1}


def test_a_longer_pause_counts_as_the_maximum_period() -> None:
    latest = after(
        scrape(0.0, {BYTES: 5}), scrape(1e6, {BYTES: 6}), scrape(1e6 + PERIODS * MAX_PERIOD_S + 1, {REQUESTS: 1})
    )
    assert latest == {REQUESTS: 1}


def test_with_a_long_interval_values_are_current_for_longer() -> None:
    latest = LatestValues(CATALOGUE, interval_s=60.0)
    latest.add(of_source(0.0, {BYTES: 5}))
    latest.add(of_source(120.0, {REQUESTS: 1}))
    assert BYTES in latest.current()


def test_two_readings_at_the_same_time_are_not_a_period() -> None:
    assert BYTES in after(scrape(1.0, {BYTES: 5}), scrape(1.0, {BYTES: 6}), scrape(2.0, {REQUESTS: 1}))


def test_values_of_a_silent_source_are_absent_until_it_responds() -> None:
    silent = scrape(2.0, NONE, "", problem="no answer")
    assert after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), silent) == {}
    recovered = after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), silent, scrape(3.0, {REQUESTS: 2}))
    assert recovered == {REQUESTS: 2, BYTES: 5}


def test_a_source_without_values_stays_absent() -> None:
    silent, idle = scrape(2.0, NONE, "", problem="no answer"), scrape(3.0, NONE, "")
    assert after(scrape(1.0, {REQUESTS: 1}), silent, idle) == {}


def test_values_of_a_scrape_with_a_problem_are_kept() -> None:
    assert after(scrape(1.0, {REQUESTS: 1}, problem="not all")) == {REQUESTS: 1}


def test_values_of_a_paced_source_are_current_between_its_reports() -> None:
    reports = [scrape(at_s, {REQUESTS: int(at_s)} if at_s % 20 == 0 else NONE) for at_s in map(float, range(70))]
    assert after(*reports) == {REQUESTS: 60}


def test_a_failing_source_does_not_affect_others() -> None:
    latest = LatestValues(CATALOGUE)
    latest.add(snapshot(scrape(1.0, {REQUESTS: 1}, source="a"), scrape(1.0, {BYTES: 1}, source="b")))
    latest.add(snapshot(scrape(2.0, NONE, source="a", problem="gone"), scrape(2.0, NONE, source="b")))
    assert latest.current() == {BYTES: 1}


def test_after_a_restart_all_earlier_values_are_deleted() -> None:
    assert after(scrape(1.0, {REQUESTS: 9, STATE: "NORMAL"}, "1"), scrape(2.0, {REQUESTS: 1}, "2")) == {REQUESTS: 1}


def test_after_a_restart_earlier_values_of_all_sources_are_deleted() -> None:
    latest = LatestValues(CATALOGUE)
    latest.add(snapshot(scrape(1.0, {REQUESTS: 9}, "1", "a"), scrape(1.0, {BYTES: 9}, "1", "b")))
    latest.add(snapshot(scrape(2.0, {REQUESTS: 1}, "2", "a"), scrape(2.0, NONE, "", "b")))
    assert latest.current() == {REQUESTS: 1}


def test_an_unknown_origin_is_not_a_restart() -> None:
    assert after(scrape(1.0, {BYTES: 9}, "1"), scrape(2.0, {REQUESTS: 1}, "")) == {REQUESTS: 1, BYTES: 9}


def test_a_restart_of_one_source_does_not_affect_others() -> None:
    latest = LatestValues(CATALOGUE)
    latest.add(snapshot(scrape(1.0, {REQUESTS: 9}, "1", "a"), scrape(1.0, {BYTES: 9}, "boot", "b")))
    latest.add(snapshot(scrape(2.0, {SECONDS: 1}, "2", "a"), scrape(2.0, NONE, "", "b")))
    assert latest.current() == {SECONDS: 1, BYTES: 9}


def test_a_series_from_two_sources_has_one_value() -> None:
    latest = LatestValues(CATALOGUE)
    latest.add(snapshot(scrape(1.0, {BYTES: 1}, source="a"), scrape(1.0, {BYTES: 2}, source="b")))
    assert latest.current() == {BYTES: 2}


def test_values_of_dropped_tables_are_deleted() -> None:
    latest = LatestValues(CATALOGUE)
    for number in range(3000):
        latest.add(of_source(float(number), {(REQUESTS[0], f"table {number}"): 1}))
    kept = sum(len(source.latest) for source in latest._sources.values())
    assert kept <= 2 * FORGET_S + PERIODS * FIRST_S + 1


@pytest.mark.parametrize(("interval_s", "patience_s"), [(1.0, STALL_S), (60.0, PERIODS * 60)])
def test_without_ticks_all_values_are_stale(interval_s: float, patience_s: float) -> None:
    latest = LatestValues(CATALOGUE, interval_s)
    latest.add(of_source(1000.0, {BYTES: 5}))
    assert not latest.stalled(1000.0 + patience_s - 1)
    assert latest.stalled(1000.0 + patience_s + 1)


@dataclass(frozen=True)
class GeneratedTick:
    """A tick: the time since the previous one, the values, and a number that changes when the node restarts."""

    after_s: float
    values: Values
    restarts: int


TICKS = st.lists(
    st.builds(
        GeneratedTick,
        st.sampled_from([0.5, 1.0, 3.0, 30.0]),
        st.dictionaries(st.sampled_from([REQUESTS, BYTES, SECONDS]), st.integers(0, 9)),
        st.integers(0, 1),
    ),
    max_size=20,
)


@given(TICKS)
@settings(max_examples=examples(60))
def test_current_values_were_read_since_the_restart_and_recently(ticks: list[GeneratedTick]) -> None:
    latest, at_s, restarts = LatestValues(CATALOGUE), 0.0, -1
    read: dict[Series, list[tuple[float, Value]]] = {}
    for tick in ticks:
        at_s += tick.after_s
        if tick.restarts != restarts:
            read, restarts = {}, tick.restarts
        for series, value in tick.values.items():
            read.setdefault(series, []).append((at_s, value))
        latest.add(of_source(at_s, tick.values, str(tick.restarts)))
        expected = {}
        for series, readings in read.items():
            times = [read_s for read_s, _ in readings]
            period_s = times[-1] - times[-2] if len(times) > 1 else FIRST_S
            if at_s - times[-1] <= PERIODS * period_s:
                expected[series] = readings[-1][1]
        assert latest.current() == expected


@pytest.mark.parametrize("name", ["cassandra_table_partitions", "cassandra_table_snapshots_bytes"])
def test_the_values_of_a_dropped_table_in_nodetools_reports_become_stale(name: str) -> None:
    latest = LatestValues(catalogue.CATALOGUE)
    series, other = (name, "ks", "dropped"), (name, "ks", "kept")
    for minute in range(6):
        latest.add(snapshot(scrape(60.0 * minute, {other: 1, **({series: 1} if minute < 3 else {})})))
    assert latest.current() == {other: 1}
