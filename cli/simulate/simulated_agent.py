"""A simulated agent: its node, its `/metrics` page and its sinks."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry

from cli.agent.sink_threads import Sinks
from cli.simulate.compute_gate import ComputeGate, GatedSink
from cli.simulate.simulated_journal import NodeHistory, SimulatedJournal
from collector.model.identity import Identity
from collector.model.rates import restart_event, tick_events
from collector.model.snapshot import JOLOKIA_SOURCE, Event, Scrape, Snapshot
from collector.recording.writer import Position
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth, JournalHealth, SinkHealth
from exporters.sinks.shipping.shipper import Plan, Shipper
from exporters.sinks.sink import Sink

# The size of a tick in a real journal.
TICK_BYTES = 900


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
