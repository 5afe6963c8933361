"""Queries agents about their nodes, and measures the offsets of their clocks."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from collector.agents.agent_client import AgentClient, ClientInterruptedError
from collector.agents.agent_connection import AgentError
from collector.printable import one_line
from collector.recording.header import DAY_S
from collector.runs import clock_offset
from collector.runs.clock_offset import ClockOffsetError
from collector.runs.cluster_members import Membership
from collector.runs.run import NodeClock, RunNode
from collector.runs.run_file import is_finite

# The maximum number of agents that are sent requests at the same time.
MAX_PARALLEL = 16
# The `problem` of a `RunNode` whose client was interrupted.
INTERRUPTED = "interrupted"
ADDRESS_HINT = "(hint: check the agent's address)"
MAX_NODE_CHARS, MAX_VERSION_CHARS = 255, 100
MAX_PEERS = 2000
MIN_INTERVAL_S, MAX_INTERVAL_S = 1e-3, DAY_S


def nodes_of_agents(clients: Sequence[AgentClient], wall_s: Callable[[], float] = time.time) -> list[RunNode]:
    """Query several agents in parallel and return their nodes (see `node_of_agent`)."""
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        return list(pool.map(lambda client: node_of_agent(client, wall_s), clients))


def description_of(client: AgentClient) -> Mapping[str, Any]:
    """Return an agent's description of its node; empty if the agent does not answer."""
    try:
        content = client.json("/api/v1/node")
    except (AgentError, ClientInterruptedError):
        return {}
    return content if isinstance(content, dict) else {}


def last_tick_s(description: Mapping[str, Any]) -> float | None:
    """Return the time of an agent's last tick, in seconds since the epoch on its clock; None if it is unknown."""
    tick_s = description.get("tick_s")
    return float(tick_s) if is_finite(tick_s) else None


def membership_of(agent: str, description: Mapping[str, Any]) -> Membership:
    """Return what the node of an agent states about its cluster; unknown and malformed facts are empty."""
    address, cluster = (str(description.get(name) or "")[:MAX_NODE_CHARS] for name in ("address", "cluster"))
    peers = description.get("peers")
    known = peers[:MAX_PEERS] if isinstance(peers, list) else ()
    peers = frozenset(peer for peer in known if _is_text(peer, MAX_NODE_CHARS))
    return Membership(agent, address, cluster, peers, answers=description.get("answers") is not False)


def node_of_agent(client: AgentClient, wall_s: Callable[[], float] = time.time) -> RunNode:
    """Return an agent's node with the offset of its clock from the local one, `wall_s`, or with a `problem`."""
    url = client.address.url
    try:
        content = client.json("/api/v1/node")
        name, version, interval_s = (content[key] for key in ("node", "casstat", "interval_s"))
        if not _is_text(name or "", MAX_NODE_CHARS) or not _is_text(version, MAX_VERSION_CHARS):
            raise TypeError
        if not is_finite(interval_s) or not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
            raise TypeError
        clock = clock_offset.measured(lambda: _agent_times(client), wall_s, time.monotonic)
    except AgentError as error:
        return RunNode("", url, problem=one_line(error))
    except ClientInterruptedError:
        return RunNode("", url, problem=INTERRUPTED)
    except ClockOffsetError as error:
        return RunNode("", url, problem=one_line(f"{url}: {error}"))
    except (KeyError, TypeError):
        return RunNode("", url, problem=one_line(f"{url}: the response does not describe a node {ADDRESS_HINT}"))
    clocks = (NodeClock(clock.at_s, clock.offset_s, clock.error_s),)
    return RunNode(name or client.address.host, url, interval_s=float(interval_s), casstat=version, clocks=clocks)


def _is_text(value: Any, max_chars: int) -> bool:
    return isinstance(value, str) and len(value) <= max_chars


def _agent_times(client: AgentClient) -> tuple[float, float]:
    """Return when the agent received a request and when it responded, in seconds since the epoch on its clock.

    Raises AgentError and ClientInterruptedError, and KeyError or TypeError for an unexpected response.
    """
    content = client.json("/api/v1/time")
    received_s, sent_s = content["received_s"], content["sent_s"]
    if not is_finite(received_s) or not is_finite(sent_s):
        raise TypeError
    return float(received_s), float(sent_s)
