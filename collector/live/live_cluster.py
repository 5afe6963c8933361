"""Follows many nodes in a thread: manages connections and deadlines, and closes each interval."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any

from collector.agents.addresses import NodeAddress
from collector.agents.agent_connection import AgentConnection, AgentError
from collector.http.access import Access
from collector.live.cluster_interval import ClusterInterval, NodeInfo
from collector.live.feeds import AgentFeed
from collector.live.interval_assembler import IntervalAssembler
from collector.model.snapshot import Sample

if TYPE_CHECKING:
    from collector.live.feeds import JolokiaFeed
    from collector.node.jolokia.client import Jolokia

# An interval is closed when all reachable nodes have reported, but no later than WAIT_SHARE of an interval (at most
# WAIT_S) after its end.
WAIT_SHARE, WAIT_S = 0.7, 2.0
POLL_S = 0.04
# Maximum wait for the first interval.
FIRST_WAIT_S = 0.35
# The maximum number of overdue intervals. If there are more, for example after a suspension, the oldest are skipped.
MAX_INTERVALS_BEHIND = 5
DEADLINE_CHECK_S = 0.25
PEERS_INTERVAL_S = 15.0
MAX_NODES = 2000
# Selectors that together select all series; agents accept only a limited number of selectors.
ALL_SELECTORS = ("cass*", "node_*")
# Metrics that show changes in cluster membership; requested from seeds that are Jolokia agents.
MEMBERS = frozenset({"cassandra_endpoints_live", "cassandra_endpoints_unreachable"})


@dataclass(frozen=True)
class Request:
    """The series to request from the nodes.

    selectors      selectors of series for agents (see docs/agent.md).
    metrics        metrics to read through Jolokia.
    table_metrics  metrics to read through Jolokia from the selected node only.
    node           index of the selected node, from whose agent all series are requested; None if none is selected.
    """

    selectors: tuple[str, ...]
    metrics: frozenset[str]
    table_metrics: frozenset[str]
    node: int | None = None


@dataclass(frozen=True)
class Plan:
    """The nodes to follow and how to connect to them.

    The peers of `seeds` are followed as well, and all nodes that `discover` returns, which may block. `access` returns
    the credentials for a casstat agent, and `tls` applies to casstat agents with https; `connect` returns a client for
    the Jolokia agent at a URL.
    """

    nodes: tuple[NodeAddress, ...]
    seeds: tuple[NodeAddress, ...]
    interval_s: float
    access: Callable[[NodeAddress], Access]
    tls: ssl.SSLContext | None
    connect: "Callable[[str], Jolokia]"
    discover: Callable[[], Sequence[NodeAddress]] = tuple


class LiveCluster:
    """Follows nodes in a thread, from `start` to `stop`; the thread calls `on_interval` with each interval.

    summed_gauges  the gauges described in IntervalAssembler.
    """

    def __init__(
        self,
        plan: Plan,
        request: Request,
        on_interval: Callable[[ClusterInterval], None],
        *,
        summed_gauges: frozenset[str] = frozenset(),
    ) -> None:
        self._plan = plan
        self._request = request
        self._on_interval = on_interval
        self._assembler = IntervalAssembler(plan.interval_s, summed_gauges)
        self._connections: set[AgentConnection] = set()
        self._agents: dict[str, AgentFeed] = {}
        self._jolokias: dict[str, JolokiaFeed] = {}
        self._addresses: dict[str, NodeAddress] = {}
        self._seed_hosts: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="top feeds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Disconnect from all nodes and end the thread."""
        for feed in self._jolokias.values():
            feed.stop()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(2.0)

    def request(self, request: Request) -> None:
        """Replace the request. May be called from any thread."""
        self._request = request
        self._loop.call_soon_threadsafe(self._send_request)

    # Methods of FeedListener, which feeds may call from any thread.

    def on_sample(self, key: str, sample: Sample, *, is_last: bool = False) -> None:
        add = self._assembler.add_last_sample if is_last else self._assembler.add_sample
        self._call_in_thread(add, key, sample, time.time())

    def on_failure(self, key: str, reason: str) -> None:
        self._call_in_thread(self._assembler.add_failure, key, reason)

    def on_node(self, key: str, info: NodeInfo, address: str, peers: Sequence[str]) -> None:
        self._call_in_thread(self._assembler.set_info, key, info)
        node = self._addresses[key]
        if node in self._plan.seeds:
            self._call_in_thread(self._add_peers, node, address, tuple(peers))

    def _call_in_thread(self, call: Callable[..., object], *arguments: Any) -> None:
        if threading.current_thread() is self._thread:
            call(*arguments)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call_in_thread, call, *arguments)

    # The methods below run only in the event-loop thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    async def _main(self) -> None:
        for node in (*self._plan.seeds, *self._plan.nodes):
            self._add_node(node)
        self._send_request()
        self._start_task(self._check_deadlines())
        self._start_task(self._refresh_peers())
        self._start_task(self._discover())
        try:
            await self._close_intervals()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _add_node(self, node: NodeAddress) -> None:
        key = node.url
        if key in self._addresses or len(self._addresses) >= MAX_NODES:
            return
        self._addresses[key] = node
        self._assembler.add_node(key, node.host)
        if node.is_agent:
            plan = self._plan
            tls = plan.tls if node.scheme == "https" else None
            feed = AgentFeed(key, node, plan.access(node), tls, self, self._connections)
            self._agents[key] = feed
            self._start_task(feed.follow())
        else:
            # Imported on first use because it loads all modules needed to sample a node.
            from collector.live.feeds import JolokiaFeed

            self._jolokias[key] = JolokiaFeed(key, lambda: self._plan.connect(key), self._plan.interval_s, self)

    def _add_peers(self, seed: NodeAddress, address: str, peers: Sequence[str]) -> None:
        """Follow a seed's peers. The list also contains the seed's own address, which is skipped."""
        if address:
            self._seed_hosts.add(address)
        self._add_nodes(seed.with_host(peer) for peer in peers if peer not in self._seed_hosts)

    def _add_nodes(self, nodes: Iterable[NodeAddress]) -> None:
        count = len(self._addresses)
        for node in nodes:
            self._add_node(node)
        if len(self._addresses) > count:
            self._send_request()

    def _send_request(self) -> None:
        request = self._request
        for index, key in enumerate(self._assembler.keys):
            is_selected = index == request.node
            if key in self._agents:
                self._agents[key].request(ALL_SELECTORS if is_selected else request.selectors)
            elif key in self._jolokias:
                metrics = request.metrics | request.table_metrics if is_selected else request.metrics
                if self._addresses[key] in self._plan.seeds:
                    metrics |= MEMBERS
                self._jolokias[key].request(metrics, with_tables=metrics >= request.table_metrics)

    async def _check_deadlines(self) -> None:
        """Close connections that are past their deadline."""
        while True:
            await asyncio.sleep(DEADLINE_CHECK_S)
            now_s = self._loop.time()
            for connection in list(self._connections):
                if connection.deadline_s < now_s:
                    connection.fail(AgentError("no response in time"))

    async def _refresh_peers(self) -> None:
        """Periodically ask the seeds' agents for their peers, and other agents for their location if it is unknown."""
        while True:
            await asyncio.sleep(PEERS_INTERVAL_S)
            for key, feed in list(self._agents.items()):
                if self._addresses[key] in self._plan.seeds or not self._assembler.info(key).location:
                    await feed.refresh_node()

    async def _discover(self) -> None:
        """Periodically follow the nodes that have been discovered since; a node that is gone stays on the screen."""
        while True:
            await asyncio.sleep(PEERS_INTERVAL_S)
            self._add_nodes(await self._loop.run_in_executor(None, self._plan.discover))

    async def _close_intervals(self) -> None:
        step_s = self._plan.interval_s
        # Start with the interval before the current one, because its samples already exist.
        index = floor(time.time() / step_s) - 1
        await self._wait(index, time.time() + FIRST_WAIT_S, first=True)
        while True:
            self._on_interval(self._assembler.close(index, time.time()))
            current = floor(time.time() / step_s)
            index = max(index + 1, current - MAX_INTERVALS_BEHIND)
            if index > current + 1:
                index = current
                self._assembler.rewind(index)
            await self._wait(index, self._assembler.grid.end_of(index) + min(WAIT_SHARE * step_s, WAIT_S))

    async def _wait(self, index: int, latest_s: float, *, first: bool = False) -> None:
        """Wait until an interval has ended and all reachable nodes have reported for it.

        Returns at `latest_s` (wall-clock time) at the latest; `first` has the same meaning as in `is_complete`.
        """
        end_s = self._assembler.grid.end_of(index)
        # The wait is also bounded by the monotonic clock, in case the wall clock is set back.
        limit_s = self._loop.time() + 2 * self._plan.interval_s + WAIT_S
        while time.time() < latest_s and self._loop.time() < limit_s:
            if self._assembler.is_complete(index, first=first) and time.time() >= end_s:
                return
            await asyncio.sleep(POLL_S)
