"""What sources that answer at their own pace said last, and how old it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series, Values
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.sampling.last_known import LastKnown

FIRST, SECOND, MACHINE = "nodetool tablestats", "nodetool info", "cpu"
READS: Series = ("reads_total", "ks")
LOAD: Series = ("load_bytes",)
CPU: Series = ("cpu_seconds_total", "user")


def scrape(source: str, at_s: float, *series: Series, problem: str = "") -> Scrape:
    values: Values = dict.fromkeys(series, 1)
    return Scrape(source, at_s, values, problem=problem)


def add(hold: LastKnown, values: dict[Series, Derived], *scrapes: Scrape) -> Sample:
    snapshot = Snapshot("node", Tick(0.0), scrapes)
    return hold.add(snapshot, Sample("node", Tick(0.0), values, {}))


def test_what_was_just_said_is_news_and_not_held() -> None:
    sample = add(LastKnown([FIRST]), {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS))
    assert sample.last_known == {}
    assert sample.values == {READS: Rate(5.0, 1.0)}
    assert sample.age_s == 0.0


def test_what_was_said_before_is_held_with_its_age_and_is_no_news() -> None:
    hold = LastKnown([FIRST])
    add(hold, {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS))
    sample = add(hold, {CPU: Rate(1.0, 1.0)}, scrape(MACHINE, 12.5, CPU), scrape(FIRST, 12.5))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert sample.values == {CPU: Rate(1.0, 1.0)}
    assert sample.age_s == 2.5


def test_what_a_source_says_replaces_all_that_it_said_before() -> None:
    hold = LastKnown([FIRST])
    add(hold, {READS: Rate(5.0, 1.0), LOAD: 7.0}, scrape(FIRST, 10.0, READS, LOAD))
    add(hold, {LOAD: 8.0}, scrape(FIRST, 20.0, READS, LOAD))
    sample = add(hold, {}, scrape(FIRST, 21.0))
    assert sample.last_known == {LOAD: 8.0}
    assert sample.age_s == 1.0


def test_what_one_source_says_does_not_replace_what_another_said() -> None:
    hold = LastKnown([FIRST, SECOND])
    add(hold, {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS), scrape(SECOND, 10.0))
    sample = add(hold, {LOAD: 7.0}, scrape(FIRST, 13.0), scrape(SECOND, 13.0, LOAD))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert add(hold, {}, scrape(FIRST, 14.0), scrape(SECOND, 14.0)).last_known == {READS: Rate(5.0, 1.0), LOAD: 7.0}


def test_a_source_that_fails_is_not_held_on_to() -> None:
    hold = LastKnown([FIRST, SECOND])
    add(hold, {READS: Rate(5.0, 1.0), LOAD: 7.0}, scrape(FIRST, 10.0, READS), scrape(SECOND, 10.0, LOAD))
    sample = add(hold, {}, scrape(FIRST, 11.0, problem="no answer"), scrape(SECOND, 11.0))
    assert sample.last_known == {LOAD: 7.0}
    assert add(hold, {}, scrape(FIRST, 12.0), scrape(SECOND, 12.0)).last_known == {LOAD: 7.0}


def test_a_source_that_was_understood_in_part_is_held() -> None:
    hold = LastKnown([FIRST])
    add(hold, {LOAD: 7.0}, scrape(FIRST, 10.0, LOAD, problem="a line was not understood"))
    assert add(hold, {}, scrape(FIRST, 11.0)).last_known == {LOAD: 7.0}


def test_the_first_source_tells_the_age_and_the_next_only_while_it_has_said_nothing() -> None:
    hold = LastKnown([FIRST, SECOND])
    assert add(hold, {}, scrape(FIRST, 9.0), scrape(SECOND, 9.0)).age_s is None
    assert add(hold, {LOAD: 7.0}, scrape(FIRST, 10.0), scrape(SECOND, 9.5, LOAD)).age_s == 0.5
    assert add(hold, {}, scrape(FIRST, 11.0, READS), scrape(SECOND, 12.0)).age_s == 1.0
    assert add(hold, {LOAD: 7.0}, scrape(FIRST, 20.0), scrape(SECOND, 20.0, LOAD)).age_s == 9.0


def test_the_machines_own_figures_are_never_held() -> None:
    hold = LastKnown([FIRST])
    add(hold, {CPU: Rate(1.0, 1.0)}, scrape(MACHINE, 10.0, CPU))
    assert add(hold, {}, scrape(MACHINE, 11.0)).last_known == {}


def test_without_any_source_nothing_is_held() -> None:
    sample = add(LastKnown([]), {})
    assert sample.last_known == {}
    assert sample.age_s is None


said = st.lists(st.tuples(st.sampled_from([READS, LOAD, None]), st.floats(0.1, 5.0)), max_size=12)


@given(said)
def test_a_value_is_either_news_or_held_and_never_both(steps: list[tuple[Series | None, float]]) -> None:
    hold = LastKnown([FIRST])
    now_s, last_s = 0.0, None
    for series, after_s in steps:
        now_s += after_s
        values: dict[Series, Derived] = {} if series is None else {series: now_s}
        sample = add(hold, values, scrape(FIRST, now_s, *values))
        last_s = now_s if values else last_s
        assert not set(sample.last_known) & set(sample.values)
        assert sample.values == values
        assert sample.age_s == (None if last_s is None else pytest.approx(now_s - last_s))
