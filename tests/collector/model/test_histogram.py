"""Histograms, compared with a reference that puts values into buckets as Cassandra does."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.model.histogram import (
    Buckets,
    LayoutError,
    difference,
    highest,
    mean_bounds,
    merge,
    offsets,
    quantile,
    upper_bounds_of,
)
from tests.every import every

# Bucket offsets listed in Cassandra's manual and by `nodetool tablehistograms`.
KNOWN = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 103, 124, 149, 179, 215, 258, 310),
    *(372, 446, 535, 642, 770, 924, 1109, 1331, 1597, 1916, 2299, 2759, 3311, 3973, 4768, 5722, 6866, 8239, 9887),
    *(11864, 14237, 17084, 20501, 24601, 29521, 35425, 42510, 51012, 61214, 73457, 88148, 105778, 126934, 152321),
    *(182785, 219342, 263210, 315852, 379022, 454826, 545791, 654949, 785939, 943127, 1131752, 1358102, 1629722),
    *(1955666, 2346799, 2816159, 3379391, 4055269, 4866323, 5839588, 7007506, 8409007, 10090808, 12108970, 14530764),
    *(17436917, 20924300, 25109160),
)


@dataclass(frozen=True)
class Layout:
    """A Cassandra version's histogram layout, with finite upper bounds in raw units."""

    unit: str
    length: int
    per_unit: int
    zero: bool = False

    @property
    def bounds(self) -> tuple[int, ...]:
        return (0, *offsets(self.length - 2)) if self.zero else offsets(self.length - 1)

    def counts(self, values: Sequence[int]) -> tuple[int, ...]:
        """Return the bucket counts of raw values: bucket i counts those with bounds[i-1] < value <= bounds[i]."""
        bounds = self.bounds
        counts = [0] * self.length
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        return tuple(counts)

    def around(self, value: Fraction | int) -> tuple[float, float]:
        """Return the bounds of the bucket that contains a raw value, in the metric's unit."""
        index = bisect_left(self.bounds, value)
        low = self.bounds[index - 1] if index else 0
        return low / self.per_unit, (self.bounds[index] / self.per_unit if index < len(self.bounds) else inf)

    def buckets(self, values: Sequence[int]) -> Buckets:
        return Buckets(upper_bounds_of(self.unit, self.length), self.counts(values))


NANOSECONDS = Layout("seconds", 165, 10**9)
MICROSECONDS = Layout("seconds", 128, 10**6)
LAYOUTS = (NANOSECONDS, MICROSECONDS, Layout("1", 165, 1), Layout("1", 166, 1, zero=True))

layouts = st.sampled_from(LAYOUTS)
values = st.lists(
    st.one_of(st.integers(0, 100), st.integers(0, 10**6), st.integers(0, 10**10), st.integers(0, 10**16)), max_size=40
)
some_values = values.filter(bool)
shares = st.one_of(st.sampled_from((0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)), st.floats(0, 1))
counts = st.lists(st.integers(0, 10**9), min_size=128, max_size=128)


def nth(ordered: Sequence[int], rank: float) -> int:
    return ordered[max(ceil(rank), 1) - 1]


def around_share(ordered: Sequence[int], q: float) -> tuple[int, int]:
    """Return the lowest and the highest value that may be reported as the percentile `q`.

    The percentile is the smallest value such that at least the fraction `q` of all values is less than or equal to it.
    The two results differ only if the rank is within a rounding error of a whole number; they are then neighbours.
    """
    rank = q * len(ordered)
    return nth(ordered, rank - 1e-6), nth(ordered, rank)


def test_offsets_match_cassandras_documentation() -> None:
    assert offsets(len(KNOWN)) == KNOWN


