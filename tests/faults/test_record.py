"""`casstat record` runs a command, and keeps everything that was measured meanwhile, whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from cli.main import main
from collector.journal.segments import journal_files
from collector.runs.run_file import read_run, write_run
from exporters.api.app import build
from exporters.api.server import Server
from tests.collector.cluster.recorded_nodes import busy, record
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.recording_agent import HOST, RecordingAgent

# The journals begin this long before a test and end this long after its beginning.
BEFORE_S, AFTER_S = 10, 120
READS = 10
"""The number of reads per second of every node."""


@contextmanager
def serving(folder: Path, name: str) -> Iterator[tuple[RecordingAgent, str]]:
    """Serve the API of an agent; yields the agent and its address."""
    record(folder, busy(name, BEFORE_S + AFTER_S, begin_s=float(int(time.time()) - BEFORE_S)))
    agent = RecordingAgent(folder, name)
    server = Server(build(agent), f"{HOST}:0", None, print)
    try:
        yield agent, f"{HOST}:{server.address[1]}"
    finally:
        server.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[RecordingAgent, str]]:
    with serving(tmp_path / "journal", "n1") as served:
        yield served


def recorded(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["record", *map(str, arguments)])
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def summaries(run: Path) -> dict[str, dict[str, Any]]:
    return {phase["name"]: phase for phase in json.loads((run / "summary.json").read_text())}


Node = tuple[RecordingAgent, str]


def test_a_run_contains_recordings_tables_plots_and_a_summary(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent, address = node
    folder = tmp_path / "run"
    with serving(tmp_path / "other", "n2") as (_, other):
        code, out, errors = recorded(
            capfd,
            *(address, other, "--name", "load", "--tag", "size=large", "-o", folder, "--"),
            *("sh", "-c", "echo $CASSTAT_RUN; echo problem >&2; sleep 3; exit 3"),
        )
    assert (code, out) == (3, "load\n")
    assert errors.startswith("problem\n")
    assert errors.endswith(f"{folder}\n")
    run = read_run(folder)
    assert (run.name, run.tags) == ("load", {"size": "large"})
    assert run.command is not None
    assert (run.command.words[0], run.command.exit_code) == ("sh", 3)
    assert run.phases[0].name == "main"
    assert [(node.name, len(node.clocks), node.problem) for node in run.nodes] == [("n1", 2, ""), ("n2", 2, "")]
    assert all(node.ticks in (3, 4, 5) for node in run.nodes)
    assert (folder / "command.log").read_text() in ("load\nproblem\n", "problem\nload\n")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert {"merged/rows.tsv", "plots/overview.png", "summary.json", "run.json"} <= names
    values = summaries(folder)["main"]["values"]
    assert values["reads_per_s"] == 2 * READS
    assert values["reads"] == 2 * READS * values["interval_s"]
    assert agent.known["1"]["end_s"] is not None
    assert "reads" in errors


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["no-such-command-here"], 127, "casstat: no-such-command-here: command not found\n"),
        (["./file"], 126, "casstat: ./file: not executable\n"),
        (["./absent"], 127, "casstat: ./absent: command not found\n"),
    ],
)
def test_a_command_that_cannot_run_is_an_error_before_anything_is_created(
    command: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert recorded(capfd, f"{HOST}:1", "-o", "run", "--", *command) == (code, "", message)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the command is missing"),
        (["10.0.0.1"], "the command is missing"),
        (["--no-such-option", "--", "true"], "No such option"),
        (["--tag", "x", "--", "true"], "expected KEY=VALUE"),
        (["--fail-if", "read_p99_ms", "--", "true"], "expected COLUMN OPERATOR NUMBER"),
        (["--mark-regex", "(", "--", "true"], "is not a regular expression"),
        (["::bad::", "-o", "run", "--", "true"], "is not a valid node address"),
        ([f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        ([f"{HOST}:1", "-o", "full", "--", "true"], "already exists"),
        (["--seed", f"{HOST}:1", "-o", "run", "--", "true"], "no seed answered"),
        (["--seed", f"{HOST}:8778", "-o", "run", "--", "true"], "--seed takes the address of an agent"),
    ],
)
def test_errors_of_casstat_have_a_status_of_their_own(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    code, out, errors = recorded(capfd, *arguments)
    assert (code, out) == (125, "")
    assert message in errors
    assert not Path("run").exists()


def test_a_node_that_cannot_be_reached_is_listed_and_the_others_are_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, address = node
    arguments = (address, f"{HOST}:1", "-o", str(tmp_path / "run"), "--", "sleep", "1.5")
    code, _, errors = recorded(capfd, "--require-all", *arguments)
    assert code == 125
    assert errors.endswith("casstat: 1 of 2 nodes cannot be recorded\n")
    code, _, errors = recorded(capfd, *arguments)
    assert code == 0
    assert f"http://{HOST}:1: Connection refused" in errors
    assert [node.folder for node in read_run(tmp_path / "run").nodes] == ["nodes/n1", ""]


def test_marks_begin_phases(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    agent, address = node
    folder = tmp_path / "run"
    script = f"sleep 2.2; {sys.executable} -m cli mark steady; echo level 7; sleep 2.2"
    code, _, errors = recorded(
        capfd, address, "-o", folder, "--mark-regex", r"level (\d+)", "--warm-up", "0.1s", "--", "sh", "-c", script
    )
    assert code == 0, errors
    run = read_run(folder)
    assert [mark.text for mark in run.marks] == ["steady", "7"]
    assert [phase.name for phase in run.phases] == ["warm-up", "main", "steady", "7", "cool-down"]
    assert [mark["text"] for mark in agent.known["1"]["marks"]] == ["steady", "7"]
    # The phase between the marks is shorter than an interval, so it contains no whole tick.
    assert list(summaries(folder)) == ["main", "7", "total"]
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
        (["write_p99_ms > 10"], "sleep 2.5", 1),
        (["reads_per_s < 1000"], "sleep 2.5; exit 4", 4),
    ],
)
def test_conditions_determine_the_status_of_a_successful_command(
    conditions: list[str], command: str, code: int, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = [word for condition in conditions for word in ("--fail-if", condition)]
    arguments = (node[1], "--quiet", *options, "-o", str(tmp_path / "run"), "--", "sh", "-c", command)
    assert recorded(capfd, *arguments)[0] == code


def test_an_agent_that_refuses_writes_is_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent, address = node
    agent.disk = OSError(28, "No space left on device")
    code, _, errors = recorded(capfd, address, "-o", tmp_path / "run", "--", "sleep", "1.5")
    assert code == 0
    assert "cannot begin the run there" in errors
    assert read_run(tmp_path / "run").nodes[0].ticks


def test_an_agent_that_disappears_is_a_gap_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    journal = tmp_path / "other"
    record(journal, busy("n2", BEFORE_S + AFTER_S, begin_s=float(int(time.time()) - BEFORE_S)))
    program = f"""
