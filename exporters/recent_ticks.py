"""Keeps the most recent ticks in memory, for sinks that are not behind and for clients of the API's event stream."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock

from collector.model.snapshot import Identity, Placement, Sample, Snapshot, Tick
from collector.recording.writer import Position

# Number of ticks kept; each takes up to 0.1 MB of memory.
KEPT = 20


@dataclass(frozen=True)
class RecentTick:
    """One tick.

    number     sequence number since the program started.
    identity   the node's identity at that time.
    placement  where the node runs, according to the journal's header for the tick.
    snapshot   the raw values.
    sample     the sample of the interval that ends with it; None for the first tick of a session.
    position   its position in the journal.
    """

    number: int
    identity: Identity
    placement: Placement
    snapshot: Snapshot
    sample: Sample | None
    position: Position

    @property
    def tick(self) -> Tick:
        return self.snapshot.tick


class RecentTicks:
    """Receives every tick from one thread and serves the most recent ones to many."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ticks: deque[RecentTick] = deque(maxlen=kept)
        self._lock = Lock()
        self._listeners: list[Callable[[RecentTick], None]] = []
        self._number = 0

    def add(
        self, snapshot: Snapshot, identity: Identity, placement: Placement, sample: Sample | None, position: Position
    ) -> None:
        """Add a tick, and call the subscribers."""
        with self._lock:
            self._number += 1
            moment = RecentTick(self._number, identity, placement, snapshot, sample, position)
            self._ticks.append(moment)
            listeners = list(self._listeners)
        for listener in listeners:
            listener(moment)

    def clear(self) -> None:
        """Drop all ticks, because the next one does not follow them directly; readers must go back to the journal."""
        with self._lock:
            self._ticks.clear()
            self._number += 1

    @property
    def last(self) -> RecentTick | None:
        """The newest tick; None before the first tick and after `clear`."""
        with self._lock:
            return self._ticks[-1] if self._ticks else None

    def at(self, time_s: float) -> int | None:
        """Return the number of the kept tick with this time, or None."""
        with self._lock:
            return next((recent.number for recent in reversed(self._ticks) if recent.tick.time_s == time_s), None)

    def after(self, number: int) -> list[RecentTick] | None:
        """Return the ticks after the one with this number; None if some of them are no longer kept."""
        with self._lock:
            if self._ticks and number + 1 < self._ticks[0].number:
                return None
            return [moment for moment in self._ticks if moment.number > number]

    def kept(self) -> list[RecentTick]:
        """Return the kept ticks, oldest first."""
        with self._lock:
            return list(self._ticks)

    def subscribe(self, listener: Callable[[RecentTick], None]) -> Callable[[], None]:
        """Call `listener` with every tick, in the thread that adds it; return a function that ends the subscription."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


@contextmanager
def arrivals(recent: RecentTicks) -> Iterator[asyncio.Event]:
    """Return a context with an event of the running loop that is set when a tick is added."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def notify(_: RecentTick) -> None:
        # The sampling thread calls this, possibly after the loop has ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(arrived.set)

    unsubscribe = recent.subscribe(notify)
    try:
        yield arrived
    finally:
        unsubscribe()
