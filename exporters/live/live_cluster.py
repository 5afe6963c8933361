"""Many nodes followed in a thread of their own: connections, deadlines, the frame of each tick."""

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any

from collector.cluster.live.agent_connection import Link, LinkError
from collector.cluster.live.node_address import Target
from collector.jolokia.access import Access
from collector.model.sample import Sample
from exporters.live.agent_feed import AgentFeed
from exporters.live.frame import ALL
from exporters.live.frame_assembler import FrameAssembler, NodeInfo
from exporters.live.history import History
from exporters.live.live_columns import COLUMNS, EVERY, TABLE_METRICS, needs, patterns, shown_by

if TYPE_CHECKING:
    from collector.jolokia.client import Jolokia
    from exporters.live.jolokia_feed import JolokiaFeed

# A frame is closed when all have told of it, and at the latest after this share of an interval, or so long.
WAIT_SHARE, WAIT_S = 0.7, 2.0
LOOK_S = 0.04
# The first frame waits no longer than this for anybody.
FIRST_S = 0.35
MOST_BEHIND = 5
SWEEP_S = 0.25
# Who else there is, is asked so often.
PEERS_S = 15.0
MOST_NODES = 2000
RUNNING = frozenset({"cassandra_compaction_progress", "cassandra_compaction_size"})
# A seed that reads both notices that its cluster has changed.
MEMBERS = frozenset({"cassandra_endpoints_live", "cassandra_endpoints_unreachable"})


@dataclass(frozen=True)
class Wanted:
    """What the screen shows: columns by name, and the tables of a node by its place in frames, of ALL, or of none.

    node  of which all there is to know is wanted.
    """

    columns: frozenset[str]
    tables: int | None = None
    node: int | None = None


@dataclass(frozen=True)
class Plan:
    """Whom to follow and how: `seeds` are nodes that tell of others; `access` is that to agents."""

    targets: tuple[Target, ...]
    seeds: tuple[Target, ...]
    interval_s: float
    access: Access
    tls: ssl.SSLContext | None
    connect: "Callable[[str], Jolokia]"


