"""Interval histograms: those that disagree with the counters are omitted, and the disagreement is reported."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets, offsets, quantile, upper_bounds_of
from collector.model.metric import Values
from collector.model.snapshot import Snapshot
from tests.collector.snapshots import (
    DURATIONS,
    REQUESTS,
    SECONDS,
    bucket_counts,
    kinds,
    last,
    of_source,
    plus,
    samples,
)
from tests.every import every

US, NS = 128, 165
FAST, SLOW = 20, 40
"""The indices of the buckets for raw values from 73 to 86 and from 2760 to 3311."""


@dataclass(frozen=True)
class Node:
    """A node's bucket counts and counters after some requests."""

    counts: tuple[int, ...]
    counted: int
    total_us: int

    def read(self, at_s: float, origin: str = "1") -> Snapshot:
        values: Values = {DURATIONS: self.counts, REQUESTS: self.counted, SECONDS: self.total_us}
        return of_source(at_s, values, origin)


def node(length: int, filled: dict[int, int], mean_us: float, counted: int | None = None) -> Node:
    counts = bucket_counts(length, filled)
    number = sum(counts) if counted is None else counted
    return Node(counts, number, round(number * mean_us))


def buckets(snapshots: Sequence[Snapshot]) -> Buckets | None:
    value = last(*snapshots).values.get(DURATIONS)
    assert value is None or isinstance(value, Buckets)
    return value


def test_an_interval_histogram_is_the_difference_between_the_buckets() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 5000, SLOW: 1000}, 567.0)
    result = buckets([before.read(10.0), after.read(11.0)])
    assert result == Buckets(upper_bounds_of("seconds", US), bucket_counts(US, {SLOW: 1000}))
    assert quantile(result, 0.5) == pytest.approx(3.0e-3, rel=0.2)


def test_a_histogram_is_absent_on_the_first_reading() -> None:
    sample = last(node(US, {FAST: 5000}, 80.0).read(10.0))
    assert sample.values == {}
    assert sample.events == ()


def test_a_histogram_is_absent_across_a_restart_even_when_it_only_grew() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 9000}, 80.0)
    sample = last(before.read(10.0, "1"), after.read(11.0, "2"))
    assert DURATIONS not in sample.values
    assert kinds(sample) == ["restart"]


def test_a_histogram_is_absent_when_a_bucket_decreased() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 4999, SLOW: 1}, 80.0)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS not in sample.values
    assert sample.events == ()


def test_a_histogram_is_absent_when_the_clock_went_back() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 9000}, 80.0)
    sample = last(before.read(10.0), after.read(9.0))
    assert DURATIONS not in sample.values
    assert sample.events == ()


def test_a_histogram_whose_length_has_changed_is_absent_once() -> None:
    first, second, third = node(NS, {45: 5000}, 19.0), node(US, {FAST: 50}, 80.0), node(US, {FAST: 90}, 80.0)
    result = samples([first.read(10.0), second.read(11.0), third.read(12.0)])
    assert DURATIONS not in result[1].values
    assert DURATIONS in result[2].values


def test_a_histogram_is_flagged_when_the_counter_counted_more() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 5500}, 80.0, counted=6000)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS not in sample.values
    assert kinds(sample) == ["disagreement"]
    assert all(word in sample.events[0].text for word in (*DURATIONS, "500", "1000"))


def test_a_histogram_is_flagged_when_the_counter_counted_less() -> None:
    before, after = node(US, {FAST: 5000}, 80.0), node(US, {FAST: 7000}, 80.0, counted=6000)
    assert kinds(last(before.read(10.0), after.read(11.0))) == ["disagreement"]


@every(("in_buckets", "counted"), [(1000, 980), (980, 1000), (3, 30), (30, 3), (0, 10), (9600, 10000)])
def test_a_small_difference_from_the_counter_is_accepted(in_buckets: int, counted: int) -> None:
    before = node(US, {FAST: 5000}, 80.0)
    after = node(US, {FAST: 5000 + in_buckets}, 80.0, counted=5000 + counted)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS in sample.values
    assert sample.events == ()


