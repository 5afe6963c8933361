"""The agents of a run: their addresses and states, and private agents for nodes that have none."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from socket import getaddrinfo
from urllib.parse import urlsplit

import click

from cli.errors import CasstatError, errors_as, note
from cli.line.node_selection import users_of
from cli.parameters.access_options import JolokiaSettings, access_from, given_options, warn_if_plain
from cli.parameters.parameter_types import SshAddress, SshAddressError, is_ssh, parse_ssh_address
from cli.record.private_agent import PrivateAgent
from cli.record.ssh.remote_spool import JOLOKIA_PASSWORD, JOLOKIA_USER, TRUSTED_USER
from cli.record.ssh.ssh_agent import SshAgent
from cli.runs.agent_clients import AgentClients
from collector.agents.addresses import AGENT_PORT, NodeAddress, NodeAddressError, parse_address
from collector.agents.agent_client import MAX_PARALLEL, AgentClient
from collector.agents.agent_connection import AgentError
from collector.agents.agent_nodes import MAX_PEERS, description_of, membership_of
from collector.http.access import CheckPeer
from collector.node.host.trust import listener_problem, listening_users, user_names
from collector.printable import count_text, one_line
from collector.runs.cluster_members import Membership
from collector.runs.run import RunNode

PRIVATE_FOLDER = ".agents"
"""The subdirectory of a run with the journals of private agents."""
LOCAL_AGENT = NodeAddress("http", "127.0.0.1", AGENT_PORT)
MAX_HOST_CHARS = 253


@dataclass(frozen=True)
class RunAgents:
    """The agents of a run.

    journals  the directory of each agent's journal, relative to the run's directory, by the agent's address; "" unless
              the agent is a private one on this machine.
    failed    the nodes for which no agent could be started.
    names     the nodes of private agents as the user knows them, by the agent's address.
    detected  the check of each agent that the user has not named (see `AgentClients`).
    """

    journals: Mapping[NodeAddress, str]
    failed: tuple[RunNode, ...] = ()
    names: Mapping[NodeAddress, str] = field(default_factory=dict)
    detected: Mapping[NodeAddress, CheckPeer] = field(default_factory=dict)

    def clients(self, clients: AgentClients) -> AgentClients:
        """Return a factory of clients for these agents."""
        private = frozenset(agent for agent, journal in self.journals.items() if journal)
        return replace(clients, private=private, detected=self.detected)

    def described(self, text: str) -> str:
        """Return a text about the agents with the names of nodes in place of the addresses of private agents."""
        names = {form: name for address, name in self.names.items() for form in (address.url, address.authority)}
        if not names:
            return text
        return re.sub(rf"({'|'.join(map(re.escape, names))})(?!\d)", lambda found: names[found[0]], text)


def nodes_of(nodes: Sequence[str], clients: AgentClients) -> list[NodeAddress | SshAddress]:
    """Return the addresses of the nodes, without duplicates. Raises click.UsageError."""
    over_ssh = dict.fromkeys(ssh_addresses([node for node in nodes if is_ssh(node)]))
    return [*clients.addresses([node for node in nodes if not is_ssh(node)]), *over_ssh]


def ssh_addresses(hosts: Sequence[str]) -> list[SshAddress]:
    """Return the addresses of hosts. Raises click.UsageError."""
    with errors_as(click.UsageError, SshAddressError):
        return [parse_ssh_address(host) for host in hosts]


def agents_of(
    addresses: Sequence[NodeAddress | SshAddress],
    folder: Path,
    jolokia: JolokiaSettings,
    clients: AgentClients,
    stack: ExitStack,
    more: Sequence[str] = (),
) -> RunAgents:
    """Return the agents of all nodes, after starting private agents for nodes without one and for ssh addresses.

    If `addresses` is empty, this machine's node is recorded, through its agent if it has one. Private agents on this
    machine get the additional options `more`; they stop when `stack` is closed. Raises CasstatError if there is only
    one node and its agent cannot be started, and click.UsageError if the credentials for Jolokia are incomplete.
    """
    if not addresses and (local := _local_agent(jolokia, clients)) is not None:
        return local
    variables: dict[str, str] = {}
    if any(isinstance(address, SshAddress) for address in addresses):
        variables = _remote_variables(jolokia)
    private: list[tuple[str, str, PrivateAgent | SshAgent]] = []
    over_ssh: list[SshAgent] = []
    for address in addresses or (None,):
        if isinstance(address, SshAddress):
            over_ssh.append(stack.enter_context(SshAgent(address, folder, variables=variables)))
            private.append((address.url, "", over_ssh[-1]))
        elif address is None or not address.is_agent:
            options = (*_options(None if address is None else address.url, jolokia), *more)
            name, fallback, journal = (
                "this machine's node" if address is None else address.url,
                "" if address is None else _fallback_name(address, addresses, jolokia),
                f"{PRIVATE_FOLDER}/{len(private) + 1}",
            )
            private_agent = PrivateAgent(folder / journal, options, fallback_node=fallback)
            private.append((name, journal, stack.enter_context(private_agent)))
    for ssh_agent in over_ssh:
        # The agents stop in parallel.
        stack.callback(ssh_agent.begin_stop)
    journals = {address: "" for address in addresses if isinstance(address, NodeAddress) and address.is_agent}
    failed, names = [], {}
    for name, journal, agent in private:
        try:
            address = agent.address()
            journals[address], names[address] = journal, one_line(name)
        except CasstatError as error:
            if not journals and len(private) == 1:
                raise CasstatError(f"{one_line(name)}: {error}") from None
            failed.append(RunNode(name, "", problem=one_line(f"{name}: {error}")))
    return RunAgents(journals, tuple(failed), names)


def _fallback_name(
    address: NodeAddress, addresses: Sequence[NodeAddress | SshAddress], jolokia: JolokiaSettings
) -> str:
    """Return the name of the node behind a Jolokia agent until Cassandra answers; it differs from those of others."""
    if jolokia.jolokia_target and (target := _host(jolokia.jolokia_target)):
        return target
    others = [other for other in addresses if isinstance(other, NodeAddress) and other != address]
    return address.authority if any(other.host == address.host for other in others) else address.host


def _options(url: str | None, jolokia: JolokiaSettings) -> Iterator[str]:
    """Yield the options of a private agent."""
    if url and jolokia.jolokia_user:
        warn_if_plain("Jolokia's credentials", url)
    if url is not None:
        yield from ("--jolokia", url, "--source", "jolokia")
    for option, value in given_options(replace(jolokia, jolokia=None)):
        yield from (option, str(value.absolute() if isinstance(value, Path) else value))


def _remote_variables(jolokia: JolokiaSettings) -> dict[str, str]:
    """Return the environment variables with a remote agent's credentials and trusted users. Raises click.UsageError.

    Files with certificates and keys are not copied to the remote host; prints a note if there are any.
    """
    for name in ("jolokia_ca", "jolokia_cert", "jolokia_key"):
        if getattr(jolokia, name) is not None:
            note(f"--{name.replace('_', '-')} does not apply to ssh:// nodes")
    access = access_from(jolokia, os.environ)
    trusted = {TRUSTED_USER: " ".join(jolokia.trusted_user)} if jolokia.trusted_user else {}
    if not access.user:
        return trusted
    return {JOLOKIA_USER: access.user, JOLOKIA_PASSWORD: access.password, **trusted}


def _local_agent(jolokia: JolokiaSettings, clients: AgentClients) -> RunAgents | None:
    """Return this machine's agent if a trusted user's listens on its address; print a note if another user does.

    Any local user could listen there and receive the credentials for agents. Raises click.UsageError.
    """
    users = users_of(jolokia)
    listening = listening_users(LOCAL_AGENT.host, LOCAL_AGENT.port)
    if foreign := listening - users:
        note(
            f"ignoring the agent at {LOCAL_AGENT.authority}, which belongs to user {user_names(foreign)}"
            f" (hint: use --trusted-user, or name {LOCAL_AGENT.authority})"
        )
    if not listening or foreign:
        return None
    # Another user could take the address later, when the agent has ended.
    local = RunAgents({LOCAL_AGENT: ""}, detected={LOCAL_AGENT: partial(listener_problem, users=users)})
    with closing(local.clients(clients).client(LOCAL_AGENT)) as client:
        return local if "casstat" in description_of(client) else None


def seeds_of(nodes: Sequence[str], clients: AgentClients) -> list[NodeAddress]:
    """Return the addresses of the seeds. Raises click.UsageError for one that is not the address of an agent."""
    for node in nodes:
        if is_ssh(node):
            raise click.UsageError(f"{one_line(node)}: --seed takes the address of an agent")
    seeds = clients.addresses(nodes)
    for seed in seeds:
        if not seed.is_agent:
            raise click.UsageError(f"{one_line(seed.url)}: --seed takes the address of an agent")
    return seeds


def with_peers(nodes: Sequence[str], clients: AgentClients) -> list[NodeAddress]:
    """Return the addresses of the seeds and of all nodes that their agents know.

    Raises CasstatError, and click.UsageError for a seed that is not the address of an agent.
    """
    seeds = seeds_of(nodes, clients)
    addresses = dict.fromkeys(seeds)
    failures = []
    for seed in seeds:
        try:
            with closing(clients.client(seed)) as client:
                addresses |= dict.fromkeys(map(seed.with_host, _peers(client)))
        except AgentError as error:
            failures.append(str(error))
        except (KeyError, TypeError):
            failures.append(f"{seed.url}: the response does not describe a node")
    if len(failures) == len(seeds) and seeds:
        raise CasstatError(f"no seed answered: {one_line('; '.join(failures))}")
    for failure in failures:
        note(one_line(failure))
    return list(addresses)


def _peers(client: AgentClient) -> list[str]:
    """Return the hosts of the other nodes that an agent knows; print how many of them are invalid.

    Raises AgentError, KeyError and TypeError.
    """
    content = client.json("/api/v1/node")
    own, peers = content["address"], content["peers"]
    others = [peer for peer in peers[:MAX_PEERS] if peer != own]
    hosts = [peer for peer in others if _is_host(peer)]
    if len(hosts) < len(others):
        invalid = count_text(len(others) - len(hosts), "peer")
        note(one_line(f"{client.address.url}: {invalid} without a valid address cannot be recorded"))
    return hosts


def _is_host(peer: object) -> bool:
    """Return whether a peer that an agent returned is a host name or an IP address."""
    if not isinstance(peer, str) or len(peer) > MAX_HOST_CHARS:
        return False
    try:
        return parse_address(peer).host == peer.lower()
    except NodeAddressError:
        return False


def cluster_of(agents: RunAgents, clients: AgentClients) -> str:
    """Return the cluster name reported by the first agent that knows it; "" if none does."""
    for address in agents.journals:
        with closing(clients.client(address)) as client:
            if cluster := description_of(client).get("cluster"):
                return one_line(cluster)
    return ""


@dataclass(frozen=True)
class AgentState:
    """The state of an agent before a run.

    answers  whether its Cassandra answers.
    runs     the runs that are active on it, as `NAME on ADDRESS`.
    """

    answers: bool = False
    runs: tuple[str, ...] = ()


def states_of(clients: Sequence[AgentClient]) -> list[AgentState]:
    """Return the states of agents; `AgentState()` for an agent that does not answer."""

    def state(client: AgentClient) -> AgentState:
        try:
            answers = client.json("/api/v1/node")["answers"] is not False
            # Agents of earlier versions return ended runs as well.
            runs = client.json("/api/v1/runs?active=true")
            names = [str(run["name"]) for run in runs if run["end_s"] is None]
        except (AgentError, KeyError, TypeError):
            return AgentState()
        return AgentState(answers, tuple(one_line(f"{name} on {client.address.authority}") for name in names))

    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        return list(pool.map(state, clients))


def memberships_of(clients: Sequence[AgentClient], nodes: Sequence[RunNode]) -> list[Membership]:
    """Ask the agents of nodes what these know about their clusters."""
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        return list(map(membership_of, (node.address for node in nodes), pool.map(description_of, clients)))


def node_names(nodes: Sequence[RunNode]) -> dict[str, str]:
    """Return the names of a run's nodes, by the addresses of their agents; a node without an agent has its own."""
    return {_key(node): node.name or _host(node.address) or node.address for node in nodes}


