"""Latency against a parameter: the lines are those of the throughput, and unknown percentiles leave gaps."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from exporters.charts.all_plots import write
from exporters.charts.experiment_plots import sweep_plots
from exporters.charts.gnuplot_page import draw
from exporters.charts.gnuplot_panel import MAX_RUNS
from exporters.charts.plot_data import PlotData
from exporters.results.sweep.sweep_rows import CLIENT, SweepRow, SweepTable

RUN = PlotData("sweep", 1.0, (), {})
PANELS = ("p50", "p95")
Percentiles = tuple[float | None, float | None]


def table(lines: Mapping[str, Sequence[Percentiles]]) -> SweepTable:
    """Return a sweep over `clients` and `level`: the p50 and p95 with 1, 2 and more clients, keyed by level."""
    rows = (
        SweepRow({"clients": str(clients), "level": level}, ops_per_s=100.0 * clients, p50_ms=p50_ms, p95_ms=p95_ms)
        for level, percentiles in lines.items()
        for clients, (p50_ms, p95_ms) in enumerate(percentiles, 1)
    )
    return SweepTable("sweep", ("clients", "level"), 1, CLIENT, "response", tuple(rows))


def script(folder: Path, of: SweepTable, name: str = "latency_clients") -> str:
    """Draw a plot with gnuplot and return its script."""
    (path,) = write(RUN, folder, plots=sweep_plots(of), only=[name])
    assert all(image.stat().st_size > 1000 for image in draw([path]))
    return path.read_text()


def panels(text: str) -> Sequence[str]:
    """Return the commands of the panels of p50 and p95."""
    return [part.split("\n", 1)[1] for part in re.split(r"(?m)^# (?=p50\.|p95\.)", text)[1:]]


def styles(text: str) -> dict[str, str]:
    """Return the style of each line, keyed by its title."""
    return {title: style for style, title in re.findall(r"with linespoints (.*) title '(.*?)'", text)}


def test_a_combination_has_the_same_style_in_each_plot_against_the_parameter(tmp_path: Path) -> None:
    levels = [f"L{number}" for number in range(MAX_RUNS + 2)]
    many = table({level: [(1, 2), (3, 4)] for level in levels})
    expected = styles(script(tmp_path, many, "throughput_clients"))
    latency = script(tmp_path, many)
    assert [styles(panel) for panel in panels(latency)] == [expected] * len(PANELS)
    assert len(set(expected.values())) == MAX_RUNS
    assert f"lines: level, the {MAX_RUNS} with the highest throughput" in latency


def test_a_combination_without_percentiles_is_left_out_and_the_others_keep_their_styles(tmp_path: Path) -> None:
    partial = table({"ONE": [(None, None)] * 2, "TWO": [(1, 2), (3, 4)], "ALL": [(1, None), (2, None)]})
    expected = styles(script(tmp_path, partial, "throughput_clients"))
    del expected["ONE"]
    assert [styles(panel) for panel in panels(script(tmp_path, partial))] == [expected] * len(PANELS)


def test_unknown_percentiles_leave_gaps_in_their_columns(tmp_path: Path) -> None:
    of = table({"ONE": [(1, 5), (None, 6), (3, None)], "ALL": [(7, 20), (8, 30)]})
    script(tmp_path, of)
    with (tmp_path / "latency_clients.tsv").open(newline="") as file:
        columns = list(zip(*csv.reader(file, delimiter="\t"), strict=True))
    assert columns == [
        ("clients", "1", "2", "3"),
        ("1 ONE p50_ms", "1", "NaN", "3"),
        ("1 ONE p95_ms", "5", "6", "NaN"),
        ("2 ALL p50_ms", "7", "8", "NaN"),
        ("2 ALL p95_ms", "20", "30", "NaN"),
    ]


def test_each_panel_draws_the_columns_of_its_percentile_on_the_same_axis(tmp_path: Path) -> None:
    parts = panels(script(tmp_path, table({"ONE": [(1, 5), (2, 6)], "ALL": [(7, 20), (8, 30)]})))
    assert [re.findall(r"using 1:(\d+)", part) for part in parts] == [["2", "4"], ["3", "5"]]
    assert [re.findall(r"set yrange .*|set logscale y", part) for part in parts] == [
        ["set yrange [1:50]", "set logscale y"]
    ] * len(PANELS)


@pytest.mark.parametrize(
    ("percentiles", "drawn"),
    [
        ([(1, 2), (3, 4)], [True, True]),
        ([(1, None), (3, None)], [True, False]),
        ([(None, 2), (None, 4)], [False, True]),
        ([(0, 2), (None, 4)], [False, True]),
        ([(None, None)] * 2, [False, False]),
    ],
)
def test_a_panel_without_values_says_so_and_the_other_one_has_the_legend(
    percentiles: Sequence[Percentiles], drawn: Sequence[bool], tmp_path: Path
) -> None:
    text = script(tmp_path, table({"ONE": percentiles, "ALL": percentiles}))
    assert ["no data" not in panel for panel in panels(text)] == drawn
    assert text.count("set key at") == any(drawn)
    assert all(is_drawn for panel, is_drawn in zip(panels(text), drawn, strict=True) if "set key at" in panel)
    assert ("measured by the clients (latency: response time)" in text) == any(drawn)


def test_a_single_line_has_no_legend(tmp_path: Path) -> None:
    rows = tuple(SweepRow({"clients": str(n)}, ops_per_s=n, p50_ms=n, p95_ms=2.0 * n) for n in (1, 2))
    text = script(tmp_path, SweepTable("sweep", ("clients",), 1, CLIENT, "response", rows))
    assert "set key at" not in text
    assert text.count("with linespoints") == len(PANELS)
