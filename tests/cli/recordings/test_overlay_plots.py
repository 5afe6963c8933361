"""`casstat plot` overlays several runs."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from collector.load_results import result_file
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import write_run
from tests.cli.recordings.conftest import Run as RunCasstat
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.every import every
from tests.faults.program import is_clean

DAY_S = 86400.0
MS_NS = 1_000_000


UNDRAWN = pytest.mark.usefixtures("undrawn")


def recorded(
    folder: Path,
    phases: Sequence[tuple[str, int]],
    reads: int,
    begin_s: float = BEGIN_S,
    *,
    has_ended: bool = True,
    tick_s: int = 1,
) -> Path:
    """Record a run of two nodes with `reads` reads per tick each; each phase has a name and a length in seconds."""
    length_s = sum(seconds for _, seconds in phases)
    names = ("a", "b")
    for name in names:
        number = length_s // tick_s + 2
        ticks = busy(name, number, lambda _: (500,) * reads, begin_s=begin_s - tick_s, interval_s=tick_s)
        record(folder / "nodes" / name, ticks)
    parts, end_s = [], begin_s
    for name, seconds in phases:
        parts.append(RunPhase(name, end_s, end_s + seconds, measured=name != "warm-up"))
        end_s += seconds
    nodes = tuple(RunNode(name, name, f"nodes/{name}", interval_s=1.0) for name in names)
    write_run(folder, Run(folder.name, begin_s, end_s if has_ended else None, "1", nodes=nodes, phases=tuple(parts)))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> None:
    """Two runs, recorded on different days; their warm-ups and main phases differ in length."""
    recorded(tmp_path / "r1", [("warm-up", 5), ("main", 10)], 10)
    recorded(tmp_path / "r2", [("warm-up", 3), ("main", 12), ("peak", 5)], 20, BEGIN_S + DAY_S)


def columns(path: str) -> dict[str, list[str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    return {name: list(values) for name, *values in zip(*rows, strict=True)}


def test_runs_are_aligned_by_phase(runs: None, run: RunCasstat) -> None:
    code, out, errors = run("plot", "r1", "r2", "-o", "out")
    assert (code, errors) == (0, "casstat: phase 'peak' is not shown, because not all runs have it\n")
    assert [Path(path).name for path in out.split()] == [
        *("runs.png", "runs.svg", "runs_percentiles.png", "runs_percentiles.svg")
    ]
    assert all(Path(path).stat().st_size > 5000 for path in out.split())
    data = columns("out/runs.tsv")
    assert data["time"] == [str(second) for second in range(1, 18)]
    # The warm-up lasts 5 s and the main phase 12 s, as in the run in which it is longest.
    assert data["1 r1 reads_per_s"] == ["20"] * 15 + ["NaN"] * 2
    assert data["2 r2 reads_per_s"] == ["40"] * 3 + ["NaN"] * 2 + ["40"] * 12


@UNDRAWN
def test_one_phase_is_shown(runs: None, run: RunCasstat) -> None:
    code, _, errors = run("plot", "r1", "r2", "-o", "out", "--phase", "main", "--only", "runs")
    assert (code, errors) == (0, "")
    assert columns("out/runs.tsv")["1 r1 reads_per_s"] == ["20"] * 10 + ["NaN"] * 2


@UNDRAWN
def test_the_interval_limits_the_number_of_points(tmp_path: Path, run: RunCasstat) -> None:
    for name in ("long1", "long2"):
        # Most ticks were missed, because reading them takes long.
        recorded(tmp_path / name, [("main", 700)], 10, tick_s=5)
    code, _, errors = run("plot", "long1", "long2", "-o", "out", "--only", "runs")
    assert (code, errors) == (0, "")
    assert len(columns("out/runs.tsv")["time"]) == 140


@UNDRAWN
def test_runs_with_the_same_name_have_different_labels(tmp_path: Path, run: RunCasstat) -> None:
    for folder in ("x/run", "y/run"):
        recorded(tmp_path / folder, [("main", 5)], 10)
    assert run("plot", "x/run", "y/run", "-o", "out", "--only", "runs")[0] == 0
    assert {"1 x/run reads_per_s", "2 y/run reads_per_s"} < columns("out/runs.tsv").keys()


def add_result(folder: Path, name: str, begin_s: float, completed: Sequence[int], latency_ms: int = 2) -> None:
    """Add a client result with an interval per second; each operation takes `latency_ms` of service time."""
    intervals = tuple(
        ClientInterval(begin_s + second, begin_s + second + 1, count, service=Latency({latency_ms * MS_NS: count}))
        if count
        else ClientInterval(begin_s + second, begin_s + second + 1, 0)
        for second, count in enumerate(completed)
    )
    path = folder / result_file.FOLDER / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    result_file.write_result(path, ClientResult("csv", "csv", name, (Operation("get", intervals),)))


def test_client_results_are_aligned_like_the_servers_rows(tmp_path: Path, runs: None, run: RunCasstat) -> None:
    # Two client hosts in the warm-up, and a file per step in the main phase.
    add_result(tmp_path / "r2", "a", BEGIN_S + DAY_S, [10, 10, 10])
    add_result(tmp_path / "r2", "b", BEGIN_S + DAY_S, [5, 5, 5])
    add_result(tmp_path / "r2", "step1", BEGIN_S + DAY_S + 3, [20, 0, 20])
    add_result(tmp_path / "r2", "step2", BEGIN_S + DAY_S + 10, [30, 30, 30, 30, 30, 30])
    code, out, errors = run("plot", "r1", "r2", "-o", "out")
    assert (code, errors) == (0, "casstat: phase 'peak' is not shown, because not all runs have it\n")
    assert len(out.split()) == 4
    assert not Path("out/runs.client1.tsv").exists()
    data = columns("out/runs.client2.tsv")
    # The main phase begins at 5 s. Nothing is known for 4 s after the first step; the last second is in the next phase.
    assert data["time"] == [*("1", "2", "3", "5"), *("6", "7", "8", "12"), *("13", "14", "15", "16", "17")]
    assert data["2 r2 client_ops_per_s"] == [*["15"] * 3, "NaN", "20", "0", "20", "NaN", *["30"] * 5]
    assert data["2 r2 client_service_p99_ms"] == [*["2"] * 3, "NaN", "2", "NaN", "2", "NaN", *["2"] * 5]
    assert data["2 r2 client_service_mean_ms"] == data["2 r2 client_service_p99_ms"]
    percentiles = columns("out/runs_percentiles.client.tsv")
    assert set(percentiles["2 r2 client_service_ms"]) == {"2"}
    assert set(percentiles["1 r1 client_service_ms"]) == {"NaN"}


@UNDRAWN
def test_the_interval_is_the_step_of_the_clients(tmp_path: Path, run: RunCasstat) -> None:
    for name in ("r1", "r2"):
        recorded(tmp_path / name, [("main", 10)], 10)
    # Two client hosts: the second is slower, and completes fewer operations.
    add_result(tmp_path / "r2", "a", BEGIN_S, [30, 40, 30, 50, 0, *[20] * 5], latency_ms=1)
    add_result(tmp_path / "r2", "b", BEGIN_S, [10, 10, 10, 10, 10, *[0] * 5], latency_ms=7)
    for interval_s in ("1", "5"):
        assert run("plot", "r1", "r2", "-o", f"out{interval_s}", "-i", interval_s, "--only", "runs")[0] == 0
    assert columns("out1/runs.client2.tsv")["time"] == [str(second) for second in range(1, 11)]
    data = columns("out5/runs.client2.tsv")
    assert data["time"] == columns("out5/runs.tsv")["time"] == ["5", "10"]
    assert data["2 r2 client_ops_per_s"] == ["40", "20"]
    # In the first 5 s, 150 operations take 1 ms and 50 take 7 ms.
    assert data["2 r2 client_service_mean_ms"] == ["2.5", "1"]
    assert data["2 r2 client_service_p99_ms"] == ["7", "1"]


@UNDRAWN
def test_runs_without_client_results_have_the_same_plots_as_before(runs: None, run: RunCasstat) -> None:
    assert run("plot", "r1", "r2", "-o", "out")[0] == 0
    assert sorted(path.name for path in Path("out").glob("*.tsv")) == ["runs.tsv", "runs_percentiles.tsv"]
    assert "client" not in Path("out/runs.gp").read_text() + Path("out/runs_percentiles.gp").read_text()


def test_a_malformed_client_result_is_named(tmp_path: Path, runs: None, run: RunCasstat) -> None:
    (tmp_path / "r1" / "clients").mkdir()
    (tmp_path / "r1" / "clients" / "x.json").write_text("{")
    code, out, errors = run("plot", "r1", "r2", "-o", "out")
    assert (code, out) == (1, "")
    assert "r1/clients/x.json: not JSON" in errors
    assert is_clean(errors)


@every(
    "arguments, code, message",
    [
        (["--from", "10:00"], 2, "--from cannot be combined with several runs (hint: use --phase)"),
        (["--until", "10:00"], 2, "--until cannot be combined with several runs"),
        (["--clock", "a=1"], 2, "--clock cannot be combined with several runs"),
        (["--warm-up", "5s"], 2, "--warm-up cannot be combined with several runs"),
        (["--phase", "peak"], 2, "not all runs have a phase 'peak' (phases of all runs: warm-up, main)"),
        (["--interval", "0.5"], 2, "shorter than the interval of r1's recording, 1 s"),
        (["--only", "overview"], 2, "unknown plot 'overview' (hint: choose from runs, runs_percentiles)"),
        (["--nodes", "zz"], 1, "no recording matches --nodes"),
        (["empty"], 1, "the runs have no phase in common (hint: see 'casstat runs show DIR')"),
        (["open"], 1, "open: the run has not ended (hint: run 'casstat fetch --recover open')"),
        (["r1/nodes/a"], 2, "cannot be combined with other recordings"),
    ],
)
def test_errors(tmp_path: Path, runs: None, run: RunCasstat, arguments: list[str], code: int, message: str) -> None:
    recorded(tmp_path / "empty", [("other", 5)], 10)
    recorded(tmp_path / "open", [("main", 5)], 10, has_ended=False)
    exit_code, out, errors = run("plot", "r1", "r2", *arguments, "-o", "out")
    assert (exit_code, out) == (code, "")
    assert message in errors
    assert code == 2 or is_clean(errors)
    assert not list(tmp_path.glob("out/*"))