def hosts_of(
    agents: RunAgents, nodes: Sequence[RunNode], memberships: Sequence[Membership]
) -> dict[str, frozenset[str]]:
    """Return the addresses at which nodes are reached that do not state their own, by the keys of `node_names`.

    `nodes` are those of the agents, in their order, followed by those that have none. Host names are resolved.
    """
    if len(nodes) < 2:
        # There is no other node whose ring could contain its address.
        return {}
    stated = {membership.agent for membership in memberships if membership.address}
    # The address of a private agent is not that of its node.
    private = {agent.url: agents.names.get(agent, "") for agent, journal in agents.journals.items() if journal}
    hosts = {
        key: {_host(private.get(key, key)), _host(node.name)} - {""}
        for node in nodes
        if (key := _key(node)) not in stated
    }
    names = sorted({host for of_node in hosts.values() for host in of_node})
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        resolved = dict(zip(names, pool.map(_addresses_of, names), strict=True))
    return {key: frozenset(address for host in of_node for address in resolved[host]) for key, of_node in hosts.items()}


def _key(node: RunNode) -> str:
    return node.address or node.name


def _addresses_of(host: str) -> frozenset[str]:
    """Return the IP addresses of a host; empty if its name cannot be resolved."""
    try:
        return frozenset(str(info[4][0]) for info in getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return frozenset()


def _host(text: str) -> str:
    """Return the host of a node's name or address; "" if there is none."""
    if "://" not in text:
        # A bare IPv6 address has no brackets.
        text = f"//[{text}]" if text.count(":") > 1 and not text.startswith("[") else f"//{text}"
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""
