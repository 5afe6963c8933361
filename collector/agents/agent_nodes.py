"""Queries agents about their nodes, and measures the offsets of their clocks.

A clock's offset is estimated from exchanges of timestamps, as in NTP.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from collector.agents.agent_client import MAX_PARALLEL, AgentClient, ClientInterruptedError
from collector.agents.agent_connection import AgentError
from collector.printable import one_line
from collector.recording.header import DAY_S
from collector.runs.cluster_members import Membership
from collector.runs.run import MAX_OFFSET_S, NodeClock, RunNode
from collector.runs.run_file import is_finite

# The `problem` of a `RunNode` whose client was interrupted.
INTERRUPTED = "interrupted"
ADDRESS_HINT = "(hint: check the agent's address)"
MAX_NODE_CHARS, MAX_VERSION_CHARS = 255, 100
MAX_PEERS = 2000
MIN_INTERVAL_S, MAX_INTERVAL_S = 1e-3, DAY_S
EXCHANGES = 8
# As a float, a time since the epoch has a resolution of about 0.2 µs.
RESOLUTION_S = 1e-6


class ClockOffsetError(ValueError):
    """The offset cannot be measured, because the agent's times are impossible."""


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
        clock = measured_offset(lambda: _agent_times(client), wall_s, time.monotonic)
    except AgentError as error:
        return RunNode("", url, problem=one_line(error))
    except ClientInterruptedError:
        return RunNode("", url, problem=INTERRUPTED)
    except ClockOffsetError as error:
        return RunNode("", url, problem=one_line(f"{url}: {error}"))
    except (KeyError, TypeError):
        return RunNode("", url, problem=one_line(f"{url}: the response does not describe a node {ADDRESS_HINT}"))
    return RunNode(name or client.address.host, url, interval_s=float(interval_s), casstat=version, clocks=(clock,))


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


def measured_offset(
    ask: Callable[[], tuple[float, float]],
    wall_s: Callable[[], float],
    monotonic_s: Callable[[], float],
    exchanges: int = EXCHANGES,
) -> NodeClock:
    """Return the offset of an agent's clock, measured in the exchange with the shortest round trip.

    `ask` sends a request to the agent, and returns the times at which the agent received and answered it, on the
    agent's clock. The agent received it at an unknown moment of the round trip. The offset is computed for its middle,
    so the error is at most half the round trip (RFC 5905, section 8). Raises ClockOffsetError.
    """
    measured = []
    for _ in range(exchanges):
        sent_s, began_s = wall_s(), monotonic_s()
        received_s, answered_s = ask()
        elapsed_s, processing_s = monotonic_s() - began_s, answered_s - received_s
        # Otherwise, a clock was changed, or the agent returned a wrong time.
        if 0 <= processing_s <= elapsed_s + RESOLUTION_S:
            half_s = max(elapsed_s - processing_s, 0.0) / 2
            measured.append(NodeClock(sent_s + half_s, received_s - sent_s - half_s, half_s))
    if not measured:
        raise ClockOffsetError("the agent's clock was changed during the measurement, or its times are wrong")
    best = min(measured, key=lambda clock: clock.error_s)
    if not abs(best.offset_s) <= MAX_OFFSET_S:
        raise ClockOffsetError("the agent's clock is more than a century off")
    return best
