"""`casstat record --client-host ssh://HOST` runs the command on other hosts, with a real sshd."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from cli.record import record_program
from cli.record.clients import remote_client_hosts
from cli.record.clients.remote_client_hosts import ClientCommand
from cli.record.command import output_observers
from cli.run_folder import LOCK_FILE
from cli.runs.run_redaction import RESULTS_FOLDER
from collector.recording.writer import files_of
from collector.runs.run_clock import RunClock
from collector.runs.run_file import read_run
from tests.faults.recorders import recorded, recover, summaries
from tests.faults.recording_agent import Node
from tests.faults.ssh_server import HOST, SshServer, ssh_server
from tests.waiting import eventually

# Prints its start time, waits until the command has begun on both hosts, uses the CPU for about four seconds, and
# creates files. The client hosts are this machine, so `began` is a directory of both.
LOAD = """
import os, sys, time
began_s = time.time()
print(f"began {began_s}", flush=True)
print("problem", file=sys.stderr, flush=True)
os.makedirs(os.path.join(sys.argv[1], "{index}"))
while len(os.listdir(sys.argv[1])) < 2:
    time.sleep(0.02)
busy_until_s = time.time() + 4.2
while time.time() < busy_until_s:
    pass
os.mkdir("results")
with open("results/of-{index}.txt", "w") as file:
    file.write("{host} " + os.environ["CASSTAT_RUN"] + "\\n" * 300_000)
os.symlink("/etc/passwd", "link")
sys.exit({index})
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    with ssh_server(tmp_path / "ssh", {}) as running:
        monkeypatch.setenv("PATH", running.path)
        yield running


