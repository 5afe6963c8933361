"""`casstat record` starts a private agent for each node that is given as a Jolokia address."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from cli.record.command import output_observers
from cli.record.private_agent import PrivateAgent
from collector.agents.agent_client import AgentClient
from collector.http.access import Access
from collector.live.live_cluster import Plan
from collector.recording.frames import last_footer
from collector.recording.writer import files_of
from collector.runs.run import RunCluster
from collector.runs.run_file import read_run
from exporters.live.frame import LiveFrames, Wanted
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json
from tests.faults.program import PATIENCE_S
from tests.faults.recorders import (
    COMPLETE_RUN,
    names_in,
    processes_of,
    recorded,
    show_status_line,
    summaries,
    until_ticks,
)
from tests.faults.recording_agent import Node
from tests.waiting import eventually


def test_a_private_agent_leaves_nothing_but_its_recording(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    fake.node.do_reads(100)
    command = ("sh", "-c", until_ticks(3, fake, tmp_path))
    code, _, errors = recorded(capfd, fake.url, "-o", folder, "--", *command)
    assert code == 0, errors
    (node,) = read_run(folder).nodes
    assert (node.problem, node.folder.split("/")[0]) == ("", "nodes")
    assert node.ticks >= 2
    assert names_in(folder) == COMPLETE_RUN
    assert not processes_of(str(folder))


def test_a_private_agent_receives_no_credentials(
    node: Node, fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.node.do_reads(100)
    plans: list[Plan] = []
    authenticated: dict[str, set[bool]] = {}
    request = HTTPConnection.request

    class NoFrames(LiveFrames):
        """Follows no nodes, so that the status line sends no requests."""

        def __init__(self, plan: Plan, wanted: Wanted) -> None:
            plans.append(plan)
            super().__init__(replace(plan, nodes=()), wanted)

    def observed(connection: HTTPConnection, method: str, path: str, body: Any, headers: Mapping[str, str]) -> None:
        authenticated.setdefault(f"{connection.host}:{connection.port}", set()).add("Authorization" in headers)
        request(connection, method, path, body, headers)

    monkeypatch.setenv("CASSTAT_AGENT_PASSWORD", "secret")
    show_status_line(monkeypatch)
    monkeypatch.setattr(output_observers, "LiveFrames", NoFrames)
    monkeypatch.setattr(HTTPConnection, "request", observed)
    command = ("sh", "-c", until_ticks(2, fake, tmp_path))
    arguments = (node.address, fake.url, "--agent-user", "me", "-o", tmp_path / "run", "--", *command)
    code, _, errors = recorded(capfd, *arguments)
    assert code == 0, errors
    private = urlsplit(read_run(tmp_path / "run").nodes[1].address).netloc
    assert authenticated == {node.address: {True}, private: {False}}
    (plan,) = plans
    assert [address.authority for address in plan.nodes] == [node.address, private]
    assert [bool(plan.access(address).headers) for address in plan.nodes] == [True, False]


def test_settings_that_describe_this_machines_node_do_not_apply_to_other_nodes(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "NODE": "mine",
        "JOLOKIA_TARGET": "127.0.0.1:7199",
        "JOLOKIA_TARGET_USER": "me",
        "LOG_PATTERN": "%m%n",
    }.items():
        monkeypatch.setenv(f"CASSTAT_{name}", value)
    folder = tmp_path / "run"
    code, _, errors = recorded(capfd, fake.url, "-o", folder, "--", "sh", "-c", until_ticks(2, fake, tmp_path))
    assert code == 0, errors
    (node,) = read_run(folder).nodes
    assert node.name != "mine"
    assert node.ticks


def test_one_of_two_nodes_is_not_shown_as_the_cluster(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    fake.node.do_reads(100)
    condition = ("--fail-if", "nodes_unrecorded > 0")
    command = ("sh", "-c", until_ticks(4, fake, tmp_path))
    code, _, errors = recorded(capfd, fake.url, *condition, "-o", folder, "--", *command)
    # The ring of the node has another member.
    text = "1 of 2 nodes of the cluster Test Cluster recorded, not 192.0.2.8"
    assert f"casstat: {text} (hint: name the other nodes as well)\n" in errors
    assert f"\n{text}\n" in errors
    assert code == 1, errors
    assert [cluster.unrecorded for cluster in read_run(folder).clusters] == [("192.0.2.8",)]
    report = (folder / "report.md").read_text()
    assert "The cluster served" not in report
    assert f"**{text}.**" in report


@pytest.fixture
def other() -> Iterator[FakeJolokia]:
    """The other node in the ring of `fake`; it is down."""

    def with_own_id(_request: Json, answer: Json) -> Json:
        value = answer.get("value")
        if isinstance(value, dict) and "LocalHostId" in value:
            return {**answer, "value": {**value, "LocalHostId": "1e1e"}}
        return answer

    server = FakeJolokia()
    server.node.override = with_own_id
    server.stop()
    yield server
    server.close()


def test_a_node_that_never_answers_is_one_of_the_members(
    fake: FakeJolokia, other: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    command = ("sh", "-c", until_ticks(4, fake, tmp_path))
    code, _, errors = recorded(capfd, fake.url, other.url, "-o", folder, "--", *command)
    assert code == 0, errors
    # Both are reached at the same host, so the port distinguishes them. It is not known which member it is.
    name = f"127.0.0.1:{other.port}"
    run = read_run(folder)
    assert [node.name for node in run.nodes] == ["192.0.2.7", name]
    assert run.clusters == (RunCluster("Test Cluster", ("192.0.2.7",), ("192.0.2.8",), unidentified=(name,)),)
    assert f"main: {name}: 0 of" in errors
    assert " nodes of the cluster" not in errors
    values = summaries(folder)["main"]["values"]
    assert [values[name] for name in ("nodes", "nodes_missing", "nodes_unrecorded")] == [1, 1, 0]


def test_a_node_that_starts_during_the_run_is_a_member_of_its_cluster(
    fake: FakeJolokia, other: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    command = ("sh", "-c", until_ticks(4, other, tmp_path))

    def start() -> None:
        eventually((tmp_path / "begun").exists, 120)
        other.start()

    thread = threading.Thread(target=start)
    thread.start()
    code, _, errors = recorded(capfd, fake.url, other.url, "-o", folder, "--", *command)
    thread.join()
    assert code == 0, errors
    assert read_run(folder).clusters == (RunCluster("Test Cluster", ("192.0.2.7", "192.0.2.8")),)
    # It states this before the run, when it does not know the address of the node.
    assert "clusters" not in errors
    assert summaries(folder)["main"]["values"]["nodes_unrecorded"] == 0


def kill_supervisor_of(agent: PrivateAgent) -> psutil.Process:
    """Kill an agent's supervisor, and return the agent's process."""
    agent.wait_until_serving()
    (supervisor,) = psutil.Process().children()
    (process,) = supervisor.children()
    supervisor.kill()
    eventually(lambda: supervisor.status() == psutil.STATUS_ZOMBIE)
    return process


def test_an_agent_whose_supervisor_is_killed_ends_with_the_run(
    fake: FakeJolokia, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with PrivateAgent(tmp_path / "agent", ["--jolokia", fake.url]) as agent:
        process = kill_supervisor_of(agent)
        with closing(AgentClient(agent.address(), Access())) as client:
            tick_s = client.json("/api/v1/node")["tick_s"]
            eventually(lambda: client.json("/api/v1/node")["tick_s"] != tick_s)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert capsys.readouterr().err == (
        "casstat: an agent's supervisor ended unexpectedly; the agent has been stopped without it\n"
    )
    # The journal is complete.
    assert all(last_footer(path) for path in files_of(tmp_path / "agent"))


def test_an_agent_whose_supervisor_and_owner_are_killed_ends(fake: FakeJolokia, tmp_path: Path) -> None:
    with PrivateAgent(tmp_path / "agent", ["--jolokia", fake.url]) as agent:
        process = kill_supervisor_of(agent)
        # The kernel closes the owner's end of the pipe when the owner is killed.
        read_end, write_end = os.pipe()
        os.dup2(write_end, agent._input, inheritable=False)
        psutil.wait_procs([process], PATIENCE_S)
        assert not process.is_running()
        os.close(read_end)
        os.close(write_end)
