"""The throughput of a sweep in items per second: its tables and plots, and the best combination."""

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.charts.all_plots import write
from exporters.charts.experiment_plots import highest_by_cell, pareto_front, sweep_plots
from exporters.charts.gnuplot_page import draw
from exporters.charts.plot_data import PlotData
from exporters.charts.swept_lines import swept_lines
from exporters.results.sweep.sweep_output import (
    COLUMNS,
    ITEM_COLUMNS,
    cells,
    csv_text,
    json_text,
    markdown_text,
    plain_lines,
)
from exporters.results.sweep.sweep_rows import SweepRow, SweepTable, sweep_table, with_best
from tests.exporters import golden
from tests.exporters.results.sweep.swept import batch_table, outcome

TABLE = batch_table()
RUN = PlotData("load", 1.0, (), {}, footer=["command: load {c} {batch}"])
PLOTS = ["throughput_c", "throughput_batch", "latency_c", "latency_batch", "pareto", "heatmap_c_batch"]
OF_THROUGHPUT = [name for name in PLOTS if not name.startswith("latency")]


def without_items(table: SweepTable) -> SweepTable:
    """Return the same results with a throughput in operations."""
    rows = [replace(row, items_per_op=1.0) for row in table.rows]
    return replace(table, rows=with_best(rows), items_per_op="")


def test_tables_match_their_golden_files() -> None:
    golden.check("sweep_items.md", markdown_text(TABLE, ["command: load {c} {batch}"]))
    golden.check("sweep_items.txt", "\n".join(plain_lines(TABLE)) + "\n")
    golden.check("sweep_items.csv", csv_text(TABLE))
    golden.check("sweep_items.json", json_text(TABLE))


@pytest.mark.parametrize("name", OF_THROUGHPUT)
def test_scripts_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(RUN, tmp_path, plots=sweep_plots(TABLE), only=[name])
    golden.check(f"gnuplot.sweep_items_{name}.gp", path.read_text())


def test_gnuplot_draws_all_plots_and_those_of_throughput_show_items(tmp_path: Path) -> None:
    paths = write(RUN, tmp_path, plots=sweep_plots(TABLE))
    assert [path.stem for path in paths] == PLOTS
    images = draw(paths)
    assert len(images) == 2 * len(PLOTS)
    assert all(path.stat().st_size > 1000 for path in images)
    for name in PLOTS:
        shown = (tmp_path / f"{name}.svg").read_text()
        assert "operations/s" not in shown
        assert ("items/s" in shown) == (name in OF_THROUGHPUT)


def test_the_data_of_plots_are_items(tmp_path: Path) -> None:
    write(RUN, tmp_path, plots=sweep_plots(TABLE), only=OF_THROUGHPUT)
    files = {path.stem: path.read_text().splitlines() for path in tmp_path.glob("*.tsv")}
    assert files["throughput_batch"][0].split("\t")[1:4] == ["1 4 items/s", "1 4 low", "1 4 high"]
    assert [line.split("\t")[1] for line in files["throughput_batch"][1:]] == ["1005", "1505", "4600", "4200"]
    assert files["heatmap_c_batch"][0].split("\t")[-1] == "items_per_s"
    assert {line.split("\t")[-1] for line in files["heatmap_c_batch"][1:]} >= {"12600", "20400"}
    assert files["pareto"][0] == "items_per_s\tp95_ms\tp99_ms"
    assert files["pareto.front_p95"][1:] == ["20400\t10"]


def test_the_best_combination_has_the_most_items_per_second_without_more_errors() -> None:
    assert TABLE.best is not None
    assert TABLE.best.parameters == {"c": "16", "batch": "50"}
    (best,) = (line for line in plain_lines(TABLE) if line.startswith("Best: "))
    assert best.startswith("Best: c=16, batch=50, 12,600 items/s, the highest throughput among the combinations")
    in_operations = without_items(TABLE).best
    assert in_operations is not None
    assert in_operations.parameters == {"c": "16", "batch": "1"}


def test_files_have_columns_for_items_in_addition_to_those_of_a_table_without_them() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(TABLE))))
    others = list(csv.DictReader(io.StringIO(csv_text(without_items(TABLE)))))
    assert [name for name in rows[0] if name not in others[0]] == list(ITEM_COLUMNS)
    for row, other in zip(rows, others, strict=True):
        assert all(row[name] == other[name] for name in COLUMNS if name != "best")
    content = json.loads(json_text(TABLE))
    assert content["items_per_op"] == "batch"
    for row, from_json in zip(rows, content["rows"], strict=True):
        assert [row[name] for name in ITEM_COLUMNS] == [
            "" if from_json[name] is None else str(from_json[name]) for name in ITEM_COLUMNS
        ]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=3), st.decimals("0.001", 1_000_000, places=3))
def test_items_are_operations_multiplied_by_the_parameter(rates: list[float], items: Decimal) -> None:
    (row,) = sweep_table("s", [{"b": f"{items}"}], [[outcome(rate) for rate in rates]], 3, "b").rows
    number = float(items)
    assert row.ops_per_s is not None
    assert row.throughput == pytest.approx(row.ops_per_s * number)
    if row.low is None or row.high is None:
        assert (row.throughput_low, row.throughput_high) == (None, None)
    else:
        assert (row.throughput_low, row.throughput_high) == pytest.approx((row.low * number, row.high * number))


def test_operations_are_counted_without_a_number_of_items() -> None:
    (row,) = sweep_table("s", [{"b": "50"}], [[outcome(7, 8), outcome(9, 8)]], 2).rows
    assert (row.throughput, row.throughput_low, row.throughput_high) == (row.ops_per_s, row.low, row.high)
    assert row.whole_throughput == row.whole_ops_per_s


def test_every_row_has_a_cell_for_each_header() -> None:
    assert {len(row) for row in cells(TABLE)} == {len(cells(TABLE)[0])}
    empty = sweep_table("s", [{"b": "2"}], [[]], 1, "b")
    assert cells(empty)[1][1:] == ["-"] * 10 + ["1 of 1 runs missing"]


def test_lines_cells_and_the_front_compare_items() -> None:
    def row(a: str, b: str, ops_per_s: float, p99_ms: float) -> SweepRow:
        return SweepRow({"a": a, "b": b}, ops_per_s=ops_per_s, p99_ms=p99_ms, items_per_op=float(b))

    many, few = row("1", "10", 20, 5), row("1", "1", 100, 9)
    table = SweepTable("s", ("a", "b"), 1, "client", "", (few, many), "b")
    assert pareto_front(table.rows, "p99") == [many]
    assert highest_by_cell(table, "a", "b") == {("1", "1"): 100, ("1", "10"): 200}
    lines = [row(str(number), str(number), 100 / number**2, 1) for number in range(1, 12)]
    shown = swept_lines(SweepTable("s", ("a", "b"), 1, "client", "", tuple(lines), "b"), "a").lines
    assert [line.others for line in shown] == [(str(number),) for number in range(1, len(shown) + 1)]
