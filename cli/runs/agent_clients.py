"""Clients for the agents that the user names on the command line."""

import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import click

from cli.errors import errors_as
from cli.parameters.access_options import JolokiaSettings, agent_access, warn_of_agents
from collector.agents.addresses import NodeAddress, NodeAddressError, parse_address
from collector.agents.agent_client import AgentClient
from collector.http.access import Access, CheckPeer

# An agent keeps recording for 60 s after its tunnel breaks; the other 20 s allow for detecting that and reconnecting.
TUNNEL_PATIENCE_S = 80.0


@dataclass(frozen=True)
class AgentClients:
    """Creates clients with the user's credentials and TLS options.

    private   the addresses of private agents on this machine.
    detected  the addresses of agents that the user has not named, each with the check of its listener.
    """

    access: Access
    tls: ssl.SSLContext
    private: Collection[NodeAddress] = ()
    detected: Mapping[NodeAddress, CheckPeer] = field(default_factory=dict)

    def access_to(self, address: NodeAddress) -> Access:
        """Return the credentials for an agent.

        The user's credentials are sent only to agents that the user named, and to detected ones whose user is trusted.
        Agents that `record` started need none, and someone else may control the hosts that they run on.
        """
        is_named = address.tunnel is None and address not in self.private
        if not is_named:
            return Access()
        return replace(self.access, check_peer=self.detected[address]) if address in self.detected else self.access

    def client(self, address: NodeAddress) -> AgentClient:
        """Return a new client for an agent; it does not connect yet."""
        return AgentClient(address, self.access_to(address), self.tls)

    def fetching_client(self, address: NodeAddress) -> AgentClient:
        """Return a new client for fetching; it retries for up to TUNNEL_PATIENCE_S while its tunnel is broken."""
        patience_s = TUNNEL_PATIENCE_S if address.tunnel else 0.0
        return AgentClient(address, self.access_to(address), self.tls, patience_s)

    @contextmanager
    def connected(self, addresses: Iterable[NodeAddress]) -> Iterator[list[AgentClient]]:
        """Yield a new client for each agent; they are closed at the end of the block."""
        with ExitStack() as stack:
            yield [stack.enter_context(closing(self.client(address))) for address in addresses]

    def addresses(self, nodes: Sequence[str]) -> list[NodeAddress]:
        """Return the addresses of the nodes, without duplicates. Raises click.UsageError."""
        scheme = "https" if self.access.ca or self.access.certificate else "http"
        with errors_as(click.UsageError, NodeAddressError):
            addresses = list(dict.fromkeys(parse_address(node, scheme) for node in nodes))
        warn_of_agents(self.access, addresses)
        return addresses


def agent_clients(settings: JolokiaSettings) -> AgentClients:
    """Return a factory for clients with the user's options. Raises click.UsageError."""
    return AgentClients(*agent_access(settings))
