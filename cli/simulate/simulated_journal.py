"""The journal of a simulated node, from which its samples are shipped as from a real one.

Only the times of the ticks are kept: a snapshot that is no longer in memory is simulated again. However long a store is
down, it receives all ticks afterwards.
"""

from collections.abc import Callable, Iterator, Sequence
from threading import Condition

from collector.model.snapshot import Snapshot, Tick
from collector.recording.header import Header
from collector.recording.reader import Entry
from collector.recording.writer import Position
from collector.simulation.simulated_cluster import SimulatedNode

# The number of snapshots in memory; sinks that are not behind need only the newest.
KEPT = 2


class NodeHistory:
    """A node's snapshots, by the number of the tick. One thread adds ticks; any thread may read."""

    def __init__(self, node: SimulatedNode, header: Header, ticks: Sequence[Tick]) -> None:
        """`ticks` are the ticks so far; they grow, and are shared by all nodes."""
        self.node = node
        self.header = header
        self._ticks = ticks
        self._kept: dict[int, Snapshot] = {}
        self._count = 0
        self._changed = Condition()

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
