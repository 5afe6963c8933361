"""The last ticks, as many as fit: what sparklines are made of, and what one steps back to."""

from collections import deque
from collections.abc import Sequence
from threading import Condition

from exporters.live.frame import Frame
from exporters.live.live_columns import COLUMNS

LIMIT_BYTES = 120 << 20
LONGEST = 3600
# What a node takes in a frame beside its numbers: objects, and its share of events.
BESIDE_BYTES = 250
ROW_BYTES = 400


class History:
    """Takes frames from one thread, and shows them to another."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES, longest: int = LONGEST) -> None:
        self._frames: deque[tuple[Frame, int]] = deque()
        self._limit_bytes = limit_bytes
        self._longest = longest
        self._size_bytes = 0
        self._lock = Condition()
        self._shown: tuple[Frame, ...] = ()
        self.number = 0
        """How many frames there ever were."""

    def add(self, frame: Frame) -> None:
        """Take one more; the oldest go when there is no room."""
        size_bytes = _size_bytes(frame)
        with self._lock:
            self._frames.append((frame, size_bytes))
            self._size_bytes += size_bytes
            self.number += 1
            while len(self._frames) > 1 and (len(self._frames) > self._longest or self._size_bytes > self._limit_bytes):
                self._size_bytes -= self._frames.popleft()[1]
            self._shown = ()
            self._lock.notify_all()

    def wait(self, number: int, timeout_s: float) -> bool:
        """Return whether there was a frame after that many, as soon as there is."""
        with self._lock:
            return self._lock.wait_for(lambda: self.number > number, timeout_s)

    @property
    def frames(self) -> Sequence[Frame]:
        """The frames, the oldest first."""
        with self._lock:
            if len(self._shown) != len(self._frames):
                self._shown = tuple(frame for frame, _ in self._frames)
            return self._shown


def _size_bytes(frame: Frame) -> int:
    rows = sum(len(each) for each in (*frame.tables.values(), *frame.running.values())) + len(frame.events)
    return (len(frame.nodes) + 1) * (8 * len(COLUMNS) + BESIDE_BYTES) + ROW_BYTES * rows
