"""Prepares a merged run for plotting: rows on a common time grid, buckets, marks and the footer."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.merge.aggregation import NAME
from collector.merge.merge_job import Merged, NodeRun
from collector.merge.node_settings import NodeSettings, settings_of
from collector.model.histogram import Buckets
from collector.model.sample import Sample
from collector.model.snapshot import Event
from collector.node.metrics.requests import OPERATIONS
from collector.printable import count_text
from collector.recording.header import Header
from collector.recording.reader import Integrity
from exporters.charts.plot_data import Mark, Phase, PlotData, Row
from exporters.rows.merged_rows import Choice, ClusterRow, table_of
from exporters.rows.row_files import node_cells
from exporters.rows.view import logged

# Only these columns are kept for each node, because a run may have hundreds of nodes.
SHOWN = (
    *("time", "interval_s", "nodes", "reads_per_s", "writes_per_s", "read_p99_ms", "write_p99_ms"),
    *(f"{operation.word}_max_ms" for operation in OPERATIONS),
)
_OTHERS = tuple(
    name
    for operation in OPERATIONS
    if not operation.is_usual
    for name in (f"{operation.plural}_per_s", f"{operation.word}_p99_ms")
)
_SCOPES = {operation.word: operation.scope for operation in OPERATIONS}
# Of the events about the sampling itself, only these are marked; a node that is not answering appears as a gap.
MARKED = {"restart", "suspended"}


@dataclass(frozen=True)
class NodeRows:
    """One node's data for plotting: rows without absent values, keyed by interval index, marks, and its settings."""

    rows: dict[int, Row]
    marks: tuple[Mark, ...]
    settings: NodeSettings


def node_rows(choice: Choice, node: NodeRun) -> NodeRows:
    """Return a node's rows, marks and settings."""
    rows: dict[int, Row] = {
        # Most of the other operations do not occur; see `plot_columns.rates`.
        index: {name: cell for name, cell in row.items() if (cell if name in _OTHERS else cell is not None)}
        for index, row in node_cells(table_of(choice), node, (*SHOWN, *_OTHERS))
    }
    marks = tuple(
        _mark(node.node, event, time_s)
        for time_s, events in node.events
        for event in (*logged(events), *(event for event in events if event.kind in MARKED))
    )
    return NodeRows(rows, marks, settings_of(node))


def _mark(node: str, event: Event, time_s: float) -> Mark:
    return Mark(time_s if event.time_s is None else event.time_s, node, event.kind, event.text)


def run_of(merged: Merged[NodeRows], choice: Choice, name: str, warm_up_s: float = 0.0) -> PlotData:
    """Return the run that the plots show; the first `warm_up_s` seconds are its warm-up."""
    table, grid, indices = table_of(choice), merged.grid, merged.indices
    cluster: list[Row | None] = []
    buckets: dict[str, list[Buckets | None]] = {word: [] for word in _SCOPES}
    for index in indices:
        cluster_sample = merged.cluster.get(index)
        cluster.append(None if cluster_sample is None else ClusterRow(table, cluster_sample, len(merged.nodes)))
        for operation, series in buckets.items():
            series.append(
                None if cluster_sample is None else operation_buckets(choice, cluster_sample.sample, operation)
            )
    begin_s = grid.end_of(indices.start) - grid.interval_s
    head = merged.nodes[0].head
    return PlotData(
        name,
        grid.interval_s,
        [grid.end_of(index) for index in indices],
        {NAME: cluster, **{node.node: [node.product.rows.get(index) for index in indices] for node in merged.nodes}},
        buckets,
        sorted((mark for node in merged.nodes for mark in node.product.marks), key=lambda mark: mark.time_s),
        (Phase(begin_s, begin_s + warm_up_s, "warm-up", True),) if warm_up_s else (),
        head.zone,
        footer(merged),
    )


def operation_buckets(choice: Choice, sample: Sample, operation: str) -> Buckets | None:
    """Return the merged latency histogram of an operation, given its `Operation.word`."""
    return table_of(choice).view.operations.buckets(sample, _SCOPES[operation])


def footer(merged: Merged[NodeRows]) -> list[str]:
    """Return the footer: versions, nodes, intervals, samples, damage and clock errors."""
    nodes = merged.nodes
    versions = sorted({node.product.settings.cassandra for node in nodes} - {""})
    intervals = sorted({node.head.interval_s for node in nodes})
    integrity = sum((node.integrity for node in nodes), Integrity())
    lost = sum(node.missed for node in nodes) + integrity.lost
    return [
        f"Cassandra {', '.join(versions) or 'version unknown'}",
        f"casstat {', '.join(sorted({node.head.writer for node in nodes}))}",
        count_text(len(nodes), "node"),
        f"sampled every {', '.join(map('{:g}'.format, intervals))} s, shown every {merged.grid.interval_s:g} s",
        f"{count_text(sum(node.ticks for node in nodes), 'sample')}, {lost} lost",
        *([count_text(integrity.damaged, "damaged section")] if integrity.damaged else []),
        *([f"{count_text(integrity.repeated, 'tick')} repeated"] if integrity.repeated else []),
        clocks([node.head for node in nodes]),
    ]


def clocks(heads: Sequence[Header]) -> str:
    """Return "one clock" if all nodes share a clock; otherwise the largest clock error, or that it is unknown."""
    if len(heads) == 1 or (heads[0].boot and len({head.boot for head in heads}) == 1):
        return "one clock"
    errors = [head.error_s for head in heads]
    kept = [error_s for error_s in errors if error_s is not None]
    if len(kept) < len(errors):
        return f"clock error unknown: {count_text(len(errors) - len(kept), 'node')} not synchronised"
    return f"clock error at most {1000 * max(kept):.1f} ms"
