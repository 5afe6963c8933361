"""Many intervals as one: the average row says what one long interval would have said."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets
from collector.model.metric import Values
from collector.model.rates import Summary
from collector.model.sample import Rate, Sample
from tests.collector.snapshots import (
    BYTES,
    DURATION,
    REQUESTS,
    STATE,
    bucket_counts,
    counted,
    last,
    one,
    plus,
    samples,
)

WRITES = (DURATION.name, "Write")
"""Durations without a counter that they could contradict."""


def summary(found: list[Sample]) -> Sample:
    whole = Summary()
    for sample in found:
        whole.add(sample)
    result = whole.sample()
    assert result is not None
    return result


def test_of_no_interval_there_is_no_summary() -> None:
    assert Summary().sample() is None


def test_a_summary_of_one_interval_is_that_interval() -> None:
    sample = last(counted(10.0, 100), counted(11.0, 150))
    assert summary([sample]) == sample


def test_a_rate_over_uneven_intervals_is_no_mean_of_rates() -> None:
    found = samples([counted(0.0, 0), counted(1.0, 100), counted(10.0, 100)])
    assert summary(found[1:]).values[REQUESTS] == Rate(100.0, 10.0)


def test_a_gauge_is_the_mean_over_the_intervals_that_know_it() -> None:
    values: list[Values] = [{BYTES: 1}, {}, {BYTES: 2}, {BYTES: 6}]
    found = samples(one(float(at), each) for at, each in enumerate(values))
    assert summary(found).values[BYTES] == pytest.approx(3 * 1024)


def test_a_text_is_the_last_one() -> None:
    found = samples(one(float(at), {STATE: mode}) for at, mode in enumerate(["STARTING", "JOINING", "NORMAL"]))
    assert summary(found).values[STATE] == "NORMAL"


def test_what_was_never_known_is_absent() -> None:
    found = samples([counted(0.0, 0), counted(1.0, 10)])
    assert set(summary(found).values) == {REQUESTS}


def test_events_are_not_told_twice() -> None:
    found = samples([counted(0.0, 100, "1"), counted(1.0, 100, "2"), counted(2.0, 130, "2")])
    assert found[1].events
    assert summary(found[1:]).events == ()


def test_both_lives_of_a_restarted_node_count() -> None:
    found = samples([counted(0.0, 0, "1"), counted(1.0, 10, "1"), counted(2.0, 3, "2"), counted(3.0, 8, "2")])
    assert summary(found[1:]).values[REQUESTS] == Rate(15.0, 2.0)
    assert summary(found[1:]).elapsed_s == {"node": 2.0}


@dataclass(frozen=True)
class Step:
    """What came in one interval; `known` says which of counter, histogram and gauge were read at its end."""

    after_s: float
    count: int
    filled: dict[int, int]
    load: int
    known: tuple[bool, bool, bool]


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
    """Return all readings; the first and the last one are whole."""
    at_s, count, buckets = 50.0, 5, bucket_counts(128, {30: 9})
    found: list[tuple[float, Values]] = [(at_s, {REQUESTS: count, WRITES: buckets, BYTES: 0})]
    for position, each in enumerate(intervals, 1):
        at_s, count = at_s + each.after_s, count + each.count
        buckets = plus(buckets, bucket_counts(128, each.filled))
        whole: Values = {REQUESTS: count, WRITES: buckets, BYTES: each.load}
        all_known = position == len(intervals)
        parts = zip(whole.items(), each.known, strict=True)
        found.append((at_s, {series: value for (series, value), known in parts if known or all_known}))
    return found


@given(steps)
def test_intervals_added_up_equal_one_interval_over_the_ends(intervals: list[Step]) -> None:
    read = readings(intervals)
    added = summary(samples(one(at_s, values) for at_s, values in read)[1:]).values
    whole = last(*(one(at_s, values) for at_s, values in (read[0], read[-1]))).values
    rate, rate_of_ends = added[REQUESTS], whole[REQUESTS]
    assert isinstance(rate, Rate)
    assert isinstance(rate_of_ends, Rate)
    assert rate.increase == rate_of_ends.increase
    assert rate.elapsed_s == pytest.approx(rate_of_ends.elapsed_s)
    assert isinstance(added[WRITES], Buckets)
    assert added[WRITES] == whole[WRITES]


@given(steps)
def test_a_gauges_summary_is_the_mean_of_what_was_known(intervals: list[Step]) -> None:
    read = readings(intervals)
    known = [value * 1024 for _, values in read if isinstance(value := values.get(BYTES), int)]
    added = summary(samples(one(at_s, {s: v for s, v in values.items() if s == BYTES}) for at_s, values in read))
    assert added.values[BYTES] == pytest.approx(sum(known) / len(known))
