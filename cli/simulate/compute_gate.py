"""Lets one shipping thread compute at a time, while any number of them wait for stores or for ticks.

Python runs one thread at a time anyway, and hundreds of threads that compete for the interpreter would spend most of
their time on that. The gate also shows whether the process keeps up with its stores: if no thread is at the gate, all
threads are waiting for something else.
"""

import threading
from collections.abc import Sequence
from typing import Any

from cli.simulate.simulated_journal import SimulatedJournal
from exporters.sinks.shipping.shipper import Runtime
from exporters.sinks.sink import NodeTick, Sink


class ComputeGate:
    """A lock that knows how many threads hold it or wait for it."""

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
