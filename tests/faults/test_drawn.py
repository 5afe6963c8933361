"""Plots drawn by gnuplot: no errors, no lines across gaps, and no injection through names."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import pytest

from collector.model.histogram import Buckets
from exporters.charts.all_plots import PLOTS, write
from exporters.charts.gnuplot_page import draw
from exporters.charts.plot_data import CLUSTER, PlotData
from tests.exporters.charts.runs import synthetic

SMALL = synthetic(seconds=12, missing=range(4, 8), values=5)
GNUPLOT = which("gnuplot") or "gnuplot"
PNG = b"\x89PNG\r\n"


def with_values(run: PlotData, value: float | str | None) -> PlotData:
    """Return the run with this value in every cell."""
    rows = {
        name: [None if row is None else dict.fromkeys(row, value) for row in rows] for name, rows in run.rows.items()
    }
    return replace(run, rows=rows)


def without(run: PlotData, *columns: str) -> PlotData:
    rows = {
        name: [None if row is None else {k: v for k, v in row.items() if k not in columns} for row in rows]
        for name, rows in run.rows.items()
    }
    return replace(run, rows=rows)


def with_buckets(run: PlotData, buckets: Buckets) -> PlotData:
    return replace(run, buckets={word: [buckets] * len(run.times) for word in ("read", "write")})


ODD: Mapping[str, PlotData] = {
    "an empty run": PlotData("", 1.0, [], {}),
    "one row of one node": synthetic(["a"], 1),
    "no row known": replace(SMALL, rows={name: [None] * 12 for name in SMALL.rows}, buckets={}),
    "only zeros": with_buckets(with_values(SMALL, 0.0), Buckets((1e-6, inf), (0, 0))),
    "negative values": with_buckets(with_values(SMALL, -3.0), Buckets((1e-6, inf), (0, 5))),
    "huge values": with_buckets(with_values(SMALL, 1e300), Buckets((0.0, 1e-6, inf), (1e18, 0.25, 0))),
    "missing columns": without(SMALL, "cpu_nice_pct", "reads_per_s", "gc_pct", "write_p99_ms"),
    "every third row": replace(
        SMALL, rows={name: [row if i % 3 == 0 else None for i, row in enumerate(r)] for name, r in SMALL.rows.items()}
    ),
    "many nodes": synthetic([f"fe80::1234:5678:9abc:{index:x}" for index in range(300)], 3, values=1),
}


def assert_drawn(run: PlotData, folder: Path) -> None:
    """Draw all plots and assert that gnuplot prints nothing."""
    for script in write(run, folder):
        result = subprocess.run([GNUPLOT, "-d", script.name], cwd=folder, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr, result.stdout) == (0, "", "")
        assert script.with_suffix(".png").read_bytes().startswith(PNG)
        ElementTree.parse(script.with_suffix(".svg"))  # noqa: S314


@pytest.mark.parametrize("name", ODD)
def test_unusual_runs_are_drawn_without_messages(name: str, tmp_path: Path) -> None:
    assert_drawn(ODD[name], tmp_path)


def test_draw_returns_the_paths_of_all_plots(tmp_path: Path) -> None:
    paths = draw(write(SMALL, tmp_path, size=(1600, 1200), theme="dark"))
    assert paths == [tmp_path / f"{plot.name}.{kind}" for plot in PLOTS for kind in ("png", "svg")]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert 'width="1600" height="1200"' in (tmp_path / "overview.svg").read_text()


def test_plots_without_data_are_labelled(tmp_path: Path) -> None:
    draw(write(ODD["no row known"], tmp_path))
    words = (tmp_path / "overview.svg").read_text()
    assert words.count("no data") == 7


def test_names_and_texts_are_not_interpreted(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    bad = (
        f"x'); alert(1)// \"q\" ''`touch {proof}` \\ $(touch {proof}) @m {{/Bold b}}"
        " <script>alert(2)</script> & %s #\n\r\0\x1b[31m\ud800 \u65e5\u672c '''end\\"
    )
    names = {name: name if name == CLUSTER else f"{bad}{index}" for index, name in enumerate(SMALL.rows)}
    run = replace(
        SMALL,
        name=bad,
        rows={names[name]: rows for name, rows in SMALL.rows.items()},
        marks=[replace(mark, node=bad, kind=bad, text=bad) for mark in SMALL.marks],
        phases=[replace(phase, name=bad) for phase in SMALL.phases],
        footer=[bad] * 3,
    )
    folder = tmp_path / "plots"
    assert_drawn(run, folder)
    assert not proof.exists()
    assert all(len(path.suffixes) == 1 for path in folder.iterdir())
    for path in folder.glob("*.svg"):
        elements = list(ElementTree.parse(path).iter())  # noqa: S314
        scripts = [element.text or "" for element in elements if element.tag.endswith("script")]
        assert not any("alert" in script for script in scripts)
        shown = [value for element in elements for _, value in element.attrib.items() if "alert" in value]
        assert all(re.fullmatch(r"gnuplot_svg\.showHypertext\(evt,'[^'\"]*'\)", value) for value in shown)


def segments(path: Path) -> int:
    """Return the number of unconnected segments in the line that shows the cluster's reads."""
    after = path.read_text().partition("<text>reads, sum</text>")[2]
    _sample, line, *_ = re.findall(r"<path stroke='[^']*'\s+d='([^']*)'", after)
    return str(line).count("M")


def test_no_line_is_drawn_across_a_gap(tmp_path: Path) -> None:
    rows = {name: [None if i in (4, 5, 8) else row for i, row in enumerate(r)] for name, r in SMALL.rows.items()}
    complete, interrupted = tmp_path / "complete", tmp_path / "interrupted"
    draw(write(synthetic(seconds=12, missing=range(0)), complete, only=["overview"]))
    draw(write(replace(SMALL, rows=rows), interrupted, only=["overview"]))
    assert segments(complete / "overview.svg") == 1
    assert segments(interrupted / "overview.svg") == 3