def test_offsets_grow_by_a_fifth_and_at_least_by_one() -> None:
    for last, following in zip(offsets(164), offsets(164)[1:], strict=False):
        assert following == max(last + 1, (12 * last + 5) // 10) or last > 2**50


@pytest.mark.parametrize(("length", "per_second"), [(165, 10**9), (128, 10**6)])
def test_the_unit_of_a_timer_is_derived_from_its_length(length: int, per_second: int) -> None:
    upper_bounds = upper_bounds_of("seconds", length)
    assert len(upper_bounds) == length
    assert upper_bounds[:-1] == tuple(offset / per_second for offset in offsets(length - 1))
    assert upper_bounds[-1] == inf


def test_a_histogram_of_counts_has_the_offsets_as_bounds() -> None:
    assert upper_bounds_of("1", 165) == (*offsets(164), inf)


def test_the_additional_bucket_of_a_histogram_of_counts_is_for_zero() -> None:
    assert upper_bounds_of("1", 166) == (0, *offsets(164), inf)
    assert upper_bounds_of("bytes", 166) == upper_bounds_of("1", 166)


@every("length", [0, 1, 2, 90, 91, 127, 129, 130, 164, 166])
def test_a_timer_of_unknown_length_is_rejected(length: int) -> None:
    with pytest.raises(LayoutError, match=str(length)):
        upper_bounds_of("seconds", length)


@pytest.mark.parametrize("length", [0, 1])
def test_too_few_buckets_are_rejected(length: int) -> None:
    with pytest.raises(LayoutError):
        upper_bounds_of("1", length)


def test_an_empty_histogram_is_an_unknown_layout() -> None:
    with pytest.raises(LayoutError):
        difference("1", (), ())


@given(layout=layouts, values=values)
def test_no_value_is_lost(layout: Layout, values: list[int]) -> None:
    assert layout.buckets(values).total == len(values)


@given(layout=layouts, values=some_values, q=shares)
def test_a_percentile_lies_in_the_bucket_of_the_true_percentile(layout: Layout, values: list[int], q: float) -> None:
    least, greatest = around_share(sorted(values), q)
    result = quantile(layout.buckets(values), q)
    assert result is not None
    assert layout.around(least)[0] <= result <= layout.around(greatest)[1]
    assert result < inf


@pytest.mark.parametrize(("q", "expected"), [(0.0, 61.0), (0.25, 63.0), (0.5, 66.0), (1.0, 72.0)])
def test_values_are_assumed_evenly_spread_inside_their_bucket(q: float, expected: float) -> None:
    assert quantile(Layout("1", 165, 1).buckets([70] * 8), q) == pytest.approx(expected)


@given(layout=layouts, values=some_values, q=shares)
def test_a_percentile_of_counts_is_a_whole_number(layout: Layout, values: list[int], q: float) -> None:
    result = quantile(layout.buckets(values), q)
    assert layout.unit != "1" or result == round(result or 0)


@given(values=st.lists(st.integers(0, 8), min_size=1, max_size=40), q=st.sampled_from((0.5, 0.9, 0.99, 1.0)))
def test_percentiles_of_small_counts_are_exact(values: list[int], q: float) -> None:
    # Up to 8, each bucket holds a single integer value.
    result = quantile(Layout("1", 166, 1, zero=True).buckets(values), q)
    assert result in around_share(sorted(values), q)


@given(layout=layouts, values=some_values, first=shares, second=shares)
def test_a_higher_percentile_is_never_lower(layout: Layout, values: list[int], first: float, second: float) -> None:
    lower, higher = (quantile(layout.buckets(values), q) for q in sorted((first, second)))
    assert lower is not None
    assert higher is not None
    assert lower <= higher


@given(layout=layouts, values=some_values)
def test_highest_is_the_upper_bound_of_the_bucket_with_the_greatest_value(layout: Layout, values: list[int]) -> None:
    low, high = layout.around(max(values))
    assert highest(layout.buckets(values)) == (low if high == inf else high)


@given(layout=layouts, values=some_values)
def test_the_true_mean_lies_within_the_bounds(layout: Layout, values: list[int]) -> None:
    bounds = mean_bounds(layout.buckets(values))
    mean = sum(values) / (len(values) * layout.per_unit)
    assert bounds is not None
    assert bounds[0] * (1 - 1e-12) <= mean <= bounds[1] * (1 + 1e-12)


@every("layout", LAYOUTS)
def test_an_empty_histogram_has_no_quantiles(layout: Layout) -> None:
    empty = layout.buckets([])
    assert quantile(empty, 0.5) is None
    assert highest(empty) is None
    assert mean_bounds(empty) is None


@given(before=counts, increase=counts)
def test_the_difference_is_the_increase(before: list[int], increase: list[int]) -> None:
    after = [a + b for a, b in zip(before, increase, strict=True)]
    result = difference("seconds", before, after)
    assert result == Buckets(upper_bounds_of("seconds", 128), tuple(increase))


@given(before=counts, increase=counts, bucket=st.integers(0, 127))
def test_there_is_no_difference_if_a_bucket_decreased(before: list[int], increase: list[int], bucket: int) -> None:
    after = [a + b for a, b in zip(before, increase, strict=True)]
    before[bucket] = after[bucket] + 1
    assert difference("seconds", before, after) is None


def test_there_is_no_difference_between_two_layouts() -> None:
    assert difference("seconds", [0] * 165, [1] * 128) is None


@given(parts=st.lists(counts, min_size=1, max_size=4))
def test_merging_equal_layouts_adds_exactly(parts: list[list[int]]) -> None:
    upper_bounds = upper_bounds_of("seconds", 128)
    merged = merge([Buckets(upper_bounds, tuple(part)) for part in parts])
    assert merged == Buckets(upper_bounds, tuple(map(sum, zip(*parts, strict=True))))


@given(layout=layouts, first=values, second=values, third=values)
def test_merging_equal_layouts_is_independent_of_order(
    layout: Layout, first: list[int], second: list[int], third: list[int]
) -> None:
    a, b, c = (layout.buckets(values) for values in (first, second, third))
    assert merge([a, b]) == merge([b, a])
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])


