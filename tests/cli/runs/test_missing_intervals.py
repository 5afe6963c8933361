"""A run states which nodes and intervals are missing, everywhere where its figures are shown."""

import csv
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cli.experiments.capacity_steps import recorded_step
from cli.experiments.sweep_results import run_values
from cli.main import main
from cli.runs.finish import finish, summarise
from collector.model.metric import Values
from collector.model.snapshot import Snapshot
from collector.runs.run import Run, RunCluster, RunCommand, RunCondition, RunNode, RunPhase
from collector.runs.run_file import read_run, write_run
from tests.cli.conftest import omit_drawing
from tests.collector.merge.recorded_nodes import BEGIN_S, READ_TIME, READS, busy, record
from tests.collector.zones import local_zone
from tests.examples import thorough

# Completed runs that several tests look at have tables and plots, too.
pytestmark = [pytest.mark.usefixtures("only_report"), thorough]

# The run begins 10 s after the recordings and lasts 70 s. The time of its beginning is 11:06:50 in UTC.
RUN = RunPhase("main", BEGIN_S + 10, BEGIN_S + 80)
TICKS = 85
FROZEN = "64 of 70 intervals, did not answer from 11:07:09 to 11:07:16"
KILLED = "40 of 70 intervals, did not answer from 11:07:30 until the end"


def silent(node: str, seconds: Collection[int]) -> list[Snapshot]:
    """Return the ticks of a node that does not answer in some seconds."""
    return [
        replace(snapshot, scrapes=(replace(snapshot.scrapes[0], values={}, problem="timed out"),))
        if second in seconds
        else snapshot
        for second, snapshot in enumerate(busy(node, TICKS))
    ]


def run_of(
    folder: Path,
    nodes: Mapping[str, Sequence[Snapshot]],
    *more: RunNode,
    phases: Sequence[RunPhase] = (RUN,),
    **fields: Any,
) -> Run:
    """Return a run with these recordings, in `folder`."""
    for name, ticks in nodes.items():
        record(folder / "nodes" / name, ticks)
    recorded = (RunNode(name, f"http://{name}", f"nodes/{name}", TICKS, interval_s=1.0) for name in nodes)
    command = RunCommand(("./load.sh",), phases[0].begin_s, phases[-1].end_s, 0)
    limits = phases[0].begin_s, phases[-1].end_s
    run = Run(folder.name, *limits, "1", nodes=(*recorded, *more), command=command, phases=tuple(phases), **fields)
    write_run(folder, run)
    return run


def values_of(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "summary.json").read_text())[-1]["values"]
    return values


@dataclass(frozen=True)
class Finished:
    """A completed run: its directory, whether a condition is met, and what was printed on stderr."""

    folder: Path
    is_failed: bool
    errors: str


def finished(folder: Path, nodes: Mapping[str, Sequence[Snapshot]], *more: RunNode, **fields: Any) -> Finished:
    run = run_of(folder, nodes, *more, **fields)
    with local_zone("UTC0"), redirect_stderr(StringIO()) as errors:
        return Finished(folder, finish(folder, run, quiet=False), errors.getvalue())


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run with a node that froze for six seconds, and one that was killed 30 s before the end."""
    conditions = (RunCondition("node_intervals_missing > 0"), RunCondition("nodes_missing > 0"))
    nodes = {
        "n1": busy("n1", TICKS),
        "n2": silent("n2", range(30, 36)),
        "n3": silent("n3", range(51, TICKS)),
    }
    return finished(tmp_path_factory.mktemp("failing"), nodes, conditions=conditions)


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run in which two nodes answered throughout."""
    with pytest.MonkeyPatch.context() as patch:
        omit_drawing(patch)
        return finished(tmp_path_factory.mktemp("complete"), {name: busy(name, TICKS) for name in ("n1", "n2")})


