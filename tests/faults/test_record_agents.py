"""`casstat record` with agents that are unreachable, stop, restart or misbehave: other nodes are not affected."""

import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from errno import ENOSPC
from math import inf
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from cli.record import record_program
from collector.agents import agent_client
from collector.runs.run_clock import RunClock
from collector.runs.run_file import read_run
from exporters.api.app import build
from exporters.api.server import Server
from tests.collector.merge.recorded_nodes import busy, record, timed
from tests.faults.recorders import recorded, recovery_hint, summaries
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
from tests.waiting import eventually


def test_a_node_that_cannot_be_reached_is_listed_and_the_others_are_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = (node.address, f"{HOST}:1", "-o", tmp_path / "run", "--", "sleep", "1.5")
    code, _, errors = recorded(capfd, "--require-all", *arguments)
    assert code == 125
    assert errors.endswith("casstat: 1 of 2 nodes cannot be recorded\n")
    code, _, errors = recorded(capfd, *arguments)
    assert code == 0
    assert f"http://{HOST}:1: Connection refused" in errors
    assert [node.folder for node in read_run(tmp_path / "run").nodes] == ["nodes/n1", ""]


@pytest.mark.usefixtures("without_summary")
def test_agents_with_another_api_version_are_listed_and_the_others_are_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Server(Starlette(), f"{HOST}:0", None, print)
    with ExitStack() as stack, serving(tmp_path / "other", "n2") as other:
        stack.callback(empty.stop)
        monkeypatch.setattr(other.agent, "node", lambda: {"name": "n2", "period_ms": 1000})
        addresses = (f"{HOST}:{empty.address[1]}", other.address, node.address)
        code, _, errors = recorded(capfd, *addresses, "-o", tmp_path / "run", "--", "true")
    assert code == 0
    assert f"casstat: http://{addresses[0]}: HTTP 404" in errors
    assert f"casstat: http://{addresses[1]}: the response does not describe a node" in errors
    assert [bool(node.problem) for node in read_run(tmp_path / "run").nodes] == [True, True, False]