@given(layout=layouts, first=values, second=values)
def test_merged_histograms_are_the_histogram_of_all_values(layout: Layout, first: list[int], second: list[int]) -> None:
    assert merge([layout.buckets(first), layout.buckets(second)]) == layout.buckets([*first, *second])


def test_merging_no_histograms_is_an_error() -> None:
    with pytest.raises(ValueError, match="no histograms"):
        merge([])


latencies_ns = st.lists(
    st.one_of(st.integers(0, 3_000), st.integers(1_000, 10**6), st.integers(10**6, 10**10)), min_size=1, max_size=40
)
latencies_us = st.lists(
    st.one_of(st.integers(0, 12), st.integers(1, 1_000), st.integers(1_000, 10**7)), min_size=1, max_size=40
)


@given(fine=latencies_ns, coarse=latencies_us)
def test_merging_nanoseconds_and_microseconds_keeps_the_total(fine: list[int], coarse: list[int]) -> None:
    merged = merge([NANOSECONDS.buckets(fine), MICROSECONDS.buckets(coarse)])
    assert merged.total == pytest.approx(len(fine) + len(coarse), rel=1e-12)
    assert len(merged.upper_bounds) == len(merged.counts)
    assert list(merged.upper_bounds) == sorted(set(merged.upper_bounds))


def check_mixed(fine: list[int], coarse: list[int], q: float) -> None:
    """Assert that a percentile of the merged histogram is within one bucket of the true percentile of all values."""
    least, greatest = around_share(sorted([*fine, *(1_000 * value for value in coarse)]), q)
    merged_s = quantile(merge([NANOSECONDS.buckets(fine), MICROSECONDS.buckets(coarse)]), q)
    assert merged_s is not None
    assert least / 1.2e9 - 1e-6 - 1e-12 <= merged_s <= 1.2 * greatest / 1e9 + 1e-6 + 1e-12


@given(fine=latencies_ns, coarse=latencies_us, q=shares)
def test_percentiles_of_mixed_units_are_within_one_bucket(fine: list[int], coarse: list[int], q: float) -> None:
    check_mixed(fine, coarse, q)


@example(fine=[2 * 10**9], coarse=[1])
@given(fine=latencies_ns, coarse=latencies_us)
def test_every_rank_of_mixed_units_is_within_one_bucket(fine: list[int], coarse: list[int]) -> None:
    number = len(fine) + len(coarse)
    for rank in range(1, number + 1):
        check_mixed(fine, coarse, rank / number)


@given(fine=latencies_ns, coarse=latencies_us)
def test_mixed_units_merge_the_same_in_either_order(fine: list[int], coarse: list[int]) -> None:
    a, b = NANOSECONDS.buckets(fine), MICROSECONDS.buckets(coarse)
    assert merge([a, b]) == merge([b, a])


def test_overflow_stays_above_the_last_offset_when_units_are_mixed() -> None:
    beyond = MICROSECONDS.buckets([10**16])
    merged = merge([NANOSECONDS.buckets([1_000]), beyond])
    assert merged.total == 2
    assert quantile(merged, 1.0) == pytest.approx(MICROSECONDS.bounds[-1] / 1e6, rel=0.2)
