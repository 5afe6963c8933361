"""Prepares merged runs for plotting: one run, or several that are aligned by phase.

One run has rows on a common time grid, buckets, marks and the footer. If several runs are aligned, each phase begins at
the same time in all of them, for their servers and for their clients.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil
from typing import TypeVar

from collector.load_results.client_result import ClientInterval, ClientResult
from collector.merge.aggregation import NAME
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import Merged, NodeRun
from collector.merge.node_settings import NodeSettings, settings_of
from collector.model.histogram import Buckets
from collector.model.snapshot import Sample
from collector.node.metrics.requests import OPERATIONS
from collector.printable import count_text
from collector.recording.header import Header
from collector.recording.reader import Integrity
from collector.runs.run import RunPhase
from exporters.charts.plot_data import ClientSeries, Mark, Phase, PlotData, Row, Values, present
from exporters.results.summary.client_values import (
    LATENCY_KINDS,
    ClientPoint,
    client_points,
    latency_of_kind,
    total_within,
    with_breaks,
    without_rests,
)
from exporters.rows.merged_rows import ClusterRow, table_of
from exporters.rows.operation_columns import Operations
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


def node_rows(operations: Operations, node: NodeRun) -> NodeRows:
    """Return a node's rows, marks and settings."""
    rows: dict[int, Row] = {
        # Most of the other operations do not occur; see `plot_data.rates`.
        index: {name: cell for name, cell in row.items() if (cell if name in _OTHERS else cell is not None)}
        for index, row in node_cells(table_of(operations), node, (*SHOWN, *_OTHERS))
    }
    marks = tuple(
        Mark(time_s if event.time_s is None else event.time_s, node.node, event.kind, event.text)
        for time_s, events in node.events
        for event in (*logged(events), *(event for event in events if event.kind in MARKED))
    )
    return NodeRows(rows, marks, settings_of(node))