def test_a_node_whose_agent_cannot_begin_the_run_is_recorded(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    node.agent.disk = OSError(ENOSPC, "No space left on device")
    code, _, errors = recorded(capfd, node.address, "-o", tmp_path / "run", "--", "sleep", "1.5")
    assert code == 0
    assert "cannot begin the run: " in errors
    assert read_run(tmp_path / "run").nodes[0].ticks


def test_a_node_whose_agent_is_killed_during_the_run_is_missing_with_a_reason(
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
        code, _, errors = recorded(capfd, node.address, address, "-o", folder, "--", *command)
    assert code == 0
    assert "1 node missing: n2" in errors
    assert errors.count(f"casstat: the run is incomplete {recovery_hint(folder)}\n") == 1
    nodes = read_run(folder).nodes
    assert [bool(node.problem) for node in nodes] == [False, True]
    # The interval and the version are known because the agent responded before the command started.
    assert {(node.interval_s, node.casstat) for node in nodes} == {(1.0, "0.1.0")}


@pytest.mark.usefixtures("without_summary")
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
    code, _, errors = recorded(capfd, node.address, address, "-o", folder, "--", "sh", "-c", script)
    restarting.join()
    servers[1].stop()
    assert code == 0
    assert errors == (
        f"casstat: the run ended early on http://{address}: its lease expired, or a client ended or deleted it\n"
    )
    assert [(node.name, node.problem) for node in read_run(folder).nodes] == [("n1", ""), ("n2", "")]
    assert all(node.ticks for node in read_run(folder).nodes)


@pytest.mark.usefixtures("without_summary")
def test_a_node_whose_agent_stops_during_the_fetch_is_missing_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)

    class Stopping(RecordingAgent):
        """An agent whose server stops when its journal is requested."""

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

    address = f"{HOST}:{Stopping(tmp_path, 'n2').server.address[1]}"
    code, _, errors = recorded(capfd, node.address, address, "-o", folder, "--", "true")
    assert code == 0
    assert f"http://{address}" in errors
    assert [(bool(node.problem), bool(node.ticks)) for node in read_run(folder).nodes] == [(False, True), (True, False)]
    assert [path.name for path in (folder / "nodes").iterdir()] == ["n1"]


def test_a_node_whose_journal_has_been_deleted_is_missing_with_a_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with serving(tmp_path / "other", "n2") as other:
        command = ("sh", "-c", f"rm -r {other.agent.journal}; sleep 1.5")
        code, _, errors = recorded(capfd, node.address, other.address, "-o", folder, "--", *command)
    assert code == 0
    assert f"casstat: http://{other.address}: no ticks were recorded in this time range" in errors
    assert "1 node missing: n2" in errors
    assert [node.folder for node in read_run(folder).nodes] == ["nodes/n1", ""]


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_a_nodes_clock_is_reported_and_loses_no_tick(
    step_s: float, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, stepped_at_s = tmp_path / "run", inf

    def offset_s(time_s: float) -> float:
        return step_s if time_s >= stepped_at_s else 0.0

    with serving(tmp_path / "other", "n2", lambda: time.time() + offset_s(time.time())) as stepping:
        begin = stepping.agent.begin

        def step(*arguments: Any) -> Any:
            """Step the clock in the second second of the run, in the journal as well."""
            nonlocal stepped_at_s
            stepped_at_s = float(int(time.time()) + 2)
            ticks = busy("n2", BEFORE_S + AFTER_S, begin_s=stepped_at_s - 2 - BEFORE_S)
            # Frames of one tick: none contains ticks from before and after the step.
            stepping.agent.journal = record(tmp_path / "stepped", timed(ticks, offset_s), full_every=1)
            return begin(*arguments)

        monkeypatch.setattr(stepping.agent, "begin", step)
        command = ("sh", "-c", "sleep 4; exit 3")
        code, _, errors = recorded(capfd, node.address, stepping.address, "-o", folder, "--", *command)
    assert code == 3, errors
    assert f"n2: its clock changed by {step_s:+.2f} s during the run\n" in errors
    assert "lost ticks" not in errors, errors
    steady, stepped = read_run(folder).nodes
    assert [round(clock.offset_s) for clock in stepped.clocks] == [0, step_s]
    assert min(steady.ticks, stepped.ticks) >= 2
    values = summaries(folder)["main"]["values"]
    assert (values["nodes"], values["node_intervals_missing"], values["reads_per_s"]) == (2, 0, 2 * READS), errors


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_run_keeps_its_length_if_the_clock_of_its_machine_is_set(
    step_s: float, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, stepped_at_s = tmp_path / "run", inf

    def wall_s() -> float:
        """Return the time of the recorder's and the agent's clock."""
        time_s = time.time()
        return time_s + step_s if time_s >= stepped_at_s else time_s

    monkeypatch.setattr(record_program, "RunClock", lambda: RunClock(wall_s))
    with serving(tmp_path / "journal", "n1", wall_s) as stepping:
        begin = stepping.agent.begin

        def step(*arguments: Any) -> Any:
            """Set the clock in the second second of the run, in the journal as well."""
            nonlocal stepped_at_s
            stepped_at_s = float(int(time.time()) + 2)
            ticks = busy("n1", BEFORE_S + AFTER_S, begin_s=stepped_at_s - 2 - BEFORE_S)
            stepping.agent.journal = record(
                tmp_path / "stepped",
                timed(ticks, lambda time_s: step_s if time_s >= stepped_at_s else 0.0),
                full_every=1,
            )
            return begin(*arguments)

        monkeypatch.setattr(stepping.agent, "begin", step)
        code, _, errors = recorded(capfd, stepping.address, "-o", folder, "--", "sleep", "4")
    assert code == 0, errors
    direction = "forward" if step_s > 0 else "back"
    assert f"the recorder's clock was set {direction} by 3,600.0 s; the run's times go on as before" in errors
    run = read_run(folder)
    assert run.command is not None
    assert run.command.end_s is not None
    assert run.end_s is not None
    assert run.begin_s < run.command.end_s <= run.end_s < time.time() + 1
    assert run.command.end_s - run.begin_s >= 4
    assert [round(clock_step.step_s) for clock_step in run.clock_steps] == [step_s]
    assert [round(clock.offset_s) for clock in run.client_hosts[0].clocks] == [0, step_s]
    values = summaries(folder)["main"]["values"]
    assert (values["nodes"], values["node_intervals_missing"], values["reads_per_s"]) == (1, 0, READS), errors
