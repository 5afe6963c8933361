"""Frames of a live cluster: the metrics to request from the nodes, and the rows computed from their samples."""

from dataclasses import dataclass

from collector.cluster.live.cluster_interval import ClusterInterval, NodeStatus
from collector.cluster.live.live_cluster import LiveCluster, Plan, Request
from exporters.line.table_rows import joint_tables, tables
from exporters.line.view import running
from exporters.live.frame import ALL, Frame, NodeFrame, Rows
from exporters.live.history import History
from exporters.live.live_columns import (
    COLUMNS,
    EVERY,
    NOTHING,
    SUMMED,
    TABLE_METRICS,
    cells_of,
    needed,
    needs,
    patterns,
    shown_by,
)

MAX_TABLES = 60
RUNNING = frozenset({"cassandra_compaction_progress", "cassandra_compaction_size"})
ALL_METRICS = needs(column.name for column in COLUMNS) | TABLE_METRICS | RUNNING


@dataclass(frozen=True)
class Wanted:
    """The part of the data to display.

    columns  names of the columns to show.
    tables   index of the node for which tables are shown, or ALL; None to show no tables.
    node     index of the node that is shown with all its columns; None if there is none.
    """

    columns: frozenset[str]
    tables: int | None = None
    node: int | None = None


class LiveFrames:
    """Follows a cluster from `start` until `stop`; its frames are in `history`."""

    def __init__(self, plan: Plan, wanted: Wanted) -> None:
        self.history = History()
        self._wanted = wanted
        self._cluster = LiveCluster(plan, request_of(wanted), self._add, summed_gauges=SUMMED, select_values=needed)

    def start(self) -> None:
        """Start following the nodes in a new thread."""
        self._cluster.start()

    def stop(self) -> None:
        """Disconnect from the nodes; the frames remain available."""
        self._cluster.stop()

    def want(self, wanted: Wanted) -> None:
        """Replace the selection; may be called from any thread."""
        if wanted != self._wanted:
            self._wanted = wanted
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
        tuple(patterns(metrics)), ALL_METRICS if all_tables else ALL_METRICS - TABLE_METRICS, TABLE_METRICS, wanted.node
    )


def frame_of(interval: ClusterInterval, wanted: Wanted) -> Frame:
    """Return the frame of an interval, with the wanted columns and tables."""
    names = EVERY if wanted.node is not None else shown_by(needs(wanted.columns))
    table_rows, compactions = _details(interval, wanted.tables if wanted.node is None else wanted.node)
    return Frame(
        interval.end_s,
        interval.interval_s,
        interval.name,
        tuple(_row(node, names) for node in interval.nodes),
        cells_of(interval.cluster, local=interval.local, names=names),
        interval.counted,
        interval.events,
        table_rows,
        compactions,
    )


def _row(node: NodeStatus, names: frozenset[str]) -> NodeFrame:
    cells = NOTHING if node.sample is None else cells_of(node.sample, local=node.info.local, names=names)
    return NodeFrame(node.name, node.state, cells, node.reason, node.age_s, node.info.location)


def _details(interval: ClusterInterval, index: int | None) -> tuple[dict[int, Rows], dict[int, Rows]]:
    """Return the tables and the running compactions of a node, or of all nodes for ALL; both are keyed by `index`."""
    if index is None:
        return {}, {}
    if index == ALL:
        samples = [node.sample for node in interval.nodes if node.sample is not None and node.is_current]
        return {ALL: joint_tables(samples)[:MAX_TABLES]}, {ALL: running(interval.cluster)[:MAX_TABLES]}
    node = interval.nodes[index] if index < len(interval.nodes) else None
    if node is None or node.sample is None or not node.is_current:
        return {}, {}
    return {index: tables(node.sample)[:MAX_TABLES]}, {index: running(node.sample)[:MAX_TABLES]}
