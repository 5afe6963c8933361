"""Checks the agents of a run before its command starts."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cli.errors import CasstatError, note
from cli.record.run_nodes import AgentState, RunAgents, hosts_of, memberships_of, node_names, states_of
from cli.runs.agent_clients import AgentClients
from collector.agents.addresses import NodeAddress
from collector.agents.agent_client import AgentClient
from collector.agents.agent_nodes import nodes_of_agents
from collector.printable import count_text, one_line
from collector.runs.cluster_members import Membership, clusters_of, member_texts
from collector.runs.run import RunCluster, RunNode

# How long to wait for Cassandra's first response to an agent that has just started.
FIRST_TICK_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True)
class Preflight:
    """What agents state before a run.

    nodes        the run's nodes: first those with agents, in their order, and then those that cannot be recorded.
    other_runs   the active runs, as `NAME on ADDRESS`.
    memberships  what the nodes know about their clusters.
    hosts        the addresses at which nodes are reached that do not know their own (see `clusters_of`).
    clusters     the clusters of the nodes.
    """

    nodes: tuple[RunNode, ...]
    other_runs: tuple[str, ...]
    memberships: tuple[Membership, ...]
    hosts: Mapping[str, frozenset[str]]
    clusters: tuple[RunCluster, ...]


def preflight(
    agents: RunAgents, clients: AgentClients, *, require_all: bool, wall_s: Callable[[], float] = time.time
) -> Preflight:
    """Ask every agent for its node, clock and active runs, and print problems.

    Raises CasstatError if no node can be recorded or, with `require_all`, if any node cannot be recorded.
    """
    with clients.connected(agents.journals) as connections:
        nodes = nodes_of_agents(connections, wall_s)
        states = _states(connections, nodes)
        if any(journal or agent.tunnel for agent, journal in agents.journals.items()):
            # An agent that `record` started knows its node's name only after its first tick.
            nodes = nodes_of_agents(connections, wall_s)
        memberships = memberships_of(connections, nodes)
    problems = [
        agents.described(node.problem or ("" if state.answers else f"{node.address}: Cassandra does not answer"))
        for node, state in zip(nodes, states, strict=True)
    ]
    _report_problems([*problems, *(node.problem for node in agents.failed)], require_all=require_all)
    runs = tuple(run for state in states for run in state.runs)
    for run in runs:
        note(f"another run is active: {agents.described(run)}")
    for node in nodes:
        _warn_about_clock(node, agents)
    # If this process dies, `casstat fetch --recover` uses these directories to find the private agents' recordings.
    located = tuple(
        replace(node, journal=journal, spool=agent.tunnel.spool if agent.tunnel else "")
        for (agent, journal), node in zip(agents.journals.items(), nodes, strict=True)
    )
    all_nodes = (*located, *agents.failed)
    hosts = hosts_of(agents, all_nodes, memberships)
    clusters = clusters_of(memberships, node_names(all_nodes), hosts)
    for text in member_texts(clusters):
        note(f"{text}{'' if len(clusters) > 1 else _others_hint(agents)}")
    return Preflight(all_nodes, runs, tuple(memberships), hosts, clusters)


def _others_hint(agents: RunAgents) -> str:
    """Return how to record the other nodes of the cluster."""
    seed = next((agent for agent, journal in agents.journals.items() if not journal and not agent.tunnel), None)
    if seed is None:
        return " (hint: name the other nodes as well)"
    return f" (hint: with an agent on each node, use --seed {one_line(seed.authority)})"


def wait_for_answers(agents: Sequence[NodeAddress], clients: AgentClients) -> bool:
    """Return whether any agent's Cassandra answers, after waiting up to FIRST_TICK_S for agents just started."""
    with clients.connected(agents) as connections:
        return any(state.answers for state in _states(connections, nodes_of_agents(connections)))


def _states(clients: Sequence[AgentClient], nodes: Sequence[RunNode]) -> list[AgentState]:
    """Return the agents' states, after waiting up to FIRST_TICK_S for agents that have just started."""
    ends_s = time.monotonic() + FIRST_TICK_S
    while True:
        states = states_of(clients)
        are_final = all(state.answers or node.problem for state, node in zip(states, nodes, strict=True))
        if are_final or time.monotonic() >= ends_s:
            return states
        time.sleep(POLL_S)


def _report_problems(problems: Sequence[str], *, require_all: bool) -> None:
    """Print the nodes' problems; a node without one has "".

    Raises CasstatError if all nodes have a problem or, with `require_all`, if any node has one.
    """
    failures = [problem for problem in problems if problem]
    for problem in failures:
        note(one_line(problem))
    if len(failures) == len(problems):
        raise CasstatError("no node can be recorded (hint: run 'casstat doctor' on the node)")
    if failures and require_all:
        raise CasstatError(f"{len(failures)} of {count_text(len(problems), 'node')} cannot be recorded")


def _warn_about_clock(node: RunNode, agents: RunAgents) -> None:
    for clock in node.clocks:
        if node.interval_s is not None and clock.error_s > node.interval_s / 2:
            note(
                f"{agents.described(one_line(node.name))}: its clock offset is uncertain by {clock.error_s:.2f} s,"
                f" more than half an interval"
            )
