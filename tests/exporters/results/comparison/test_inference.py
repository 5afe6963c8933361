"""Comparisons rarely report differences that are due to chance, and find those that are not."""

from collections.abc import Callable

import numpy as np
import pytest

from exporters.results.comparison.comparison import Comparison, comparisons, corrected
from exporters.results.comparison.inference import Difference, Percentile, Ratio, RunAmounts, critical_value, difference
from tests.examples import IS_THOROUGH, examples
from tests.exporters.results.comparison.simulated_runs import simulated, simulated_clients

INTERVALS, PAIRS = 300, examples(60)


def significant(runs: int, spread: float, effect: float = 0.0) -> int:
    """Return how many of PAIRS comparisons are significant."""
    a, b = simulated(1, runs * PAIRS, spread, INTERVALS), simulated(2, runs * PAIRS, spread, INTERVALS, effect)
    pairs = [slice(number * runs, (number + 1) * runs) for number in range(PAIRS)]
    p_values = [difference(Ratio(), a[pair], b[pair]).p for pair in pairs]
    return sum(p is not None and p < 0.05 for p in p_values)


@pytest.mark.parametrize(("runs", "spread"), [(1, 0.0), (2, 0.02), (3, 0.0), (3, 0.02)])
def test_runs_without_a_difference_rarely_seem_to_differ(runs: int, spread: float) -> None:
    # At a rate of 5%, more than 8 of 60 (or 2 of 7) are significant with a probability of 0.2% (0.4%).
    assert significant(runs, spread) <= (8 if IS_THOROUGH else 2)


def test_a_difference_of_5_percent_is_found() -> None:
    assert significant(3, 0.01, effect=float(np.log(1.05))) >= 0.8 * PAIRS


def test_runs_without_a_difference_rarely_seem_to_differ_in_any_column() -> None:
    """The rate of comparisons with any significant column is limited by the correction, not that of single columns."""
    pairs, runs = (20 if IS_THOROUGH else 4), 3
    a, b = (simulated_clients(seed, runs * pairs, 0.02, 120) for seed in (1, 2))
    results = [comparisons(a[i : i + runs], b[i : i + runs]) for i in range(0, runs * pairs, runs)]
    tested = [[comparison for comparison in result if comparison.difference.p is not None] for result in results]
    assert min(map(len, tested)) >= 6
    # At a rate of 5%, more than 4 of 20 (or 1 of 4) have a significant column with a probability of 0.3% (1.4%).
    assert sum(any(comparison.is_significant for comparison in result) for result in tested) <= (
        4 if IS_THOROUGH else 1
    )


def test_p_values_are_corrected_by_holms_method() -> None:
    p_values = (0.01, 0.04, 0.03, None, 0.005)
    results = [Comparison("p", "c", Difference(1.0, 1.0, p=p)) for p in p_values]
    adjusted = [comparison.adjusted_p for comparison in corrected(results)]
    assert adjusted == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06), None, pytest.approx(0.02)]


def test_half_of_the_level_is_for_the_throughput() -> None:
    p_values = {"client_ops_per_s": 0.02, "reads_per_s": 0.02, "cpu_busy_pct": 0.5, "gc_pct": 0.001}
    results = [Comparison("p", column, Difference(1.0, 1.0, p=p)) for column, p in p_values.items()]
    adjusted = {comparison.column: comparison.adjusted_p for comparison in corrected(results)}
    # gc_pct has a sixth of the weight, the throughput half; when both are found, the rest share a third.
    assert adjusted == {
        "client_ops_per_s": pytest.approx(0.02 * 2 * 5 / 6),
        "reads_per_s": pytest.approx(0.02 * 2),
        "cpu_busy_pct": pytest.approx(0.5),
        "gc_pct": pytest.approx(0.001 * 6),
    }
    without_client = [comparison for comparison in results if comparison.column != "client_ops_per_s"]
    assert {c.column: c.adjusted_p for c in corrected(without_client)}["reads_per_s"] == pytest.approx(0.02 * 1.5)


def test_a_result_is_reproducible() -> None:
    a, b = simulated(1, 1, 0.0, INTERVALS), simulated(2, 1, 0.0, INTERVALS)
    assert difference(Ratio(), a, b) == difference(Ratio(), a, b)


def test_percentiles_come_from_the_counts_of_all_intervals() -> None:
    quantity = Percentile(99.0, (1.0, 100.0))
    fast, slow = np.array([[1000.0, 0.0]]), np.array([[0.0, 5.0]])
    result = difference(quantity, [[fast], [fast]], [[fast], [fast, slow]])
    assert (result.value_a, result.value_b) == (1.0, 1.0)


@pytest.mark.parametrize(("numerator", "reason"), [(0.0, "both zero"), (1.0, "no variation")], ids=("zero", "constant"))
def test_constant_values_have_no_interval(numerator: float, reason: str) -> None:
    runs: list[RunAmounts] = [[np.full((50, 2), (numerator, 1.0))]] * 2
    result: Difference = difference(Ratio(), runs, runs)
    assert (result.low, result.p, result.reason) == (None, None, reason)


def test_critical_values_match_published_tables() -> None:
    table: Callable[[float], float] = lambda degrees: round(critical_value(0.05, degrees), 3)  # noqa: E731
    assert [table(degrees) for degrees in (1, 2, 4, 30)] == [12.706, 4.303, 2.776, 2.042]
