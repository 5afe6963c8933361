"""The client's values over time follow its intervals, and percentiles are never averaged."""

import pytest

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from exporters.report.time_charts import client_lines

MS_IN_NS = 1_000_000


def result(*intervals: ClientInterval) -> ClientResult:
    return ClientResult("csv", "tool", "file", (Operation("get", intervals),))


def test_intervals_of_two_clients_add_up_although_they_begin_at_different_times() -> None:
    fast = result(*(ClientInterval(100.0 + n, 101.0 + n, 10) for n in range(4)))
    slow = result(*(ClientInterval(100.3 + n, 101.3 + n, 5) for n in range(3)))
    rates, _ = client_lines([fast, slow], 0, 1000, 2.0)
    assert list(rates.times) == [102.0, 104.0]
    # The slow client runs from 100.3 to 103.3.
    assert list(rates.values) == pytest.approx([14.25, 13.25])


def test_results_of_consecutive_steps_follow_one_another() -> None:
    first = result(*(ClientInterval(100.0 + n, 101.0 + n, 10) for n in range(2)))
    longer = result(*(ClientInterval(103.0 + n, 104.0 + n, 5) for n in range(3)))
    # Its first interval overlaps the previous result.
    last = result(*(ClientInterval(105.4 + n, 106.4 + n, 20) for n in range(2)))
    for results in ([first, longer, last], [last, longer, first]):
        rates, _ = client_lines(results, 0, 1000, 1.0)
        assert list(rates.times) == [101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 106.4, 107.4]
        known = [value for value in rates.values if value is not None]
        assert known == pytest.approx([10.0, 10.0, 5.0, 5.0, 5.0 + 0.6 * 20.0, 20.0])
        assert [rates.values[index] for index in (2, 6)] == [None, None]


def test_percentiles_of_merged_intervals_come_from_counts() -> None:
    latencies = [Latency({MS_IN_NS: 99, 9 * MS_IN_NS: 1}), Latency({2 * MS_IN_NS: 100})]
    intervals = [ClientInterval(100.0 + n, 101.0 + n, 100, service=of) for n, of in enumerate(latencies)]
    _, tails = client_lines([result(*intervals)], 0, 1000, 2.0)
    # The 198th of 200 operations.
    assert list(tails.values) == [2.0]


def test_stated_percentiles_cannot_be_combined() -> None:
    intervals = [ClientInterval(100.0 + n, 101.0 + n, 100, service=Latency(stated_s={99.0: 0.005})) for n in range(2)]
    _, single = client_lines([result(*intervals)], 0, 1000, 1.0)
    assert list(single.values) == [5.0, 5.0]
    _, combined = client_lines([result(*intervals)], 0, 1000, 2.0)
    assert list(combined.values) == [None]


def test_results_without_intervals_have_no_lines() -> None:
    total = ClientInterval(100.0, 200.0, 1000)
    assert client_lines([ClientResult("wrk", "wrk", "file", (Operation("", (), total),))], 0, 1000, 1.0) == []
