"""The values of one interval of a live cluster, a row for every node and one for the cluster; the metrics they need."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from collector.live.cluster_interval import ClusterEvent, ClusterInterval, CountedNode, NodeStatus, State
from collector.live.live_cluster import LiveCluster, Plan, Request
from collector.model.snapshot import Sample
from exporters.live.live_columns import (
    COLUMNS,
    EVERY,
    NOTHING,
    SUMMED,
    TABLE_METRICS,
    Cells,
    cells_of,
    needs,
    selectors,
    shown_by,
)
from exporters.rows.table_rows import joint_tables, tables
from exporters.rows.view import running, with_last_known

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


MAX_TABLES = 60
RUNNING = frozenset({"cassandra_compaction_progress", "cassandra_compaction_size"})
ALL_METRICS = needs(column.name for column in COLUMNS) | TABLE_METRICS | RUNNING


@dataclass(frozen=True)
class Wanted:
    """The part of the data to display.

    columns  names of the columns to show.
    tables   index of the node for which tables are shown, or ALL; None to show no tables.
    node     index of the node that is shown with all its columns; None if there is none.
    groups   whether to show data centres and racks.
    """

    columns: frozenset[str]
    tables: int | None = None
    node: int | None = None
    groups: bool = False


class LiveFrames:
    """Follows a cluster from `start` until `stop`; its frames are in `history`."""

    def __init__(self, plan: Plan, wanted: Wanted) -> None:
        self.history = History()
        self._wanted = wanted
        self._cluster = LiveCluster(plan, request_of(wanted), self._add, summed_gauges=SUMMED)

    def start(self) -> None:
        """Start following the nodes in a new thread."""
        self._cluster.start()

    def stop(self) -> None:
        """Disconnect from the nodes; the frames remain available."""
        self._cluster.stop()

    def want(self, wanted: Wanted) -> None:
        """Replace the selection; may be called from any thread."""
        before, self._wanted = self._wanted, wanted
        if request_of(wanted) != request_of(before):
            self._cluster.request(request_of(wanted))

    def _add(self, interval: ClusterInterval) -> None:
        self.history.add(frame_of(interval, self._wanted))


def request_of(wanted: Wanted) -> Request:
    """Return the request to send to the nodes."""
    metrics = needs(wanted.columns)
    all_tables = wanted.tables == ALL
    if all_tables:
        metrics |= TABLE_METRICS
    return Request(
        tuple(selectors(metrics)),
        ALL_METRICS if all_tables else ALL_METRICS - TABLE_METRICS,
        TABLE_METRICS,
        wanted.node,
    )


def frame_of(interval: ClusterInterval, wanted: Wanted) -> Frame:
    """Return the frame of an interval, with the wanted columns and tables."""
    names = EVERY if wanted.node is not None else shown_by(needs(wanted.columns))
    table_rows, compactions = _details(interval, wanted.tables if wanted.node is None else wanted.node)
    everyone = tuple(range(len(interval.nodes)))
    counted = interval.counted_nodes
    cluster = _merged_row(interval, everyone, counted.at(counted.by_location), interval.cluster, names)
    return Frame(
        interval.end_s,
        interval.interval_s,
        interval.name,
        tuple(_row(node, names) for node in interval.nodes),
        cluster.cells,
        cluster.counted,
        interval.events,
        table_rows,
        compactions,
        _groups(interval, cluster, names) if wanted.groups else {},
    )


def _groups(interval: ClusterInterval, cluster: GroupFrame, names: frozenset[str]) -> dict[str, GroupFrame]:
    """Return the rows of the data centres and racks; `cluster` is the row of all nodes."""
    indices_by_location: dict[str, list[int]] = {}
    for index, node in enumerate(interval.nodes):
        for location in locations_of(node.info.location):
            indices_by_location.setdefault(location, []).append(index)
    groups: dict[str, GroupFrame] = {}
    # Groups of the same nodes, such as a data centre and its only rack, are merged once.
    by_nodes = {cluster.nodes: cluster}
    for location, indices in indices_by_location.items():
        nodes = tuple(indices)
        if nodes not in by_nodes:
            members = dict.fromkeys(interval.nodes[index].info.location for index in indices)
            counted = interval.counted_nodes.at(members)
            sample = interval.counted_nodes.merged_sample(members, interval.end_s)
            by_nodes[nodes] = _merged_row(interval, nodes, counted, sample, names)
        groups[location] = by_nodes[nodes]
    return groups


def _merged_row(
    interval: ClusterInterval,
    nodes: tuple[int, ...],
    counted: Sequence[CountedNode],
    sample: Sample,
    names: frozenset[str],
) -> GroupFrame:
    """Return the row of several nodes; `sample` is merged from those that are counted."""
    cells = cells_of(sample, local=bool(counted) and all(node.info.local for node in counted), names=names)
    return GroupFrame(nodes, cells, interval.answering(counted))


def _row(node: NodeStatus, names: frozenset[str]) -> NodeFrame:
    cells = NOTHING if node.sample is None else cells_of(node.sample, local=node.info.local, names=names)
    return NodeFrame(node.name, node.state, cells, node.reason, node.age_s, node.info.location)


def _details(interval: ClusterInterval, index: int | None) -> tuple[dict[int, Rows], dict[int, Rows]]:
    """Return the tables and the running compactions of a node, or of all nodes for ALL; both are keyed by `index`.

    The tables of a node that reports them at its own pace are the last known ones.
    """
    if index is None:
        return {}, {}
    if index == ALL:
        samples = [
            with_last_known(node.sample) for node in interval.nodes if node.sample is not None and node.is_current
        ]
        return {ALL: joint_tables(samples)[:MAX_TABLES]}, {ALL: running(interval.cluster)[:MAX_TABLES]}
    node = interval.nodes[index] if index < len(interval.nodes) else None
    if node is None or node.sample is None or not node.is_current:
        return {}, {}
    return {index: tables(with_last_known(node.sample))[:MAX_TABLES]}, {index: running(node.sample)[:MAX_TABLES]}
