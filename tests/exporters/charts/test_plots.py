"""Plot scripts and their data."""

from dataclasses import replace
from math import inf, log10
from pathlib import Path

import pytest

from collector.model.histogram import Buckets, highest, merge, quantile
from exporters.charts import plot_data
from exporters.charts.all_plots import PLOTS, write
from exporters.charts.gnuplot_page import Page
from exporters.charts.plot_data import CLUSTER, Columns, Phase, PlotData, missing
from exporters.charts.plot_style import THEMES
from tests.exporters import golden
from tests.exporters.charts.runs import synthetic

NAMES = [plot.name for plot in PLOTS]
SMALL = synthetic(seconds=12, missing=range(4, 8), values=20)
MANY = synthetic([f"node-{index}" for index in range(14)], 6, values=5)


def files(run: PlotData, name: str) -> Columns:
    """Return the data columns of the plot `name`."""
    (plot,) = (plot for plot in PLOTS if plot.name == name)
    return plot.draw(Page(run, name, 1200, 900, THEMES["light"], missing(run))).files[""]


@pytest.mark.parametrize("name", NAMES)
def test_scripts_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(SMALL, tmp_path, only=[name])
    golden.check(f"gnuplot.{name}.gp", path.read_text())


def test_the_script_for_many_nodes_matches_its_golden_file(tmp_path: Path) -> None:
    (path,) = write(MANY, tmp_path, only=["nodes"], theme="dark", size=(1600, 1200))
    golden.check("gnuplot.nodes.many.gp", path.read_text())


def test_every_plot_has_its_own_files(tmp_path: Path) -> None:
    assert write(SMALL, tmp_path) == [tmp_path / f"{name}.gp" for name in NAMES]
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{end}" for name in NAMES for end in ("gp", "tsv")}


def test_unknown_plots_and_themes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown plot 'pie'"):
        write(SMALL, tmp_path, only=["pie"])
    with pytest.raises(ValueError, match="unknown theme 'red'"):
        write(SMALL, tmp_path, theme="red")


def test_plots_have_a_minimum_size(tmp_path: Path) -> None:
    (path,) = write(SMALL, tmp_path, only=["overview"], size=(10, 10))
    assert "size 900,1125" in path.read_text()


def test_the_overview_has_the_cluster_columns_and_the_operations_of_each_node() -> None:
    columns = files(SMALL, "overview")
    assert columns["reads_per_s"] == plot_data.series(SMALL, CLUSTER, "reads_per_s")
    assert [value is None for value in columns["2 node-2 reads_per_s"]] == [False] * 4 + [True] * 4 + [False] * 4
    assert columns["nodes"] == [3.0] * 4 + [2.0] * 4 + [3.0] * 4


def with_range_reads(run: PlotData) -> PlotData:
    """Return the run with range reads, at half the rate of its reads, with the same latencies."""
    more = [
        row
        and {**row, "range_reads_per_s": float(row["reads_per_s"] or 0) / 2, "range_read_p99_ms": row["read_p99_ms"]}
        for row in run.rows[CLUSTER]
    ]
    buckets = {**run.buckets, "range_read": run.buckets["read"]}
    return replace(run, rows={**run.rows, CLUSTER: more}, buckets=buckets)


def test_other_operations_are_drawn_if_they_occur(tmp_path: Path) -> None:
    run = with_range_reads(synthetic(seconds=70, values=5))
    overview, percentiles = files(run, "overview"), files(run, "percentiles")
    assert overview["range_reads_per_s"] == plot_data.series(run, CLUSTER, "range_reads_per_s")
    assert overview["range_read_p99_ms"] == overview["read_p99_ms"]
    assert percentiles["range_read_ms"] == percentiles["read_ms"]
    paths = write(run, tmp_path, only=["overview", "percentiles"])
    scripts = [path.read_text() for path in paths]
    assert all("title 'range reads" in script for script in scripts)
    # The lines of nodes are those of the columns with their names.
    names = list(overview)
    for number, node in enumerate(run.nodes, 1):
        heading = f"{number} {node} reads_per_s"
        assert f"column({names.index(heading) + 1})" in scripts[0], heading
    for word in ("range_read", "cas_write"):
        assert not [name for name in (*files(SMALL, "overview"), *files(SMALL, "percentiles")) if word in name]


def test_a_node_named_like_a_column_does_not_replace_it() -> None:
    run = synthetic(["time", "reads_per_s", "cluster "], 4)
    assert files(run, "overview")["reads_per_s"] == plot_data.series(run, CLUSTER, "reads_per_s")


def test_many_nodes_are_drawn_as_a_band_around_their_median() -> None:
    columns = files(MANY, "nodes")
    reads = sorted(plot_data.present([plot_data.series(MANY, node, "reads_per_s")[0] for node in MANY.nodes]))
    assert columns["reads_per_s_min"][0] == reads[0]
    assert columns["reads_per_s_max"][0] == reads[-1]
    assert columns["reads_per_s_median"][0] == (reads[6] + reads[7]) / 2


