"""Ctrl-C during `casstat record`, and a recorder that is killed: what was recorded is kept."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.record import recorder
from cli.run_folder import LOCK_FILE
from collector.agents.agent_client import AgentRuns
from collector.recording.journal_files import journal_files
from collector.runs.run_file import read_run
from exporters.live.frame import LiveFrames
from tests.faults.recorders import recorded, recover, recovery_hint, show_status_line
from tests.faults.recording_agent import Node
from tests.waiting import eventually


def started_recorder(folder: Path, node: Node, script: str = "echo up; exec sleep 60") -> "subprocess.Popen[str]":
    """Start a recorder whose command is a shell script, and wait until the script prints `up`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "record", node.address, "-o", str(folder), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_ctrl_c_ends_the_command_and_leaves_a_complete_run(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started_recorder(folder, node) as process:
        # The tables need at least one whole interval.
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in errors
    run = read_run(folder)
    assert run.end_s is not None
    assert run.end_s - run.begin_s < 60
    assert (folder / "merged" / "rows.tsv").exists()


def test_a_command_that_ignores_ctrl_c_is_terminated_by_the_second_one(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = "trap 'echo ignored' INT; echo up; while :; do sleep 0.05; done"
    with started_recorder(folder, node, script) as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "ignored\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in errors
    run = read_run(folder)
    assert run.command is not None
    assert run.command.exit_code == 128 + signal.SIGTERM
    assert run.nodes[0].folder == "nodes/n1"


def interrupted_after(function: Callable[..., None], call: int) -> Callable[..., None]:
    """Return a function that calls `function`, and raises SIGINT after call number `call`."""
    calls = iter(range(1, 10))

    def interrupting(*arguments: Any) -> None:
        function(*arguments)
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)

    return interrupting


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (LiveFrames, "stop", 1),
        (AgentRuns, "end", 1),
        # The run's file is written before and after the command, at the end of the run, and after the fetch.
        (recorder, "write_run", 2),
        (recorder, "write_run", 3),
    ],
)
def test_ctrl_c_after_the_command_leaves_a_run_that_can_be_recovered(
    owner: Any,
    name: str,
    call: int,
    node: Node,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        show_status_line(patch)
        patch.setattr(owner, name, interrupted_after(getattr(owner, name), call))
        code, _, errors = recorded(capfd, node.address, "-o", folder, "--", "sleep", "1.5")
    assert code == 130
    assert errors.count(f"casstat: the run is incomplete {recovery_hint(folder)}\n") == 1
    recover(folder)
    assert read_run(folder).nodes[0].ticks


def test_a_run_whose_recorder_was_killed_can_be_recovered(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with started_recorder(folder, node) as process:
        begin_s = read_run(folder).begin_s
        # Wait until the recorder has updated its lock file.
        eventually(lambda: (folder / LOCK_FILE).stat().st_mtime > begin_s + 1)
        process.kill()
    alive_s = (folder / LOCK_FILE).stat().st_mtime
    run = read_run(folder)
    assert run.end_s is None
    recover(folder)
    assert "Traceback" not in capfd.readouterr().err
    run = read_run(folder)
    assert run.end_s == pytest.approx(alive_s, abs=1e-3)
    assert [node.folder for node in run.nodes] == ["nodes/n1"]
    assert {path.parent.name for path in journal_files(folder / "nodes")} == {"n1"}
    (host,) = run.client_hosts
    assert host.ticks >= 1
    assert list(journal_files(folder / host.folder))
    assert (folder / "merged" / "rows.tsv").exists()


def test_the_command_of_a_killed_recorder_ends(node: Node, tmp_path: Path) -> None:
    with started_recorder(tmp_path / "run", node) as process:
        process.kill()
        # The command inherits the recorder's pipes, so they stay open until the command has ended.
        process.communicate(timeout=60)
