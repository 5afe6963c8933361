"""`casstat record` runs a command, and keeps everything that was measured while it ran, whatever happens."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from errno import ENOSPC
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from starlette.applications import Starlette

from cli.main import main
from cli.runs import command_session, record_program, recorder, run_folder
from cli.runs.command import output_marker
from cli.runs.finish import finish
from cli.runs.run_folder import LOCK_FILE, is_being_recorded, recording
from collector.atomic_file import replace_file
from collector.cluster.live.live_cluster import Plan
from collector.journal.segments import journal_files
from collector.runs import agent_client, run_file
from collector.runs.agent_runs import AgentRuns
from collector.runs.fetching import Fetched, fetched
from collector.runs.run_file import read_run
from exporters.api.app import build
from exporters.api.server import Server
from exporters.live.live_frames import LiveFrames, Wanted
from tests.collector.cluster.recorded_nodes import busy, record, timed
from tests.collector.fakes import file_size_limit
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.recording_agent import (
    AFTER_S,
    BEFORE_S,
    HOST,
    READS,
    Node,
    RecordingAgent,
    record_around_now,
    serving,
)
from tests.faults.terminal import ControllingTerminal
from tests.waiting import eventually


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with serving(tmp_path / "journal", "n1") as served:
        yield served


def recorded(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["record", *map(str, arguments)])
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def summaries(run: Path) -> dict[str, dict[str, Any]]:
    return {phase["name"]: phase for phase in json.loads((run / "summary.json").read_text())}


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
        ([], "no command given"),
        (["10.0.0.1"], "no command given"),
        (["--no-such-option", "--", "true"], "No such option"),
        (["--tag", "x", "--", "true"], "expected KEY=VALUE"),
        (["--fail-if", "read_p99_ms", "--", "true"], "expected COLUMN OPERATOR NUMBER"),
        (["--mark-regex", "(", "--", "true"], "'(' is not a regular expression: missing ), unterminated subpattern"),
        (["--mark-regex", "a{99999999999}", "--", "true"], "the repetition number is too large"),
        (["--mark-regex", "(" * 5000 + ")" * 5000, "--", "true"], "is not a regular expression"),
        (["--mark-regex", "\udcff(", "--", "true"], "is not a regular expression: missing )"),
        # A byte that is not valid UTF-8 is a valid pattern, and so is a large number of repetitions.
        (["--mark-regex", "\udcff", f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        (["--mark-regex", "a{9999999}", f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        (["::bad::", "-o", "run", "--", "true"], "is not a valid node address"),
        ([f"{HOST}:1", "-o", "run", "--", "true"], "no node can be recorded"),
        ([f"{HOST}:1", "-o", "full", "--", "true"], "already exists"),
        (["--seed", f"{HOST}:1", "-o", "run", "--", "true"], "no seed answered"),
        (["--seed", "ssh://h", "-o", "run", "--", "true"], "ssh://h: --seed takes the address of an agent"),
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
    assert "cannot begin the run: " in errors
    assert read_run(tmp_path / "run").nodes[0].ticks


def test_an_agent_that_disappears_is_a_gap_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    journal = record_around_now(tmp_path / "other", "n2")
    program = f"""
import time
from pathlib import Path
from tests.faults.recording_agent import serving
with serving(Path({str(journal)!r}), "n2") as (_, address):
    print(address, flush=True)
    time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    with other:
        address = other.stdout.readline().strip()
        command = ("sh", "-c", f"kill -9 {other.pid}; sleep 1.5")
        code, _, errors = recorded(capfd, node[1], address, "-o", folder, "--", *command)
    assert code == 0
    assert "1 node missing: n2" in errors
    assert errors.count(f"casstat: the run is incomplete (hint: run 'casstat fetch --recover {folder}')\n") == 1
    nodes = read_run(folder).nodes
    assert [bool(node.problem) for node in nodes] == [False, True]
    # The agent's response before the command is known.
    assert {(node.interval_s, node.casstat) for node in nodes} == {(1.0, "0.1.0")}


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


