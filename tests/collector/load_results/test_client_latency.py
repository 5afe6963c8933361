"""Percentiles come from counts, or are those that a load generator states; they are never averaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import NS_PER_S, ClientInterval, Latency, merged_latency, total_of

COUNTS = st.dictionaries(st.integers(0, 10**12), st.integers(1, 1000), min_size=1, max_size=20)


@given(COUNTS, st.floats(0, 100))
def test_a_percentile_is_the_lowest_value_that_enough_operations_do_not_exceed(
    counts: dict[int, int], percentage: float
) -> None:
    percentile_s = Latency(counts).percentile_s(percentage)
    assert percentile_s is not None
    value_ns = round(percentile_s * NS_PER_S)
    assert value_ns in counts
    below = sum(count for value, count in counts.items() if value < value_ns)
    total = sum(counts.values())
    assert below <= percentage / 100 * total <= below + counts[value_ns] + 1e-6 * total


@given(COUNTS, COUNTS)
def test_latencies_merge_by_counts(first: dict[int, int], second: dict[int, int]) -> None:
    merged = merged_latency([Latency(first), Latency(second)])
    assert merged is not None
    assert merged.counts == {
        value: first.get(value, 0) + second.get(value, 0) for value in first.keys() | second.keys()
    }


def test_stated_percentiles_are_neither_merged_nor_interpolated() -> None:
    stated = Latency(stated_s={50.0: 0.001, 99.0: 0.010})
    assert stated.percentiles_s((50, 95, 99)) == [0.001, None, 0.010]
    assert merged_latency([stated, Latency({1: 1})]) is None
    assert merged_latency([]) is None
    assert stated.mean_s is None


def test_an_interval_without_completed_operations_does_not_hide_the_latency_of_the_others() -> None:
    intervals = [
        ClientInterval(1.0, 2.0, 2, {"timeout": 1}, service=Latency({1000: 2})),
        ClientInterval(2.0, 3.0, 0, {"timeout": 3}),
        ClientInterval(3.0, 4.0, 1, service=Latency({3000: 1})),
    ]
    total = total_of(intervals)
    assert total == ClientInterval(1.0, 4.0, 3, {"timeout": 4}, None, Latency({1000: 2, 3000: 1}))
    assert total.failed == 4
    assert total.service is not None
    assert total.service.mean_s == pytest.approx(5 / 3 * 1e-6)
    assert total_of([]) is None


def test_stated_percentiles_are_those_of_the_total_if_no_other_interval_has_operations() -> None:
    stated = Latency(stated_s={50.0: 0.001, 99.0: 0.010})
    intervals = [ClientInterval(1.0, 2.0, 0), ClientInterval(2.0, 3.0, 5, service=stated), ClientInterval(3.0, 4.0, 0)]
    assert total_of(intervals) == ClientInterval(1.0, 4.0, 5, service=stated)
    assert total_of([*intervals, *intervals[1:]]) == ClientInterval(1.0, 4.0, 10)