def run_of(merged: Merged[NodeRows], operations: Operations, name: str, warm_up_s: float = 0.0) -> PlotData:
    """Return the run that the plots show; the first `warm_up_s` seconds are its warm-up."""
    table, grid, indices = table_of(operations), merged.grid, merged.indices
    cluster: list[Row | None] = []
    buckets: dict[str, list[Buckets | None]] = {word: [] for word in _SCOPES}
    for index in indices:
        cluster_sample = merged.cluster.get(index)
        cluster.append(None if cluster_sample is None else ClusterRow(table, cluster_sample, len(merged.nodes)))
        for operation, series in buckets.items():
            series.append(
                None if cluster_sample is None else operation_buckets(operations, cluster_sample.sample, operation)
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


def operation_buckets(operations: Operations, sample: Sample, operation: str) -> Buckets | None:
    """Return the merged latency histogram of an operation, given its `Operation.word`."""
    return operations.buckets(sample, _SCOPES[operation])


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


Value = TypeVar("Value")
# Times since the epoch have an error of less than a microsecond.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PhaseClient:
    """What the clients of one run saw in one phase.

    points  their times are in seconds since the phase began.
    totals  the total of each operation of each client result.
    """

    points: Sequence[ClientPoint] = ()
    totals: Sequence[ClientInterval] = ()


def phase_client(results: Iterable[ClientResult], begin_s: float, end_s: float, step_s: float) -> PhaseClient:
    """Return what the clients saw from `begin_s` to `end_s`; a point covers about `step_s` or more."""
    known = list(results)
    totals = [total_within(operation, begin_s, end_s) for result in known for operation in result.operations]
    return PhaseClient(
        [_shifted(point, -begin_s) for point in without_rests(client_points(known, begin_s, end_s, step_s), step_s)],
        [total for total in totals if total],
    )


def client_series(phases: Sequence[PhaseClient], begins_s: Sequence[float], measured: Sequence[bool]) -> ClientSeries:
    """Return the phases as one series; they begin at `begins_s`, and the distributions cover those in `measured`."""
    shifted = [
        _shifted(point, begin_s) for phase, begin_s in zip(phases, begins_s, strict=True) for point in phase.points
    ]
    points = with_breaks(shifted)
    totals = [total for phase, counts in zip(phases, measured, strict=True) if counts for total in phase.totals]
    distributions = {kind: latency_of_kind(totals, kind) for kind in LATENCY_KINDS}
    return ClientSeries(
        [point.end_s for point in points],
        [point.ops_per_s for point in points],
        _by_kind([point.mean_ms for point in points]),
        _by_kind([point.p99_ms for point in points]),
        {kind: latency for kind, latency in distributions.items() if latency and latency.counts},
    )


def _by_kind(points: Sequence[Mapping[str, float]]) -> dict[str, Values]:
    """Return the values of consecutive points by kind of latency, without kinds that have no values."""
    values = {kind: [point.get(kind) for point in points] for kind in LATENCY_KINDS}
    return {kind: of_kind for kind, of_kind in values.items() if present(of_kind)}


def _shifted(point: ClientPoint, offset_s: float) -> ClientPoint:
    return replace(point, begin_s=point.begin_s + offset_s, end_s=point.end_s + offset_s)


@dataclass(frozen=True)
class PhaseRows:
    """A phase of one run.

    rows     the cluster's rows, keyed by the number of the interval in the phase.
    buckets  keyed by operation ("read", "write"): each known merged latency histogram of an interval.
    client   what the clients saw; None if the run has no client results.
    """

    name: str
    length_s: float
    is_measured: bool
    rows: Mapping[int, Row]
    buckets: Mapping[str, Mapping[int, Buckets]]
    client: PhaseClient | None = None


def bucket_key(operation: str, run: str) -> str:
    """Return the key of a run's histograms in the buckets of aligned runs."""
    return f"{operation} {run}"


def aligned(runs: Mapping[str, Sequence[PhaseRows]], interval_s: float, footer: Sequence[str]) -> PlotData:
    """Return several runs with the same phases as one run that has their rows instead of those of nodes.

    Its times are in seconds since the start, and the keys of its histograms are those of `bucket_key`. A phase is as
    long as its longest occurrence, rounded up to whole intervals.
    """
    counts = [
        max(1, *(ceil(phase.length_s / interval_s - _TOLERANCE) for phase in occurrences))
        for occurrences in zip(*runs.values(), strict=True)
    ]
    starts = [*accumulate(counts, initial=0)]
    phases = [
        Phase(begin * interval_s, end * interval_s, phase.name, not phase.is_measured)
        for (begin, end), phase in zip(pairwise(starts), next(iter(runs.values())), strict=True)
    ]
    rows = {name: _joined([phase.rows for phase in of_run], starts) for name, of_run in runs.items()}
    buckets = {
        bucket_key(operation, name): _joined([phase.buckets.get(operation, {}) for phase in of_run], starts)
        for name, of_run in runs.items()
        for operation in {operation for phase in of_run for operation in phase.buckets}
    }
    times = [(number + 1) * interval_s for number in range(starts[-1])]
    clients = {
        name: client_series(of_phases, [phase.begin_s for phase in phases], [not phase.warm_up for phase in phases])
        for name, of_run in runs.items()
        if len(of_phases := [phase.client for phase in of_run if phase.client]) == len(phases)
    }
    return PlotData(
        f"{len(runs)} runs", interval_s, times, rows, buckets, phases=phases, footer=footer, clients=clients
    )


def _joined(phases: Sequence[Mapping[int, Value]], starts: Sequence[int]) -> list[Value | None]:
    """Return the values of consecutive phases; `starts` has the beginning of each phase, and the end of the last."""
    values: list[Value | None] = [None] * starts[-1]
    for start, phase in zip(starts, phases, strict=False):
        for number, value in phase.items():
            values[start + number] = value
    return values


def merged_phases(
    merged: Merged[NodeRows],
    operations: Operations,
    grid: SpanGrid,
    phases: Sequence[RunPhase],
    results: Sequence[ClientResult],
) -> list[PhaseRows]:
    """Return the rows and the client results of each phase; the spans of `grid` are the phases."""
    rows: list[dict[int, Row]] = [{} for _ in phases]
    buckets: list[dict[str, dict[int, Buckets]]] = [{operation.word: {} for operation in OPERATIONS} for _ in phases]
    for index, sample in merged.cluster.items():
        phase, number = grid.span_of(index), grid.number_in_span(index)
        rows[phase][number] = ClusterRow(table_of(operations), sample, len(merged.nodes))
        for operation in (operation.word for operation in OPERATIONS):
            histogram = operation_buckets(operations, sample.sample, operation)
            if histogram is not None:
                buckets[phase][operation][number] = histogram
    return [
        PhaseRows(
            phase.name,
            phase.end_s - phase.begin_s,
            phase.measured,
            phase_rows,
            phase_buckets,
            phase_client(results, phase.begin_s, phase.end_s, grid.interval_s) if results else None,
        )
        for phase, phase_rows, phase_buckets in zip(phases, rows, buckets, strict=True)
    ]
