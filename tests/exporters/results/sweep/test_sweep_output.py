"""The results of a sweep as Markdown, plain text, CSV, JSON and plots; hostile values change no structure."""

import csv
import io
import json
from pathlib import Path

import pytest

from exporters.charts.all_plots import write
from exporters.charts.experiment_plots import highest_by_cell, pareto_front, sweep_plots
from exporters.charts.gnuplot_page import draw
from exporters.charts.plot_data import PlotData
from exporters.charts.swept_lines import category_axis, numbers_of, parameter_axis, rows_by_line
from exporters.results.sweep.sweep_output import COLUMNS, cells, csv_text, json_text, markdown_text, plain_lines
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable, sweep_table
from tests.every import every
from tests.exporters import golden
from tests.exporters.results.sweep.swept import hostile_table, outcome

TABLE = hostile_table()
RUN = PlotData('load\'s "x"', 1.0, (), {}, footer=["command: load {c} `{level}`"])
NAMES = ["throughput_c", "throughput_level", "latency_c", "latency_level", "pareto", "heatmap_c_level"]


def test_markdown_matches_its_golden_file() -> None:
    golden.check("sweep.md", markdown_text(TABLE, ["command: load {c} '{level}'", "6 combinations"]))


def test_plain_text_matches_its_golden_file() -> None:
    golden.check("sweep.txt", "\n".join(plain_lines(TABLE)) + "\n")


def test_csv_and_json_match_their_golden_files() -> None:
    golden.check("sweep.csv", csv_text(TABLE))
    golden.check("sweep.json", json_text(TABLE))


def test_csv_and_json_have_the_same_rows() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(TABLE))))
    content = json.loads(json_text(TABLE))
    assert [row["level"] for row in rows] == [row["parameters"]["level"] for row in content["rows"]]
    for row, other in zip(rows, content["rows"], strict=True):
        values = [other[name] for name in COLUMNS]
        assert [row[name] for name in COLUMNS] == [
            "" if value is None else json.dumps(value).strip('"') for value in values
        ]


def test_every_row_of_the_table_has_a_cell_for_each_header() -> None:
    assert {len(row) for row in cells(TABLE)} == {len(cells(TABLE)[0])}
    empty = sweep_table("s", [{"c": "1"}], [[]], 1)
    assert cells(empty)[1][1:] == ["-"] * 9 + ["1 of 1 runs missing"]
    assert plain_lines(empty)[-1] == "No run has been measured."


@pytest.mark.parametrize("name", NAMES)
def test_scripts_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(RUN, tmp_path, plots=sweep_plots(TABLE), only=[name])
    golden.check(f"gnuplot.sweep_{name}.gp", path.read_text())


def test_gnuplot_draws_all_plots(tmp_path: Path) -> None:
    assert [plot.name for plot in sweep_plots(TABLE)] == NAMES
    images = draw(write(RUN, tmp_path, plots=sweep_plots(TABLE)))
    assert all(path.stat().st_size > 1000 for path in images)
    assert len(images) == 2 * len(NAMES)


@pytest.mark.parametrize("runs", [0, 1])
def test_gnuplot_draws_sweeps_without_values_and_with_one_row(runs: int, tmp_path: Path) -> None:
    table = sweep_table("s", [{"c": "1"}, {"c": "2"}], [[outcome(10)] * runs, []], 1)
    draw(write(RUN, tmp_path, plots=sweep_plots(table)))
    for name in ("pareto", "latency_c"):
        assert ("no data" in (tmp_path / f"{name}.gp").read_text()) == (runs == 0)


def test_parameters_with_one_value_have_no_plot() -> None:
    table = sweep_table("s", [{"a": "1", "b": "2"}], [[outcome(10)]], 1)
    assert [plot.name for plot in sweep_plots(table)] == ["pareto"]


def row(ops_per_s: float | None, p99_ms: float | None, **parameters: str) -> SweepRow:
    return SweepRow(parameters, ops_per_s=ops_per_s, p99_ms=p99_ms)


def test_no_row_surpasses_one_of_the_pareto_front_in_both() -> None:
    rows = [row(10, 5), row(20, 4), row(30, 9), row(30, 8), row(25, 8), row(5, 1), row(None, 1), row(40, None)]
    assert [(part.ops_per_s, part.p99_ms) for part in pareto_front(rows, "p99")] == [(5, 1), (20, 4), (30, 8)]


def test_lines_and_cells_have_the_rows_of_their_parameters() -> None:
    rows = (
        row(1, 1, a="1", b="x/y", c="z"),
        row(2, 1, a="2", b="x/y", c="z"),
        row(3, 1, a="1", b="x", c="y/z"),
        row(None, 1, a="2", b="x", c="y/z"),
    )
    table = SweepTable("s", ("a", "b", "c"), 1, "client", "", rows)
    assert rows_by_line(table, "a") == {("x/y", "z"): {"1": rows[0], "2": rows[1]}, ("x", "y/z"): {"1": rows[2]}}
    assert highest_by_cell(table, "a", "b") == {("1", "x/y"): 1, ("2", "x/y"): 2, ("1", "x"): 3}
    assert highest_by_cell(table, "b", "c") == {("x/y", "z"): 2, ("x", "y/z"): 3}


@every(
    ("values", "numbers"),
    [(["10", "-0.5"], [10.0, -0.5]), (["1", "ONE"], None), (["1e5"], None), (["nan"], None), (["1", "1.0"], None)],
)
def test_numbers_are_recognised(values: list[str], numbers: list[float] | None) -> None:
    assert (None if numbers is None else dict(zip(values, numbers, strict=True))) == numbers_of(values)


def test_axes_are_in_ascending_order_and_logarithmic_if_values_differ_widely() -> None:
    assert list(parameter_axis(["100", "1", "9"], 900).positions) == ["1", "9", "100"]
    assert "set logscale x" in parameter_axis(["100", "1"], 900).commands
    assert "'50' 50, '100' 100, '200' 200" in parameter_axis(["1", "256"], 436).commands[-1]
    assert "unset logscale x" in parameter_axis(["100", "0"], 900).commands
    assert category_axis("x", ["b", "a"], 900).positions == {"b": 0.0, "a": 1.0}
    assert category_axis("x", ["10", "9"], 900).positions == {"9": 0.0, "10": 1.0}