def test_heat_map_cells_have_the_bounds_and_counts_of_the_buckets() -> None:
    cells = files(SMALL, "heatmap_read")
    merged = merge([buckets for buckets in SMALL.buckets["read"] if buckets])
    assert sum(plot_data.present(cells["count"])) == merged.total
    upper_bounds = {round(1000 * bound, 9) for bound in merged.upper_bounds}
    assert {round(bound, 9) for bound in plot_data.present(cells["high_ms"])} <= upper_bounds
    assert all(
        end - begin == 1
        for begin, end in zip(*(plot_data.present(cells[name]) for name in ("time", "end")), strict=True)
    )


def test_buckets_with_bounds_beyond_a_logarithmic_axis_are_drawn_at_its_ends() -> None:
    buckets = Buckets((1e-3, 2e-3, inf), (1, 0, 2))
    cells = files(PlotData("r", 1.0, [1.0], {CLUSTER: [None]}, {"read": [buckets]}), "heatmap_read")
    assert list(zip(plot_data.present(cells["low_ms"]), plot_data.present(cells["high_ms"]), strict=True)) == [
        (pytest.approx(1 / 1.2), 1.0),
        (2.0, pytest.approx(2.4)),
    ]


def test_cells_narrower_than_a_pixel_are_merged_without_loss() -> None:
    run = synthetic(["a"], 30, missing=range(0), values=3)
    times = [run.times[0] + index for index in range(3000)]
    long = PlotData("r", 1.0, times, {CLUSTER: [None] * 3000}, {"read": list(run.buckets["read"]) * 100})
    cells = files(long, "heatmap_read")
    assert len(set(cells["time"])) < 800
    assert sum(plot_data.present(cells["count"])) == 3000 * 3


def test_percentiles_exclude_the_warm_up() -> None:
    run = synthetic(["a"], 100, missing=range(0))
    counted = merge([buckets for buckets in run.buckets["read"][60:] if buckets])
    columns = files(run, "percentiles")
    at = dict(zip(columns["percentile"], columns["read_ms"], strict=True))
    assert at[99.0] == pytest.approx(1000 * (quantile(counted, 0.99) or 0))
    assert max(plot_data.present(columns["percentile"])) == pytest.approx(100 * (1 - 1 / counted.total))
    assert max(plot_data.present(columns["read_ms"])) <= 1000 * (highest(counted) or 0)
    assert log10(counted.total) > 3


def test_percentiles_of_many_operations_stay_distinct_in_the_data_file(tmp_path: Path) -> None:
    buckets = Buckets((1.0, 2.0, inf), (0, 10**9, 0))
    run = PlotData("r", 1.0, [1.0], {CLUSTER: [None]}, {"read": [buckets]})
    write(run, tmp_path, only=["percentiles"])
    header, *rows = [line.split("\t") for line in (tmp_path / "percentiles.tsv").read_text().splitlines()]
    percentiles = [float(row[header.index("percentile")]) for row in rows]
    assert percentiles == sorted(set(percentiles))
    assert -log10(1 - percentiles[-1] / 100) == pytest.approx(9, abs=0.001)


def test_percentiles_exclude_an_interval_that_overlaps_the_warm_up() -> None:
    slow, fast = Buckets((1.0, 2.0, inf), (0, 8, 0)), Buckets((1.0, 2.0, inf), (8, 0, 0))
    run = PlotData(
        "r",
        1.0,
        [1.0, 2.0, 3.0],
        {CLUSTER: [None] * 3},
        {"read": [slow, slow, fast]},
        phases=[Phase(0.0, 1.5, "w", True)],
    )
    assert max(plot_data.present(files(run, "percentiles")["read_ms"])) <= 1000


def test_points_in_the_warm_up_or_with_missing_nodes_have_their_own_states() -> None:
    run = synthetic(seconds=90, missing=range(70, 80))
    columns = files(run, "throughput_latency")
    assert columns["state"] == [1.0] * 60 + [0.0] * 10 + [2.0] * 10 + [0.0] * 10
    reads, writes = (plot_data.series(run, CLUSTER, f"{word}s_per_s") for word in ("read", "write"))
    assert columns["operations_per_s"][0] == (reads[0] or 0) + (writes[0] or 0)


def test_identical_points_of_long_runs_are_drawn_once() -> None:
    row = {"operations_per_s": 5.0, "read_p95_ms": 1.0, "read_p99_ms": 2.0}
    run = PlotData("r", 1.0, [float(index) for index in range(5000)], {CLUSTER: [row] * 5000})
    assert files(run, "throughput_latency")["operations_per_s"] == [5.0]


def test_long_runs_are_thinned() -> None:
    row = {"reads_per_s": 5.0, "cpu_user_pct": 10.0}
    run = PlotData("r", 1.0, [float(index) for index in range(20000)], {CLUSTER: [row] * 20000})
    assert len(files(run, "overview")["time"]) <= 2402
