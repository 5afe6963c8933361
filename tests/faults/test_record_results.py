"""The contents of a run recorded by `casstat record`, and the exit status."""

import socket
import sys
from pathlib import Path

import pytest

from cli.main import main
from collector.recording.writer import files_of
from collector.runs.run_file import read_run
from tests.faults.recorders import recorded, summaries
from tests.faults.recording_agent import READS, Node, serving


def test_a_run_contains_recordings_tables_plots_and_a_summary(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with serving(tmp_path / "other", "n2") as other:
        code, out, errors = recorded(
            capfd,
            *(node.address, other.address, "--name", "load", "--tag", "size=large", "-o", folder, "--"),
            *("sh", "-c", "echo $CASSTAT_RUN; echo problem >&2; sleep 3; exit 3"),
        )
    assert (code, out) == (3, "load\n")
    assert errors.startswith("problem\n")
    assert errors.endswith(f"{folder}\n")
    assert "reads" in errors
    run = read_run(folder)
    assert (run.name, run.tags) == ("load", {"size": "large"})
    assert run.command is not None
    assert (run.command.words[0], run.command.exit_code) == ("sh", 3)
    assert run.phases[0].name == "main"
    assert [(node.name, len(node.clocks), node.problem) for node in run.nodes] == [("n1", 2, ""), ("n2", 2, "")]
    assert all(node.ticks in (3, 4, 5) for node in run.nodes)
    assert (folder / "command.log").read_text() in ("load\nproblem\n", "problem\nload\n")
    (host,) = run.client_hosts
    assert (host.name, host.exit_code, host.problem) == (socket.gethostname(), 3, "")
    assert host.ticks >= 2
    assert files_of(folder / host.folder)
    assert summaries(folder)["main"]["client_peaks"]["cpu_busy_pct"]["node"] == host.name
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert {"merged/rows.tsv", "plots/overview.png", "summary.json", "report.html", "run.json"} <= names
    values = summaries(folder)["main"]["values"]
    assert values["reads_per_s"] == 2 * READS
    assert values["reads"] == 2 * READS * values["interval_s"]
    assert node.agent.known["1"]["end_s"] is not None


@pytest.mark.usefixtures("without_summary")
def test_a_run_named_after_its_command_has_a_name_that_agents_accept(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = tmp_path / ("x" * 150)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    code, _, errors = recorded(capfd, node.address, "-o", tmp_path / "run", "--", command)
    assert (code, errors) == (0, "")
    assert read_run(tmp_path / "run").name == node.agent.known["1"]["name"] == "x" * 100


def test_marks_begin_phases(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    script = f"sleep 2.2; {sys.executable} -m cli mark steady; echo level 7; sleep 2.2"
    options = ("--mark-regex", r"level (\d+)", "--warm-up", "0.1s")
    code, _, errors = recorded(capfd, node.address, "-o", folder, *options, "--", "sh", "-c", script)
    assert code == 0, errors
    run = read_run(folder)
    assert [mark.text for mark in run.marks] == ["steady", "7"]
    assert [phase.name for phase in run.phases] == ["warm-up", "main", "steady", "7", "cool-down"]
    assert [mark["text"] for mark in node.agent.known["1"]["marks"]] == ["steady", "7"]
    # Unless the machine is slow, the phase between the marks is too short for a whole interval.
    assert [name for name in summaries(folder) if name != "steady"] == ["main", "7", "total"]
    assert main(["merge", str(folder), "--phase", "7", "-i", "1", "-o", str(tmp_path / "merged")]) == 0
    phase = run.phase("7")
    times_s = {float(line.split("\t")[0]) for line in (tmp_path / "merged/rows.tsv").read_text().splitlines()[1:]}
    assert phase.begin_s <= min(times_s) <= max(times_s) <= phase.end_s
    assert main(["merge", str(folder), "--phase", "none", "-o", str(tmp_path / "merged")]) == 2
    assert "choose from warm-up, main, steady, 7, cool-down" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("conditions", "command", "code"),
    [
        (["reads_per_s < 1000"], "sleep 2.5", 1),
        (["reads_per_s > 1000", "reads_per_s<= 5"], "sleep 2.5", 0),
        # The run has no value for this column, so the condition counts as met.
        (["write_p99_ms > 10"], "sleep 2.5", 1),
        (["reads_per_s < 1000"], "sleep 2.5; exit 4", 4),
    ],
)
def test_conditions_determine_the_status_if_the_command_succeeds(
    conditions: list[str], command: str, code: int, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = [word for condition in conditions for word in ("--fail-if", condition)]
    arguments = (node.address, "--quiet", *options, "-o", str(tmp_path / "run"), "--", "sh", "-c", command)
    assert recorded(capfd, *arguments)[0] == code
