"""Plots of several runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.model.histogram import Buckets
from exporters.charts.all_plots import OVERLAYS, write
from exporters.charts.gnuplot_page import Page, draw
from exporters.charts.gnuplot_panel import MAX_RUNS, style_of
from exporters.charts.merged_plot_data import PhaseClient, PhaseRows, aligned, bucket_key, phase_client
from exporters.charts.overlay.overlaid_lines import shown_kinds
from exporters.charts.plot_data import CLUSTER, PlotData, Row, missing
from exporters.charts.plot_style import THEMES
from tests.exporters import golden

BOUNDS = (0.001, 0.002, 0.004)
MS_NS = 1_000_000
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


def client(
    length_s: int, *, response_ms: int | None = None, service_ms: int | None = None, idle: Sequence[int] = ()
) -> PhaseClient:
    """Return a phase in which a client completes 100 operations per second with these latencies, none if `idle`."""

    def interval(second: int) -> ClientInterval:
        completed = 0 if second in idle else 100
        response, service = (
            None if value_ms is None or not completed else Latency({value_ms * MS_NS: 99, 2 * value_ms * MS_NS: 1})
            for value_ms in (response_ms, service_ms)
        )
        return ClientInterval(1000.0 + second, 1001.0 + second, completed, {}, response, service)

    operation = Operation("get", tuple(map(interval, range(length_s))))
    return phase_client([ClientResult("csv", "tool", "file", (operation,))], 1000.0, 1000.0 + length_s, 1.0)


def with_client(run: tuple[str, list[PhaseRows]], *clients: PhaseClient) -> tuple[str, list[PhaseRows]]:
    name, phases = run
    return name, [replace(phase, client=client) for phase, client in zip(phases, clients, strict=True)]


CLIENTS = aligned(
    dict(
        [
            with_client(run_of("both", 2, 6), client(2, service_ms=3), client(6, response_ms=5, service_ms=3)),
            with_client(run_of("closed", 3, 4), client(3, service_ms=2), client(4, service_ms=2, idle=[1])),
            run_of("servers only", 3, 4),
        ]
    ),
    1.0,
    ["first: 3 nodes", "second"],
)
NAMES = [plot.name for plot in OVERLAYS]


@pytest.mark.parametrize("name", NAMES)
def test_scripts_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(SMALL, tmp_path, plots=OVERLAYS, only=[name])
    golden.check(f"gnuplot.{name}.gp", path.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_plots_with_client_results_match_their_golden_files(name: str, tmp_path: Path) -> None:
    (path,) = write(CLIENTS, tmp_path, plots=OVERLAYS, only=[name])
    golden.check(f"gnuplot.{name}.clients.gp", path.read_text())
    files = sorted(tmp_path.glob("*.client*.tsv"))
    assert [file.name for file in files] == {
        "runs": ["runs.client1.tsv", "runs.client2.tsv"],
        "runs_percentiles": ["runs_percentiles.client.tsv"],
    }[name]
    for file in files:
        golden.check(f"gnuplot.{file.name}", file.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_gnuplot_draws_client_results(name: str, tmp_path: Path) -> None:
    pictures = draw(write(CLIENTS, tmp_path, plots=OVERLAYS, only=[name]))
    assert all(picture.stat().st_size > 5000 for picture in pictures)
    svg = (tmp_path / f"{name}.svg").read_text()
    # Panels of service times: the mean and the p99 of `runs`, and the percentiles.
    assert svg.count("coordinated omission") == {"runs": 2, "runs_percentiles": 1}[name]


def test_the_clients_are_aligned_like_the_servers() -> None:
    assert set(CLIENTS.clients) == {"both", "closed"}
    both, closed = CLIENTS.clients.values()
    assert list(both.times) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    # The warm-up of the first run ends at 2 s, and its next phase begins at 3 s; both values are unknown between them.
    assert list(both.ops_per_s) == [100.0, 100.0, None, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]
    assert list(closed.times) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_an_interval_without_operations_has_no_latency() -> None:
    closed = CLIENTS.clients["closed"]
    assert list(closed.ops_per_s) == [100.0, 100.0, 100.0, 100.0, 0.0, 100.0, 100.0]
    assert closed.p99_ms == {"service": [2.0, 2.0, 2.0, 2.0, None, 2.0, 2.0]}
    assert closed.mean_ms == {"service": [pytest.approx(2.02)] * 4 + [None] + [pytest.approx(2.02)] * 2}


def test_a_mean_has_a_panel_only_if_it_is_known(tmp_path: Path) -> None:
    stated = ClientInterval(1000.0, 1001.0, 10, service=Latency(stated_s={99.0: 0.004}))
    operation = Operation("get", (stated,))
    known = phase_client([ClientResult("csv", "tool", "file", (operation,))], 1000.0, 1001.0, 1.0)
    phases = [phase("main", 1, 200.0)]
    run = aligned(dict([with_client((name, phases), known) for name in "ab"]), 1.0, [])
    write(run, tmp_path, plots=OVERLAYS, only=["runs"])
    headings = (tmp_path / "runs.client1.tsv").read_text().splitlines()[0]
    assert headings.split("\t") == ["time", "1 a client_ops_per_s", "1 a client_service_p99_ms"]
    assert "client mean" not in (tmp_path / "runs.gp").read_text()


def test_the_clients_percentiles_cover_the_measured_phases() -> None:
    both, closed = (client.distributions for client in CLIENTS.clients.values())
    # The warm-up has no response times.
    assert {kind: latency.counts for kind, latency in both.items()} == {
        "response": {5 * MS_NS: 594, 10 * MS_NS: 6},
        "service": {3 * MS_NS: 594, 6 * MS_NS: 6},
    }
    assert {kind: sum(latency.counts.values()) for kind, latency in closed.items()} == {"service": 300}


def test_service_times_are_shown_if_a_run_has_no_response_times() -> None:
    both, response, service = ("response", "service"), ("response",), ("service",)
    assert shown_kinds([]) == shown_kinds([()]) == []
    assert shown_kinds([both, response, ()]) == ["response"]
    assert shown_kinds([service, ()]) == ["service"]
    assert shown_kinds([both, service]) == ["response", "service"]


@pytest.mark.parametrize("name", NAMES)
def test_client_results_outside_the_phases_change_nothing(name: str, tmp_path: Path) -> None:
    phases = [run_of(label, 2, 6) for label in "ab"]
    empty = [with_client(run, PhaseClient(), PhaseClient()) for run in phases]
    for folder, runs in (("without", phases), ("empty", empty)):
        write(aligned(dict(runs), 1.0, []), tmp_path / folder, plots=OVERLAYS, only=[name])
    assert {path.name: path.read_bytes() for path in (tmp_path / "without").iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "empty").iterdir()
    }


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
    run: PlotData = aligned({"a": [phase("main", 200_000, 1.0, interval_s=1000.0)]}, 1000.0, [])
    (path,) = write(run, tmp_path, plots=OVERLAYS, only=["runs"])
    assert "set xtics time format '%tH:%M'" in path.read_text()


def test_operations_that_occur_in_one_of_the_runs_have_panels(tmp_path: Path) -> None:
    def with_range_reads(phases: list[PhaseRows]) -> list[PhaseRows]:
        more = {"range_reads_per_s": 5.0, "range_read_p99_ms": 2.5}
        return [
            replace(
                phase,
                rows={number: {**row, **more} for number, row in phase.rows.items()},
                buckets={**phase.buckets, "range_read": phase.buckets["read"]},
            )
            for phase in phases
        ]

    first, second = dict([run_of("a", 2, 6)]), dict([run_of("b", 2, 6)])
    run = aligned({**first, "b": with_range_reads(second["b"])}, 1.0, [])
    for name, label in (("runs", "range reads p99, ms"), ("runs_percentiles", "range read latency, ms")):
        scripts = {
            is_with: write(shown, tmp_path / str(is_with), only=[name], plots=OVERLAYS)[0].read_text()
            for is_with, shown in ((True, run), (False, SMALL))
        }
        assert [label in script for script in scripts.values()] == [True, False]