def test_nanoseconds_read_as_microseconds_are_flagged() -> None:
    # Simulate a version that returns 128 counts but measures in nanoseconds, so that 100 µs is counted as 100,000.
    bucket = bisect_left(offsets(US - 1), 100_000)
    before, after = node(US, {bucket: 5000}, 100.0), node(US, {bucket: 9000}, 100.0)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS not in sample.values
    assert kinds(sample) == ["disagreement"]


def test_microseconds_read_as_nanoseconds_are_flagged() -> None:
    before, after = node(NS, {FAST: 5000}, 80.0), node(NS, {FAST: 9000}, 80.0)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS not in sample.values
    assert kinds(sample) == ["disagreement"]


def test_a_flagged_histogram_does_not_affect_other_metrics() -> None:
    before, after = node(NS, {FAST: 5000}, 80.0), node(NS, {FAST: 9000}, 80.0)
    sample = last(before.read(10.0), after.read(11.0))
    assert {REQUESTS, SECONDS} <= set(sample.values)


def test_one_slow_request_missing_from_the_buckets_is_not_a_wrong_unit() -> None:
    before = node(US, {FAST: 5000}, 80.0)
    after = Node(plus(before.counts, bucket_counts(US, {FAST: 10})), 5011, before.total_us + 10 * 80 + 250_000)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS in sample.values
    assert sample.events == ()


def test_truncated_microseconds_are_not_a_wrong_unit() -> None:
    # Each request takes 0.9 µs, so it adds 0 µs to the counter of total time, but is counted in the bucket up to 1 µs.
    before, after = node(US, {0: 5000}, 0.0), node(US, {0: 9000}, 0.0)
    assert DURATIONS in last(before.read(10.0), after.read(11.0)).values


@every("length", [2, 90, 127, 130, 166])
def test_a_timer_of_unknown_length_is_flagged(length: int) -> None:
    before, after = node(length, {1: 5}, 80.0), node(length, {1: 9}, 80.0)
    sample = last(before.read(10.0), after.read(11.0))
    assert DURATIONS not in sample.values
    assert kinds(sample) == ["disagreement"]
    assert str(length) in sample.events[0].text


def test_a_histogram_without_counters_is_accepted() -> None:
    before, after = bucket_counts(US, {FAST: 5}), bucket_counts(US, {FAST: 9000})
    assert DURATIONS in last(of_source(10.0, {DURATIONS: before}), of_source(11.0, {DURATIONS: after})).values


def test_a_histogram_missing_in_one_tick_is_not_compared_with_another_interval() -> None:
    first, second, third = (node(US, {FAST: number}, 80.0) for number in (5000, 9000, 13000))
    without: Values = {REQUESTS: second.counted, SECONDS: second.total_us}
    sample = last(first.read(10.0), of_source(11.0, without), third.read(12.0))
    assert sample.events == ()
    assert sample.values[DURATIONS] == Buckets(upper_bounds_of("seconds", US), bucket_counts(US, {FAST: 8000}))


def test_a_counter_missing_in_one_tick_is_not_compared_with_the_histogram() -> None:
    first, second, third = (node(US, {FAST: number}, 80.0) for number in (5000, 9000, 13000))
    sample = last(first.read(10.0), of_source(11.0, {DURATIONS: second.counts}), third.read(12.0))
    assert sample.events == ()
    assert sample.values[DURATIONS] == Buckets(upper_bounds_of("seconds", US), bucket_counts(US, {FAST: 4000}))


increases = st.lists(
    st.tuples(st.dictionaries(st.integers(0, US - 1), st.integers(1, 10**6), max_size=5), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(increases)
def test_interval_histograms_sum_to_the_total(ticks: list[tuple[dict[int, int], bool]]) -> None:
    counts = first = bucket_counts(US, {FAST: 3})
    snapshots = [of_source(0.0, {DURATIONS: first})]
    last_read = first
    for position, (increase, answered) in enumerate(ticks, 1):
        counts = plus(counts, bucket_counts(US, increase))
        last_read = counts if answered else last_read
        snapshots.append(of_source(float(position), {DURATIONS: counts} if answered else {}))
    added = (0,) * US
    for sample in samples(snapshots):
        value = sample.values.get(DURATIONS)
        if isinstance(value, Buckets):
            added = plus(added, tuple(map(int, value.counts)))
    assert plus(first, added) == last_read
