"""The amounts of client results: those of bins that intervals share, and the kind of latency that is compared."""

from collections import Counter, defaultdict
from math import floor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from exporters.results.comparison.amounts import ALL, client_bins, latency_kinds
from exporters.results.comparison.comparison import ComparedRun, PhaseData, comparisons

COUNTS = st.dictionaries(st.integers(1, 10**10), st.integers(1, 1000), max_size=5)
STEP_S, BINS = 2.0, 5


def interval(begin_s: float, counts: dict[int, int], failed: int = 0) -> ClientInterval:
    return ClientInterval(
        begin_s, begin_s + 1, sum(counts.values()), {"timeout": failed} if failed else {}, Latency(counts)
    )


def result(*operations: Operation) -> ClientResult:
    return ClientResult("synthetic", "synthetic", "result", operations)


@given(st.lists(st.lists(COUNTS, min_size=1, max_size=10), min_size=1, max_size=3))
def test_a_bin_has_the_operations_of_all_its_intervals(operations: list[list[dict[int, int]]]) -> None:
    expected: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for counts_by_second in operations:
        for second, counts in enumerate(counts_by_second):
            expected[floor((second + 0.5) / STEP_S)].update(counts)
    results = [
        result(
            *(
                Operation(f"o{number}", tuple(interval(second, counts) for second, counts in enumerate(seconds)))
                for number, seconds in enumerate(operations)
            )
        )
    ]
    bins = client_bins(results, "response", 0.0, BINS * STEP_S, STEP_S)[ALL]
    values_ns = bins.values_ns
    rows = [Counter(dict(zip(values_ns.tolist(), row, strict=True))) for row in bins.counts_of(values_ns).tolist()]
    assert [+row for row in rows] == [expected[index] for index in sorted(expected)]
    assert bins.completed.tolist() == [expected[index].total() for index in sorted(expected)]
    sums_ms = [sum(value * count for value, count in expected[index].items()) / 1e6 for index in sorted(expected)]
    assert np.allclose(bins.latency_sums[:, 0], sums_ms)


def test_the_latency_of_an_idle_interval_is_not_missing() -> None:
    idle = ClientInterval(1, 2, 0)
    bins = client_bins([result(Operation("o", (interval(0, {5: 1}), idle)))], "response", 0, 2, 1)[ALL]
    assert bins.counts is not None
    assert bins.completed.tolist() == [1, 0]


def test_an_interval_without_counts_leaves_the_distribution_unknown() -> None:
    stated = ClientInterval(1, 2, 10, response=Latency(stated_s={99.0: 0.1}))
    bins = client_bins([result(Operation("o", (interval(0, {5: 1}), stated)))], "response", 0, 2, 1)[ALL]
    assert bins.counts is None
    assert bins.completed.tolist() == [1, 10]


def phase(*results: ClientResult) -> PhaseData:
    kinds = latency_kinds(results)
    return PhaseData(client={kind: client_bins(results, kind, 0.0, 10.0, 1.0) for kind in kinds})


def test_runs_are_compared_by_a_kind_of_latency_that_all_have() -> None:
    """A run with response and service times, and one with service times only."""
    service = Latency({1_000_000: 10})
    both = Operation("o", (ClientInterval(0, 1, 10, {}, Latency({2_000_000: 10}), service),))
    only = Operation("o", (ClientInterval(0, 1, 10, {}, None, service),))
    a, b = (ComparedRun(name, {"main": phase(result(op))}) for name, op in (("a", both), ("b", only)))
    by_column = {comparison.column: comparison.difference for comparison in comparisons([a], [b])}
    assert by_column["client_p99_ms"].value_a == by_column["client_p99_ms"].value_b == 1
    alone = {comparison.column: comparison.difference for comparison in comparisons([a], [a])}
    assert alone["client_p99_ms"].value_a == 2
