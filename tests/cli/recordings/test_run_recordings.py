"""`replay` and `ship` read the recordings of a run's nodes, in the time range of the run or of a phase."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from cli.errors import CasstatError
from cli.recordings.plot_program import warm_up_of
from cli.recordings.recording_arguments import MergeSettings, files_by_node
from collector.runs.run import ClientHost, ClockStep, NodeClock, Run, RunNode, RunPhase
from collector.runs.run_file import read_run, write_run
from tests.cli.recordings.conftest import Run as RunCasstat
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record, timed

TICKS, OFFSET_S = 60, 100.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of the nodes `a`, whose clock is ahead, `b`, and `d`, which was unreachable; `c` is a client host."""
    folder = tmp_path / "run"
    record(folder / "nodes" / "a", timed(busy("a", TICKS), lambda _: OFFSET_S))
    record(folder / "nodes" / "b", busy("b", TICKS))
    record(folder / "client-hosts" / "c", busy("c", TICKS))
    clocks = (NodeClock(BEGIN_S, OFFSET_S, 0.001),)
    run = Run(
        "run",
        BEGIN_S + 10.0,
        BEGIN_S + 50.0,
        "1",
        nodes=(
            RunNode("a", "a", "nodes/a", clocks=clocks),
            RunNode("b", "b", "nodes/b"),
            RunNode("d", "d", problem="d: unreachable"),
        ),
        phases=(RunPhase("ramp", BEGIN_S + 20.0, BEGIN_S + 30.0),),
        client_hosts=(ClientHost("c", "", "client-hosts/c"),),
    )
    write_run(folder, run)
    return folder


def replayed(run: RunCasstat, *arguments: str) -> list[float]:
    """Return the times of the replayed rows, relative to BEGIN_S."""
    code, out, errors = run("replay", "run", *arguments, "--format", "json")
    assert (code, errors) == (0, "")
    return [json.loads(line)["time"] - BEGIN_S for line in out.splitlines()]


def test_a_run_is_replayed_within_its_limits(folder: Path, run: RunCasstat) -> None:
    # The first tick has no row, because its rates are unknown.
    assert replayed(run, "--node", "b") == [float(second) for second in range(11, 51)]
    assert replayed(run, "--node", "a") == [OFFSET_S + second for second in range(11, 51)]
    assert replayed(run, "--node", "a", "--phase", "ramp") == [OFFSET_S + second for second in range(21, 31)]
    assert replayed(run, "--node", "b", "--from", str(BEGIN_S + 47)) == [48.0, 49.0, 50.0]


@pytest.mark.parametrize("step_s", [60.0, -60.0])
@pytest.mark.parametrize("is_set_again", [False, True])
# The agent may not answer any more at the end of the run.
@pytest.mark.parametrize("measurements", [1, 2])
def test_a_run_is_replayed_completely_if_a_clock_was_set(
    folder: Path, run: RunCasstat, step_s: float, is_set_again: bool, measurements: int
) -> None:
    def offset_s(time_s: float) -> float:
        return step_s if BEGIN_S + 30 <= time_s < BEGIN_S + (40 if is_set_again else 1000) else 0.0

    rmtree(folder / "nodes/b")
    record(folder / "nodes/b", timed(busy("b", TICKS), offset_s))
    recorded = read_run(folder)
    clocks = tuple(NodeClock(at_s, offset_s(at_s), 0.001) for at_s in (BEGIN_S + 9, BEGIN_S + 51))
    clocks = clocks[:measurements]
    # Only if the recorder's clock was set as well, a change is noticed that the measurements do not show.
    steps = (ClockStep(BEGIN_S + 30, step_s), ClockStep(BEGIN_S + 40, -step_s))[
        : 2 if is_set_again else 2 - measurements
    ]
    nodes = (replace(recorded.nodes[1], clocks=clocks),)
    write_run(folder, replace(recorded, nodes=nodes, clock_steps=steps))
    expected = {second + offset_s(BEGIN_S + second) for second in range(11, 51)}
    # Rates are unknown across a change of the clock.
    assert expected - set(replayed(run)) <= {30 + step_s, 40.0}


def test_a_plot_of_a_whole_run_has_the_warm_up_of_the_run(folder: Path) -> None:
    assert warm_up_of(MergeSettings((folder,))) == 0.0
    described = read_run(folder)
    phases = (RunPhase("warm-up", BEGIN_S + 10.0, BEGIN_S + 20.0, measured=False), *described.phases)
    write_run(folder, replace(described, phases=phases))
    assert warm_up_of(MergeSettings((folder,))) == 10.0
    assert warm_up_of(MergeSettings((folder,), phase="ramp")) == 0.0
    assert warm_up_of(MergeSettings((folder,), begin=BEGIN_S + 15.0)) == 0.0
    assert warm_up_of(MergeSettings((folder.parent / "recordings",))) == 0.0


def test_only_the_recordings_of_nodes_are_read(folder: Path) -> None:
    assert set(files_by_node(folder, None, None, None)) == {folder / "nodes" / "a", folder / "nodes" / "b"}
    assert set(files_by_node(folder / "client-hosts", None, None, None)) == {folder / "client-hosts" / "c"}


def test_one_of_several_nodes_must_be_named(folder: Path, run: RunCasstat) -> None:
    for arguments, message in (
        ((), "run: contains recordings of several nodes (hint: use --node with one of a, b)"),
        (("--node", "c"), "run: no recording of 'c' (hint: choose from a, b)"),
    ):
        code, _, errors = run("replay", "run", *arguments)
        assert (code, errors) == (1, f"casstat: {message}\n")


def test_a_phase_is_one_of_a_run(folder: Path, run: RunCasstat) -> None:
    code, _, errors = run("replay", "run", "--node", "a", "--phase", "x")
    assert (code, "choose from ramp" in errors) == (2, True)
    code, _, errors = run("replay", "run/nodes/a", "--phase", "ramp")
    assert (code, "--phase requires a run directory" in errors) == (2, True)


def test_a_malformed_run_is_an_error(folder: Path) -> None:
    (folder / "run.json").write_text("{")
    with pytest.raises(CasstatError, match="not JSON"):
        files_by_node(folder, None, None, None)
