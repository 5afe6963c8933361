"""A run's agents, and their states before the run begins."""

import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.parameters.jolokia_options import JolokiaSettings
from cli.runs import run_nodes
from cli.runs.agents.agent_clients import AgentClients
from cli.runs.agents.private_agent import PrivateAgent
from cli.runs.run_nodes import AgentState, agents_of, states_of, with_peers
from collector.agents.node_address import NodeAddress, parse_address
from collector.http.access import Access
from tests.cli.runs.fake_client import FakeAgent


def test_the_state_of_an_agent_includes_its_active_runs() -> None:
    runs = [{"name": "old", "end_s": 5.0}, {"name": "ramp", "end_s": None}]
    busy = FakeAgent("h1", {"/api/v1/node": {"answers": True}, "/api/v1/runs?active=true": runs})
    waiting = FakeAgent("h2", {"/api/v1/node": {"answers": False}, "/api/v1/runs?active=true": []})
    absent = FakeAgent("h3", {})
    assert states_of([busy, waiting, absent]) == [AgentState(True, ("ramp on h1:17199",)), AgentState(), AgentState()]


class FailingAgent(PrivateAgent):
    """A private agent that starts only if its directory is named `1`."""

    def __init__(self, folder: Path, _options: Sequence[str]) -> None:
        self._name = folder.name

    def address(self) -> NodeAddress:
        if self._name != "1":
            raise CasstatError("cannot start an agent: no space")
        return parse_address("127.0.0.1:1234", "http")

    def stop(self) -> None:
        """Do nothing, because nothing was started."""


def test_nodes_whose_agents_do_not_start_are_returned_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_nodes, "PrivateAgent", FailingAgent)
    clients = AgentClients(Access(), ssl.create_default_context())
    urls = [f"http://{host}:8778/jolokia" for host in ("h1", "h2")]
    with ExitStack() as stack:
        agents = agents_of(clients.addresses(urls), tmp_path, JolokiaSettings(), clients, stack)
        assert agents.journals == {parse_address("127.0.0.1:1234", "http"): ".agents/1"}
        (failed,) = agents.failed
        # Messages name the node that the user named, and not the agent that was started for it.
        assert agents.described("http://127.0.0.1:1234: no; r on 127.0.0.1:1234, 127.0.0.1:12345") == (
            f"{urls[0]}: no; r on {urls[0]}, 127.0.0.1:12345"
        )
        assert (failed.name, failed.problem) == (urls[1], f"{urls[1]}: cannot start an agent: no space")


def test_peers_without_a_valid_address_are_reported_and_the_others_are_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    valid = ["10.0.0.7", "fd00::8", "Node-9.example.org"]
    invalid: list[object] = [
        "10.0.0.7 x",
        "10.0.0.7\r\nX: y",
        "h:1",
        "http://h",
        "me@h",
        "h/x",
        "h?x",
        "ä",
        "h" * 254,
        "",
        None,
        7,
        [],
    ]
    content = {"/api/v1/node": {"address": "10.0.0.6", "peers": ["10.0.0.6", *valid, *invalid]}}
    monkeypatch.setattr(AgentClients, "client", lambda _, seed: FakeAgent(seed.host, content))
    clients = AgentClients(Access(), ssl.create_default_context())
    seed = parse_address("10.0.0.6")
    addresses = with_peers(["10.0.0.6"], clients)
    assert addresses == [seed, *(seed.with_host(host) for host in valid)]
    assert capsys.readouterr().err == (
        f"casstat: http://10.0.0.6:17199: {len(invalid)} peers without a valid address cannot be recorded\n"
    )


def test_private_and_remote_agents_trust_the_named_users() -> None:
    jolokia = JolokiaSettings(jolokia_user="me", jolokia_password_file=Path("/secret"), trusted_user=("dse", "999"))
    options = list(run_nodes._options(None, jolokia))
    assert options[-4:] == ["--trusted-user", "dse", "--trusted-user", "999"]
    assert run_nodes._remote_variables(JolokiaSettings(trusted_user=("dse", "999"))) == {
        "CASSTAT_TRUSTED_USER": "dse 999"
    }
