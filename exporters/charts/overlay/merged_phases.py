"""Prepares the phases of a merged run for overlaid plots."""

from collections.abc import Sequence

from collector.load_results.client_result import ClientResult
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import Merged
from collector.model.histogram import Buckets
from collector.node.metrics.requests import OPERATIONS
from collector.runs.run import RunPhase
from exporters.charts.merged_run import NodeRows, operation_buckets
from exporters.charts.overlay.aligned_runs import PhaseRows
from exporters.charts.overlay.client_phases import phase_client
from exporters.charts.plot_data import Row
from exporters.rows.merged_rows import Choice, table_of


def merged_phases(
    merged: Merged[NodeRows],
    choice: Choice,
    grid: SpanGrid,
    phases: Sequence[RunPhase],
    results: Sequence[ClientResult],
) -> list[PhaseRows]:
    """Return the rows and the client results of each phase; the spans of `grid` are the phases."""
    rows: list[dict[int, Row]] = [{} for _ in phases]
    buckets: list[dict[str, dict[int, Buckets]]] = [{operation.word: {} for operation in OPERATIONS} for _ in phases]
    for index, sample in merged.cluster.items():
        phase, number = grid.span_of(index), grid.number_in_span(index)
        rows[phase][number] = table_of(choice).cluster_row(sample, len(merged.nodes))
        for operation in (operation.word for operation in OPERATIONS):
            histogram = operation_buckets(choice, sample.sample, operation)
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
