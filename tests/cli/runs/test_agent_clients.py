"""Which agents receive the user's credentials."""

import ssl

from cli.runs.agent_clients import AgentClients
from collector.agents.addresses import NodeAddress, Tunnel, parse_address
from collector.http.access import Access

NAMED = parse_address("10.0.0.7")
PRIVATE = parse_address("127.0.0.1:40001")
TUNNELLED = NodeAddress("ssh", "h", 22, tunnel=Tunnel("/tmp/s/agent", "ssh://h", "/tmp/casstat-0"))  # noqa: S108


def test_credentials_are_only_for_agents_that_the_user_named() -> None:
    access = Access("me", "secret")
    clients = AgentClients(access, ssl.create_default_context(), {PRIVATE})
    assert clients.access_to(NAMED) == access
    assert clients.access_to(NAMED).check_peer is None
    assert clients.access_to(TUNNELLED) == clients.access_to(PRIVATE) == Access()


def test_the_listener_of_a_detected_agent_is_checked() -> None:
    clients = AgentClients(Access("me", "secret"), ssl.create_default_context(), detected={NAMED: refuse})
    assert clients.access_to(NAMED).check_peer is refuse


def refuse(_host: str, _port: int) -> str:
    return "it belongs to user nobody"
