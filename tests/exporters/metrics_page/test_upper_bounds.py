"""Upper bounds: each is the Cassandra bound nearest to a requested one, with the same label for both layouts."""

from bisect import bisect_left
from collections import defaultdict
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import LayoutError, upper_bounds_of
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.metric_family import COUNTS, DEFAULT_S, UpperBounds, UpperBoundsError
from tests.every import every
from tests.exporters.metrics_page.parsed import counted, parsed, rendered

NEW, OLD = 128, 165
WANTED = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=30).map(tuple)
DURATIONS = CATALOGUE["cassandra_client_request_duration_seconds"]


@given(WANTED)
def test_each_bound_is_the_nearest_of_cassandra_4_1(selected: tuple[float, ...]) -> None:
    finite = upper_bounds_of("seconds", NEW)[:-1]
    bounds = UpperBounds(selected).bounds("seconds", NEW)
    assert [float(bound.le) for bound in bounds] == [finite[bound.bucket] for bound in bounds]
    assert sorted(set(bounds), key=lambda bound: bound.bucket) == list(bounds)
    for bound_s in selected:
        assert min(abs(float(bound.le) - bound_s) for bound in bounds) == min(abs(bound - bound_s) for bound in finite)
    assert len(bounds) <= len(set(selected))


@given(WANTED)
def test_the_older_layout_has_the_same_labels_and_counts_up_to_its_nearest_bound(selected: tuple[float, ...]) -> None:
    finite = upper_bounds_of("seconds", OLD)[:-1]
    old, new = (UpperBounds(selected).bounds("seconds", length) for length in (OLD, NEW))
    assert [bound.le for bound in old] == [bound.le for bound in new]
    assert [bound.bucket for bound in old] == sorted(bound.bucket for bound in old)
    for bound in old:
        assert abs(finite[bound.bucket] - float(bound.le)) == min(abs(other - float(bound.le)) for other in finite)


def test_the_default_has_about_twenty_bounds_from_50_us_to_a_minute() -> None:
    bounds = UpperBounds().bounds("seconds", NEW)
    assert len(bounds) == len(DEFAULT_S) == 21
    assert [float(bound.le) for bound in bounds] == pytest.approx(DEFAULT_S, rel=0.1)


def test_the_older_layouts_default_bounds_are_at_most_2_7_percent_away() -> None:
    old = upper_bounds_of("seconds", OLD)
    differences = {bound.le: old[bound.bucket] / float(bound.le) - 1 for bound in UpperBounds().bounds("seconds", OLD)}
    assert max(map(abs, differences.values())) == pytest.approx(0.027, abs=1e-4)
    # These bounds are the closest to their labels. The older layout has other bounds that are closer to 0.2 ms and
    # 0.5 ms, but those are 15% away from the labels.
    assert (differences["0.000215"], differences["0.000535"]) == pytest.approx((0.0202, 0.0202), abs=1e-4)


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
def test_a_percentile_across_both_layouts_is_within_one_bucket(q: float) -> None:
    cumulative: dict[float, float] = defaultdict(float)
    for length in (OLD, NEW):
        text = rendered({(DURATIONS.name, "Read"): counted(DURATIONS, [0.001] * 98 + [0.016] * 2, length)})
        for (name, labels), count in parsed(text).values.items():
            if name == f"{DURATIONS.name}_bucket":
                cumulative[float(dict(labels)["le"])] += count
    bounds = sorted(cumulative)
    assert [cumulative[bound] for bound in bounds] == sorted(cumulative.values())
    above = next(index for index, bound in enumerate(bounds) if cumulative[bound] >= q * cumulative[inf])
    truth_s = 0.016 if q > 0.98 else 0.001
    assert abs(above - bisect_left(bounds, truth_s)) <= 1


@pytest.mark.parametrize("length", [165, 166])
def test_count_histograms_have_their_own_bounds(length: int) -> None:
    bounds = UpperBounds((1.0,)).bounds("1", length)
    assert [float(bound.le) for bound in bounds] == pytest.approx(
        [count for count in COUNTS if count or length == 166], rel=0.1
    )


def test_duplicate_bounds_are_merged() -> None:
    assert len(UpperBounds((0.001, 0.001, 0.00101)).bounds("seconds", NEW)) == 1


@every("invalid", [(), (0.0,), (-1.0,), (nan,), (0.1, inf)])
def test_an_invalid_bound_is_rejected(invalid: tuple[float, ...]) -> None:
    with pytest.raises(UpperBoundsError, match="use positive values in seconds"):
        UpperBounds(invalid)


def test_an_unknown_layout_is_rejected() -> None:
    with pytest.raises(LayoutError):
        UpperBounds().bounds("seconds", 100)
