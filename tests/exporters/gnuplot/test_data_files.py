"""Data files: holes stay holes, and what is left of a long run has its extremes."""

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from exporters.gnuplot.data_files import Values, has_isolated, number, present, series, text, thinned
from exporters.gnuplot.plot_data import CLUSTER, Run

values = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=300)


def test_a_file_has_one_header_line_and_a_hole_is_nan() -> None:
    columns: dict[str, Values] = {"time": [1795258801.25, 1795258802.0], "reads_per_s": [12.5, None]}
    assert text(columns) == "time\treads_per_s\n1795258801.25\t12.5\n1795258802\tNaN\n"


@given(values)
def test_every_hole_is_one_in_the_file_and_every_value_is_there(column: list[float | None]) -> None:
    times: list[float | None] = [float(index) for index in range(len(column))]
    lines = text({"time": times, "a": column}).splitlines()
    found = [float(line.split("\t")[1]) for line in lines[1:]]
    assert [isnan(value) for value in found] == [value is None for value in column]
    assert all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(found, column, strict=True) if b is not None)


def test_only_finite_numbers_are_drawn() -> None:
    cells: list[object] = [1, 2.5, None, "vda", True, float("nan"), float("inf")]
    assert [number(cell) for cell in cells] == [1.0, 2.5, None, None, None, None, None]


def test_a_row_that_is_not_there_is_a_hole() -> None:
    run = Run("r", 1.0, [1.0, 2.0], {CLUSTER: [None, {"a": 1.0}]})
    assert series(run, CLUSTER, "a") == [None, 1.0]
    assert series(run, "nobody", "a") == [None, None]


def test_a_value_between_holes_is_alone() -> None:
    assert has_isolated([1.0])
    assert has_isolated([None, 1.0, None, 2.0, 3.0])
    assert not has_isolated([1.0, 2.0, None, 3.0, 4.0])
    assert not has_isolated([None, None])


@given(values, st.integers(4, 100))
def test_a_thinned_column_keeps_its_extremes_and_is_short(column: list[float | None], most: int) -> None:
    times: list[float | None] = [float(index) for index in range(len(column))]
    found = thinned({"time": times, "a": column}, most)
    assert len(found["a"]) == len(found["time"]) <= max(most + 2, 2)
    assert present(found["time"]) == sorted(present(found["time"]))
    if None not in column:
        assert min(present(found["a"])) == min(present(column))
        assert max(present(found["a"])) == max(present(column))
        assert None not in found["a"]


@given(st.integers(2, 20), st.integers(0, 400))
def test_a_hole_in_a_thinned_column_is_still_one(size: int, at: int) -> None:
    column: list[float | None] = [1.0] * 401
    column[at] = None
    times: list[float | None] = [float(index) for index in range(401)]
    assert None in thinned({"time": times, "a": column}, 2 * 401 // size)["a"]


def test_columns_that_are_stacked_become_their_mean() -> None:
    times: list[float | None] = [float(index) for index in range(8)]
    found = thinned({"time": times, "a": [0.0, 100.0, 50.0, 50.0] * 2}, 4, mean=["a"])
    assert found["a"] == [50.0] * 4
