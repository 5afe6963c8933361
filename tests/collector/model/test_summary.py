"""Summaries: the combination of several intervals equals one long interval."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets
from collector.model.metric import Values
from collector.model.rates import Summary
from collector.model.snapshot import Rate, Sample
from tests.collector.snapshots import (
    BYTES,
    DURATION,
    REQUESTS,
    STATE,
    bucket_counts,
    counted,
    last,
    of_source,
    plus,
    samples,
)

WRITES = (DURATION.name, "Write")
"""The series of a histogram without counters for the same events."""


def summary(parts: list[Sample]) -> Sample:
    combined = Summary()
    for sample in parts:
        combined.add(sample)
    result = combined.sample()
    assert result is not None
    return result


def test_without_intervals_there_is_no_summary() -> None:
    assert Summary().sample() is None


def test_a_summary_of_one_interval_is_that_interval() -> None:
    sample = last(counted(10.0, 100), counted(11.0, 150))
    assert summary([sample]) == sample


def test_a_rate_over_uneven_intervals_is_not_the_mean_of_rates() -> None:
    result = samples([counted(0.0, 0), counted(1.0, 100), counted(10.0, 100)])
    assert summary(result[1:]).values[REQUESTS] == Rate(100.0, 10.0)


def test_a_gauge_is_the_mean_over_the_intervals_that_have_it() -> None:
    values: list[Values] = [{BYTES: 1}, {}, {BYTES: 2}, {BYTES: 6}]
    result = samples(of_source(float(second), tick_values) for second, tick_values in enumerate(values))
    assert summary(result).values[BYTES] == pytest.approx(3 * 1024)


def test_the_last_text_is_kept() -> None:
    result = samples(of_source(float(at), {STATE: mode}) for at, mode in enumerate(["STARTING", "JOINING", "NORMAL"]))
    assert summary(result).values[STATE] == "NORMAL"


def test_a_series_without_values_is_absent() -> None:
    result = samples([counted(0.0, 0), counted(1.0, 10)])
    assert set(summary(result).values) == {REQUESTS}


def test_events_are_omitted() -> None:
    result = samples([counted(0.0, 100, "1"), counted(1.0, 100, "2"), counted(2.0, 130, "2")])
    assert result[1].events
    assert summary(result[1:]).events == ()


def test_intervals_before_and_after_a_restart_are_counted() -> None:
    result = samples([counted(0.0, 0, "1"), counted(1.0, 10, "1"), counted(2.0, 3, "2"), counted(3.0, 8, "2")])
    assert summary(result[1:]).values[REQUESTS] == Rate(15.0, 2.0)
    assert summary(result[1:]).elapsed_s == {"node": 2.0}


@dataclass(frozen=True)
class Step:
    """The changes in one interval, and whether the counter, histogram and gauge are read at its end."""

    after_s: float
    count: int
    filled: dict[int, int]
    load: int
    is_read: tuple[bool, bool, bool]


steps = st.lists(
    st.builds(
        Step,
        st.floats(0.05, 100),
        st.integers(0, 10**7),
        st.dictionaries(st.integers(0, 127), st.integers(1, 10**4), max_size=4),
        st.integers(0, 10**9),
        st.tuples(st.booleans(), st.booleans(), st.booleans()),
    ),
    min_size=1,
    max_size=15,
)


def readings(intervals: list[Step]) -> list[tuple[float, Values]]:
    """Return the readings at the beginning and end of each interval; the first and the last reading are complete."""
    at_s, count, buckets = 50.0, 5, bucket_counts(128, {30: 9})
    result: list[tuple[float, Values]] = [(at_s, {REQUESTS: count, WRITES: buckets, BYTES: 0})]
    for position, step in enumerate(intervals, 1):
        at_s, count = at_s + step.after_s, count + step.count
        buckets = plus(buckets, bucket_counts(128, step.filled))
        values: Values = {REQUESTS: count, WRITES: buckets, BYTES: step.load}
        is_last = position == len(intervals)
        parts = zip(values.items(), step.is_read, strict=True)
        result.append((at_s, {series: value for (series, value), is_read in parts if is_read or is_last}))
    return result


@given(steps)
def test_combined_intervals_equal_one_long_interval(intervals: list[Step]) -> None:
    read = readings(intervals)
    added = summary(samples(of_source(at_s, values) for at_s, values in read)[1:]).values
    direct = last(*(of_source(at_s, values) for at_s, values in (read[0], read[-1]))).values
    rate, rate_of_ends = added[REQUESTS], direct[REQUESTS]
    assert isinstance(rate, Rate)
    assert isinstance(rate_of_ends, Rate)
    assert rate.increase == rate_of_ends.increase
    assert rate.elapsed_s == pytest.approx(rate_of_ends.elapsed_s)
    assert isinstance(added[WRITES], Buckets)
    assert added[WRITES] == direct[WRITES]


@given(steps)
def test_the_summary_of_a_gauge_is_the_mean_of_its_values(intervals: list[Step]) -> None:
    read = readings(intervals)
    gauges = [value * 1024 for _, values in read if isinstance(value := values.get(BYTES), int)]
    added = summary(samples(of_source(at_s, {s: v for s, v in values.items() if s == BYTES}) for at_s, values in read))
    assert added.values[BYTES] == pytest.approx(sum(gauges) / len(gauges))
