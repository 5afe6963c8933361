"""What is known: every series for as long as it is true, and not a moment of an earlier life."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.metric import ScrapeInterval, Series, Value, Values
from collector.model.snapshot import Scrape
from exporters.prometheus.latest_values import FIRST_S, FORGET_S, LONGEST_S, PERIODS, STALL_S, LatestValues
from tests.collector.snapshots import BYTES, CATALOGUE, REQUESTS, SECONDS, STATE, one, scrape, snapshot

NONE: Values = {}


def known(*scrapes: Scrape) -> LatestValues:
    """Return what is known after ticks of one batch each."""
    found = LatestValues(CATALOGUE)
    for each in scrapes:
        found.add(snapshot(each))
    return found


def after(*scrapes: Scrape) -> dict[Series, Value]:
    return known(*scrapes).current()


def test_nothing_is_known_at_first() -> None:
    assert LatestValues(CATALOGUE).current() == {}


def test_the_last_value_is_known() -> None:
    assert after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), scrape(2.0, {REQUESTS: 2})) == {REQUESTS: 2, BYTES: 5}


@pytest.mark.parametrize(("after_s", "there"), [(2.4, True), (2.6, False), (100.0, False)])
def test_what_is_read_every_second_is_gone_after_two_and_a_half(after_s: float, there: bool) -> None:
    found = after(scrape(1.0, {BYTES: 5}), scrape(2.0, {BYTES: 6}), scrape(2.0 + after_s, {REQUESTS: 1}))
    assert (BYTES in found) is there
    assert found[REQUESTS] == 1


@pytest.mark.parametrize(("after_s", "there"), [(59.0, True), (149.0, True), (151.0, False)])
def test_what_is_read_once_a_minute_stays_between_two_readings(after_s: float, there: bool) -> None:
    found = after(scrape(0.0, {BYTES: 5}), scrape(60.0, {BYTES: 6}), scrape(60.0 + after_s, {REQUESTS: 1}))
    assert (BYTES in found) is there


@pytest.mark.parametrize(("after_s", "there"), [(24.0, True), (26.0, False)])
def test_at_first_sight_ten_seconds_are_taken_for_the_period(after_s: float, there: bool) -> None:
    assert (BYTES in after(scrape(1.0, {BYTES: 5}), scrape(1.0 + after_s, {REQUESTS: 1}))) is there


def test_what_is_said_to_be_slow_stays_for_its_own_period_from_the_first_reading_on() -> None:
    slow = {
        BYTES[0]: CATALOGUE[BYTES[0]].__class__(**{**vars(CATALOGUE[BYTES[0]]), "scrape_interval": ScrapeInterval.SLOW})
    }
    found = LatestValues({**CATALOGUE, **slow})
    for at_s in (0.0, 5.0):
        found.add(one(at_s, {BYTES: 5}))
    found.add(one(150.0, {REQUESTS: 1}))
    assert found.current() == {BYTES: 5, REQUESTS: 1}


def test_a_long_pause_is_no_period() -> None:
    found = after(
        scrape(0.0, {BYTES: 5}), scrape(1e6, {BYTES: 6}), scrape(1e6 + PERIODS * LONGEST_S + 1, {REQUESTS: 1})
    )
    assert found == {REQUESTS: 1}


def test_long_intervals_are_periods_too() -> None:
    found = LatestValues(CATALOGUE, interval_s=60.0)
    found.add(one(0.0, {BYTES: 5}))
    found.add(one(120.0, {REQUESTS: 1}))
    assert BYTES in found.current()


def test_two_readings_of_the_same_moment_are_no_period() -> None:
    assert BYTES in after(scrape(1.0, {BYTES: 5}), scrape(1.0, {BYTES: 6}), scrape(2.0, {REQUESTS: 1}))


def test_a_source_without_an_answer_is_absent_until_it_answers() -> None:
    silent = scrape(2.0, NONE, "", problem="no answer")
    assert after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), silent) == {}
    again = after(scrape(1.0, {REQUESTS: 1, BYTES: 5}), silent, scrape(3.0, {REQUESTS: 2}))
    assert again == {REQUESTS: 2, BYTES: 5}


def test_a_source_that_has_not_answered_yet_is_not_back() -> None:
    silent, idle = scrape(2.0, NONE, "", problem="no answer"), scrape(3.0, NONE, "")
    assert after(scrape(1.0, {REQUESTS: 1}), silent, idle) == {}


def test_a_problem_with_values_is_an_answer() -> None:
    assert after(scrape(1.0, {REQUESTS: 1}, problem="not all")) == {REQUESTS: 1}


def test_what_answers_at_its_own_pace_is_held_in_between() -> None:
    reports = [scrape(at_s, {REQUESTS: int(at_s)} if at_s % 20 == 0 else NONE) for at_s in map(float, range(70))]
    assert after(*reports) == {REQUESTS: 60}


def test_sources_are_silent_each_for_itself() -> None:
    found = LatestValues(CATALOGUE)
    found.add(snapshot(scrape(1.0, {REQUESTS: 1}, source="a"), scrape(1.0, {BYTES: 1}, source="b")))
    found.add(snapshot(scrape(2.0, NONE, source="a", problem="gone"), scrape(2.0, NONE, source="b")))
    assert found.current() == {BYTES: 1}


def test_an_earlier_life_is_forgotten_whole() -> None:
    assert after(scrape(1.0, {REQUESTS: 9, STATE: "NORMAL"}, "1"), scrape(2.0, {REQUESTS: 1}, "2")) == {REQUESTS: 1}


def test_an_earlier_life_is_forgotten_by_all_that_told_of_it() -> None:
    found = LatestValues(CATALOGUE)
    found.add(snapshot(scrape(1.0, {REQUESTS: 9}, "1", "a"), scrape(1.0, {BYTES: 9}, "1", "b")))
    found.add(snapshot(scrape(2.0, {REQUESTS: 1}, "2", "a"), scrape(2.0, NONE, "", "b")))
    assert found.current() == {REQUESTS: 1}


def test_an_origin_that_is_not_known_is_no_restart() -> None:
    assert after(scrape(1.0, {BYTES: 9}, "1"), scrape(2.0, {REQUESTS: 1}, "")) == {REQUESTS: 1, BYTES: 9}


def test_a_restart_of_one_source_leaves_the_others_alone() -> None:
    found = LatestValues(CATALOGUE)
    found.add(snapshot(scrape(1.0, {REQUESTS: 9}, "1", "a"), scrape(1.0, {BYTES: 9}, "boot", "b")))
    found.add(snapshot(scrape(2.0, {SECONDS: 1}, "2", "a"), scrape(2.0, NONE, "", "b")))
    assert found.current() == {SECONDS: 1, BYTES: 9}


def test_a_series_of_two_sources_is_known_once() -> None:
    found = LatestValues(CATALOGUE)
    found.add(snapshot(scrape(1.0, {BYTES: 1}, source="a"), scrape(1.0, {BYTES: 2}, source="b")))
    assert found.current() == {BYTES: 2}


def test_tables_that_come_and_go_do_not_fill_the_memory() -> None:
    found = LatestValues(CATALOGUE)
    for number in range(3000):
        found.add(one(float(number), {(REQUESTS[0], f"table {number}"): 1}))
    kept = sum(len(source.latest) for source in found._sources.values())
    assert kept <= 2 * FORGET_S + PERIODS * FIRST_S + 1


@pytest.mark.parametrize(("interval_s", "patience_s"), [(1.0, STALL_S), (60.0, PERIODS * 60)])
def test_without_ticks_nothing_is_known_any_more(interval_s: float, patience_s: float) -> None:
    found = LatestValues(CATALOGUE, interval_s)
    found.add(one(1000.0, {BYTES: 5}))
    assert not found.stalled(1000.0 + patience_s - 1)
    assert found.stalled(1000.0 + patience_s + 1)


@dataclass(frozen=True)
class Tried:
    """One tick: how long after the one before, what was read, and of which life."""

    after_s: float
    values: Values
    life: int


TRIES = st.lists(
    st.builds(
        Tried,
        st.sampled_from([0.5, 1.0, 3.0, 30.0]),
        st.dictionaries(st.sampled_from([REQUESTS, BYTES, SECONDS]), st.integers(0, 9)),
        st.integers(0, 1),
    ),
    max_size=20,
)


@given(TRIES)
@settings(max_examples=60)
def test_nothing_is_shown_that_was_not_read_in_this_life_or_long_ago(tries: list[Tried]) -> None:
    found, at_s, life = LatestValues(CATALOGUE), 0.0, -1
    read: dict[Series, list[tuple[float, Value]]] = {}
    for each in tries:
        at_s += each.after_s
        if each.life != life:
            read, life = {}, each.life
        for series, value in each.values.items():
            read.setdefault(series, []).append((at_s, value))
        found.add(one(at_s, each.values, str(each.life)))
        wanted = {}
        for series, readings in read.items():
            times = [when for when, _ in readings]
            period_s = times[-1] - times[-2] if len(times) > 1 else FIRST_S
            if at_s - times[-1] <= PERIODS * period_s:
                wanted[series] = readings[-1][1]
        assert found.current() == wanted
