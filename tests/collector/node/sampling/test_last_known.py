"""Last known values and their age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series, Values
from collector.model.snapshot import Derived, Rate, Sample, Scrape, Snapshot, Tick
from collector.node.node_sampler import LastKnown

FIRST, SECOND, MACHINE = "nodetool tablestats", "nodetool info", "cpu"
READS: Series = ("reads_total", "ks")
LOAD: Series = ("load_bytes",)
CPU: Series = ("cpu_seconds_total", "user")


def scrape(source: str, at_s: float, *series: Series, problem: str = "") -> Scrape:
    values: Values = dict.fromkeys(series, 1)
    return Scrape(source, at_s, values, problem=problem)


def add(last_known: LastKnown, values: dict[Series, Derived], *scrapes: Scrape) -> Sample:
    snapshot = Snapshot("node", Tick(0.0), scrapes)
    return last_known.add(snapshot, Sample("node", Tick(0.0), values, {}))


def test_a_new_value_is_not_stale() -> None:
    sample = add(LastKnown([FIRST]), {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS))
    assert sample.last_known == {}
    assert sample.values == {READS: Rate(5.0, 1.0)}
    assert sample.age_s == 0.0


def test_a_stale_value_is_kept_with_its_age() -> None:
    last_known = LastKnown([FIRST])
    add(last_known, {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS))
    sample = add(last_known, {CPU: Rate(1.0, 1.0)}, scrape(MACHINE, 12.5, CPU), scrape(FIRST, 12.5))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert sample.values == {CPU: Rate(1.0, 1.0)}
    assert sample.age_s == 2.5


def test_a_new_response_replaces_all_values_of_its_source() -> None:
    last_known = LastKnown([FIRST])
    add(last_known, {READS: Rate(5.0, 1.0), LOAD: 7.0}, scrape(FIRST, 10.0, READS, LOAD))
    add(last_known, {LOAD: 8.0}, scrape(FIRST, 20.0, READS, LOAD))
    sample = add(last_known, {}, scrape(FIRST, 21.0))
    assert sample.last_known == {LOAD: 8.0}
    assert sample.age_s == 1.0


def test_a_response_does_not_replace_values_of_another_source() -> None:
    last_known = LastKnown([FIRST, SECOND])
    add(last_known, {READS: Rate(5.0, 1.0)}, scrape(FIRST, 10.0, READS), scrape(SECOND, 10.0))
    sample = add(last_known, {LOAD: 7.0}, scrape(FIRST, 13.0), scrape(SECOND, 13.0, LOAD))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert add(last_known, {}, scrape(FIRST, 14.0), scrape(SECOND, 14.0)).last_known == {
        READS: Rate(5.0, 1.0),
        LOAD: 7.0,
    }


def test_values_of_a_failed_source_are_dropped() -> None:
    last_known = LastKnown([FIRST, SECOND])
    add(last_known, {READS: Rate(5.0, 1.0), LOAD: 7.0}, scrape(FIRST, 10.0, READS), scrape(SECOND, 10.0, LOAD))
    sample = add(last_known, {}, scrape(FIRST, 11.0, problem="no answer"), scrape(SECOND, 11.0))
    assert sample.last_known == {LOAD: 7.0}
    assert add(last_known, {}, scrape(FIRST, 12.0), scrape(SECOND, 12.0)).last_known == {LOAD: 7.0}


def test_values_of_a_partly_parsed_source_are_kept() -> None:
    last_known = LastKnown([FIRST])
    add(last_known, {LOAD: 7.0}, scrape(FIRST, 10.0, LOAD, problem="a line was not understood"))
    assert add(last_known, {}, scrape(FIRST, 11.0)).last_known == {LOAD: 7.0}


def test_the_age_is_that_of_the_first_source_with_values() -> None:
    last_known = LastKnown([FIRST, SECOND])
    assert add(last_known, {}, scrape(FIRST, 9.0), scrape(SECOND, 9.0)).age_s is None
    assert add(last_known, {LOAD: 7.0}, scrape(FIRST, 10.0), scrape(SECOND, 9.5, LOAD)).age_s == 0.5
    assert add(last_known, {}, scrape(FIRST, 11.0, READS), scrape(SECOND, 12.0)).age_s == 1.0
    assert add(last_known, {LOAD: 7.0}, scrape(FIRST, 20.0), scrape(SECOND, 20.0, LOAD)).age_s == 9.0


def test_machine_metrics_are_never_kept_as_last_known_values() -> None:
    last_known = LastKnown([FIRST])
    add(last_known, {CPU: Rate(1.0, 1.0)}, scrape(MACHINE, 10.0, CPU))
    assert add(last_known, {}, scrape(MACHINE, 11.0)).last_known == {}


def test_without_sources_nothing_is_kept() -> None:
    sample = add(LastKnown([]), {})
    assert sample.last_known == {}
    assert sample.age_s is None


answers = st.lists(st.tuples(st.sampled_from([READS, LOAD, None]), st.floats(0.1, 5.0)), max_size=12)


@given(answers)
def test_a_value_is_either_new_or_stale(steps: list[tuple[Series | None, float]]) -> None:
    last_known = LastKnown([FIRST])
    now_s, last_s = 0.0, None
    for series, after_s in steps:
        now_s += after_s
        values: dict[Series, Derived] = {} if series is None else {series: now_s}
        sample = add(last_known, values, scrape(FIRST, now_s, *values))
        last_s = now_s if values else last_s
        assert not set(sample.last_known) & set(sample.values)
        assert sample.values == values
        assert sample.age_s == (None if last_s is None else pytest.approx(now_s - last_s))
