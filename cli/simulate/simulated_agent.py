"""A simulated agent: its node, journal, `/metrics` page and sinks. Only one sink of all agents computes at a time."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry

from cli.agent.sink_threads import Sinks
from collector.model.rates import restart_event, tick_events
from collector.model.snapshot import JOLOKIA_SOURCE, Event, Identity, Scrape, Snapshot, Tick
from collector.recording.header import Header
from collector.recording.reader import Entry
from collector.recording.writer import Position
from collector.simulation.simulated_cluster import SimulatedNode
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth, JournalHealth, SinkHealth
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper
from exporters.sinks.sink import NodeTick, Sink

# The number of snapshots in memory; sinks that are not behind need only the newest.
KEPT = 2
# The size of a tick in a real journal.
TICK_BYTES = 900


class NodeHistory:
    """A node's snapshots, by the number of the tick. One thread adds ticks; any thread may read.

    Only the times of the ticks are kept: a snapshot that is no longer in memory is simulated again. However long a
    store is down, it receives all ticks afterwards.
    """

    def __init__(self, node: SimulatedNode, header: Header, ticks: Sequence[Tick]) -> None:
        """`ticks` are the ticks so far; they grow, and are shared by all nodes."""
        self.node = node
        self.header = header
        self._ticks = ticks
        self._kept: dict[int, Snapshot] = {}
        self._count = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._count

    def add(self) -> Snapshot:
        """Simulate the next tick, and return its snapshot."""
        number = self._count
        snapshot = self._kept[number] = self._simulated(number)
        self._kept.pop(number - KEPT, None)
        with self._changed:
            # Readers may see the tick only now.
            self._count = number + 1
            self._changed.notify_all()
        return snapshot

    def wait(self, seen: int, stopped: Callable[[], bool]) -> None:
        """Wait until there are more than `seen` ticks, or until `wake` has been called and `stopped` returns True."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > seen or stopped())

    def wake(self) -> None:
        """Let waiting threads notice that they are stopped."""
        with self._changed:
            self._changed.notify_all()

    def entry(self, number: int) -> Entry:
        """Return a tick that has been added."""
        return Entry(self.header, self._kept.get(number) or self._simulated(number), number=number)

    def _simulated(self, number: int) -> Snapshot:
        return self.node.snapshot(self._ticks[number], self.header.interval_s, first=number == 0)


class SimulatedJournal:
    """Reads a node's history from the newest tick on; implements `exporters.sinks.shipping.tick_queue.Journal`."""

    def __init__(self, history: NodeHistory) -> None:
        self._history = history
        self._next = len(history)

    def poll(self) -> Iterator[Entry]:
        """Yield the ticks since the last call."""
        while self._next < len(self._history):
            self._next += 1
            yield self._history.entry(self._next - 1)

    def wait(self, stopped: Callable[[], bool]) -> None:
        """Wait for a tick that has not been read yet; see `NodeHistory.wait`."""
        self._history.wait(self._next, stopped)

    def position(self, entry: Entry) -> Position:
        """Return the same position for all ticks, because no checkpoint is kept."""
        return Position(entry.head.session)

    def close(self) -> None:
        """Do nothing: there is no file."""


class ComputeGate:
    """Lets one shipping thread compute at a time, while any number of them wait for stores or for ticks.

    Python runs one thread at a time anyway, and hundreds of threads that compete for the interpreter would spend most
    of their time on that. The gate also shows whether the process keeps up with its stores: if no thread is at the
    gate, all threads are waiting for something else.
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._counting = threading.Lock()
        self._threads = 0

    def is_idle(self) -> bool:
        """Whether no thread computes or wants to."""
        return self._threads == 0

    def enter(self) -> None:
        """Wait until this thread may compute."""
        with self._counting:
            self._threads += 1
        self._gate.acquire()

    def leave(self) -> None:
        """Let another thread compute."""
        self._gate.release()
        with self._counting:
            self._threads -= 1


class GatedSink(Sink[Any]):
    """A sink whose thread leaves the gate while it sends or waits."""

    def __init__(self, sink: Sink[Any], gate: ComputeGate, journal: SimulatedJournal, stop: threading.Event) -> None:
        self.name, self.shards = sink.name, sink.shards
        self._sink = sink
        self._gate = gate
        self._journal = journal
        self._stop = stop
        self._is_inside = False

    def runtime(self) -> Runtime:
        """Return the system's clocks, and waits that leave the gate; at the end of the journal, for the next tick."""
        return Runtime(self._wait, idle=self._idle)

    def encode(self, tick: NodeTick) -> list[Any]:
        return self._sink.encode(tick)

    def replay(self, tick: NodeTick) -> None:
        self._sink.replay(tick)

    def time_ms(self, point: Any) -> int:
        return self._sink.time_ms(point)

    def size_bytes(self, point: Any) -> int:
        return self._sink.size_bytes(point)

    def text(self, point: Any) -> bytes:
        return self._sink.text(point)

    def send(self, points: Sequence[Any], timeout_s: float) -> None:
        """Send points outside the gate."""
        self._leave()
        try:
            self._sink.send(points, timeout_s)
        finally:
            self._enter()

    def close(self) -> None:
        """Leave the gate for good, and close the sink."""
        self._leave()
        self._sink.close()

    def _wait(self, seconds: float) -> bool:
        """Wait outside the gate; return whether shipping is stopped."""
        if not seconds:
            return self._stop.is_set()
        self._leave()
        stopped = self._stop.wait(seconds)
        self._enter()
        return stopped

    def _idle(self) -> bool:
        """Wait outside the gate for the next tick; return whether shipping is stopped."""
        self._leave()
        self._journal.wait(self._stop.is_set)
        stopped = self._stop.is_set()
        self._enter()
        return stopped

    def _enter(self) -> None:
        self._gate.enter()
        self._is_inside = True

    def _leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._gate.leave()


