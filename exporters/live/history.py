"""The most recent frames, within a memory limit."""

from collections import deque
from collections.abc import Sequence
from threading import Condition

from exporters.live.frame import Frame
from exporters.live.live_columns import COLUMNS

MAX_BYTES = 120 << 20
MAX_FRAMES = 3600
# Estimated bytes per node in a frame, not counting its numbers.
NODE_BYTES = 250
# Estimated bytes per table, compaction or event.
ROW_BYTES = 400


class History:
    """Holds the frames that one thread adds and another reads."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_frames: int = MAX_FRAMES) -> None:
        self._frames: deque[tuple[Frame, int]] = deque()
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._size_bytes = 0
        self._changed = Condition()
        self._view: tuple[Frame, ...] = ()
        self.number = 0
        """Number of frames added so far."""

    def add(self, frame: Frame) -> None:
        """Add a frame, and remove the oldest frames while a limit is exceeded."""
        size_bytes = _size_bytes(frame)
        with self._changed:
            self._frames.append((frame, size_bytes))
            self._size_bytes += size_bytes
            self.number += 1
            while len(self._frames) > 1 and self._exceeds_limits():
                self._size_bytes -= self._frames.popleft()[1]
            self._view = ()
            self._changed.notify_all()

    def _exceeds_limits(self) -> bool:
        return len(self._frames) > self._max_frames or self._size_bytes > self._max_bytes

    def wait(self, number: int, timeout_s: float) -> bool:
        """Wait until more than `number` frames have been added; return False after the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self.number > number, timeout_s)

    @property
    def frames(self) -> Sequence[Frame]:
        """The frames, oldest first."""
        with self._changed:
            if len(self._view) != len(self._frames):
                self._view = tuple(frame for frame, _ in self._frames)
            return self._view


def _size_bytes(frame: Frame) -> int:
    rows = sum(len(rows) for rows in (*frame.tables.values(), *frame.running.values())) + len(frame.events)
    return (len(frame.nodes) + 1) * (8 * len(COLUMNS) + NODE_BYTES) + ROW_BYTES * rows
