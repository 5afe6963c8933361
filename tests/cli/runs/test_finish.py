"""A step of a run's completion that fails does not affect the results of the others."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest

from cli.runs.finish import completing, finish, summarise
from cli.runs.run_summary import SUMMARY_FILE
from collector.runs.run import ClientHost, Run, RunCondition, RunNode, RunPhase
from collector.runs.run_file import read_run, write_run
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record

TICKS = 20
READS = RunCondition("reads < 1")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with a node and a client host."""
    for folder in ("nodes/n1", "client-hosts/c1"):
        record(tmp_path / folder, busy("n1", TICKS))
    node = RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0)
    host = ClientHost("c1", "", "client-hosts/c1", TICKS, interval_s=1.0)
    phases = (RunPhase("first", BEGIN_S, BEGIN_S + 9.5), RunPhase("second", BEGIN_S + 9.5, BEGIN_S + TICKS))
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=(node,), phases=phases, client_hosts=(host,))
    write_run(tmp_path, run)
    return run


@pytest.mark.usefixtures("undrawn")
def test_a_client_host_that_cannot_be_read_does_not_affect_the_summary_of_the_nodes(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rmtree(tmp_path / "client-hosts/c1")
    assert not finish(tmp_path, replace(run, conditions=(READS,)), quiet=False)
    summaries = json.loads((tmp_path / SUMMARY_FILE).read_text())
    assert [(summary["name"], summary["client_peaks"]) for summary in summaries] == [
        ("first", {}),
        ("second", {}),
        ("total", {}),
    ]
    errors = capsys.readouterr().err
    assert errors.count(f"casstat: {tmp_path}/client-hosts/c1: No such file or directory\n") == 1
    assert "Latencies in ms" in errors


@pytest.mark.usefixtures("undrawn")
def test_a_summary_that_cannot_be_computed_does_not_replace_the_previous_one(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summarise(tmp_path, run)
    before = (tmp_path / SUMMARY_FILE).read_bytes()
    rmtree(tmp_path / "nodes/n1")
    assert finish(tmp_path, replace(run, conditions=(READS,)), quiet=False)
    assert (tmp_path / SUMMARY_FILE).read_bytes() == before
    errors = capsys.readouterr().err
    assert f"casstat: {tmp_path}/nodes/n1: No such file or directory\n" in errors
    assert "no phase is long enough" not in errors
    assert errors.endswith(f"--fail-if 'reads < 1': the run has no value for reads\n{tmp_path}\n")


@pytest.mark.usefixtures("only_report")
def test_the_results_of_the_conditions_are_in_the_file_and_the_report_of_the_run(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conditions = tuple(map(RunCondition, ("reads_per_s > 9", "reads < 1", "client_p99_ms > 5", "of a later version")))
    assert finish(tmp_path, replace(run, conditions=conditions), quiet=True)
    met, passed, unknown, later = read_run(tmp_path).conditions
    assert met.met
    # The last interval of the run is not in the recording.
    assert met.reasons == (
        "reads_per_s is 10 in phase 'first'",
        "reads_per_s is at least 10 in phase 'second'",
        "reads_per_s is at least 10 in phase 'total'",
    )
    assert passed == RunCondition("reads < 1", met=False)
    assert unknown == RunCondition("client_p99_ms > 5", met=True, reasons=("the run has no value for client_p99_ms",))
    assert later == conditions[-1]
    assert capsys.readouterr().err.splitlines()[:-1] == [
        f"casstat: --fail-if '{condition.text}': {reason}"
        for condition in (met, unknown)
        for reason in condition.reasons
    ]
    text = (tmp_path / "report.md").read_text()
    assert r"**--fail-if 'reads\_per\_s &gt; 9': reads\_per\_s is 10 in phase 'first', " in text
    assert "Conditions of --fail-if that are not met: 'reads &lt; 1'." in text
    assert "**Conditions of --fail-if that were not checked: 'of a later version'.**" in text


@pytest.mark.usefixtures("only_report")
def test_a_run_whose_conditions_are_not_met_has_no_problem(run: Run, tmp_path: Path) -> None:
    assert not finish(tmp_path, replace(run, conditions=(READS,)), quiet=True)
    assert read_run(tmp_path).conditions == (RunCondition("reads < 1", met=False),)


@pytest.mark.usefixtures("only_report")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("step", ["tables", "plots", "write_report"])
def test_a_signal_while_a_run_is_completed_says_how_to_complete_it(
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    step: str,
) -> None:
    monkeypatch.setattr(f"cli.runs.finish.{step}", lambda *_, **__: signal.raise_signal(number))
    with pytest.raises(KeyboardInterrupt), completing(tmp_path):
        finish(tmp_path, run, quiet=True)
    hint = f"(hint: run 'casstat fetch --recover {tmp_path}')"
    assert capsys.readouterr().err == f"casstat: {tmp_path}: tables, plots and report are incomplete {hint}\n"
