"""Last known values and their age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Aggregation, Kind, Metric, Series, Values
from collector.model.snapshot import Rate, Sample, Scrape, Snapshot, Tick
from collector.node.node_sampler import SampleStream

FIRST, SECOND, MACHINE = "nodetool tablestats", "nodetool info", "cpu"
READS: Series = ("reads_total", "ks")
LOAD: Series = ("load_bytes",)
HEAP: Series = ("heap_bytes",)
CPU: Series = ("cpu_seconds_total", "user")
CATALOGUE = {
    "reads_total": Metric("reads_total", Kind.COUNTER, "1", "Reads.", ("keyspace",)),
    "load_bytes": Metric("load_bytes", Kind.GAUGE, "bytes", "Load.", across=Aggregation.SUM),
    "heap_bytes": Metric("heap_bytes", Kind.GAUGE, "bytes", "Heap.", across=Aggregation.SUM),
    "cpu_seconds_total": Metric("cpu_seconds_total", Kind.COUNTER, "seconds", "CPU time.", ("mode",)),
}


def scrape(source: str, at_s: float, values: Values | None = None, *, problem: str = "") -> Scrape:
    return Scrape(source, at_s, values or {}, problem=problem)


def stream_of(*sources: str, reads: int | None = None) -> SampleStream:
    """Return the samples of sources with their own pace; `reads` is the counter at 9 s, from the first of them."""
    stream = SampleStream(CATALOGUE, sources, paced=True, met=True)
    scrapes = () if reads is None else (scrape(sources[0], 9.0, {READS: reads}),)
    assert stream.add(Snapshot("node", Tick(0.0), scrapes)) is None
    return stream


def add(stream: SampleStream, *scrapes: Scrape) -> Sample:
    sample = stream.add(Snapshot("node", Tick(0.0), scrapes))
    assert sample is not None
    return sample


def test_a_new_value_is_not_stale() -> None:
    sample = add(stream_of(FIRST, reads=1), scrape(FIRST, 10.0, {READS: 6}))
    assert sample.last_known == {}
    assert sample.values == {READS: Rate(5.0, 1.0)}
    assert sample.age_s == 0.0


def test_a_stale_value_is_kept_with_its_age() -> None:
    stream = stream_of(FIRST, reads=1)
    add(stream, scrape(MACHINE, 11.5, {CPU: 1}), scrape(FIRST, 10.0, {READS: 6}))
    sample = add(stream, scrape(MACHINE, 12.5, {CPU: 2}), scrape(FIRST, 12.5))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert sample.values == {CPU: Rate(1.0, 1.0)}
    assert sample.age_s == 2.5


def test_a_new_response_replaces_all_values_of_its_source() -> None:
    stream = stream_of(FIRST, reads=1)
    assert add(stream, scrape(FIRST, 10.0, {READS: 6, LOAD: 7})).values == {READS: Rate(5.0, 1.0), LOAD: 7.0}
    # A counter that decreases has no rate.
    assert add(stream, scrape(FIRST, 20.0, {READS: 5, LOAD: 8})).values == {LOAD: 8.0}
    sample = add(stream, scrape(FIRST, 21.0))
    assert sample.last_known == {LOAD: 8.0}
    assert sample.age_s == 1.0


def test_a_response_does_not_replace_values_of_another_source() -> None:
    stream = stream_of(FIRST, SECOND, reads=1)
    add(stream, scrape(FIRST, 10.0, {READS: 6}), scrape(SECOND, 10.0))
    sample = add(stream, scrape(FIRST, 13.0), scrape(SECOND, 13.0, {LOAD: 7}))
    assert sample.last_known == {READS: Rate(5.0, 1.0)}
    assert add(stream, scrape(FIRST, 14.0), scrape(SECOND, 14.0)).last_known == {READS: Rate(5.0, 1.0), LOAD: 7.0}


def test_values_of_a_failed_source_are_dropped() -> None:
    stream = stream_of(FIRST, SECOND, reads=1)
    add(stream, scrape(FIRST, 10.0, {READS: 6}), scrape(SECOND, 10.0, {LOAD: 7}))
    sample = add(stream, scrape(FIRST, 11.0, problem="no answer"), scrape(SECOND, 11.0))
    assert sample.last_known == {LOAD: 7.0}
    assert add(stream, scrape(FIRST, 12.0), scrape(SECOND, 12.0)).last_known == {LOAD: 7.0}


def test_values_of_a_partly_parsed_source_are_kept() -> None:
    stream = stream_of(FIRST)
    add(stream, scrape(FIRST, 10.0, {LOAD: 7}, problem="a line was not understood"))
    assert add(stream, scrape(FIRST, 11.0)).last_known == {LOAD: 7.0}


def test_the_age_is_that_of_the_first_source_with_values() -> None:
    stream = stream_of(FIRST, SECOND)
    assert add(stream, scrape(FIRST, 9.0), scrape(SECOND, 9.0)).age_s is None
    assert add(stream, scrape(FIRST, 10.0), scrape(SECOND, 9.5, {LOAD: 7})).age_s == 0.5
    assert add(stream, scrape(FIRST, 11.0, {READS: 1}), scrape(SECOND, 12.0)).age_s == 1.0
    assert add(stream, scrape(FIRST, 20.0), scrape(SECOND, 20.0, {LOAD: 7})).age_s == 9.0


def test_machine_metrics_are_never_kept_as_last_known_values() -> None:
    stream = stream_of(FIRST)
    add(stream, scrape(MACHINE, 9.0, {CPU: 1}))
    assert add(stream, scrape(MACHINE, 10.0, {CPU: 2})).values == {CPU: Rate(1.0, 1.0)}
    assert add(stream, scrape(MACHINE, 11.0)).last_known == {}


def test_without_sources_nothing_is_kept() -> None:
    sample = add(stream_of())
    assert sample.last_known == {}
    assert sample.age_s is None


answers = st.lists(st.tuples(st.sampled_from([HEAP, LOAD, None]), st.floats(0.1, 5.0)), max_size=12)


@given(answers)
def test_a_value_is_either_new_or_stale(steps: list[tuple[Series | None, float]]) -> None:
    stream = stream_of(FIRST)
    now_s, last_s = 0.0, None
    for series, after_s in steps:
        now_s += after_s
        values: Values = {} if series is None else {series: now_s}
        sample = add(stream, scrape(FIRST, now_s, values))
        last_s = now_s if values else last_s
        assert not set(sample.last_known) & set(sample.values)
        assert sample.values == values
        assert sample.age_s == (None if last_s is None else pytest.approx(now_s - last_s))
