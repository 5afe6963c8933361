"""The values of one interval for display, a row for every node and one for the cluster; the latest ones of each."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from collector.live.cluster_interval import ClusterEvent, State
from exporters.live.live_columns import COLUMNS, Cells

ALL = -1
"""Used in place of a node's index to stand for the whole cluster."""
Rows = Sequence[Mapping[str, Any]]
MAX_BYTES = 120 << 20
MAX_FRAMES = 3600
# Estimated bytes per node in a frame, not counting its numbers.
NODE_BYTES = 250
# Estimated bytes per table, compaction or event.
ROW_BYTES = 400


@dataclass(frozen=True)
class NodeFrame:
    """A node's row.

    reason    the problem in one line, or "".
    age_s     time since the node last answered, or, in the state SILENT, since its Cassandra last answered; None if it
              is answering now or has never answered.
    location  data centre and rack, as `dc/rack`.
    """

    __slots__ = ("age_s", "cells", "location", "name", "reason", "state")
    name: str
    state: State
    cells: Cells
    reason: str
    age_s: float | None
    location: str


@dataclass(frozen=True)
class GroupFrame:
    """The row of a data centre or of a rack.

    nodes    the indices of its nodes.
    counted  number of nodes whose values the row includes.
    """

    nodes: tuple[int, ...]
    cells: Cells
    counted: int


@dataclass(frozen=True)
class Frame:
    """One interval. A node has the same index in `nodes` in every frame.

    counted  number of nodes whose values the cluster's row includes.
    tables   rows of `exporters.rows.table_rows`, keyed by node index or ALL; only those requested.
    running  the running compactions, with the same keys.
    groups   the data centres and racks, only if requested; keyed by `dc` or `dc/rack`, or by "" if they are unknown.
    """

    time_s: float
    interval_s: float
    name: str
    nodes: tuple[NodeFrame, ...]
    cluster: Cells
    counted: int
    events: tuple[ClusterEvent, ...] = ()
    tables: Mapping[int, Rows] = field(default_factory=dict)
    running: Mapping[int, Rows] = field(default_factory=dict)
    groups: Mapping[str, GroupFrame] = field(default_factory=dict)


def locations_of(location: str) -> tuple[str, ...]:
    """Return the groups that a node belongs to, given its location: its data centre and, if known, its rack."""
    dc = location.partition("/")[0]
    return (dc,) if dc == location else (dc, location)


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
