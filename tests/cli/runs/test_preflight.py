"""What `record` learns from its agents before its command starts."""

import ssl

import pytest

from cli.record.preflight import preflight
from cli.record.run_nodes import RunAgents
from cli.runs.agent_clients import AgentClients
from collector.agents.addresses import NodeAddress, Tunnel, parse_address
from collector.http.access import Access
from tests.cli.runs.fake_client import FakeAgent

TUNNELLED = NodeAddress("ssh", "h", 22, tunnel=Tunnel("/tmp/s/agent", "ssh://h", "/tmp/casstat-0"))  # noqa: S108
PRIVATE = parse_address("127.0.0.1:40001")


class StartingAgent(FakeAgent):
    """An agent that knows its node's name only after a client has learnt that Cassandra answers."""

    def json(self, path: str) -> object:
        if path == "/api/v1/runs?active=true":
            self.content["/api/v1/node"]["node"] = "n1"
        return super().json(path)


@pytest.mark.parametrize(("address", "journal"), [(PRIVATE, ".agents/1"), (TUNNELLED, "")])
def test_the_name_of_a_node_whose_agent_has_just_started_is_known_before_the_command_starts(
    address: NodeAddress, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {
        "/api/v1/node": {"node": None, "casstat": "1.0", "interval_s": 1.0, "answers": True},
        "/api/v1/time": {"received_s": 1.0, "sent_s": 1.0},
        "/api/v1/runs?active=true": [],
    }
    monkeypatch.setattr(AgentClients, "client", lambda *_: StartingAgent("h", content))
    clients = AgentClients(Access(), ssl.create_default_context())
    (node,) = preflight(RunAgents({address: journal}), clients, require_all=True).nodes
    assert node.name == "n1"
