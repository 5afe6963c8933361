"""A grid of spans: a tick counts only if a span contains all of the time that the tick covers."""

from math import inf, isinf

from hypothesis import given
from hypothesis import strategies as st

from collector.merge.grid import SpanGrid


@st.composite
def grids(draw: st.DrawFn) -> SpanGrid:
    """Generate a grid; its spans may follow one another immediately."""
    limits_s = [0.0]
    for _ in range(draw(st.integers(1, 5))):
        begin_s = limits_s[-1] + draw(st.sampled_from([0.0, 0.0, 1.5, 10.0]))
        limits_s += [begin_s, begin_s + draw(st.floats(0.1, 20.0))]
    spans = tuple(zip(limits_s[1::2], limits_s[2::2], strict=True))
    return SpanGrid(draw(st.sampled_from([0.5, 1.0, 5.0, inf])), spans=spans)


TIMES = st.floats(-5.0, 120.0)
COVERED = st.floats(0.1, 12.0)


@given(grids(), TIMES, COVERED, COVERED)
def test_a_tick_counts_if_a_span_contains_all_of_its_time(
    grid: SpanGrid, time_s: float, tick_s: float, covered_s: float
) -> None:
    index = grid.index_of(time_s, tick_s, covered_s)
    first_s = time_s - max(tick_s, covered_s)
    containing = [
        number for number, (begin_s, end_s) in enumerate(grid.spans) if begin_s <= first_s and time_s <= end_s
    ]
    assert containing == ([] if index is None else [grid.span_of(index)])


@given(grids(), TIMES, COVERED)
def test_the_interval_of_a_tick_contains_the_middle_of_its_time(
    grid: SpanGrid, time_s: float, covered_s: float
) -> None:
    index = grid.index_of(time_s, covered_s)
    if index is None:
        return
    middle_s = time_s - min(covered_s, grid.interval_s) / 2
    begin_s, end_s = grid.spans[grid.span_of(index)]
    assert middle_s <= grid.end_of(index) + 1e-9
    if not isinf(grid.interval_s) and grid.end_of(index) < end_s:
        assert middle_s >= grid.end_of(index) - grid.interval_s - 1e-9
    assert begin_s < grid.end_of(index) <= end_s


@given(grids(), TIMES, TIMES, COVERED)
def test_the_indices_of_a_time_range_include_those_of_its_ticks(
    grid: SpanGrid, begin_s: float, time_s: float, covered_s: float
) -> None:
    index = grid.index_of(time_s, covered_s)
    if index is not None and begin_s <= time_s:
        assert index in grid.indices_between(begin_s, time_s)


@given(grids())
def test_intervals_are_in_order(grid: SpanGrid) -> None:
    indices = grid.indices_between(-inf, inf)
    ends_s = [grid.end_of(index) for index in indices]
    assert ends_s == sorted(ends_s)
    assert {grid.span_of(index) for index in indices} == set(range(len(grid.spans)))
    assert grid.indices_between(1000.0, 2000.0) == range(0)
