"""Confidence intervals of ratios from batch means."""

import numpy as np
import pytest

from exporters.results.capacity.step_verdict import MIN_INTERVALS, RULE_OF_THREE, ratio_interval
from exporters.results.comparison.inference import Array
from tests.examples import examples


def autocorrelated(random: np.random.Generator, intervals: int, coefficient: float) -> Array:
    """Return rates around 1 with autocorrelation, as numerators with the denominator 1."""
    noise = random.normal(size=intervals + 50) * 0.05 * np.sqrt(1 - coefficient**2)
    values = [0.0]
    for shock in noise[1:]:
        values.append(coefficient * values[-1] + shock)
    return np.column_stack([1 + np.array(values[50:]), np.ones(intervals)])


@pytest.mark.parametrize("coefficient", [0.0, 0.5])
def test_the_interval_covers_the_true_ratio_in_95_percent_of_cases(coefficient: float) -> None:
    random = np.random.default_rng(1)
    covered, cases = 0, examples(1000)
    for _ in range(cases):
        interval = ratio_interval([autocorrelated(random, 60, coefficient)], is_count=False)
        assert interval is not None
        covered += interval.low <= 1 <= interval.high
    assert 0.9 <= covered / cases <= 0.985


def test_parts_are_combined() -> None:
    random = np.random.default_rng(2)
    parts = [autocorrelated(random, 40, 0.0) for _ in range(4)]
    short, long = ratio_interval(parts[:1], is_count=False), ratio_interval(parts, is_count=False)
    assert short is not None
    assert long is not None
    assert long.high - long.low < short.high - short.low
    whole = np.concatenate(parts)
    assert (long.low + long.high) / 2 == pytest.approx(whole[:, 0].sum() / whole[:, 1].sum())


def test_without_events_the_rule_of_three_limits_the_ratio() -> None:
    amounts = np.column_stack([np.zeros(30), np.full(30, 100.0)])
    interval = ratio_interval([amounts], is_count=True)
    assert interval is not None
    assert (interval.low, interval.high) == (0.0, RULE_OF_THREE / 3000)


def test_few_intervals_or_no_operations_give_no_interval() -> None:
    assert ratio_interval([np.ones((MIN_INTERVALS - 1, 2))], is_count=False) is None
    assert ratio_interval([np.zeros((100, 2))], is_count=True) is None
    assert ratio_interval([], is_count=True) is None
