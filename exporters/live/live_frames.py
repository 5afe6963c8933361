"""Frames of a live cluster: the metrics to request from the nodes, and the rows computed from their samples."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.live.cluster_interval import ClusterInterval, CountedNode, NodeStatus
from collector.live.live_cluster import LiveCluster, Plan, Request
from collector.model.snapshot import Sample
from exporters.live.frame import ALL, Frame, GroupFrame, History, NodeFrame, Rows, locations_of
from exporters.live.live_columns import (
    COLUMNS,
    EVERY,
    NOTHING,
    SUMMED,
    TABLE_METRICS,
    cells_of,
    needs,
    selectors,
    shown_by,
)
from exporters.rows.table_rows import joint_tables, tables
from exporters.rows.view import running, with_last_known

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
