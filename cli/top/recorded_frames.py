"""Frames from a recording, merged the way `casstat merge` does."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cli.errors import CasstatError
from cli.parameters.recording_options import memory_limit
from cli.recordings.merge_program import absent_nodes, recording_views
from cli.recordings.recording_arguments import MergeSettings
from cli.recordings.views import View
from collector.live.cluster_interval import ClusterEvent, State, dc_rack
from collector.live.interval_assembler import MAX_EVENTS, MAX_NAME_CHARS, cluster_event, state_of
from collector.merge.merge_job import Merged, NodeRun
from collector.model.snapshot import IDENTITY_LABELS
from collector.printable import one_line
from collector.recording.header import MAX_MEMORY_BYTES
from collector.runs.run import RunNode
from exporters.live.frame import ALL, RUNNING, Frame, History, NodeFrame, Rows, Wanted
from exporters.live.live_columns import COLUMNS, NOTHING, TABLE_METRICS, Cells, cells_of, needs
from exporters.rows.operation_columns import Operations
from exporters.rows.table_rows import joint_tables, tables
from exporters.rows.view import running

# Maximum number of frames if no interval (-i) is given.
POINTS = 1800
# The tables of individual nodes are kept only if there are at most NODES_WITH_TABLES nodes. Each list of tables has at
# most MAX_TABLES entries.
NODES_WITH_TABLES, MAX_TABLES = 8, 20
MORE = needs(column.name for column in COLUMNS) | TABLE_METRICS | RUNNING | {series[0] for series in IDENTITY_LABELS}


class Moment(NamedTuple):
    """A node's data in one interval of a recording."""

    cells: Cells
    state: State
    why: str
    events: tuple[ClusterEvent, ...]
    location: str
    cluster: str
    tables: Rows
    running: Rows


class RecordedFrames:
    """A recording's frames; the constructor computes all of them."""

    def __init__(self, settings: MergeSettings, max_memory: int = MAX_MEMORY_BYTES) -> None:
        """Read and merge the recording; `max_memory` is in bytes. Raises CasstatError and click.UsageError."""
        with memory_limit(max_memory):
            run, operations = View(recording_views(settings), moments, MORE).merged()
        absent = [_absent_row(node, run) for node in absent_nodes(settings, run)]
        self.history = History(1 << 60, 1 << 60)
        for frame in _frames(run, operations, absent):
            self.history.add(frame)
        if not self.history.frames:
            raise CasstatError("no data in this time range")

    def want(self, wanted: Wanted) -> None:
        """Do nothing, because the frames already contain everything."""


def moments(_: Operations, run: NodeRun) -> dict[int, Moment]:
    """Return a node's data for each interval, keyed by interval index."""
    moment_by_interval: dict[int, Moment] = {}
    texts: dict[str, str] = {}
    local = run.head.way == "nodetool"
    for interval_index, interval in run.intervals.items():
        sample = interval.sample
        texts |= {
            IDENTITY_LABELS[series]: str(sample.values[series]) for series in IDENTITY_LABELS if series in sample.values
        }
        state, why = state_of(sample)
        events = [cluster_event(run.node, event, sample) for event in sample.events[:MAX_EVENTS]]
        moment_by_interval[interval_index] = Moment(
            cells_of(sample, local=local),
            state,
            why,
            tuple(event for event in events if event is not None),
            one_line(dc_rack(texts.get("dc", ""), texts.get("rack", "")))[:MAX_NAME_CHARS],
            one_line(texts.get("cluster", ""))[:MAX_NAME_CHARS],
            tables(sample)[:MAX_TABLES],
            running(sample)[:MAX_TABLES],
        )
    return moment_by_interval


def _frames(run: Merged[dict[int, Moment]], operations: Operations, absent: Sequence[NodeFrame]) -> Iterator[Frame]:
    last: dict[str, int] = {}
    answered: dict[str, int] = {}
    # Locations are recorded only once a minute, so each node's first known location is used for all intervals.
    locations = {node.node: next((m.location for m in node.product.values() if m.location), "") for node in run.nodes}
    names = {m.cluster for node in run.nodes for m in node.product.values() if m.cluster}
    few = len(run.nodes) <= NODES_WITH_TABLES
    for interval_index in run.indices:
        rows, events, rows_of, ran = [], list[ClusterEvent](), dict[int, Rows](), dict[int, Rows]()
        for number, node in enumerate(run.nodes):
            moment = node.product.get(interval_index)
            if moment is not None:
                last[node.node] = interval_index
                if moment.state is not State.SILENT:
                    answered[node.node] = interval_index
                events += moment.events
                if few:
                    rows_of[number], ran[number] = moment.tables, moment.running
            since = last.get(node.node) if moment is None else answered.get(node.node)
            age_s = None if since in (None, interval_index) else (interval_index - (since or 0)) * run.grid.interval_s
            rows.append(_row(node.node, moment, age_s, locations[node.node]))
        cluster_interval = run.cluster.get(interval_index)
        cluster = NOTHING
        if cluster_interval is not None:
            cluster = cells_of(cluster_interval.sample, local=operations.local)
            rows_of[ALL] = joint_tables([cluster_interval.sample])[:MAX_TABLES]
        yield Frame(
            run.grid.end_of(interval_index),
            run.grid.interval_s,
            next(iter(names)) if len(names) == 1 else "",
            (*rows, *absent),
            cluster,
            cluster_interval.answered if cluster_interval else 0,
            tuple(sorted(events, key=lambda event: event.time_s)),
            rows_of,
            ran,
        )


def _absent_row(node: RunNode, run: Merged[dict[int, Moment]]) -> NodeFrame:
    """Return the row of a node of a run that has no recording."""
    name = node.address if node.name in run.folders else node.name or node.address
    why = f"not recorded: {node.problem}" if node.problem else "not recorded"
    return NodeFrame(one_line(name)[:MAX_NAME_CHARS], State.GONE, NOTHING, one_line(why), None, "")


def _row(name: str, moment: Moment | None, age_s: float | None, where: str) -> NodeFrame:
    shown = one_line(name)[:MAX_NAME_CHARS]
    if moment is not None:
        return NodeFrame(shown, moment.state, moment.cells, moment.why, age_s, moment.location or where)
    if age_s is None:
        return NodeFrame(shown, State.NEW, NOTHING, "not recorded yet", None, where)
    return NodeFrame(shown, State.GONE, NOTHING, "not recorded", age_s, where)