class SimulatedAgent:
    """Passes each tick of its node to the page and the sinks."""

    def __init__(
        self,
        history: NodeHistory,
        gate: ComputeGate,
        log: Callable[[str], None],
        wall_s: Callable[[], float],
        *,
        serves: bool,
    ) -> None:
        """Create the agent; `wall_s` returns the time, and `serves` states whether it has a page."""
        self.history = history
        self.is_silent = False
        self.pages = self.series = 0
        self.serving_s = 0.0
        self._origin = ""
        self._sinks = Sinks(Plan(lambda _: SimulatedJournal(history)), log, partial(_shipper, gate, history))
        self._page: Page | None = None
        if serves:
            interval_s = history.header.interval_s
            self._page = Page(Options(), CollectorRegistry(), self._health, log, wall_s, interval_s, wall_s)

    @property
    def name(self) -> str:
        return self.history.node.node

    def start(self, urls: Sequence[str]) -> None:
        """Start to push to the URLs of stores. Raises CasstatError."""
        self._sinks.change(urls, Position(""), Identity())

    def tick(self) -> None:
        """Simulate the next tick, and pass it on."""
        snapshot = self.history.add()
        scrape = next(scrape for scrape in snapshot.scrapes if scrape.source == JOLOKIA_SOURCE)
        self.is_silent = bool(scrape.problem)
        if self._page is not None:
            self._page.add(snapshot, self.history.node.identity, self._events(snapshot, scrape))

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the page, and count it."""
        assert self._page is not None  # noqa: S101 - only agents with a page are served
        began_s = time.monotonic()
        body = self._page.get(openmetrics=openmetrics, compressed=compressed)
        self.serving_s += time.monotonic() - began_s
        self.pages += 1
        self.series += self._page.series
        return body

    def sinks(self) -> tuple[SinkHealth, ...]:
        """Return the health of each sink, in the order of the URLs."""
        return self._sinks.health()

    def stop(self) -> None:
        """Tell the sinks to stop, without waiting for them."""
        self._sinks.stop()
        self.history.wake()

    def close(self, patience_s: float) -> None:
        """Wait for the sinks to stop, at most for `patience_s`."""
        self._sinks.close(patience_s)

    def _events(self, snapshot: Snapshot, scrape: Scrape) -> list[Event]:
        """Return the events that a real agent derives from the snapshot."""
        events = tick_events(snapshot.tick)
        if scrape.problem:
            events.append(Event("no_answer", f"{scrape.source}: {scrape.problem}"))
        elif scrape.origin != self._origin:
            if self._origin:
                events.append(restart_event([scrape.source]))
            self._origin = scrape.origin
        return events

    def _health(self) -> AgentHealth:
        where = self.history.node.placement
        journal = JournalHealth(size_bytes=TICK_BYTES * len(self.history))
        return AgentHealth(version("casstat"), journal, self.sinks(), machine=where.machine, network=where.network)


def _shipper(
    gate: ComputeGate,
    history: NodeHistory,
    sink: Sink[Any],
    plan: Plan,
    stop: threading.Event,
    log: Callable[[str], None],
) -> Shipper:
    """Return a shipper that computes only within the gate."""
    journal = SimulatedJournal(history)
    gated = GatedSink(sink, gate, journal, stop)
    # Catching up is not limited to a part of a core, because the process has no node to protect.
    plan = replace(plan, open_journal=lambda _: journal, cpu_share=1.0)
    return Shipper(gated, plan, gated.runtime(), log)
