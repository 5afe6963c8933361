"""A run's agents, and their states before the run begins."""

import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.parameters.access_options import JolokiaSettings
from cli.record import run_nodes
from cli.record.private_agent import PrivateAgent
from cli.record.run_nodes import AgentState, RunAgents, agents_of, hosts_of, node_names, states_of, with_peers
from cli.runs.agent_clients import AgentClients
from collector.agents.addresses import NodeAddress, Tunnel, parse_address
from collector.http.access import Access
from collector.runs.cluster_members import Membership
from collector.runs.run import RunNode
from tests.cli.runs.fake_client import FakeAgent


def test_the_state_of_an_agent_includes_its_active_runs() -> None:
    runs = [{"name": "old", "end_s": 5.0}, {"name": "ramp", "end_s": None}]
    busy = FakeAgent("h1", {"/api/v1/node": {"answers": True}, "/api/v1/runs?active=true": runs})
    waiting = FakeAgent("h2", {"/api/v1/node": {"answers": False}, "/api/v1/runs?active=true": []})
    absent = FakeAgent("h3", {})
    assert states_of([busy, waiting, absent]) == [AgentState(True, ("ramp on h1:17199",)), AgentState(), AgentState()]


class FailingAgent(PrivateAgent):
    """A private agent that starts only if its directory is named `1`."""

    def __init__(self, folder: Path, _options: Sequence[str], *, fallback_node: str) -> None:
        self._name, self.fallback_node = folder.name, fallback_node

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


@pytest.mark.parametrize(
    ("urls", "settings", "expected"),
    [
        (["http://10.0.0.1:8778/jolokia", "http://db2:8778/jolokia"], JolokiaSettings(), ["10.0.0.1", "db2"]),
        (
            ["http://localhost:8778/jolokia", "http://localhost:8779/jolokia"],
            JolokiaSettings(),
            ["localhost:8778", "localhost:8779"],
        ),
        (["http://[2001:db8::1]:8778/jolokia"], JolokiaSettings(), ["2001:db8::1"]),
        (["http://proxy:8778/jolokia"], JolokiaSettings(jolokia_target="10.0.0.7:7199"), ["10.0.0.7"]),
        ([], JolokiaSettings(), [""]),
    ],
)
def test_nodes_that_have_not_answered_have_different_names_which_are_not_that_of_this_machine(
    urls: list[str], settings: JolokiaSettings, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []

    class NamedAgent(FailingAgent):
        def __init__(self, folder: Path, options: Sequence[str], *, fallback_node: str) -> None:
            super().__init__(folder, options, fallback_node=fallback_node)
            names.append(fallback_node)

    monkeypatch.setattr(run_nodes, "PrivateAgent", NamedAgent)
    monkeypatch.setattr(run_nodes, "_local_agent", lambda *_: None)
    clients = AgentClients(Access(), ssl.create_default_context())
    with ExitStack() as stack:
        agents_of(clients.addresses(urls), tmp_path, settings, clients, stack)
    assert names == expected


def test_the_addresses_of_nodes_that_do_not_state_them_are_those_at_which_they_are_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = {"db2": "10.0.0.2", "db4": "10.0.0.4", "localhost": "127.0.0.1"}

    def resolved(host: str, _port: None) -> list[tuple[object, ...]]:
        address = hosts.get(host, host)
        if not address[0].isdigit():
            raise OSError("unknown host")
        return [(2, 1, 6, "", (address, 0))]

    monkeypatch.setattr(run_nodes, "getaddrinfo", resolved)
    private, tunnelled = (
        parse_address("127.0.0.1:40001"),
        NodeAddress(
            "ssh",
            "db4",
            22,
            tunnel=Tunnel("/tmp/s/agent", "ssh://me@db4", "/tmp/casstat-0"),  # noqa: S108
        ),
    )
    named = [parse_address(host) for host in ("10.0.0.3", "db5", "10.0.0.6", "2001:db8::8")]
    agents = RunAgents(
        {private: ".agents/1", tunnelled: "", **dict.fromkeys(named, "")},
        names={private: "http://db2:8778/jolokia", tunnelled: "ssh://me@db4"},
    )
    nodes = [
        RunNode("db2", private.url, journal=".agents/1"),
        RunNode("vm4", tunnelled.url),
        RunNode("", named[0].url, problem="connection refused"),
        RunNode("", named[1].url, problem="unknown host"),
        RunNode("10.0.0.6", named[2].url),
        RunNode("http://10.0.0.7:8778/jolokia", "", problem="cannot start an agent"),
        RunNode("2001:db8::8", "http://[2001:db8::8]:17199"),
    ]
    memberships = [Membership(nodes[4].address, "10.0.0.6", "prod", frozenset(["10.0.0.6"]))]
    assert list(hosts_of(agents, nodes, memberships).values()) == [
        {"10.0.0.2"},
        {"10.0.0.4"},
        {"10.0.0.3"},
        set(),
        {"10.0.0.7"},
        {"2001:db8::8"},
    ]
    assert list(node_names(nodes).values()) == [
        "db2",
        "vm4",
        "10.0.0.3",
        "db5",
        "10.0.0.6",
        nodes[5].name,
        "2001:db8::8",
    ]


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
