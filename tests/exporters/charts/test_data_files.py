"""Data files: gaps are preserved, and thinned columns keep their extremes."""

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from exporters.charts.gnuplot_page import data_file_text
from exporters.charts.plot_data import CLUSTER, PlotData, Values, has_isolated, number, present, series, thinned

values = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=300)


def test_a_file_has_one_header_line_and_gaps_are_nan() -> None:
    columns: dict[str, Values] = {"time": [1795258801.25, 1795258802.0], "reads_per_s": [12.5, None]}
    assert data_file_text(columns) == "time\treads_per_s\n1795258801.25\t12.5\n1795258802\tNaN\n"


@given(values)
def test_every_gap_and_every_value_is_in_the_file(column: list[float | None]) -> None:
    times: list[float | None] = [float(index) for index in range(len(column))]
    lines = data_file_text({"time": times, "a": column}).splitlines()
    written = [float(line.split("\t")[1]) for line in lines[1:]]
    assert [isnan(value) for value in written] == [value is None for value in column]
    assert all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(written, column, strict=True) if b is not None)


def test_only_finite_numbers_are_plotted() -> None:
    cells: list[object] = [1, 2.5, None, "vda", True, float("nan"), float("inf")]
    assert [number(cell) for cell in cells] == [1.0, 2.5, None, None, None, None, None]


def test_a_missing_row_is_a_gap() -> None:
    run = PlotData("r", 1.0, [1.0, 2.0], {CLUSTER: [None, {"a": 1.0}]})
    assert series(run, CLUSTER, "a") == [None, 1.0]
    assert series(run, "nobody", "a") == [None, None]


def test_a_value_between_gaps_is_isolated() -> None:
    assert has_isolated([1.0])
    assert has_isolated([None, 1.0, None, 2.0, 3.0])
    assert not has_isolated([1.0, 2.0, None, 3.0, 4.0])
    assert not has_isolated([None, None])


@given(values, st.integers(4, 100))
def test_a_thinned_column_keeps_its_extremes_and_is_short(column: list[float | None], most: int) -> None:
    times: list[float | None] = [float(index) for index in range(len(column))]
    thinned_columns = thinned({"time": times, "a": column}, most)
    assert len(thinned_columns["a"]) == len(thinned_columns["time"]) <= max(most + 2, 2)
    assert present(thinned_columns["time"]) == sorted(present(thinned_columns["time"]))
    if None not in column:
        assert min(present(thinned_columns["a"])) == min(present(column))
        assert max(present(thinned_columns["a"])) == max(present(column))
        assert None not in thinned_columns["a"]


@given(st.integers(2, 20), st.integers(0, 400))
def test_thinning_preserves_gaps(size: int, at: int) -> None:
    column: list[float | None] = [1.0] * 401
    column[at] = None
    times: list[float | None] = [float(index) for index in range(401)]
    assert None in thinned({"time": times, "a": column}, 2 * 401 // size)["a"]


def test_stacked_columns_are_thinned_to_their_mean() -> None:
    times: list[float | None] = [float(index) for index in range(8)]
    thinned_columns = thinned({"time": times, "a": [0.0, 100.0, 50.0, 50.0] * 2}, 4, mean=["a"])
    assert thinned_columns["a"] == [50.0] * 4