import sys, time
from pathlib import Path
from exporters.api.app import build
from exporters.api.server import Server
from tests.faults.recording_agent import RecordingAgent
agent = RecordingAgent(Path({str(journal)!r}), "n2")
server = Server(build(agent), "{HOST}:0", None, print)
print(server.address[1], flush=True)
time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    with other:
        port = other.stdout.readline().strip()
        command = ("sh", "-c", f"kill -9 {other.pid}; sleep 1.5")
        code, _, errors = recorded(capfd, node[1], f"{HOST}:{port}", "-o", folder, "--", *command)
    assert code == 0
    assert "1 node missing: n2" in errors
    assert [bool(node.problem) for node in read_run(folder).nodes] == [False, True]


def test_a_node_without_an_agent_is_recorded_by_a_private_one_that_leaves_nothing_behind(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    fake.node.do_reads(100)
    command = (sys.executable, "-c", "import time; time.sleep(2.5)")
    code, _, errors = recorded(capfd, fake.url, "-o", folder, "--", *command)
    assert code == 0, errors
    (node,) = read_run(folder).nodes
    assert (node.problem, node.folder.split("/")[0]) == ("", "nodes")
    assert node.ticks >= 2
    assert {path.name for path in folder.iterdir()} == {
        *("run.json", "summary.json", "command.log", "nodes", "merged", "plots")
    }
    assert not processes_with(str(folder))


def processes_with(word: str) -> list[list[str]]:
    """Return the command lines of the processes that have a word in one of their arguments."""
    commands = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if process.pid != os.getpid() and any(word in argument for argument in words):
            commands.append(words)
    return commands


def test_a_jolokia_that_does_not_answer_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    code, _, errors = recorded(capfd, f"http://{HOST}:1/jolokia", "-o", folder, "--", "true")
    assert code == 125
    assert "Cassandra does not answer" in errors
    assert not folder.exists()


def killed_recorder(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start a recorder and wait until its command runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "record", *arguments, "-o", str(folder), "--", "sh", "-c", "echo up; sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_ctrl_c_ends_the_command_and_leaves_a_complete_run(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with killed_recorder(folder, node[1]) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in errors
    run = read_run(folder)
    assert run.end_s is not None
    assert run.end_s - run.begin_s < 10
    assert (folder / "merged" / "rows.tsv").exists()


def test_a_run_whose_recorder_was_killed_can_be_recovered(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with killed_recorder(folder, node[1]) as process:
        time.sleep(2.5)
        process.kill()
    killed_s = time.time()
    run = read_run(folder)
    assert run.end_s is None
    # As if the node's clock had been ahead. The run is still active, so it ends at the present local time.
    node[0].known["1"]["begin_s"] = run.begin_s + 1.5
    nodes = tuple(replace(node, clocks=(replace(node.clocks[0], offset_s=1.5),)) for node in run.nodes)
    write_run(folder, replace(run, nodes=nodes))
    assert main(["fetch", "--recover", str(folder)]) == 0
    assert "Traceback" not in capfd.readouterr().err
    run = read_run(folder)
    assert run.end_s is not None
    assert run.end_s >= killed_s
    assert [node.folder for node in run.nodes] == ["nodes/n1"]
    assert {path.parent.name for path in journal_files(folder)} == {"n1"}
    assert (folder / "merged" / "rows.tsv").exists()


def test_the_command_of_a_killed_recorder_ends(node: Node, tmp_path: Path) -> None:
    with killed_recorder(tmp_path / "run", node[1]) as process:
        process.kill()
        # The command inherits the recorder's pipes, so they are closed when it has ended.
        process.communicate(timeout=30)
