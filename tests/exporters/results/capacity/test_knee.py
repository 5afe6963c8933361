"""The knee of a curve of rate against latency."""

import pytest

from exporters.results.capacity.search import knee_of


def test_the_knee_is_where_the_latency_begins_to_rise() -> None:
    flat = [(float(rate), 1.0 + rate / 10_000) for rate in range(100, 1000, 100)]
    steep = [(1000.0, 5.0), (1050.0, 30.0), (1100.0, 200.0)]
    assert knee_of([*flat, *steep]) == 900.0
    assert knee_of([*steep, *flat]) == 900.0


@pytest.mark.parametrize(
    "latencies", [(1.0, 1.1, 1.0, 1.2, 1.3), (1.0, 5.0, 40.0, 300.0), (0.0, 1.0, 5.0, 9.0, 20.0), ()]
)
def test_a_flat_or_short_curve_has_no_knee(latencies: tuple[float, ...]) -> None:
    assert knee_of([(100.0 * number, latency) for number, latency in enumerate(latencies, 1)]) is None


def test_a_curve_that_only_bends_down_has_no_knee() -> None:
    assert knee_of([(1.0, 1.0), (2.0, 8.0), (3.0, 9.0), (4.0, 9.5), (5.0, 10.0)]) is None


def test_a_high_latency_at_the_lowest_rate_is_not_a_knee() -> None:
    """The first requests to a node are slow; at the highest rates, the load generator was the limit."""
    assert knee_of([(4000.0, 9.0), (8000.0, 3.0), (16000.0, 2.1), (32000.0, 2.3), (64000.0, 2.8)]) is None