@pytest.fixture(scope="module")
def partly_recorded(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of a node that was recorded, and one that was not."""
    # An agent that was not reached has not stated its interval.
    missing = RunNode("", "http://n2", problem="http://n2: connection refused")
    conditions = (RunCondition("node_intervals_missing > 0"),)
    with pytest.MonkeyPatch.context() as patch:
        omit_drawing(patch)
        folder = tmp_path_factory.mktemp("partly-recorded")
        return finished(folder, {"n1": busy("n1", TICKS)}, missing, conditions=conditions)


def test_a_frozen_and_a_killed_node_are_stated(failing: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    folder, errors = failing.folder, failing.errors
    assert failing.is_failed
    with local_zone("UTC0"):
        assert main(["runs", "show", str(folder)]) == 0
        shown = capsys.readouterr().out
        assert main(["runs", str(folder)]) == 0
        header, row = capsys.readouterr().out.splitlines()
    assert header.split()[4:6] == ["NODES", "READS/s"]
    assert "  3, 2 partly       26  " in row
    for text in (errors, shown):
        assert f"main: n2: {FROZEN}\n" in text
        assert f"main: n3: {KILLED}\n" in text
        assert "n1: " not in text.replace("node n1: ", "")
        assert "  3, 2 partly  reads" in text
    assert "--fail-if 'node_intervals_missing > 0': node_intervals_missing is 36 in phase 'main'" in errors
    assert [condition.met for condition in read_run(folder).conditions] == [True, False]
    values = values_of(folder)
    assert (values["nodes"], values["nodes_missing"], values["nodes_incomplete"]) == (3, 0, 2)
    # The counters of the frozen node include its operations, and the killed node served nothing from then on.
    assert (values["reads"], values["interval_s"]) == (2 * 700 + 400, 70)
    assert values["reads_per_s"] == pytest.approx(1800 / 70, abs=1e-3)
    assert "main: the nodes' rates are lower bounds: operations in missing intervals count only if" in errors


def test_the_report_states_them_in_its_verdict_and_as_events(failing: Finished) -> None:
    report = (failing.folder / "report.md").read_text()
    verdict = report.split("## Verdict")[1].split("\n## ")[0]
    assert "The cluster (2 of its nodes not throughout) served at least 26 reads/s" in verdict
    assert f"**n2: {FROZEN}.**" in verdict
    assert f"**n3: {KILLED}.**" in verdict
    assert "No samples were lost" not in verdict
    assert "nodes were recorded" not in verdict
    assert "| 11:07:09 | no\\_answer | n2 | did not answer from 11:07:09 to 11:07:16 |" in report
    assert "| 11:07:30 | no\\_answer | n3 | did not answer from 11:07:30 until the end |" in report
    assert "| 30 of 70 |" in report


def test_a_run_in_which_all_nodes_answered_says_so(complete: Finished) -> None:
    assert "interval" not in complete.errors
    report = (complete.folder / "report.md").read_text()
    assert "No samples were lost.\n\nAll 2 nodes were recorded.\n\nAll nodes answered in every interval." in report
    assert "The cluster served 20 reads/s" in report
    assert "No marks, and no events on the nodes." in report
    assert values_of(complete.folder)["node_intervals_missing"] == 0


def test_agents_that_stop_or_come_late_are_not_taken_for_nodes_that_do_not_answer(tmp_path: Path) -> None:
    nodes = {"n1": busy("n1", 51), "n2": busy("n2", TICKS)[40:], "n3": busy("n3", 30) + busy("n3", TICKS)[50:]}
    run = run_of(tmp_path, nodes)
    finish(tmp_path, run, quiet=True)
    verdict = (tmp_path / "report.md").read_text().split("\n## ")[1]
    assert "n1: 40 of 70 intervals, was not sampled from 11:07:30 until the end." in verdict
    assert "n2: 40 of 70 intervals, was not sampled from 11:06:50 to 11:07:20." in verdict
    assert "n3: 50 of 70 intervals, was not sampled from 11:07:09 to 11:07:30." in verdict


def test_a_restart_is_part_of_the_gap(tmp_path: Path) -> None:
    after = busy("n1", TICKS, origin="another process")
    ticks = [*silent("n1", range(40, 50))[:50], *after[50:]]
    run = run_of(tmp_path, {"n1": ticks})
    finish(tmp_path, run, quiet=True)
    verdict = (tmp_path / "report.md").read_text().split("\n## ")[1]
    # The first reading after the restart has no rate.
    assert "n1: 59 of 70 intervals, did not answer from 11:07:19 to 11:07:30 (restarted)." in verdict


def test_a_node_that_was_not_recorded_is_missing_in_all_figures(partly_recorded: Finished) -> None:
    folder, errors = partly_recorded.folder, partly_recorded.errors
    assert partly_recorded.is_failed
    assert "1 of 2  reads" in errors
    assert "main: http://n2: not recorded: http://n2: connection refused\n" in errors
    values = values_of(folder)
    assert (values["nodes"], values["nodes_missing"], values["node_intervals_missing"]) == (1, 1, 70)
    assert "1 of 2 nodes served 10 reads/s" in (folder / "report.md").read_text()


def test_a_node_without_a_complete_interval_does_not_vanish_from_a_run_of_one_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phase = RunPhase("main", BEGIN_S + 11, BEGIN_S + 18)
    record(tmp_path / "nodes" / "slow", busy("slow", 10, interval_s=5.0), interval_s=5.0)
    slow = RunNode("slow", "http://slow", "nodes/slow", 1, interval_s=5.0)
    run = run_of(tmp_path, {"n1": busy("n1", TICKS)}, slow, phases=[phase])
    finish(tmp_path, run, quiet=False)
    assert "main: slow: no complete interval of 5 s\n" in capsys.readouterr().err
    assert (values_of(tmp_path)["nodes"], values_of(tmp_path)["nodes_missing"]) == (1, 1)
    report = (tmp_path / "report.md").read_text()
    assert "1 of 2 nodes served 10 reads/s" in report
    assert "nodes were recorded" not in report
    with pytest.raises(Exception, match="not all nodes are included, so the servers' throughput is unknown: slow: no"):
        run_values(tmp_path)


PARTS = (
    RunPhase("a", BEGIN_S + 10, BEGIN_S + 40),
    RunPhase("b", BEGIN_S + 40, BEGIN_S + 60),
    RunPhase("c", BEGIN_S + 60, BEGIN_S + 80),
)


def test_a_phase_in_which_no_node_was_sampled_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = {name: [*busy(name, TICKS)[:41], *busy(name, TICKS)[61:]] for name in ("n1", "n2")}
    run = run_of(tmp_path, nodes, phases=PARTS, conditions=(RunCondition("nodes_missing > 0"),))
    with local_zone("UTC0"):
        assert finish(tmp_path, run, quiet=False)
    errors = capsys.readouterr().err
    assert "\nb      0 s   0 of 2" in errors
    assert "b: 2 of 2 nodes not included\n" in errors
    assert "b: n1: 0 of 20 intervals, was not sampled from 11:07:20 until the end\n" in errors
    assert "nodes_missing is 2 in phase 'b'" in errors
    summaries = json.loads((tmp_path / "summary.json").read_text())
    assert [summary["name"] for summary in summaries] == ["a", "b", "c", "total"]
    values = summaries[1]["values"]
    assert [values[name] for name in ("nodes", "nodes_missing", "node_intervals_missing", "reads")] == [0, 2, 40, None]
    report = (tmp_path / "report.md").read_text()
    assert "| b | reads | 0 s | 0 of 2 | - |" in report


def test_a_run_that_was_only_sampled_in_its_warm_up_is_not_called_too_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = [RunPhase("warm-up", BEGIN_S, BEGIN_S + 10, measured=False), RUN]
    conditions = (RunCondition("nodes_missing > 0"), RunCondition("node_intervals_missing > 0"))
    run = run_of(tmp_path, {"n1": busy("n1", 6)}, phases=phases, conditions=conditions)
    assert finish(tmp_path, run, quiet=False)
    errors = capsys.readouterr().err
    assert "long enough" not in errors
    assert "main: n1: 0 of 70 intervals, was not sampled from 11:06:50 until the end\n" in errors
    assert [condition.met for condition in read_run(tmp_path).conditions] == [True, True]
    values = values_of(tmp_path)
    assert (values["nodes"], values["nodes_missing"], values["node_intervals_missing"]) == (0, 1, 70)
    report = (tmp_path / "report.md").read_text()
    assert "The cluster's throughput is unknown." in report
    assert "**n1: 0 of 70 intervals, was not sampled from 11:06:50 until the end.**" in report
    assert "| 11:06:45 | not\\_sampled | n1 | was not sampled from 11:06:45 until the end |" in report
    with pytest.raises(Exception, match="not all nodes are included, so the servers' throughput is unknown: n1: 0 of"):
        run_values(tmp_path)
    step = recorded_step(tmp_path)
    assert step.problem == "no node was sampled in the measured phase"
    assert step.incomplete == "n1: 0 of 70 intervals, was not sampled from 11:06:50 until the end"


def test_a_run_in_which_no_node_was_ever_sampled_has_a_report(tmp_path: Path) -> None:
    finish(tmp_path, run_of(tmp_path, {"n1": busy("n1", 6)}), quiet=True)
    verdict = (tmp_path / "report.md").read_text().split("\n## ")[1]
    assert "The cluster's throughput is unknown." in verdict
    assert "**n1: 0 of 70 intervals, was not sampled from 11:06:50 until the end.**" in verdict


def test_a_run_that_ends_within_its_warm_up_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    phases = [RunPhase("warm-up", BEGIN_S, BEGIN_S + 80, measured=False)]
    finish(tmp_path, run_of(tmp_path, {"n1": busy("n1", TICKS)}, phases=phases), quiet=False)
    assert "the command ended within the warm-up\n" in capsys.readouterr().err
    assert "The command ended within the warm-up." in (tmp_path / "report.md").read_text()


def test_the_time_of_a_phase_is_that_of_the_intervals_of_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first interval begins 0.09 s before the phase.
    phase = RunPhase("main", BEGIN_S + 10.09, BEGIN_S + 26.05)
    run = run_of(tmp_path, {"n1": busy("n1", TICKS), "n2": silent("n2", range(15, 20))}, phases=[phase])
    finish(tmp_path, run, quiet=False)
    errors = capsys.readouterr().err
    assert "\nmain   15 s  2, 1 partly" in errors
    assert "main: n2: 10 of 15 intervals, " in errors
    assert "| main | reads | 15 s | 2, 1 partly |" in (tmp_path / "report.md").read_text()


def test_sweeps_capacity_searches_and_comparisons_state_missing_intervals(
    failing: Finished, complete: Finished, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = failing.folder
    with local_zone("UTC0"):
        values = run_values(folder)
        assert main(["compare", str(folder), "--with", str(complete.folder)]) == 0
        errors = capsys.readouterr().err
        step = recorded_step(folder)
    assert (values.intervals_missing, values.remark) == (36, f"n3: {KILLED}; n2: {FROZEN}")
    assert step.incomplete == values.remark
    assert f"casstat: {folder.name}: main: n2: {FROZEN}\n" in errors
    assert f"casstat: {folder.name}: main: n3: {KILLED}\n" in errors


def test_half_a_cluster_is_not_shown_as_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path, {"n1": busy("n1", TICKS)}, clusters=(RunCluster("prod", ("n1",), ("10.0.0.2",)),))
    finish(tmp_path, replace(run, conditions=(RunCondition("nodes_unrecorded > 0"),)), quiet=False)
    errors = capsys.readouterr().err
    assert "1 of 2 nodes of the cluster prod recorded, not 10.0.0.2\n" in errors
    assert "1 of 2  reads" in errors
    assert "nodes_unrecorded is 1 in phase 'main'" in errors
    verdict = (tmp_path / "report.md").read_text().split("\n## ")[1]
    assert "1 of 2 nodes served 10 reads/s" in verdict
    assert "**1 of 2 nodes of the cluster prod recorded, not 10.0.0.2.**" in verdict
    assert "The node was recorded" not in verdict


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("n1", "n1b"), "the nodes n1 and n1b are the same, and count once"),
        (("n1", "n1"), "the node n1 was recorded by 2 agents, and counts once"),
    ],
)
def test_a_node_that_two_agents_recorded_counts_once(
    names: tuple[str, str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = []
    for number, name in enumerate(names):
        record(tmp_path / "nodes" / f"agent{number}", busy(name, TICKS), process="P1")
        others.append(RunNode(name, f"http://agent{number}", f"nodes/agent{number}", TICKS, interval_s=1.0))
    run = run_of(tmp_path, {"n3": busy("n3", TICKS)}, *others, conditions=(RunCondition("nodes_missing > 0"),))
    finish(tmp_path, run, quiet=False)
    errors = capsys.readouterr().err
    assert f"{text}\n" in errors
    assert "not recorded" not in errors
    values = values_of(tmp_path)
    assert (values["nodes"], values["nodes_missing"], values["reads_per_s"]) == (2, 0, 20)
    assert [condition.met for condition in read_run(tmp_path).conditions] == [False]
    verdict = (tmp_path / "report.md").read_text().split("\n## ")[1]
    assert f"**T{text[1:]}.**" in verdict
    assert "The cluster served 20 reads/s" in verdict
    assert "All 2 nodes were recorded.\n\nAll nodes answered in every interval." in verdict


def test_a_node_that_two_agents_recorded_does_not_stand_for_one_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "nodes" / "extra", busy("extra", TICKS, origin="n1"), process="P1")
    record(tmp_path / "nodes" / "n1", busy("n1", TICKS), process="P1")
    nodes = (
        RunNode("extra", "http://extra", "nodes/extra", TICKS, interval_s=1.0),
        RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0),
        # Its directory contains no tick.
        RunNode("n2", "http://n2", "nodes/n2", 0, interval_s=1.0),
        RunNode("", "http://n3", problem="http://n3: connection refused"),
    )
    (tmp_path / "nodes" / "n2").mkdir()
    summarise(tmp_path, run_of(tmp_path, {}, *nodes))
    errors = capsys.readouterr().err
    assert "the nodes extra and n1 are the same, and count once\n" in errors
    assert "main: n2: not recorded: no ticks were recorded\n" in errors
    assert "main: http://n3: not recorded: http://n3: connection refused\n" in errors
    values = values_of(tmp_path)
    assert (values["nodes"], values["nodes_missing"], values["reads_per_s"]) == (1, 2, 10)


def test_two_nodes_of_one_name_are_two_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = []
    for number in range(2):
        record(tmp_path / "nodes" / f"agent{number}", busy("node", TICKS), process=f"P{number}")
        others.append(RunNode("node", f"http://agent{number}", f"nodes/agent{number}", TICKS, interval_s=1.0))
    finish(tmp_path, run_of(tmp_path, {}, *others), quiet=False)
    assert " once" not in capsys.readouterr().err
    assert (values_of(tmp_path)["nodes"], values_of(tmp_path)["nodes_missing"]) == (2, 0)
    assert "All 2 nodes were recorded." in (tmp_path / "report.md").read_text()


def test_a_node_that_was_not_recorded_is_missing_in_merged_rows_and_in_top(
    partly_recorded: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(partly_recorded.folder)
    with (partly_recorded.folder / "merged" / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["nodes"], row["nodes_missing"]) for row in rows if row["node"] == "cluster"} == {("1", "1")}
    # Nodes that were not chosen are not missing.
    assert main(["merge", folder, "--nodes", "n1", "-o", str(tmp_path / "n1")]) == 0
    with (tmp_path / "n1" / "rows.csv").open() as file:
        assert {row["nodes_missing"] for row in csv.DictReader(file)} == {"0"}
    capsys.readouterr()
    assert main(["top", "--replay", folder, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "1 of 2 nodes" in shown
    assert "http://n2" in shown
    assert main(["top", "--replay", folder, "--once", "--format", "json"]) == 0
    assert "http://n2: connection refused" in capsys.readouterr().out


def not_sampled(node: str, seconds: Collection[int]) -> list[Snapshot]:
    return [tick for second, tick in enumerate(busy(node, TICKS)) if second not in seconds]


SHIFTS: Mapping[str, Callable[[str, Collection[int]], list[Snapshot]]] = {"down": silent, "not sampled": not_sampled}
"""How a node can be without answers at the beginning or at the end of its recording."""


@pytest.fixture(params=SHIFTS)
def in_turn(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """A run in which one node answers throughout, and two others only before and after the middle."""
    without = SHIFTS[request.param]
    nodes = {"n1": busy("n1", TICKS), "n2": without("n2", range(46)), "n3": without("n3", range(46, TICKS))}
    return run_of(tmp_path, nodes, conditions=(RunCondition("reads_per_s < 25"),))


def test_nodes_that_answered_at_different_times_are_not_added_up_as_if_at_the_same_time(
    in_turn: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(tmp_path, in_turn, quiet=False)
    values = values_of(tmp_path)
    # Never more than two nodes answered at the same time; the first reading of n2 has no rate.
    assert (values["nodes"], values["reads"], values["interval_s"]) == (3, 700 + 340 + 350, 70)
    assert values["reads_per_s"] == pytest.approx(1390 / 70, abs=1e-3)
    assert "served at least 20 reads/s" in (tmp_path / "report.md").read_text()
    assert f"reads_per_s is at least {values['reads_per_s']} in phase 'main'" in capsys.readouterr().err
    assert main(["merge", str(tmp_path), "-i", "10", "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "rows.csv").open() as rows:
        cluster = [row for row in csv.DictReader(rows) if row["node"] == "cluster"]
    assert {float(row["reads_per_s"]) for row in cluster} <= {19.0, 20.0}


NOTE = "compares {} of 70 intervals of the nodes: the operations of the others are unknown, or part of a later interval"


def summarised(folder: Path, nodes: Mapping[str, Sequence[Snapshot]]) -> Path:
    summarise(folder, run_of(folder, nodes))
    return folder


def compared(a: Path, b: Path, capsys: pytest.CaptureFixture[str], column: str = "reads_per_s") -> tuple[Any, Any, str]:
    """Return a column of two runs in a comparison, and the note on the intervals of the second one."""
    capsys.readouterr()
    assert main(["compare", str(a), "--with", str(b), "--json"]) == 0
    output = capsys.readouterr()
    (part,) = (part for part in json.loads(output.out)["comparisons"] if part["column"] == column)
    notes = [line.partition("main: ")[2] for line in output.err.splitlines() if f"{b.name}: main: compares" in line]
    return part["value_a"], part["value_b"], "".join(notes)


def test_a_comparison_counts_operations_that_a_later_reading_includes_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = {"n1": busy("n1", TICKS), "n2": silent("n2", range(30, 36))}
    a, b = summarised(tmp_path / "a", nodes), tmp_path / "b"
    run_of(b, nodes)
    assert values_of(a)["reads_per_s"] == 20
    assert compared(a, b, capsys) == (pytest.approx(20), pytest.approx(20), NOTE.format("64"))


@pytest.mark.parametrize("kind", SHIFTS)
def test_a_comparison_has_the_intervals_of_the_summary_or_states_how_many(
    kind: str, complete: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = summarised(tmp_path / "b", {"n1": busy("n1", TICKS), "n2": SHIFTS[kind]("n2", range(12, TICKS))})
    rate_a, rate_b, note = compared(complete.folder, b, capsys)
    assert rate_a == pytest.approx(20)
    if kind == "down":
        assert (rate_b, note) == (pytest.approx(values_of(b)["reads_per_s"], abs=1e-3), "")
    else:
        # Without samples, it is unknown what the node served.
        assert (rate_b, note) == (pytest.approx(20), NOTE.format("1"))


def test_a_cluster_of_one_node_serves_nothing_while_it_is_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = {"n1": silent("n1", range(46, TICKS))}
    a, b = summarised(tmp_path / "a", nodes), tmp_path / "b"
    run_of(b, nodes)
    values = values_of(a)
    assert (values["reads"], values["interval_s"], values["reads_per_s"]) == (350, 70, 5)
    assert compared(a, b, capsys) == (pytest.approx(5), pytest.approx(5), "")


def test_a_late_tick_does_not_lower_a_rate(tmp_path: Path) -> None:
    late = [tick for second, tick in enumerate(busy("n2", TICKS)) if second != 40]
    summarised(tmp_path, {"n1": busy("n1", TICKS), "n2": late})
    assert values_of(tmp_path)["reads_per_s"] == 20
    assert main(["merge", str(tmp_path), "-i", "10", "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "rows.csv").open() as rows:
        assert {row["reads_per_s"] for row in csv.DictReader(rows) if row["node"] == "cluster"} == {"20"}


def test_operations_whose_counter_appears_during_a_phase_have_the_rate_of_the_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope = "RangeSlice"
    ticks = []
    for second, snapshot in enumerate(busy("n1", TICKS)):
        more: Values = {(READS[0], scope): 5 * (second - 49), (READ_TIME[0], scope): 0} if second >= 50 else {}
        scrape = replace(snapshot.scrapes[0], values={**snapshot.scrapes[0].values, **more})
        ticks.append(replace(snapshot, scrapes=(scrape,)))
    nodes = {"n1": ticks, "n2": busy("n2", TICKS)}
    a, b = summarised(tmp_path / "a", nodes), tmp_path / "b"
    run_of(b, nodes)
    values = values_of(a)
    assert (values["range_reads"], values["reads_per_s"]) == (150, 20)
    assert values["range_reads_per_s"] == pytest.approx(150 / 70, abs=1e-3)
    assert values["operations_per_s"] == pytest.approx(20 + 150 / 70, abs=1e-3)
    assert compared(a, b, capsys, "range_reads_per_s") == (pytest.approx(150 / 70), pytest.approx(150 / 70), "")
    total = pytest.approx(20 + 150 / 70)
    assert compared(a, b, capsys, "operations_per_s") == (total, total, "")