def test_the_command_runs_on_all_hosts_at_the_same_time(
    node: Node, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    hosts = ("--client-host", server.url) * 2
    code, out, errors = recorded(
        capfd,
        *(node.address, *hosts, "--name", "load", "--mark-regex", "^beg.*$", "-o", folder),
        *("--", sys.executable, "-c", LOAD, tmp_path / "began"),
    )
    assert code == 1, errors
    began_s = [float(line.split()[-1]) for line in sorted(out.splitlines())]
    assert [line.split()[0] for line in sorted(out.splitlines())] == [f"{HOST}#1:", f"{HOST}#2:"]
    run = read_run(folder)
    assert run.command is not None
    # The offset between the clocks is known only approximately.
    assert min(began_s) > run.command.begin_s - 1
    # Both hosts print the line, but only the first one's marks the run.
    assert [mark.text for mark in run.marks] == [f"began {began_s[0]}"]
    assert f"{HOST}#2: problem\n" in errors
    assert [host.exit_code for host in run.client_hosts] == [0, 1]
    for index, host in enumerate(run.client_hosts):
        results = folder / host.results
        assert results == folder / RESULTS_FOLDER / f"{index}-{HOST}%23{index + 1}"
        assert (results / "files/results" / f"of-{index}.txt").read_text().split() == [HOST, "load"]
        assert "began " in (results / "command.log").read_text()
        assert {path.name for path in (results / "files").iterdir()} == {"results"}
        assert host.ticks >= 2
        assert len(host.clocks) == 2
        assert files_of(folder / host.folder)
        assert host.spool == ""
        assert host.problem == ""
    # Both hosts have the name of this machine.
    peaks = summaries(folder)[run.marks[0].text]["client_peaks"]
    assert peaks["cpu_busy_pct"]["node"] in (f"{HOST}#1", f"{HOST}#2")


def test_no_secret_is_hidden_by_the_prefix_of_its_line_or_by_the_length_of_its_line(
    node: Node, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    program = r"import sys; print('- name: DB_PASSWORD\n  value: hunter\n' + sys.argv[2] * 30_000)"
    hosts = ("--client-host", server.url) * 2
    command = ("--", sys.executable, "-c", program, "--password", "Geh3imnis")
    code, _, errors = recorded(capfd, node.address, *hosts, "-o", folder, *command)
    assert code == 0, errors
    for path in folder.rglob("*.log"):
        text = path.read_text()
        assert "REDACTED" in text
        assert not any(part in text for part in ("hunter", "Geh", "nis")), path


def test_the_command_ends_when_it_has_ended_on_all_hosts_however_slow_the_reader_of_its_output_is(
    node: Node,
    server: SshServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[ClientCommand] = []
    marked_s: list[float] = []

    class Observed(ClientCommand):
        """A command that the test knows."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            commands.append(self)

    def mark(*_: object) -> None:
        """Delay the output until the command has ended on both hosts."""
        eventually(lambda: all(command.result for command in commands))
        marked_s.append(time.time())

    clock = RunClock()
    monkeypatch.setattr(record_program, "RunClock", lambda: clock)
    monkeypatch.setattr(remote_client_hosts, "ClientCommand", Observed)
    monkeypatch.setattr(output_observers, "append_mark", mark)
    hosts = ("--client-host", server.url) * 2
    script = "echo level; sleep 0.{index}"
    options = ("--mark-regex", "level", "-o", tmp_path / "run", "--", "sh", "-c", script)
    code, _, errors = recorded(capfd, node.address, *hosts, *options)
    assert code == 0, errors
    run = read_run(tmp_path / "run")
    assert run.command is not None
    assert run.command.end_s is not None
    assert run.command.end_s < min(marked_s)
    last_s = max(command.result.ended_at_s for command in commands if command.result)
    assert run.command.end_s == pytest.approx(clock.at(last_s), abs=1e-3)


def is_sleeping(seconds: str) -> bool:
    """Return whether `sleep` is running with this argument."""
    return any(process.info["cmdline"] == ["sleep", seconds] for process in psutil.process_iter(["cmdline"]))


def started(server: SshServer, node: Node, folder: Path, script: str) -> "subprocess.Popen[str]":
    """Start a recorder with one client host, and wait until its command prints `up`."""
    words = [sys.executable, "-m", "cli", "record", node.address, "--client-host", server.url, "--quiet", "-o", folder]
    process = subprocess.Popen(
        [*map(str, words), "--", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"{HOST}: up\n"
    return process


def test_ctrl_c_ends_the_command_on_the_other_host(node: Node, server: SshServer, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started(server, node, folder, "trap 'echo bye > end; exit 7' INT; echo up; sleep 60 & wait") as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 7, errors
    (host,) = read_run(folder).client_hosts
    assert host.exit_code == 7
    assert (folder / host.results / "files/end").read_text() == "bye\n"


def test_a_command_that_ignores_ctrl_c_is_killed_by_the_third_one(
    node: Node, server: SshServer, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with started(
        server, node, folder, "trap 'echo int' INT; trap 'echo term' TERM; echo up; while :; do sleep 0.1; done"
    ) as process:
        assert process.stdout is not None
        for text in ("int", "term"):
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == f"{HOST}: {text}\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL, errors


def test_the_command_ends_if_the_connection_is_lost_and_the_rest_is_fetched_after_it_is_restored(
    node: Node, server: SshServer, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with started(server, node, folder, "echo data > file; echo up; sleep 60.25") as process:
        (begun,) = read_run(folder).client_hosts
        server.stop()
        eventually(lambda: not is_sleeping("60.25"))
        server.start()
        _, errors = process.communicate(timeout=100)
    assert process.returncode == 125
    assert f"{server.url}: connection lost, so the command is terminated" in errors
    (host,) = read_run(folder).client_hosts
    assert (host.exit_code, host.problem, host.spool) == (125, "", "")
    assert host.ticks >= 1
    assert (folder / host.results / "files/file").read_text() == "data\n"
    assert not Path(begun.spool).exists()


def test_a_killed_recorder_leaves_no_command_and_a_recoverable_run(
    node: Node, server: SshServer, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with started(server, node, folder, "echo data > file; echo up; sleep 61.25") as process:
        begin_s = read_run(folder).begin_s
        # Wait until ticks have been recorded.
        eventually(lambda: (folder / LOCK_FILE).stat().st_mtime > begin_s + 2.5)
        process.kill()
        eventually(lambda: not is_sleeping("61.25"))
    recover(folder)
    (host,) = read_run(folder).client_hosts
    assert (host.problem, host.exit_code, host.spool) == ("", None, "")
    assert (folder / host.results / "files/file").read_text() == "data\n"


def test_a_process_that_goes_on_writing_in_the_background_is_not_waited_for(
    node: Node, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pid_file = tmp_path / "pid"
    command = f"yes & echo $! > {pid_file}; exit 3"
    code, out, errors = recorded(
        capfd, node.address, "--client-host", server.url, "-o", tmp_path / "run", "--", "sh", "-c", command
    )
    assert code == 3, errors
    assert out
    # Its next write fails.
    eventually(lambda: not psutil.pid_exists(int(pid_file.read_text())))


def test_a_command_that_does_not_exist_has_the_status_of_a_shell(
    node: Node, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hosts = ("--client-host", server.url)
    code, _, errors = recorded(capfd, node.address, *hosts, "-o", tmp_path / "run", "--", "no-such-generator")
    assert (code, "No such file or directory" in errors) == (127, True)


def test_a_client_host_that_cannot_be_reached_prevents_the_run(
    node: Node, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hosts = ("--client-host", server.url, "--client-host", f"ssh://{HOST}:1")
    code, _, errors = recorded(capfd, node.address, *hosts, "-o", tmp_path / "run", "--", "true")
    assert code == 125
    assert f"ssh://{HOST}:1: " in errors
    assert "Connection refused" in errors
    assert not (tmp_path / "run").exists()