class LiveCluster:
    """Follows nodes from `start` to `stop`; frames are in `history`."""

    def __init__(self, plan: Plan, wanted: Wanted, history: History, clock: Callable[[], float] = time.time) -> None:
        self.history = history
        self._plan = plan
        self._wanted = wanted
        self._clock = clock
        self._gathering = FrameAssembler(plan.interval_s)
        self._links: set[Link] = set()
        self._agents: dict[str, AgentFeed] = {}
        self._jolokias: dict[str, JolokiaFeed] = {}
        self._targets: dict[str, Target] = {}
        self._own: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="top feeds", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; frames stay."""
        for feed in self._jolokias.values():
            feed.stop()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(2.0)

    def want(self, wanted: Wanted) -> None:
        """Ask for what is to be shown from now on; from any thread."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._loop.call_soon_threadsafe(self._want)

    # What feeds call.

    def sample(self, key: str, sample: Sample, *, is_last: bool = False) -> None:
        """Take a sample; `is_last` for the last one there was, which may have been there for a while."""
        self._here(self._gathering.found if is_last else self._gathering.heard, key, sample, self._clock())

    def failed(self, key: str, why: str) -> None:
        """Take note that a node does not answer."""
        self._here(self._gathering.failed, key, why, self._clock())

    def known(self, key: str, known: NodeInfo, address: str, peers: Sequence[str]) -> None:
        """Take what is known of a node; of a seed, who else there is."""
        self._here(self._gathering.know, key, known)
        target = self._targets[key]
        if target in self._plan.seeds:
            self._here(self._meet_peers, target, address, tuple(peers))

    def _here(self, call: Callable[..., object], *arguments: Any) -> None:
        """Call in the loop's thread."""
        if threading.current_thread() is self._thread:
            call(*arguments)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._here, call, *arguments)

    # In the loop's thread.

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
        for target in (*self._plan.seeds, *self._plan.targets):
            self._meet(target)
        self._want()
        self._go(self._sweep())
        self._go(self._look_for_peers())
        try:
            await self._close_frames()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _go(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _meet(self, target: Target) -> None:
        key = target.url
        if key in self._targets or len(self._targets) >= MOST_NODES:
            return
        self._targets[key] = target
        self._gathering.meet(key, target.host)
        if target.is_agent:
            tls = self._plan.tls if target.scheme == "https" else None
            feed = self._agents[key] = AgentFeed(key, target, self._plan.access, tls, self, self._links)
            self._go(feed.follow())
        else:
            # Only where there is one: it brings along all that samples a node.
            from exporters.live.jolokia_feed import JolokiaFeed

            self._jolokias[key] = JolokiaFeed(key, lambda: self._plan.connect(key), self._plan.interval_s, self)

    def _meet_peers(self, seed: Target, address: str, peers: Sequence[str]) -> None:
        """Follow those that a seed tells of; itself it knows by the address that its node announces."""
        if address:
            self._own.add(address)
        before = len(self._targets)
        for peer in peers:
            if peer not in self._own:
                self._meet(seed.beside(peer))
        if len(self._targets) > before:
            self._want()

    def _want(self) -> None:
        wanted = self._wanted
        whole_node = wanted.node is not None
        usual = needs(wanted.columns)
        self._gathering.want(EVERY if whole_node else shown_by(usual), wanted.node if whole_node else wanted.tables)
        if wanted.tables == ALL:
            usual |= TABLE_METRICS
        whole = needs(column.name for column in COLUMNS) | TABLE_METRICS | RUNNING
        for place, key in enumerate(self._gathering.keys):
            is_whole = place == wanted.node
            if key in self._agents:
                # An agent takes so many patterns and no more: of all there is, all.
                self._agents[key].want(["cass*", "node_*"] if is_whole else patterns(usual))
            elif key in self._jolokias:
                metrics = whole if is_whole or wanted.tables == ALL else whole - TABLE_METRICS
                self._jolokias[key].want(metrics | MEMBERS if self._targets[key] in self._plan.seeds else metrics)

    async def _sweep(self) -> None:
        """End the connections that are past their deadline."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = self._loop.time()
            for link in list(self._links):
                if link.deadline_s < now_s:
                    link.fail(LinkError("no answer in time"))

    async def _look_for_peers(self) -> None:
        """Ask seeds again who else there is, and agents that did not know themselves yet."""
        while True:
            await asyncio.sleep(PEERS_S)
            for key, feed in list(self._agents.items()):
                if self._targets[key] in self._plan.seeds or not self._gathering.known(key).place:
                    await feed.ask_again()

    async def _close_frames(self) -> None:
        step_s = self._plan.interval_s
        # The first one is about the interval that is over: it is there at once.
        place = floor(self._clock() / step_s) - 1
        await self._wait(place, self._clock() + FIRST_S, first=True)
        while True:
            self.history.add(self._gathering.close(place, self._clock()))
            # Points that passed long ago, as while this was stopped, are no frames.
            now = floor(self._clock() / step_s)
            place = max(place + 1, now - MOST_BEHIND)
            if place > now + 1:
                place = now
                self._gathering.begin_anew(place)
            await self._wait(place, self._gathering.grid.end_of(place) + min(WAIT_SHARE * step_s, WAIT_S))

    async def _wait(self, place: int, latest_s: float, *, first: bool = False) -> None:
        """Wait until all have told of an interval, but no longer than to a time on the wall clock."""
        end_s = self._gathering.grid.end_of(place)
        # A clock that is set back must not stop the screen.
        ends_s = self._loop.time() + 2 * self._plan.interval_s + WAIT_S
        while self._clock() < latest_s and self._loop.time() < ends_s:
            if self._gathering.is_complete(place, first=first) and self._clock() >= end_s:
                return
            await asyncio.sleep(LOOK_S)