def test_a_private_agent_receives_no_credentials(
    node: Node, fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status line, as on a terminal, has the same credentials for all agents."""
    fake.node.do_reads(100)
    plans: list[Plan] = []
    authenticated: dict[str, set[bool]] = {}
    request = HTTPConnection.request

    class NoFrames(LiveFrames):
        """Frames of no nodes."""

        def __init__(self, plan: Plan, wanted: Wanted) -> None:
            plans.append(plan)
            super().__init__(replace(plan, nodes=()), wanted)

    def noted(connection: HTTPConnection, method: str, path: str, body: Any, headers: Mapping[str, str]) -> None:
        authenticated.setdefault(f"{connection.host}:{connection.port}", set()).add("Authorization" in headers)
        request(connection, method, path, body, headers)

    monkeypatch.setenv("CASSTAT_AGENT_PASSWORD", "secret")
    monkeypatch.setattr(command_session, "os", SimpleNamespace(isatty=lambda _: True, environ=os.environ))
    monkeypatch.setattr(command_session, "LiveFrames", NoFrames)
    monkeypatch.setattr(HTTPConnection, "request", noted)
    arguments = (node[1], fake.url, "--agent-user", "me", "-o", tmp_path / "run", "--", "sleep", "1.5")
    code, _, errors = recorded(capfd, *arguments)
    assert code == 0, errors
    private = urlsplit(read_run(tmp_path / "run").nodes[1].address).netloc
    assert authenticated == {node[1]: {True}, private: {False}}
    (plan,) = plans
    assert [address.authority for address in plan.nodes] == [node[1], private]
    assert not plan.access.headers


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


def started_recorder(folder: Path, *arguments: str, script: str = "echo up; sleep 60") -> "subprocess.Popen[str]":
    """Start a recorder and wait until its command prints `up`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "record", *arguments, "-o", str(folder), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_ctrl_c_ends_the_command_and_leaves_a_complete_run(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with started_recorder(folder, node[1]) as process:
        time.sleep(2.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in errors
    run = read_run(folder)
    assert run.end_s is not None
    assert run.end_s - run.begin_s < 10
    assert (folder / "merged" / "rows.tsv").exists()


def test_a_command_that_ignores_ctrl_c_is_terminated_by_the_second_one(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = "trap 'echo ignored' INT; echo up; while :; do sleep 0.05; done"
    with started_recorder(folder, node[1], script=script) as process:
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


def test_a_run_whose_recorder_was_killed_can_be_recovered(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with started_recorder(folder, node[1]) as process:
        began_s = read_run(folder).begin_s
        # Wait until the recorder has updated its lock file.
        eventually(lambda: (folder / LOCK_FILE).stat().st_mtime > began_s + 1)
        process.kill()
    alive_s = (folder / LOCK_FILE).stat().st_mtime
    run = read_run(folder)
    assert run.end_s is None
    assert main(["fetch", "--recover", str(folder)]) == 0
    assert "Traceback" not in capfd.readouterr().err
    run = read_run(folder)
    assert run.end_s == pytest.approx(alive_s, abs=1e-3)
    assert [node.folder for node in run.nodes] == ["nodes/n1"]
    assert {path.parent.name for path in journal_files(folder)} == {"n1"}
    assert (folder / "merged" / "rows.tsv").exists()


def test_the_command_of_a_killed_recorder_ends(node: Node, tmp_path: Path) -> None:
    with started_recorder(tmp_path / "run", node[1]) as process:
        process.kill()
        # The command inherits the recorder's pipes, so they are closed when it has ended.
        process.communicate(timeout=30)


@pytest.fixture
def unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit the tables, plots and summary, which take most of the time of a short run."""
    monkeypatch.setattr(record_program, "finish", lambda *_, **__: False)


@pytest.mark.usefixtures("unfinished")
def test_the_status_of_a_command_that_is_killed_is_that_of_a_shell(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert recorded(capfd, node[1], "-o", tmp_path / "run", "--", "sh", "-c", "kill -9 $$")[0] == 128 + signal.SIGKILL
    command = read_run(tmp_path / "run").command
    assert command is not None
    assert command.exit_code == 128 + signal.SIGKILL


@pytest.mark.usefixtures("unfinished")
def test_a_run_ends_with_its_command_even_if_that_leaves_processes_in_the_background(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The first process keeps the output open, and the second one has a session of its own.
    script = "sleep 600 & echo $!; setsid sleep 600 >&- 2>&- & echo $!"
    code, out, errors = recorded(capfd, node[1], "-o", tmp_path / "run", "--", "sh", "-c", script)
    for pid in map(int, out.split()):
        os.kill(pid, signal.SIGKILL)
    assert (code, len(out.split())) == (0, 2), errors
    run = read_run(tmp_path / "run")
    assert run.end_s is not None
    assert run.end_s - run.begin_s < 60
    assert run.nodes[0].problem == ""


MIB = 1 << 20
SIZE_MIB = 64
# Prints by how much the highest resident size of the recorder, the parent of the supervisor, grows meanwhile.
PRINTING = f"""
import os, re, sys
def field(path, pattern):
    return int(re.search(pattern, open(path).read())[1])
recorder = field(f"/proc/{{os.getppid()}}/status", r"PPid:\\s+(\\d+)")
def highest():
    return field(f"/proc/{{recorder}}/status", r"VmHWM:\\s+(\\d+)")
sys.stdout.buffer.write(bytes({MIB}))
sys.stdout.flush()
before = highest()
for _ in range({SIZE_MIB - 1}):
    sys.stdout.buffer.write(bytes({MIB}))
sys.stdout.flush()
print(highest() - before, file=sys.stderr)
"""


def test_memory_does_not_depend_on_the_length_of_the_output_or_of_its_lines(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--quiet", "--mark-regex", "level", "-o", str(folder), "--")
    process = subprocess.run(
        [sys.executable, "-m", "cli", "record", node[1], *options, sys.executable, "-c", PRINTING],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    grown_kib, *_ = process.stderr.splitlines()
    size = (folder / "command.log").stat().st_size
    (folder / "command.log").unlink()
    assert process.returncode == 0, process.stderr
    assert size == SIZE_MIB * MIB + len(f"{grown_kib}\n")
    assert int(grown_kib) < SIZE_MIB * MIB // 4 // 1024


@pytest.mark.usefixtures("unfinished")
def test_output_in_another_encoding_passes_unchanged_and_its_marks_are_readable(
    node: Node, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The pattern's group does not participate in the match, so the mark is the whole match."""
    output = b"\xff level \xe4 7\n\xc3"
    Path(tmp_path / "output").write_bytes(output)
    # The byte 0xE4 in an argument, as Python decodes it.
    options = ("--mark-regex", "(rate )?level \udce4 .", "-o", str(tmp_path / "run"))
    assert main(["record", node[1], *options, "--", "cat", str(tmp_path / "output")]) == 0
    printed = capfdbinary.readouterr()
    assert (printed.out, printed.err) == (output, b"")
    assert (tmp_path / "run" / "command.log").read_bytes() == output
    assert [mark.text for mark in read_run(tmp_path / "run").marks] == ["level \ufffd 7"]


def test_a_command_can_read_from_the_terminal(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = "echo ready; read line; echo got $line; sleep 1.5; exit 3"
    with ControllingTerminal(100, "record", node[1], "-o", str(folder), "--", "sh", "-c", script) as terminal:
        terminal.read_until("ready")
        terminal.type("hello\n")
        code, _ = terminal.end(None)
    assert code == 3
    assert "0:00  waiting for the first interval" in terminal.text
    assert "got hello" in terminal.text
    assert terminal.lines[-1] == str(folder)
    assert (folder / "command.log").read_text() == "ready\nhello\ngot hello\n"


@pytest.mark.usefixtures("unfinished")
def test_agents_of_another_api_version_are_listed_and_the_others_are_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Server(Starlette(), f"{HOST}:0", None, print)
    with ExitStack() as stack, serving(tmp_path / "other", "n2") as (other, address):
        stack.callback(empty.stop)
        monkeypatch.setattr(other, "node", lambda: {"name": "n2", "period_ms": 1000})
        addresses = (f"{HOST}:{empty.address[1]}", address, node[1])
        code, _, errors = recorded(capfd, *addresses, "-o", tmp_path / "run", "--", "true")
    assert code == 0
    assert f"casstat: http://{addresses[0]}: HTTP 404" in errors
    assert f"casstat: http://{addresses[1]}: the response does not describe a node" in errors
    assert [bool(node.problem) for node in read_run(tmp_path / "run").nodes] == [True, True, False]


@pytest.mark.usefixtures("unfinished")
def test_an_agent_that_restarts_during_the_run_is_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    record_around_now(tmp_path / "other", "n2")
    servers = [Server(build(RecordingAgent(tmp_path / "other", "n2")), f"{HOST}:0", None, print)]
    address = f"{HOST}:{servers[0].address[1]}"

    def restart() -> None:
        eventually((tmp_path / "up").exists)
        servers[0].stop()
        servers.append(Server(build(RecordingAgent(tmp_path / "other", "n2")), address, None, print))
        (tmp_path / "go").touch()

    restarting = threading.Thread(target=restart)
    restarting.start()
    script = f"cd {tmp_path}; touch up; until [ -e go ]; do sleep 0.05; done"
    code, _, errors = recorded(capfd, node[1], address, "-o", folder, "--", "sh", "-c", script)
    restarting.join()
    servers[1].stop()
    assert code == 0
    assert errors == (
        f"casstat: the run ended early on http://{address}: its lease expired, or a client ended or deleted it\n"
    )
    assert [(node.name, node.problem) for node in read_run(folder).nodes] == [("n1", ""), ("n2", "")]
    assert all(node.ticks for node in read_run(folder).nodes)


@pytest.mark.usefixtures("unfinished")
def test_an_agent_that_disappears_during_the_fetch_is_a_gap_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)

    class Disappearing(RecordingAgent):
        """An agent that stops when it is asked for its journal."""

        def __init__(self, folder: Path, name: str) -> None:
            super().__init__(folder, name)
            self.server = Server(build(self), f"{HOST}:0", None, print)

        @property
        def journal(self) -> Path:
            self.server.stop()
            return tmp_path

        @journal.setter
        def journal(self, _: Path) -> None:
            """Ignore the directory."""

    address = f"{HOST}:{Disappearing(tmp_path, 'n2').server.address[1]}"
    code, _, errors = recorded(capfd, node[1], address, "-o", folder, "--", "true")
    assert code == 0
    assert f"http://{address}" in errors
    assert [(bool(node.problem), bool(node.ticks)) for node in read_run(folder).nodes] == [(False, True), (True, False)]
    assert [path.name for path in (folder / "nodes").iterdir()] == ["n1"]


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_an_agents_clock_is_reported_and_the_other_nodes_are_not_affected(
    step_s: float, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, offset_s = tmp_path / "run", 0.0
    now_s = float(int(time.time()))
    ticks = busy("n2", BEFORE_S + AFTER_S, begin_s=now_s - BEFORE_S)
    record(tmp_path / "other", timed(ticks, lambda time_s: step_s if time_s > now_s else 0.0))
    with serving(tmp_path / "other", "n2", lambda: time.time() + offset_s) as (stepping, address):
        begin_run = stepping.begin_run

        def step(*arguments: Any) -> Any:
            nonlocal offset_s
            offset_s = step_s
            return begin_run(*arguments)

        monkeypatch.setattr(stepping, "begin_run", step)
        code, _, errors = recorded(capfd, node[1], address, "-o", folder, "--", "sh", "-c", "sleep 2; exit 3")
    assert code == 3, errors
    assert f"n2: its clock changed by {step_s:+.2f} s during the run, so its rows may be shifted" in errors
    steady, stepped = read_run(folder).nodes
    assert [round(clock.offset_s) for clock in stepped.clocks] == [0, step_s]
    assert [bool(node.ticks >= 2) for node in (steady, stepped)] == [True, True]
    assert summaries(folder)["main"]["values"]["reads_per_s"] == READS


def test_an_agent_whose_journal_has_been_deleted_is_a_gap_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with serving(tmp_path / "other", "n2") as (_, other):
        command = ("sh", "-c", f"rm -r {tmp_path / 'other'}; sleep 1.5")
        code, _, errors = recorded(capfd, node[1], other, "-o", folder, "--", *command)
    assert code == 0
    assert f"casstat: http://{other}: no ticks were recorded in this time range" in errors
    assert "1 node missing: n2" in errors
    assert [node.folder for node in read_run(folder).nodes] == ["nodes/n1", ""]


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, writes: int) -> Iterator[None]:
    """Allow a run's file to be written only `writes` times in the block, as if the disk were full after that."""
    remaining = iter(range(writes))

    def replace_or_fail(path: Path, content: bytes) -> None:
        if next(remaining, None) is None:
            raise OSError(ENOSPC, "No space left on device", str(path))
        replace_file(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(run_file, "replace_file", replace_or_fail)
        yield


@pytest.mark.usefixtures("unfinished")
@pytest.mark.parametrize("writes", range(4))
def test_a_disk_that_is_full_when_the_runs_file_is_written_loses_nothing_that_was_recorded(
    writes: int, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written before and after the command, at the end of the run, and after the fetch."""
    folder = tmp_path / "run"
    with full_disk(monkeypatch, writes):
        code, _, errors = recorded(capfd, node[1], "-o", folder, "--", "sleep", "1.5")
    assert code == 125
    hint = f" (hint: run 'casstat fetch --recover {folder}')" if writes else ""
    assert errors == f"casstat: {folder / 'run.json'}: No space left on device{hint}\n"
    if not writes:
        assert not folder.exists()
        return
    assert main(["fetch", "--recover", str(folder)]) == 0
    run = read_run(folder)
    assert run.end_s is not None
    assert [(node.folder, node.problem) for node in run.nodes] == [("nodes/n1", "")]
    assert [path.name for path in (folder / "nodes").iterdir()] == ["n1"]
    assert run.nodes[0].ticks


def test_the_journal_of_a_private_agent_is_kept_if_the_run_could_not_be_completed(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with full_disk(monkeypatch, 3):
        code, _, errors = recorded(capfd, fake.url, "-o", folder, "--", "sleep", "2.5")
    assert code == 125
    assert errors.startswith(f"casstat: {folder / 'run.json'}: No space left on device (hint: ")
    assert not processes_with(str(folder))
    assert list(journal_files(folder / ".agents"))
    assert main(["fetch", "--recover", str(folder)]) == 0
    (node,) = read_run(folder).nodes
    assert (node.problem, node.journal) == ("", "")
    assert node.ticks >= 2
    assert {path.name for path in folder.iterdir()} == {
        *("run.json", "summary.json", "command.log", "nodes", "merged", "plots")
    }


def interrupted(function: Callable[..., None], call: int = 1) -> Callable[..., None]:
    """Return a function that presses Ctrl-C after the given call of `function`."""
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
        (recorder, "write_run", 2),
        (recorder, "write_run", 3),
    ],
)
def test_ctrl_c_at_the_end_leaves_a_run_that_can_be_recovered(
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
        patch.setattr(command_session, "os", SimpleNamespace(isatty=lambda _: True, environ=os.environ))
        patch.setattr(owner, name, interrupted(getattr(owner, name), call))
        code, _, errors = recorded(capfd, node[1], "-o", folder, "--", "sleep", "1.5")
    assert code == 130
    assert errors.count(f"casstat: the run is incomplete (hint: run 'casstat fetch --recover {folder}')\n") == 1
    assert main(["fetch", "--recover", str(folder)]) == 0
    assert read_run(folder).nodes[0].ticks


def test_a_disk_that_is_full_during_the_fetch_leaves_a_run_that_can_be_recovered(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def limited(*arguments: Any) -> Fetched:
        with file_size_limit(100):
            return fetched(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "fetched", limited)
        code, _, errors = recorded(capfd, node[1], "-o", folder, "--", "sleep", "1.5")
    assert code == 125
    assert errors.endswith(f": File too large (hint: run 'casstat fetch --recover {folder}')\n")
    assert main(["fetch", "--recover", str(folder)]) == 0
    assert (folder / "summary.json").exists()


def test_a_disk_that_is_full_in_the_end_leaves_the_recordings_and_the_status_of_the_command(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def limited(*arguments: Any, **options: Any) -> bool:
        with file_size_limit(1):
            return finish(*arguments, **options)

    monkeypatch.setattr(record_program, "finish", limited)
    code = main(["record", node[1], "-o", str(folder), "--", "sh", "-c", "sleep 1.5; exit 3"])
    errors = capsys.readouterr().err
    assert code == 3
    assert f"casstat: {folder}: File too large\n" in errors
    assert "Traceback" not in errors
    assert errors.endswith(f"{folder}\n")
    assert not (folder / "summary.json").exists()
    assert read_run(folder).nodes[0].problem == ""


@pytest.mark.usefixtures("unfinished")
def test_a_log_and_marks_that_cannot_be_written_are_reported_and_the_command_continues(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, _: str) -> None:
        raise OSError(ENOSPC, "No space left on device", str(folder / "marks.jsonl"))

    monkeypatch.setattr(command_session, "LOG_FILE", "/dev/full")
    monkeypatch.setattr(output_marker, "append_mark", full)
    script = "echo level 1; yes | head -c 100000; exit 3"
    arguments = (node[1], "--mark-regex", "level .", "-o", tmp_path / "run", "--", "sh", "-c", script)
    code, out, errors = recorded(capfd, *arguments)
    assert (code, len(out)) == (3, len("level 1\n") + 100000)
    assert errors.splitlines() == [
        f"casstat: {tmp_path / 'run' / 'marks.jsonl'}: cannot write the mark: No space left on device",
        "casstat: /dev/full: the command's output is incomplete: No space left on device",
    ]


def test_a_run_is_not_begun_on_a_disk_that_is_almost_full(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_program, "MIN_FREE_BYTES", 1 << 60)
    code, _, errors = recorded(capfd, node[1], "-o", tmp_path / "run", "--", "true")
    assert code == 125
    assert re.search(rf"{tmp_path}/run: only \d+ MiB free \(hint: free at least", errors)
    assert not (tmp_path / "run").exists()
    assert node[0].known == {}


@pytest.mark.parametrize("files", [(), (".agents/1/agent.log",), ("run.json", "nodes/n1/a.jsonl.zst")])
def test_a_second_recorder_with_the_same_directory_fails_and_deletes_nothing(
    files: tuple[str, ...], node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with recording(folder):
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).touch()
        before = sorted(folder.rglob("*"))
        code, _, errors = recorded(capfd, node[1], "-o", folder, "--", "true")
        assert code == 125
        assert errors.startswith(f"casstat: {folder}: ")
        assert ("another process is recording this run" in errors) == (not files)
        assert sorted(folder.rglob("*")) == before
    assert node[0].known == {}


def test_a_recorder_that_finds_the_run_of_another_one_when_it_has_the_lock_deletes_nothing(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def created(folder: Path) -> bool:
        """Create the directory; then, another recorder starts and ends."""
        folder.mkdir()
        (folder / "file").touch()
        return True

    monkeypatch.setattr(run_folder, "create", created)
    code, _, errors = recorded(capfd, node[1], "-o", folder, "--", "true")
    assert (code, errors) == (125, f"casstat: {folder}: already exists (hint: choose another directory with -o)\n")
    assert (folder / "file").exists()


def test_a_directory_that_existed_before_is_left_if_there_is_no_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    code, _, errors = recorded(capfd, f"{HOST}:1", "-o", folder, "--", "true")
    assert code == 125
    assert "no node can be recorded" in errors
    assert {path.name for path in folder.iterdir()} <= {LOCK_FILE}


@pytest.mark.usefixtures("unfinished")
def test_the_lock_is_held_from_the_first_request_to_the_last(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    agent, address = node
    answer, held = agent.node, []

    def answered() -> Mapping[str, Any]:
        held.append(is_being_recorded(folder))
        return answer()

    monkeypatch.setattr(agent, "node", answered)
    assert recorded(capfd, address, "-o", folder, "--", "true")[0] == 0
    assert len(held) >= 3
    assert all(held)
    assert not is_being_recorded(folder)
