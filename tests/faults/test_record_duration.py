"""`casstat record --duration` ends the command; one that has to be killed, or ends earlier, keeps its status."""

import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cli.main import main
from cli.record.clients.remote_client_hosts import ClientCommand
from cli.record.command import output_observers, supervised_command
from cli.record.command.supervised_command import TimeLimit
from collector.runs.run import RunCommand
from collector.runs.run_file import read_run
from tests.faults.recorders import recorded
from tests.faults.recording_agent import Node
from tests.faults.ssh_server import ssh_server

ENDLESS = "while :; do sleep 0.05; done"
LIMIT = ("--duration", "1s", "-o")


@pytest.fixture(autouse=True)
def short_grace_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised_command, "GRACE_S", 5.0)


class StandingClock:
    """A monotonic clock that stands still until a condition holds."""

    def __init__(self, holds: Callable[[], bool]) -> None:
        self._holds = holds
        self._began_s: float | None = None

    def __call__(self) -> float:
        # The recorder may have looked at the commands before the condition held, so only the next call is later.
        if self._began_s is None and self._holds():
            self._began_s = time.monotonic()
        return 0.0 if self._began_s is None else time.monotonic() - self._began_s


def command_of(folder: Path) -> RunCommand:
    command = read_run(folder).command
    assert command is not None
    assert command.end_s is not None
    return command


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60",
        f"trap 'exit 7' INT; {ENDLESS}",
        f"trap '' INT; {ENDLESS}",
        f"trap '' INT; trap 'exit 9' TERM; {ENDLESS}",
    ],
)
@pytest.mark.usefixtures("without_summary")
def test_a_command_that_ends_when_it_is_interrupted_has_succeeded(
    script: str, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = recorded(capfd, node.address, *LIMIT, tmp_path / "run", "--", "sh", "-c", script)
    assert code == 0
    assert "casstat: " not in errors
    command = command_of(tmp_path / "run")
    assert (command.exit_code, command.duration_s, command.ended_by_duration) == (0, 1.0, True)
    assert command.end_s is not None
    assert command.end_s - command.begin_s >= 1.0


@pytest.mark.usefixtures("without_summary")
def test_a_command_that_has_to_be_killed_has_failed(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised_command, "GRACE_S", 0.5)
    trapped = tmp_path / "trapped"
    monkeypatch.setattr(output_observers, "TimeLimit", partial(TimeLimit, now=StandingClock(trapped.exists)))
    script = f"trap '' INT TERM; : > '{trapped}'; {ENDLESS}"
    code, _, errors = recorded(capfd, node.address, *LIMIT, tmp_path / "run", "--", "sh", "-c", script)
    assert code == 128 + signal.SIGKILL
    assert "the command did not end within 1 s after its duration, so it has been killed" in errors
    command = command_of(tmp_path / "run")
    assert (command.exit_code, command.ended_by_duration) == (code, True)


@pytest.mark.usefixtures("without_summary")
def test_a_command_that_ends_by_itself_has_its_own_status(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ("--duration", "60s", "-o", tmp_path / "run")
    code, _, _ = recorded(capfd, node.address, *options, "--", "sh", "-c", "exit 3")
    assert code == 3
    command = command_of(tmp_path / "run")
    assert (command.exit_code, command.duration_s, command.ended_by_duration) == (3, 60.0, False)


@pytest.mark.usefixtures("without_summary")
def test_the_command_ends_on_all_client_hosts_and_one_that_had_failed_before_has_failed(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "test {index} = 0 || exit 4; trap 'exit 7' INT; " + ENDLESS
    has_ended = threading.Event()
    end = ClientCommand._end

    def ended(command: ClientCommand, problem: str) -> None:
        end(command, problem)
        has_ended.set()

    monkeypatch.setattr(ClientCommand, "_end", ended)
    monkeypatch.setattr(output_observers, "TimeLimit", partial(TimeLimit, now=StandingClock(has_ended.is_set)))
    with ssh_server(tmp_path / "ssh", {}) as server:
        monkeypatch.setenv("PATH", server.path)
        hosts = ("--client-host", server.url) * 2
        code, _, errors = recorded(capfd, node.address, *hosts, *LIMIT, tmp_path / "run", "--", "sh", "-c", script)
    assert code == 4, errors
    run = read_run(tmp_path / "run")
    assert [host.exit_code for host in run.client_hosts] == [0, 4]
    assert command_of(tmp_path / "run").ended_by_duration


def test_the_report_and_the_list_of_runs_state_that_the_duration_ended_the_command(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ("--duration", "3s", "-q", "-o", tmp_path / "run")
    code, _, errors = recorded(capfd, node.address, *options, "--", "sleep", "60")
    assert code == 0, errors
    report = (tmp_path / "run" / "report.md").read_text()
    assert "The command sleep 60 was ended after 3 s." in report.replace("`", "")
    assert "--duration 3s" in report
    assert main(["runs", "show", str(tmp_path / "run")]) == 0
    assert "command: sleep 60 (ended after 3 s)\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--duration", "0s"), "'0s' is out of range: must be at least 1 s"),
        (("--duration", "x"), "'x' is not a valid duration"),
        (("--duration", "5s", "--warm-up", "5s"), "--warm-up must be shorter than --duration"),
    ],
)
def test_an_impossible_duration_is_refused(
    options: tuple[str, ...], message: str, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = recorded(capfd, node.address, *options, "-o", tmp_path / "run", "--", "true")
    assert code == 125
    assert message in errors
    assert not (tmp_path / "run").exists()
