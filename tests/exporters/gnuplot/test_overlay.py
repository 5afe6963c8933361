"""Plots of several runs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets
from exporters.gnuplot.all_plots import OVERLAYS, write
from exporters.gnuplot.missing_nodes import missing
from exporters.gnuplot.overlay.aligned_runs import PhaseRows, aligned, bucket_key
from exporters.gnuplot.overlay.run_styles import MAX_RUNS, style_of
from exporters.gnuplot.plot_colours import THEMES
from exporters.gnuplot.plot_data import CLUSTER, Row, Run
from exporters.gnuplot.plot_page import Page
from tests.exporters import golden

BOUNDS = (0.001, 0.002, 0.004)
LENGTHS = st.lists(st.floats(0.5, 20.0), min_size=2, max_size=2)


def phase(name: str, length_s: float, rate: float, *, is_measured: bool = True, interval_s: float = 1.0) -> PhaseRows:
    """Return a phase with a row per complete interval; each interval has one read in the bucket below 2 ms."""
    rows: dict[int, Row] = {
        number: {"reads_per_s": rate + number, "read_p99_ms": 1.5, "cpu_busy_pct": 50.0}
        for number in range(int(length_s / interval_s))
    }
    buckets = {"read": {number: Buckets(BOUNDS, (0, 1, 0)) for number in rows}}
    return PhaseRows(name, length_s, is_measured, rows, buckets)


def run_of(name: str, warm_up_s: float, main_s: float) -> tuple[str, list[PhaseRows]]:
    return name, [phase("warm-up", warm_up_s, 100.0, is_measured=False), phase("main", main_s, 200.0)]


SMALL = aligned(dict([run_of('fast\'s "1"', 2, 6), run_of(CLUSTER, 3, 4)]), 1.0, ["first: 3 nodes", "second"])
NAMES = [plot.name for plot in OVERLAYS]


@pytest.mark.parametrize("name", NAMES)
def test_scripts_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(SMALL, tmp_path, plots=OVERLAYS, only=[name])
    golden.check(f"gnuplot.{name}.gp", path.read_text())


def test_a_phase_begins_at_the_same_time_in_all_runs() -> None:
    assert [(part.begin_s, part.end_s, part.name, part.warm_up) for part in SMALL.phases] == [
        (0.0, 3.0, "warm-up", True),
        (3.0, 9.0, "main", False),
    ]
    reads = {name: [row and row["reads_per_s"] for row in rows] for name, rows in SMALL.rows.items()}
    assert reads['fast\'s "1"'] == [100, 101, None, 200, 201, 202, 203, 204, 205]
    assert reads[CLUSTER] == [100, 101, 102, 200, 201, 202, 203, None, None]


@given(st.lists(LENGTHS, min_size=1, max_size=4), st.sampled_from([0.1, 0.5, 1.0, 7.0]))
def test_no_row_is_lost_or_moved_within_its_phase(lengths: list[list[float]], interval_s: float) -> None:
    runs = {
        str(index): [
            phase(name, length_s, 0.0, interval_s=interval_s) for name, length_s in zip("ab", of_run, strict=True)
        ]
        for index, of_run in enumerate(lengths)
    }
    result = aligned(runs, interval_s, [])
    assert result.times == sorted(result.times)
    for name, phases in runs.items():
        assert len(result.rows[name]) == len(result.times) == len(result.buckets[bucket_key("read", name)])
        for own, shown in zip(phases, result.phases, strict=True):
            inside = [
                row
                for time_s, row in zip(result.times, result.rows[name], strict=True)
                if shown.begin_s + interval_s / 2 < time_s < shown.end_s + interval_s / 2 and row is not None
            ]
            assert inside == list(own.rows.values())


def test_percentiles_cover_the_measured_phases(tmp_path: Path) -> None:
    slow = PhaseRows("warm-up", 2, False, {}, {"read": {0: Buckets(BOUNDS, (0, 0, 9))}})
    run = aligned({"a": [slow, phase("main", 5, 1.0)], "b": [slow, phase("main", 5, 1.0)]}, 1.0, [])
    (percentiles,) = (plot for plot in OVERLAYS if plot.name == "runs_percentiles")
    columns = percentiles.draw(Page(run, "p", 1200, 1000, THEMES["light"], missing(run))).files[""]
    # The warm-up's reads took 2 ms to 4 ms.
    assert 1.0 < max(value for value in columns["1 a read_ms"] if value is not None) <= 2.0
    assert set(columns["2 b write_ms"]) == {None}


def test_without_data_the_plots_say_so(tmp_path: Path) -> None:
    empty = [PhaseRows("main", 5, True, {}, {})]
    for path in write(aligned({"a": empty, "b": empty}, 1.0, []), tmp_path, plots=OVERLAYS):
        assert "no data" in path.read_text()


def test_every_run_has_a_style_of_its_own() -> None:
    assert len({(style_of(index).colour, style_of(index).dash) for index in range(MAX_RUNS)}) == MAX_RUNS


def test_long_runs_are_shown_in_hours(tmp_path: Path) -> None:
    run: Run = aligned({"a": [phase("main", 200_000, 1.0, interval_s=1000.0)]}, 1000.0, [])
    (path,) = write(run, tmp_path, plots=OVERLAYS, only=["runs"])
    assert "set xtics time format '%tH:%M'" in path.read_text()
